"""The logit update of every surrogate, by differentiation through the softmax."""

from typing import Any

import sympy as sp

from fgrpo.theory.proofs._algebra import INDEX, by_linearity, vanishes
from fgrpo.theory.proofs._policy import R_C, R_W
from fgrpo.theory.proofs._proof import Proof, Step, Wrong

_N, _P = sp.symbols("N p_i", positive=True)
_OTHERS = sp.Symbol("m", integer=True, positive=True)
_OLD = sp.IndexedBase("p", positive=True)  # the other actions' probabilities before the step
_COUNT, _REWARD, _IS_SAMPLED = sp.IndexedBase("n"), sp.IndexedBase("R"), sp.IndexedBase("s")
_COUNT_I, _REWARD_I, _SAMPLED_I = sp.symbols("n_i R_i s_i", real=True)
_SHIFT = sp.Symbol("t", real=True)


def _total(at_i: Any, others: Any) -> Any:
    """Sum over all actions: the one whose logit moves, and m others."""
    return at_i + sp.Sum(others, (INDEX, 1, _OTHERS))


def _gradient(coefficient_i: Any, coefficients: Any) -> Any:
    """d/dz_i at the old policy of (1/N) sum_j coefficient_j p_j, coefficients held fixed."""
    scale = 1 + _P * (sp.exp(_SHIFT) - 1)  # of the partition function when z_i grows by t
    value = _total(coefficient_i * _P * sp.exp(_SHIFT) / scale, coefficients * _OLD[INDEX] / scale) / _N
    return sp.diff(value, _SHIFT).subs(_SHIFT, 0)


def _logit_steps(drift: Any) -> tuple[Step, ...]:
    """With drift = the claimed part of the importance-ratio update that an unsampled logit feels."""
    p, n, r, s = _OLD[INDEX], _COUNT[INDEX], _REWARD[INDEX], _IS_SAMPLED[INDEX]
    mean_reward = _total(_COUNT_I * _REWARD_I, n * r) / _N
    baseline = _total(_SAMPLED_I * _REWARD_I * _P, s * r * p)
    counted = _total(_COUNT_I * _REWARD_I * _P, n * r * p)
    mean = sp.Symbol("Rbar", real=True)
    centred_i, centred = _REWARD_I - mean, r - mean
    weighted = _total(_COUNT_I * centred_i * _P, n * centred * p) / _N
    right, wrong, k_right = sp.symbols("pbar_c pbar_w X", positive=True)
    # sum of n_j (R_j - Rbar) over all actions; sum n_j = N holds for the counts of a group
    residual = _total(_COUNT_I * centred_i, n * centred).subs(mean, mean_reward)
    counts_add_up = {sp.Sum(n, (INDEX, 1, _OTHERS)): _N - _COUNT_I}
    return (
        Step(
            "sum over distinct sampled j of R_j p_j (Eq 7 in v1, Eq 5 in v2): dz_i = (eta/N) p_i (s_i R_i - S_R); "
            "m other actions, all symbolic, s_i = 1 if sampled else 0",
            lambda: vanishes(_gradient(_SAMPLED_I * _REWARD_I, s * r) - _P * (_SAMPLED_I * _REWARD_I - baseline) / _N),
        ),
        Step(
            "hence an unsampled logit moves by -(eta/N) p_i S_R",
            lambda: vanishes(
                _gradient(_SAMPLED_I * _REWARD_I, s * r).subs(_SAMPLED_I, 0) + _P * baseline.subs(_SAMPLED_I, 0) / _N
            ),
        ),
        Step(
            "sum over rollouts of R_j p_j (multiplicities n): dz_i = (eta/N) p_i (n_i R_i - sum n R p)",
            lambda: vanishes(_gradient(_COUNT_I * _REWARD_I, n * r) - _P * (_COUNT_I * _REWARD_I - counted) / _N),
        ),
        Step(
            "centred rewards r = R - Rbar: dz_i = eta p_i (n_i r_i / N - S~), S~ = (1/N) sum n r p",
            lambda: vanishes(
                _gradient(_COUNT_I * centred_i, n * centred) - _P * (_COUNT_I * centred_i / _N - weighted)
            ),
        ),
        Step(
            "raw rewards with ratios p_j / p_j^old: dz_i = eta (n_i R_i / N - p_i Rbar)",
            lambda: vanishes(
                _gradient(_COUNT_I * _REWARD_I / _P, n * r / p) - (_COUNT_I * _REWARD_I / _N - _P * mean_reward)
            ),
        ),
        Step("sum over rollouts of centred rewards is 0", lambda: vanishes(by_linearity(residual).subs(counts_add_up))),
        Step(
            "centred rewards with ratios (GRPO): dz_i = eta n_i r_i / N, which is 0 for an unsampled action (n_i = 0)",
            lambda: vanishes(
                by_linearity(
                    (_gradient(_COUNT_I * centred_i / _P, n * centred / p) - _COUNT_I * centred_i / _N - drift).subs(
                        mean, mean_reward
                    )
                ).subs(counts_add_up)
            ),
        ),
        Step(
            "for two reward levels S~ = (R_c - R_w) m (1 - m) (pbar_c - pbar_w), m = X/N, pbar the mean probability of "
            "the right and of the wrong rollouts",
            lambda: vanishes(
                (
                    k_right * right * (R_C - (k_right * R_C + (_N - k_right) * R_W) / _N)
                    + (_N - k_right) * wrong * (R_W - (k_right * R_C + (_N - k_right) * R_W) / _N)
                )
                / _N
                - (R_C - R_W) * k_right / _N * (1 - k_right / _N) * (right - wrong)
            ),
        ),
    )


