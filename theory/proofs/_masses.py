"""Proofs about the masses that one update moves, to first order."""

from typing import Any

import sympy as sp

from fgrpo.theory.proofs._algebra import non_negative, positive, vanishes
from fgrpo.theory.proofs._policy import (
    A_2,
    B_2,
    P_POS,
    Q_U,
    R_C,
    R_W,
    S_R,
    SAMPLED_CORRECT,
    U_2,
    U_NEG_2,
    U_POS_2,
    UNSAMPLED_CORRECT,
    Q,
    T,
    distinct_update,
    explicit_rate,
    explicit_step,
    mass_rate,
)
from fgrpo.theory.proofs._proof import Proof, Step, Wrong

_CATEGORICAL = "one softmax over finitely many actions; N rollouts, of which the distinct actions count"
_FIRST_ORDER = "first order in eta: what is left out is bounded by `finite_step_bound`"
_THIRD = sp.Rational(1, 3)


def _correct_mass_steps(sign: int) -> tuple[Step, ...]:
    """With sign = the claimed sign of the third term."""
    r_c, loss, p_pos, p_neg, rest = sp.symbols("R_c R_l P_pos P_neg rest", nonnegative=True)
    base, share, other, spread = sp.symbols("S_R Q_pos Q_neg U_2", positive=True)

    def third(u_neg_2: Any, u_pos_2: Any) -> Any:
        return base * (share * u_neg_2 - other * u_pos_2)

    claimed = (R_C - S_R) * (1 - Q) * A_2 + (S_R - R_W) * Q * B_2 + sign * S_R * (Q * U_NEG_2 - (1 - Q) * U_POS_2)
    s_r = r_c * p_pos - loss * p_neg  # R_w = -loss <= 0
    excess = r_c * p_pos + loss * (p_pos + rest)
    return (
        Step("N dz / eta = p_i (R_i - S_R), -p_i S_R for unsampled i", lemma="proof logit_update"),
        Step(
            "dQ_pos is the derivative of the softmax mass along this step, for any number of actions of the four kinds "
            "with any probabilities: it equals (eta/N) [three terms]",
            lambda: vanishes(mass_rate((SAMPLED_CORRECT, UNSAMPLED_CORRECT), distinct_update()) - claimed),
        ),
        Step(
            "R_c >= S_R: R_c - S_R = R_c (P_neg + unsampled mass) - R_w P_neg, non-negative if R_c >= 0 >= R_w",
            lambda: non_negative(sp.expand((r_c - s_r).subs(p_pos, 1 - p_neg - rest))),
        ),
        Step(
            "S_R >= R_w: S_R - R_w = R_c P_pos - R_w (1 - P_neg), non-negative if R_c >= 0 >= R_w",
            lambda: non_negative(excess) and vanishes((s_r + loss - excess).subs(rest, 1 - p_pos - p_neg)),
        ),
        Step(
            "the third term has either sign: > 0 if only wrong actions are unsampled, < 0 if only correct ones (S_R > "
            "0)",
            lambda: positive(third(spread, 0)) and positive(-third(0, spread)),
        ),
        Step("The rest is second order in eta", lemma="proof finite_step_bound"),
    )


def _explicit(p: list[Any], r_w: int, members: tuple[int, ...]) -> Any:
    """N/eta times the change for actions 0 wrong sampled, 1 correct unsampled, 2 correct sampled."""
    return explicit_rate(p, explicit_step(p, [r_w, 1, 1], (0, 2)), members)


CORRECT_MASS_CHANGE = Proof(
    name="correct_mass_change",
    statement="dQ_pos = (eta/N) [(R_c - S_R) Q_neg A_2 + (S_R - R_w) Q_pos B_2 + S_R (Q_pos U_neg,2 - Q_neg U_pos,2)]; "
    "the first two terms are >= 0 if R_c >= 0 >= R_w, the third has either sign",
    assumptions=(_CATEGORICAL, "Eq 7 (v1; Eq 5 in v2) as the update", _FIRST_ORDER),
    source="Eq 8 in v1, Eq 17 in v2 (App. C)",
    steps=_correct_mass_steps(1),
    wrong=Wrong(
        statement="the same with the third term's sign reversed",
        steps=_correct_mass_steps(-1),
        counterexample="p = (1/3 wrong sampled, 1/3 correct unsampled, 1/3 correct sampled), R_c = 1, R_w = 0: the "
        "change is +1/27 eta/N; S_R = 1/3 and the third term is -1/81, so reversed it would be +5/81",
        refutes=lambda: bool(_explicit([_THIRD] * 3, 0, (1, 2)) == sp.Rational(1, 27) != sp.Rational(5, 81)),
    ),
)


