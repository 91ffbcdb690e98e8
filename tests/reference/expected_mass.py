"""Grouped expectations with mpmath, from inclusion and exclusion probabilities written as powers."""

from collections.abc import Sequence

from mpmath import mpf


def drawn_and_active(p: mpf, other: mpf, n: int) -> mpf:
    """Pr(an action is drawn and the other label too): inclusion and exclusion over the two being missed."""
    return 1 - (1 - p) ** n - (1 - other) ** n + (1 - p - other) ** n


def active_sampled_mass(count: Sequence[int], p: Sequence[mpf], correct: Sequence[bool], n: int) -> mpf:
    """E[P_pos 1(active)]."""
    wrong = sum(m * q for m, q, flag in zip(count, p, correct, strict=True) if not flag)
    return sum(m * q * drawn_and_active(q, wrong, n) for m, q, flag in zip(count, p, correct, strict=True) if flag)


def unsampled_change(
    count: Sequence[int], p: Sequence[mpf], correct: Sequence[bool], n: int, rewards: tuple[mpf, mpf]
) -> mpf:
    """E[dQ_u,pos] for linear_distinct and learning rate 1, over pairs (i, k) of different actions."""
    mean_square = sum(m * q * q for m, q in zip(count, p, strict=True))
    total = mpf(0)
    for i, p_i in enumerate(p):
        for k, p_k in enumerate(p):
            if correct[i]:
                pairs = count[i] * (count[k] - (i == k))
                chance = (1 - p_i) ** n - (1 - p_i - p_k) ** n
                total -= pairs * rewards[not correct[k]] * p_i * p_k * (p_i + p_k - mean_square) * chance
    return total / n


def correct_change(
    count: Sequence[int], p: Sequence[mpf], correct: Sequence[bool], n: int, rewards: tuple[mpf, mpf]
) -> mpf:
    """E[dQ_pos] for linear_distinct and learning rate 1."""
    table = list(zip(count, p, correct, strict=True))
    mass = sum(m * q for m, q, flag in table if flag)
    mean_square = sum(m * q * q for m, q, _ in table)
    own = sum(m * q * q for m, q, flag in table if flag)
    return sum(
        m * rewards[not flag] * q * (1 - (1 - q) ** n) / n * (q * (flag - mass) - (own - mass * mean_square))
        for m, q, flag in table
    )
