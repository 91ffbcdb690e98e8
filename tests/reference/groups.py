"""Groups of rollouts taken literally: every count of correct rollouts, or every sequence of actions."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

PRECISION = 40


def count_mean(value: Callable[[int], Any], success_rate: Any, group_size: int, *, given_active: bool = False) -> Any:
    """E[value(X)] over all counts, in the arithmetic of success_rate (Fraction or mpf)."""
    counts = range(1, group_size) if given_active else range(group_size + 1)
    total = norm = success_rate * 0
    for k in counts:
        probability = comb(group_size, k) * success_rate**k * (1 - success_rate) ** (group_size - k)
        total += probability * value(k)
        norm += probability
    return total / norm


def focal(wrong: int, group_size: int, gamma: Any) -> Any:
    """The weight of a group, as a Fraction for whole gamma and an mpf else."""
    if gamma == int(gamma):
        return Fraction(wrong, group_size) ** int(gamma)
    return mp.mpf(wrong) ** mp.mpf(gamma) / mp.mpf(group_size) ** mp.mpf(gamma)


def focal_moments(
    success_rate: float, group_size: int, gamma: float, *, given_active: bool = False
) -> tuple[Any, Any, Any]:
    """Mean, variance and bias of the focal weight with 40 digits, by enumeration of the counts."""
    with mp.workdps(PRECISION):
        mu, exponent = mp.mpf(success_rate), mp.mpf(gamma)

        def weight(k: int) -> Any:
            return mp.mpf(group_size - k) ** exponent / mp.mpf(group_size) ** exponent

        mean = count_mean(weight, mu, group_size, given_active=given_active)
        variance = count_mean(lambda k: (weight(k) - mean) ** 2, mu, group_size, given_active=given_active)
        return mean, variance, mean - (1 - mu) ** exponent


def integral_focal_moment(success_rate: float, group_size: int, gamma: float) -> Any:
    """E[(Y/N)^gamma] for 0 < gamma < 1 from the Laplace transform of Y/N, for any N at the cost of one integral."""
    with mp.workdps(25):
        q, exponent = 1 - mp.mpf(success_rate), mp.mpf(gamma)

        def integrand(t: Any) -> Any:  # s = e^t
            s = mp.e**t
            return -mp.expm1(group_size * mp.log1p(q * mp.expm1(-s / group_size))) * s**-exponent

        points = [-120, -40, -10, 0, 5, 10, 20, 60, 200]
        return exponent / mp.gamma(1 - exponent) * mp.quad(integrand, points)


def expected_update(
    logits: Sequence[float],
    correct: Sequence[bool],
    group_size: int,
    weight: Callable[[float], float],
    *,
    rewards: tuple[float, float] = (0.0, 1.0),
    deviation: Callable[[NDArray[Any]], float] = lambda rewards: 1.0,
) -> NDArray[np.float64]:
    """E[(1/N) sum_j g A_j grad_z log pi(y_j)] for a softmax policy, over every sequence of group_size actions.

    A_j is the reward minus the group's mean over deviation(rewards of the group); a group of equal rewards gives no
    update.
    """
    p = np.exp(logits) / np.sum(np.exp(logits))
    total = np.zeros_like(p)
    for actions in product(range(p.size), repeat=group_size):
        hits = np.array([correct[a] for a in actions])
        if hits.all() or not hits.any():
            continue
        r = np.where(hits, rewards[1], rewards[0])
        advantages = weight(hits.mean()) * (r - r.mean()) / deviation(r)
        update = sum(adv * (np.eye(p.size)[a] - p) for adv, a in zip(advantages, actions, strict=True)) / group_size
        total += np.prod(p[list(actions)]) * update
    return total