def _unsampled_logit_gradient() -> Any:
    """GRPO's surrogate differentiated for p = (1/2 right, 1/4 wrong, 1/4 unsampled), in the third logit."""
    z = sp.symbols("z0:3", real=True)
    old = [sp.Rational(1, 2), sp.Rational(1, 4), sp.Rational(1, 4)]
    normaliser = sum(q * sp.exp(x) for q, x in zip(old, z, strict=True))
    ratios = [sp.exp(x) / normaliser for x in z]
    surrogate = (sp.Rational(1, 2) * ratios[0] - sp.Rational(1, 2) * ratios[1]) / 2
    return sp.diff(surrogate, z[2]).subs(dict.fromkeys(z, 0))


LOGIT_UPDATE = Proof(
    name="logit_update",
    statement="Gradient ascent on (1/N) sum over distinct sampled j of R_j p_j moves the logits by dz_i = (eta/N) p_i "
    "(R_i - S_R), unsampled ones by -(eta/N) p_i S_R, with S_R = R_c P_pos + R_w P_neg; the other surrogates move them "
    "as the steps say, and GRPO's (centred rewards, ratios) leaves unsampled logits where they are",
    assumptions=(
        "one softmax over finitely many actions; N rollouts",
        "one on-policy, unclipped gradient step; advantages are constants of the step",
    ),
    source="Eq 7 in v1, Eq 5 in v2; the other surrogates: this project",
    steps=_logit_steps(sp.Integer(0)),
    wrong=Wrong(
        statement="GRPO's surrogate (centred rewards, ratios) also moves an unsampled logit by -(eta/N) p_i S_R",
        steps=_logit_steps(
            -_P * _total(_SAMPLED_I * _REWARD_I * _P, _IS_SAMPLED[INDEX] * _REWARD[INDEX] * _OLD[INDEX]) / _N
        ),
        counterexample="p = (1/2 right, 1/4 wrong, 1/4 unsampled), rewards 1 and 0: S_R = 1/2, the unsampled logit "
        "stays",
        refutes=lambda: bool(_unsampled_logit_gradient() == 0),
    ),
)
