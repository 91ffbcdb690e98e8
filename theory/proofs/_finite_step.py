"""How far the first order is from the exact change of a mass."""

from typing import Any

import sympy as sp

from fgrpo.theory.proofs._algebra import INDEX, by_linearity, non_negative, vanishes
from fgrpo.theory.proofs._policy import GROUPS, mass_rate
from fgrpo.theory.proofs._proof import Proof, Step, Wrong


def _finite_step_steps(fraction: Any) -> tuple[Step, ...]:
    """With fraction * range(dz)^2 as the claimed bound."""
    # two kinds are enough here, the actions in S and the others; each action has a dz of its own
    inside, outside = ((group, sp.IndexedBase(f"d_{k}", real=True)[INDEX]) for k, group in enumerate(GROUPS[:2]))
    m = sp.Symbol("m", real=True)
    low, high, x = sp.symbols("low high x", real=True)
    mass, other = sp.symbols("Q_S rest", nonnegative=True)
    quarter, square = (high - low) ** 2 / 4, (m - (high + low) / 2) ** 2

    def mean_value() -> Any:
        return sum(group.total(group.probability * dz) for group, dz in (inside, outside))

    def variance_like() -> Any:
        """E[(1_S - Q_S) (d - m)^2]."""
        q = inside[0].moment(1)
        squares = [group.total(group.probability * (dz - m) ** 2) for group, dz in (inside, outside)]
        return (1 - q) * squares[0] - q * squares[1]

    def curvature() -> Any:
        claimed = (
            by_linearity(variance_like()).subs(outside[0].moment(1), 1 - inside[0].moment(1)).subs(m, mean_value())
        )
        return by_linearity(mass_rate((inside[0],), (inside, outside), order=2)) - claimed

    return (
        Step(
            "Second derivative of the mass of a set S along z + t dz, any numbers of actions inside and outside, any "
            "dz: Q_S'' = E[(1_S - Q_S) (d - m)^2], m = E d (at every t, since the policy at t may serve as the "
            "starting one)",
            lambda: vanishes(curvature()),
        ),
        Step(
            "|1_S - Q_S| <= 1: 1 - (1 - Q_S) >= 0 inside, 1 - Q_S = rest >= 0 outside",
            lambda: non_negative(1 - (1 - mass)) and non_negative((1 - mass).subs(mass, 1 - other)),
        ),
        Step("|Q_S''| <= Var d", lemma="monotonicity of expectation"),
        Step(
            "(high - m)(m - low) - (x - m)^2 = (high - x)(x - low) + (high + low - 2m)(m - x)",
            lambda: vanishes(
                (high - m) * (m - low) - (x - m) ** 2 - (high - x) * (x - low) - (high + low - 2 * m) * (m - x)
            ),
        ),
        Step(
            "Var d <= (high - m)(m - low), high = max dz, low = min dz: x = d in the identity, and its mean",
            lemma="monotonicity of expectation: (high - d)(d - low) >= 0, and m - d has mean 0",
        ),
        Step(
            "(high - m)(m - low) = (high - low)^2 / 4 - (m - (high + low)/2)^2 <= range^2 / 4",
            lambda: vanishes((high - m) * (m - low) - (quarter - square)) and non_negative(square),
        ),
        Step(
            "|exact - first order| <= sup |Q_S''| / 2",
            lemma="Taylor's theorem with Lagrange's remainder, on t in [0, 1]",
        ),
        Step(
            "half of range^2 / 4 is within the claimed bound",
            lambda: non_negative(fraction * (high - low) ** 2 - quarter / 2),
        ),
    )


def _two_action_remainder() -> tuple[Any, Any]:
    """Exact minus first-order change and range for p = (1/5, 4/5), dz = (ln 3/2, 0)."""
    q, size = sp.Rational(1, 5), sp.log(sp.Rational(3, 2))
    exact = q * sp.Rational(3, 2) / (q * sp.Rational(3, 2) + 1 - q)
    return exact - (q + q * (1 - q) * size), size


FINITE_STEP_BOUND = Proof(
    name="finite_step_bound",
    statement="For any set S of actions and any step dz, |exact change of Q_S - first-order change| <= "
    "(max dz - min dz)^2 / 8",
    assumptions=("one softmax over finitely many actions",),
    source="this project (bounds what Eq 8 in v1, Eq 17 in v2, and Proposition 3.2 leave out)",
    steps=_finite_step_steps(sp.Rational(1, 8)),
    wrong=Wrong(
        statement="... <= (max dz - min dz)^2 / 24",
        steps=_finite_step_steps(sp.Rational(1, 24)),
        counterexample="p = (1/5, 4/5), dz = (ln 3/2, 0): the difference is 0.048 range^2",
        refutes=lambda: bool(_two_action_remainder()[0] > _two_action_remainder()[1] ** 2 / 24),
    ),
)
