"""Averages over the number of correct rollouts of a group, for arrays of success rates and group sizes at once.

Whole arrays of independent rollouts go through one vectorised sum here. `_urn` goes point by point, for rollouts that
bear on each other, and for tail misses, where correct and wrong mass must come in separately to keep their digits.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray

# Pr(|X - n mu| > sqrt(360 n)) <= 2 exp(-720) < 1e-312 (see binomial_mean), so counts further out never carry weight
_HALF_WIDTH_SQUARED = 360.0
_TERMS_AT_ONCE = 1 << 21
LARGEST_SIZE = 1e9
"""Largest number of rollouts that is averaged over: 1.2 million terms."""
# below it scipy's pmf overflows inside
_SMALLEST_RATE = 1e-290

Term = Callable[[FloatArray, NDArray[np.intp]], Any]


def flat(**arrays: FloatArray) -> tuple[tuple[int, ...], list[FloatArray]]:
    """The common shape of broadcast arrays, and each of them as one dimension."""
    check.broadcastable(**arrays)
    broadcast = np.broadcast_arrays(*arrays.values())
    return broadcast[0].shape, [array.ravel() for array in broadcast]


def binomial_mean(term: Term, success_rate: FloatArray, size: FloatArray, *, given_active: bool = False) -> FloatArray:
    """E[term(X, i)] with X ~ Binomial(size_i, success_rate_i), for each i of two one-dimensional arrays.

    `term(counts, i)` maps counts and the positions of the distributions that they belong to onto values. With
    `given_active` only 0 < X < size counts, and the mean is conditional on it: nan where that is impossible.

    The mean is a ratio of two sums over the same probabilities, which takes their common rounding error out. The sums
    leave out what Hoeffding's inequality [hoeffding1963inequalities] bounds by 1e-312. Cost: at most min(size + 1, 38
    sqrt(size)) terms each.

    Raises:
        ValueError: If a size is above LARGEST_SIZE.
    """
    check.flag("given_active", given_active)
    check.limited("group_size", size, LARGEST_SIZE, "a group of so many rollouts has the limit N -> inf to 4 digits")
    half_width = np.ceil(np.sqrt(_HALF_WIDTH_SQUARED * size))
    centre = np.round(size * success_rate)
    first = np.maximum(centre - half_width, 1.0 if given_active else 0.0)
    last = np.minimum(centre + half_width, size - 1.0 if given_active else size)
    terms = np.maximum(last - first + 1.0, 0.0).astype(np.intp)

    result = np.empty_like(success_rate)
    batch = np.cumsum(terms) // _TERMS_AT_ONCE
    for members in np.split(np.arange(terms.size), np.flatnonzero(np.diff(batch)) + 1):
        starts = np.cumsum(terms[members]) - terms[members]
        owner = np.repeat(np.arange(members.size), terms[members])
        i = members[owner]
        counts = first[i] + (np.arange(owner.size) - starts[owner])
        probability = _probability(counts, size[i], success_rate[i], given_active)
        total = np.bincount(owner, probability, members.size)
        with np.errstate(invalid="ignore"):
            result[members] = np.bincount(owner, probability * term(counts, i), members.size) / total
    return result


def moment_coefficients(order: int, size: FloatArray, missing: int = 0) -> list[FloatArray]:
    """c_1..c_k with E[(Y / size)^k] = sum_j c_j p^j for Y ~ Binomial(size - missing, p), k = order; [] for order 0.

    c_j = S(k, j) m (m-1) ... (m-j+1) / size^k, m = size - missing, with the Stirling numbers S of the second kind: the
    factorial moments of Y. All are >= 0 for whole sizes.
    """
    coefficients, falling = [], np.ones_like(size)
    for j, number in enumerate(_stirling_row(order)[1:], start=1):
        falling = falling * ((size - (missing + j - 1)) / size)
        coefficients.append(number * falling * size ** float(j - order))
    return coefficients


@cache
def _stirling_row(order: int) -> tuple[int, ...]:
    """S(order, 0), ..., S(order, order), exact."""
    if order == 0:
        return (1,)
    row = _stirling_row(order - 1)
    return tuple(j * same + left for j, (same, left) in enumerate(zip((*row, 0), (0, *row), strict=True)))


def _probability(counts: FloatArray, size: FloatArray, success_rate: FloatArray, given_active: bool) -> FloatArray:
    tiny = success_rate < _SMALLEST_RATE
    # more than one correct rollout then weighs nothing beside one, which has all the weight of an active group
    one = success_rate > 0.0 if given_active else size * success_rate
    few = np.where(counts == 1.0, one, counts == 0.0)
    return np.where(tiny, few, binom.pmf(counts, size, np.where(tiny, 0.5, success_rate)))
