"""Proofs about expectations over the sampled group: the correct mass and the batch baseline."""

from collections.abc import Sequence
from typing import Any

import sympy as sp

from fgrpo.theory.proofs._algebra import INDEX, by_linearity, non_negative, vanishes
from fgrpo.theory.proofs._policy import (
    A_2,
    B_2,
    M_N,
    M_P,
    P_NEG,
    P_POS,
    R_C,
    R_W,
    S_R,
    SAMPLED_CORRECT,
    SAMPLED_WRONG,
    U_NEG_2,
    U_POS_2,
    Q,
)
from fgrpo.theory.proofs._proof import Proof, Step, Wrong
from fgrpo.theory.proofs._small_groups import Rollouts, expectation

_SIGNS = "R_c >= 0 >= R_w"
_HALF, _QUARTER = sp.Rational(1, 2), sp.Rational(1, 4)

# --- expected change of the correct mass ----------------------------------------------------------------------------


def _chebyshev() -> Any:
    """(1/2) sum over i, k of w_i w_k (f_i - f_k)(g_i - g_k), minus (sum w)(sum w f g) - (sum w f)(sum w g)."""
    w, f, g = (sp.IndexedBase(name, real=True) for name in "wfg")
    n, k = sp.Symbol("n", integer=True, positive=True), sp.Symbol("k", integer=True)

    def total(summand: Any, index: Any) -> Any:
        return sp.Sum(summand, (index, 1, n))

    i = INDEX
    double = total(total(w[i] * w[k] * (f[i] - f[k]) * (g[i] - g[k]), k), i) / 2
    single = total(w[i], i) * total(w[i] * f[i] * g[i], i) - total(w[i] * f[i], i) * total(w[i] * g[i], i)
    return by_linearity(double) - single


def _linear_form() -> Any:
    """Eq 8 (v1; Eq 17 in v2) minus sum over sampled j of R_j p_j [p_j (1_P(j) - Q) - D], D = Q_neg M_P - Q M_N."""
    d = (1 - Q) * M_P - Q * M_N
    a, b = SAMPLED_CORRECT.probability, SAMPLED_WRONG.probability
    q, d_symbol = sp.symbols("Q D", real=True)
    linear = R_C * SAMPLED_CORRECT.total(a * (a * (1 - q) - d_symbol))
    linear += R_W * SAMPLED_WRONG.total(b * (-b * q - d_symbol))
    eq_8 = (R_C - S_R) * (1 - Q) * A_2 + (S_R - R_W) * Q * B_2 + S_R * (Q * U_NEG_2 - (1 - Q) * U_POS_2)
    return eq_8.subs(S_R, R_C * P_POS + R_W * P_NEG) - by_linearity(linear).subs({q: Q, d_symbol: d})


