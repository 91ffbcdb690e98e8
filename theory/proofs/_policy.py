"""A softmax policy of four groups of actions, each of symbolic size, and the exact derivative of masses along a step.

The groups are sampled-correct, sampled-wrong, unsampled-correct and unsampled-wrong. Each has any number of actions (a
symbol) with any probabilities (indexed), so an identity checked here holds for every policy and every group.
Along z + t dz the softmax is p_j(t) = p_j exp(t dz_j) / sum_k p_k exp(t dz_k), which is what gets differentiated.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sympy as sp

from fgrpo.theory.proofs._algebra import INDEX

_T = sp.Symbol("t", real=True)


class Group(NamedTuple):
    """Actions of one kind: probability of the i-th, and how many there are."""

    probability: Any
    size: Any

    def total(self, summand: Any) -> Any:
        """Sum over the group of an expression in its `probability`."""
        return sp.Sum(summand, (INDEX, 1, self.size))

    def moment(self, power: int) -> Any:
        """Sum over the group of probability^power."""
        return self.total(self.probability**power)


def _group(name: str) -> Group:
    return Group(sp.IndexedBase(name, positive=True)[INDEX], sp.Symbol(f"n_{name}", integer=True, positive=True))


SAMPLED_CORRECT, SAMPLED_WRONG, UNSAMPLED_CORRECT, UNSAMPLED_WRONG = map(_group, ("a", "b", "u", "v"))
GROUPS = (SAMPLED_CORRECT, SAMPLED_WRONG, UNSAMPLED_CORRECT, UNSAMPLED_WRONG)

R_C, R_W, S_R = sp.symbols("R_c R_w S_R", real=True)

P_POS, P_NEG = SAMPLED_CORRECT.moment(1), SAMPLED_WRONG.moment(1)
Q_U = UNSAMPLED_CORRECT.moment(1)
A_2, B_2 = SAMPLED_CORRECT.moment(2), SAMPLED_WRONG.moment(2)
U_POS_2, U_NEG_2 = UNSAMPLED_CORRECT.moment(2), UNSAMPLED_WRONG.moment(2)
U_2 = U_POS_2 + U_NEG_2
Q = P_POS + Q_U
T = (R_C - S_R) * A_2 + (R_W - S_R) * B_2 - S_R * U_2
M_P, M_N = A_2 + U_POS_2, B_2 + U_NEG_2


def distinct_update() -> list[tuple[Group, Any]]:
    """The step N dz_i / eta = p_i (R_i - S_R), -p_i S_R for unsampled i (Eq 7 in v1, Eq 5 in v2); S_R left symbolic."""
    gains = (R_C - S_R, R_W - S_R, -S_R, -S_R)
    return [(group, group.probability * gain) for group, gain in zip(GROUPS, gains, strict=True)]


def mass_rate(members: Collection[Group], step: Sequence[tuple[Group, Any]], order: int = 1) -> Any:
    """Derivative of the members' total probability along the step, at its start; the probabilities add up to 1."""

    def weight(group: Group, dz: Any) -> Any:
        return group.total(group.probability * sp.exp(_T * dz))

    chosen = sum(weight(group, dz) for group, dz in step if group in members)
    everything = sum(weight(group, dz) for group, dz in step)
    rate = sp.diff(chosen / everything, _T, order).subs(_T, 0)
    # the one constraint between the sums: they are probabilities
    last = step[-1][0]
    rest = sum((group.moment(1) for group, _ in step[:-1]), sp.Integer(0))
    return rate.subs(last.moment(1), 1 - rest)


def explicit_rate(p: Sequence[Any], dz: Sequence[Any], members: Collection[int]) -> Any:
    """The same derivative for given numbers: policy, step and set of actions."""

    def weight(i: int) -> Any:
        return p[i] * sp.exp(_T * dz[i])

    everything = sum(weight(i) for i in range(len(p)))
    return sp.diff(sum(weight(i) for i in members) / everything, _T).subs(_T, 0)


def explicit_step(p: Sequence[Any], rewards: Sequence[Any], sampled: Collection[int]) -> list[Any]:
    """N dz / eta of Eq 7 (v1; Eq 5 in v2) for given numbers."""
    baseline = sum(rewards[i] * p[i] for i in sampled)
    return [p[i] * ((rewards[i] if i in sampled else 0) - baseline) for i in range(len(p))]