def _unsampled_mass_steps(sign: int) -> tuple[Step, ...]:
    """With sign = -1 for the drift as stated, +1 for its reversal."""
    members = (UNSAMPLED_CORRECT,)
    p_q, s = sp.symbols("Q_u S", nonnegative=True)
    u_2, coupling = sp.symbols("U T", nonnegative=True)
    return (
        Step("N dz / eta = p_i (R_i - S_R), -p_i S_R for unsampled i", lemma="proof logit_update"),
        Step(
            "dQ_u,pos is the derivative of the softmax mass along this step, for any number of actions of the four "
            "kinds with any probabilities: it equals the drift -(eta/N) S_R U_pos,2 plus the coupling -(eta/N) Q_u T",
            lambda: vanishes(mass_rate(members, distinct_update()) - (sign * S_R * U_POS_2 - Q_U * T)),
        ),
        Step(
            "S_R >= 0 and T >= 0 suffice for dQ_u,pos <= 0",
            lambda: non_negative(s * u_2 + p_q * coupling),
        ),
        Step("The rest is second order in eta", lemma="proof finite_step_bound"),
    )


UNSAMPLED_MASS_CHANGE = Proof(
    name="unsampled_mass_change",
    statement="dQ_u,pos = -(eta/N) [S_R U_pos,2 + Q_u T], T = (R_c - S_R) A_2 + (R_w - S_R) B_2 - S_R U_2",
    assumptions=(_CATEGORICAL, "Eq 7 (v1; Eq 5 in v2) as the update", _FIRST_ORDER),
    source="Proposition 3.2 (v1 and v2; Eq 10 in v2)",
    steps=_unsampled_mass_steps(-1),
    wrong=Wrong(
        statement="the same with the drift's sign reversed, +S_R U_pos,2",
        steps=_unsampled_mass_steps(1),
        counterexample="p = (1/3 wrong sampled, 1/3 correct unsampled, 1/3 correct sampled), R_c = 1, R_w = 0: the "
        "change is -1/27 eta/N; T = 0, so the reversed drift would give +1/27",
        refutes=lambda: bool(_explicit([_THIRD] * 3, 0, (1,)) == sp.Rational(-1, 27) != sp.Rational(1, 27)),
    ),
)


def _sampled_mass_steps(s_r: Any) -> tuple[Step, ...]:
    """With s_r a symbol for S_R that carries what is assumed of its sign."""
    above, below, p_pos, rest, a_2, b_2, u_2 = sp.symbols("R_c-S_R S_R-R_w P_pos rest A_2 B_2 U_2", nonnegative=True)
    collected = (R_C - S_R) * A_2 * (1 - P_POS) + P_POS * ((S_R - R_W) * B_2 + S_R * U_2)
    return (
        Step(
            "dP_pos = (eta/N) [(R_c - S_R) A_2 - P_pos T], by the softmax derivative",
            lambda: vanishes(mass_rate((SAMPLED_CORRECT,), distinct_update()) - ((R_C - S_R) * A_2 - P_POS * T)),
        ),
        Step(
            "T put in and collected: (R_c - S_R) A_2 (1 - P_pos) + P_pos [(S_R - R_w) B_2 + S_R U_2]",
            lambda: vanishes((R_C - S_R) * A_2 - P_POS * T - collected),
        ),
        Step("R_c >= S_R >= R_w", lemma="proof correct_mass_change, its steps on R_c - S_R and S_R - R_w"),
        Step(
            "so every term is >= 0 (rest = 1 - P_pos)",
            lambda: (above * a_2 * rest + p_pos * (below * b_2 + s_r * u_2)).is_nonnegative is True,
        ),
    )


def _negative_baseline() -> Any:
    """Change for p = (1/32 correct sampled, 1/4 wrong sampled, 23/32 unsampled), R_w = -1, so that S_R = -7/32."""
    p = [sp.Rational(1, 32), sp.Rational(1, 4), sp.Rational(23, 32)]
    return explicit_rate(p, explicit_step(p, [1, -1, 0], (0, 1)), (0,))


SAMPLED_MASS_NEVER_FALLS = Proof(
    name="sampled_mass_never_falls",
    statement="If S_R >= 0 the total mass of the sampled correct actions does not fall: dP_pos = (eta/N) [(R_c - S_R) "
    "A_2 (1 - P_pos) + P_pos ((S_R - R_w) B_2 + S_R U_2)] >= 0 (single actions of the set may lose)",
    assumptions=(_CATEGORICAL, "Eq 7 (v1; Eq 5 in v2) as the update", "R_c >= 0 >= R_w and S_R >= 0", _FIRST_ORDER),
    source="this project (sharpens App. G in v2)",
    steps=_sampled_mass_steps(sp.Symbol("S_R", nonnegative=True)),
    wrong=Wrong(
        statement="the same without S_R >= 0",
        steps=_sampled_mass_steps(S_R),
        counterexample="p = (1/32 correct sampled, 1/4 wrong sampled, 23/32 wrong unsampled), R_c = 1, R_w = -1: it "
        "falls",
        refutes=lambda: bool(_negative_baseline() < 0),
    ),
)