def _expected_steps(direction: int) -> tuple[Step, ...]:
    """With direction = 1 for 'does not increase with N', -1 for 'does not decrease'."""
    n, r = sp.symbols("N r", positive=True)  # r = 1 - p, so d/dp = -d/dr
    p = sp.Symbol("p", nonnegative=True)
    q, m_p, m_n, gain, loss = sp.symbols("Q M_P M_N R_c R_l", nonnegative=True)  # loss = -R_w
    q_neg = sp.Symbol("Q_neg", nonnegative=True)
    mean_p, excess_p, mean_n, excess_n = sp.symbols("E_P E_P' E_N E_N'", nonnegative=True)
    d = q_neg * m_p - q * m_n
    value = q_neg**2 * m_p + q**2 * m_n
    right = gain * q * (q_neg * (mean_p * m_p / q + excess_p) - d * mean_p)
    wrong = loss * q_neg * (q * (mean_n * m_n / q_neg + excess_n) + d * mean_n)
    bound = gain * mean_p * value + loss * mean_n * value
    surplus = q * q_neg * (gain * excess_p + loss * excess_n)

    def included(size: Any) -> Any:
        return 1 - r**size

    slope = r ** (n - 1)
    decrease = direction * (included(n) / n - included(n + 1) / (n + 1))

    return (
        Step(
            "Eq 8 (v1; Eq 17 in v2) is linear in the inclusions: dQ_pos = (eta/N) sum over sampled j of "
            "R_j p_j [p_j (1_P(j) - Q) - D], D = Q_neg M_P - Q M_N",
            lambda: vanishes(_linear_form()),
        ),
        Step(
            "E[dQ_pos] = eta sum over all j of R_j p_j h(p_j) [p_j (1_P(j) - Q) - D], h(p) = (1 - (1 - p)^N) / N",
            lemma="linearity of expectation; an action of probability p is missed by N independent rollouts with (1 - "
            "p)^N",
        ),
        Step(
            "Chebyshev's identity, any number of terms: (sum w)(sum w f g) - (sum w f)(sum w g) = "
            "(1/2) sum over i, k of w_i w_k (f_i - f_k)(g_i - g_k)",
            lambda: vanishes(_chebyshev()),
        ),
        Step(
            "so E[f g] >= E[f] E[g] for weights w >= 0 that add up to 1 and f, g that rise together",
            lemma="Chebyshev's sum inequality: every term of that double sum is >= 0",
        ),
        Step(
            "h and p rise together: d/dp (1 - (1-p)^N) / N = (1 - p)^(N-1) >= 0, and h(0) = 0, so h >= 0",
            lambda: (
                vanishes(-sp.diff(included(n) / n, r) - slope)
                and non_negative(slope)
                and vanishes(included(n).subs(r, 1))
            ),
        ),
        Step(
            "So with weights p/Q over the correct actions E_P[h p] = E_P[h] M_P/Q + E_P', E_P' >= 0; likewise over the "
            "wrong ones. Put in: E[dQ_pos]/eta = (Q_neg^2 M_P + Q^2 M_N)(R_c E_P[h] + |R_w| E_N[h]) + Q Q_neg (R_c "
            "E_P' + |R_w| E_N')",
            # Q + Q_neg = 1 closes the identity
            lambda: vanishes((right + wrong - bound - surplus).subs(q_neg, 1 - q)),
        ),
        Step("which is >= 0 at every N", lambda: non_negative(bound) and non_negative(surplus)),
        Step(
            "In N: k(p) = h_N - h_(N+1) (its negative for the opposite claim) has derivative p (1 - p)^(N-1) in p",
            lambda: vanishes(-sp.diff(decrease, r) - direction * (1 - r) * slope),
        ),
        Step(
            "k(0) = 0 and that derivative is >= 0, so k >= 0 and k rises with p",
            lambda: vanishes(decrease.subs(r, 1)) and non_negative(direction * p * slope),
        ),
        Step(
            "The same two steps with k in place of h give E[dQ_pos] at N minus that at N + 1 >= 0",
            lambda: vanishes((right + wrong - bound - surplus).subs(q_neg, 1 - q)) and non_negative(bound + surplus),
        ),
    )


def _enumerated_change(n: int) -> Any:
    """N-rollout mean of dQ_pos / eta for p = (1/2 right, 1/2 wrong), R_c = 1, R_w = 0, from Eq 8 action by action."""
    p, rewards = (_HALF, _HALF), (1, 0)

    def change(group: Rollouts) -> Any:
        sampled = set(group)
        baseline = sum(rewards[i] * p[i] for i in sampled)
        dz = [p[i] * ((rewards[i] if i in sampled else 0) - baseline) / n for i in range(2)]
        return p[0] * (dz[0] - p[0] * dz[0] - p[1] * dz[1])

    return expectation(p, n, change)


