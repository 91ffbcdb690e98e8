"""Exact multinomial sampling in float64."""

import numpy as np
from numpy.typing import NDArray

from fgrpo.theory._validation import FloatArray

IntArray = NDArray[np.int64]

# bounds the memory of one pass; a multinomial draw is a sum of smaller independent ones
DRAWS_AT_ONCE = 2**20


def sample_counts(
    probabilities: FloatArray, group_size: int, rng: np.random.Generator, cumulative: FloatArray | None = None
) -> IntArray:
    """How often each action is drawn in `group_size` independent draws, shape [actions].

    Inverts the float64 cumulative sum at ordered uniforms. A float32 sum, as in torch.multinomial, rounds a tail of
    rare actions away. Actions of probability 0 are never drawn.

    Args:
        probabilities: Non-negative weights, shape [actions]; they need not sum to 1.
        group_size: Number of draws, at least 1.
        rng: Source of randomness.
        cumulative: Scratch array for the cumulative sum, shape [actions], or None for a new one.
    """
    cumulative = np.cumsum(probabilities, out=cumulative)
    counts = _invert(cumulative, min(group_size, DRAWS_AT_ONCE), rng)
    for done in range(DRAWS_AT_ONCE, group_size, DRAWS_AT_ONCE):
        counts += _invert(cumulative, min(group_size - done, DRAWS_AT_ONCE), rng)
    return counts


def _invert(cumulative: FloatArray, draws: int, rng: np.random.Generator) -> IntArray:
    # order statistics of uniforms, as normalised exponential spacings: linear time without a sort, and neighbouring
    # searches stay in cache
    arrivals = np.cumsum(rng.standard_exponential(draws + 1))
    uniforms = arrivals[:-1] * (cumulative[-1] / arrivals[-1])
    # strictly below the total, so that the search cannot run past the last action that has probability
    np.minimum(uniforms, np.nextafter(cumulative[-1], 0.0), out=uniforms)
    return np.bincount(cumulative.searchsorted(uniforms, side="right"), minlength=cumulative.size)
