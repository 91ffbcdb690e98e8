"""Averages over the number of correct rollouts of a group, for arrays of success rates and group sizes at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from fgrpo.theory._validation import FloatArray

# Hoeffding: Pr(|X - n mu| > sqrt(360 n)) <= 2 exp(-720) < 1e-312, so counts further out never carry weight
_HALF_WIDTH_SQUARED = 360.0
_TERMS_AT_ONCE = 1 << 21
# below it scipy's pmf overflows inside
_SMALLEST_RATE = 1e-290

Term = Callable[[FloatArray, NDArray[np.intp]], Any]


def flat(*arrays: FloatArray) -> tuple[tuple[int, ...], list[FloatArray]]:
    """The common shape of broadcast arrays, and each of them as one dimension."""
    broadcast = np.broadcast_arrays(*arrays)
    return broadcast[0].shape, [array.ravel() for array in broadcast]


def binomial_mean(term: Term, success_rate: FloatArray, size: FloatArray, *, given_active: bool = False) -> FloatArray:
    """E[term(X, i)] with X ~ Binomial(size_i, success_rate_i), for each i of two one-dimensional arrays.

    `term(counts, i)` maps counts and the positions of the distributions that they belong to onto values. With
    `given_active` only 0 < X < size counts, and the mean is conditional on it: nan where that is impossible.

    The mean is a ratio of two sums over the same probabilities, which takes their common rounding error out. Cost: at
    most min(size + 1, 38 sqrt(size)) terms each.
    """
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
        probability = _probability(counts, size[i], success_rate[i])
        total = np.bincount(owner, probability, members.size)
        with np.errstate(invalid="ignore"):
            result[members] = np.bincount(owner, probability * term(counts, i), members.size) / total
    return result


def _probability(counts: FloatArray, size: FloatArray, success_rate: FloatArray) -> FloatArray:
    tiny = success_rate < _SMALLEST_RATE
    # more than one correct rollout then weighs nothing beside one
    few = np.where(counts == 1.0, size * success_rate, counts == 0.0)
    return np.where(tiny, few, binom.pmf(counts, size, np.where(tiny, 0.5, success_rate)))