EXPECTED_CHANGE_POSITIVE = Proof(
    name="expected_change_positive",
    statement="E[dQ_pos] >= (eta/N)(Q_neg^2 M_P + Q_pos^2 M_N)(R_c E_P[H] + |R_w| E_N[H]) >= 0, H = 1 - (1 - p)^N, at "
    "every N >= 1, and at fixed eta E[dQ_pos] does not increase with N",
    assumptions=(
        "one softmax policy, 0 < Q_pos < 1 (at Q_pos = 0 and 1 nothing moves)",
        "Eq 7 (v1; Eq 5 in v2) as the update, " + _SIGNS,
        "first order in eta",
    ),
    source="this project (sharpens Section 3.2 and App. C in v2)",
    steps=_expected_steps(1),
    wrong=Wrong(
        statement="at fixed eta E[dQ_pos] does not decrease with N",
        steps=_expected_steps(-1),
        counterexample="p = (1/2 right, 1/2 wrong), R_c = 1, R_w = 0: 1/16 eta at N = 1, 3/64 eta at N = 2",
        refutes=lambda: bool(_enumerated_change(1) == sp.Rational(1, 16) > sp.Rational(3, 64) == _enumerated_change(2)),
    ),
)

# --- batch baseline -------------------------------------------------------------------------------------------------


def _baseline_steps(reward_correct: Any) -> tuple[Step, ...]:
    """With reward_correct a symbol that carries what is assumed of its sign."""
    k, left, p, q, loss = sp.symbols("k left p Q R_l", nonnegative=True)  # left = N - k - 1, R_w = -loss
    missed, ratio = sp.symbols("r x", nonnegative=True)  # x = p/Q, r = 1 - x

    def mass(draws: Any) -> Any:
        """Expected sampled mass of one action: p (1 - (1 - p/Q)^draws)."""
        return p * (1 - (1 - p / q) ** draws)

    return (
        Step(
            "Given X = k the right rollouts are k independent draws from p_i/Q, the wrong ones N - k from p_j/Q_neg, "
            "so E[P_pos | k] = sum_P p_i (1 - (1 - p_i/Q)^k), E[P_neg | k] = sum_N p_j (1 - (1 - p_j/Q_neg)^(N-k))",
            lemma="conditioning independent draws on their labels; linearity of expectation",
        ),
        Step(
            "k -> k + 1 adds p (p/Q) (1 - p/Q)^k for each correct action, k symbolic",
            lambda: vanishes(mass(k + 1) - mass(k) - p * (p / q) * (1 - p / q) ** k),
        ),
        Step(
            "and takes p (p/Q_neg) (1 - p/Q_neg)^(N-k-1) for each wrong one (left = N - k - 1)",
            lambda: vanishes(mass(left + 1) - mass(left) - p * (p / q) * (1 - p / q) ** left),
        ),
        Step(
            "the correct actions' increments, times R_c, are >= 0 (x = p/Q, r = 1 - x)",
            lambda: (reward_correct * p * ratio * missed**k).is_nonnegative is True,
        ),
        Step(
            "the wrong actions' decrements, times -R_w, are >= 0",
            lambda: (loss * p * ratio * missed**left).is_nonnegative is True,
        ),
        Step("E[S_R | k] does not decrease", lemma="a sum of terms that are >= 0 is >= 0"),
    )


def _conditional_baseline(p: Sequence[Any], correct: set[int], rewards: tuple[Any, Any], n: int) -> list[Any]:
    """E[S_R | X = k] for k = 0..N by enumerating the groups."""
    r_c, r_w = rewards

    def right(group: Rollouts) -> int:
        return sum(i in correct for i in group)

    def baseline(group: Rollouts) -> Any:
        return sum((p[i] * (r_c if i in correct else r_w) for i in set(group)), sp.Integer(0))

    def at(k: int) -> Any:
        joint = expectation(p, n, lambda group: baseline(group) if right(group) == k else 0)
        return joint / expectation(p, n, lambda group: int(right(group) == k))

    return [at(k) for k in range(n + 1)]


_FALLING = [-_HALF, sp.Rational(-9, 16), sp.Rational(-19, 32), sp.Rational(-7, 64)]

BATCH_BASELINE_MONOTONE = Proof(
    name="batch_baseline_monotone",
    statement="E[P_pos | X = k] does not decrease in k, E[P_neg | X = k] does not increase, and so E[S_R | X = k] does "
    "not decrease",
    assumptions=(
        "a fixed prompt with 0 < Q_pos < 1, N independent rollouts, X of them right",
        _SIGNS + " for S_R (the paper asks for R_c > R_w and R_w <= 0, which is not enough)",
    ),
    source="Corollary B.2 in v1; Lemma H.1 and Corollary H.2 in v2",
    steps=_baseline_steps(sp.Symbol("R_c", nonnegative=True)),
    wrong=Wrong(
        statement="the same without R_c >= 0",
        steps=_baseline_steps(sp.Symbol("R_c", real=True)),
        counterexample="R_c = -1/4, R_w = -1, p = (1/2 wrong, 1/4 correct, 1/4 correct), N = 3: E[S_R | X = k] is "
        "-1/2, -9/16, -19/32, -7/64",
        refutes=lambda: _conditional_baseline((_HALF, _QUARTER, _QUARTER), {1, 2}, (-_QUARTER, -1), 3) == _FALLING,
    ),
)


def _dominance_steps(loss: Any) -> tuple[Step, ...]:
    """With loss = -R_w, a symbol that carries what is assumed of its sign."""
    reward, p_c, p_w, p_pos, p_neg = sp.symbols("R_c p_c p_w P_pos P_neg", nonnegative=True)
    new_c, new_w = sp.symbols("new_c new_w", nonnegative=True)  # 1 if the action is not among the others, else 0

    def s_r(pos: Any, neg: Any) -> Any:
        return reward * pos - loss * neg

    change = s_r(p_pos + new_c * p_c, p_neg) - s_r(p_pos, p_neg + new_w * p_w)
    return (
        Step(
            "Draw c_1, c_2, ... from p_i/Q and w_1, w_2, ... from p_j/Q_neg once; {c_1..c_k, w_1..w_(N-k)} has the law "
            "of a group given X = k, for every k at once",
            lemma="binomial coupling: conditioning independent draws on their labels",
        ),
        Step(
            "From k to k + 1 the distinct set gains c_(k+1) if it is new, and loses w_(N-k) if no other rollout has "
            "it: S_R changes by R_c new_c p_c - R_w new_w p_w",
            lambda: vanishes(change - (reward * new_c * p_c + loss * new_w * p_w)),
        ),
        Step(
            "which is >= 0 for every outcome of the draws, not only in the mean",
            lambda: (reward * new_c * p_c + loss * new_w * p_w).is_nonnegative is True,
        ),
        Step(
            "So Pr(S_R > s | X = k) does not decrease in k, for every s",
            lemma="a pointwise ordered coupling implies stochastic dominance",
        ),
    )


_TOO_HIGH = [sp.Rational(7, 32), sp.Rational(11, 16), sp.Rational(5, 8), _HALF]

BATCH_BASELINE_DOMINANCE = Proof(
    name="batch_baseline_dominance",
    statement="S_R given X = k is stochastically non-decreasing in k: Pr(S_R > s | X = k) does not decrease, for every "
    "s",
    assumptions=("a fixed prompt with 0 < Q_pos < 1, N independent rollouts, X of them right", _SIGNS),
    source="this project (sharpens Corollary B.2 in v1, Corollary H.2 in v2)",
    steps=_dominance_steps(sp.Symbol("R_l", nonnegative=True)),
    wrong=Wrong(
        statement="the same without R_w <= 0",
        steps=_dominance_steps(sp.Symbol("R_l", real=True)),
        counterexample="R_c = 1, R_w = 1/2, p = (1/2 correct, 1/4 wrong, 1/4 wrong), N = 3: even the mean of S_R "
        "falls, E[S_R | X = k] is 7/32, 11/16, 5/8, 1/2",
        refutes=lambda: _conditional_baseline((_HALF, _QUARTER, _QUARTER), {0}, (1, _HALF), 3) == _TOO_HIGH,
    ),
)
