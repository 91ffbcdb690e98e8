"""Means over seeds with intervals: what can be said of a mean that few independent runs show.

Intervals are Student's, and Welch's for differences: seeds are independent, in one arm and between arms, since each run
has a random stream of its own. They assume means that are about normal. Near an edge of the collapse zone single seeds
either collapse or do not; the interval is then wide, as it should be, but may leave [0, 1].
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from fgrpo.theory import intervals
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.intervals import Interval, student_half_width, variance_of_mean

LEVEL = 0.95
"""Coverage of every interval."""
FEWEST_SEEDS = 2
"""Below it there is no spread, hence no interval."""


def enough_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    """The seeds of a study that is to have intervals.

    Raises:
        ValueError: If there are fewer than two.
    """
    chosen = tuple(seeds)
    _refuse_few(len(chosen))
    return chosen


def mean_interval(values: ArrayLike) -> Interval:
    """Mean of independent values with Student's 95 % interval; of length 0 if all are equal.

    Args:
        values: At least two numbers, one per seed.

    Raises:
        ValueError: If there are fewer.
    """
    return intervals.mean_interval(_of_seeds(values), LEVEL)


def difference_interval(values: ArrayLike, baseline: ArrayLike) -> Interval:
    """Mean of `values` minus mean of `baseline` with Welch's 95 % interval; of length 0 if neither varies.

    Args:
        values: At least two numbers, one per seed.
        baseline: Likewise, independent of them.

    Raises:
        ValueError: If there are fewer.

    Source: Welch 1947 [welch1947generalization]; Satterthwaite's degrees of freedom.
    """
    one, other = _of_seeds(values), _of_seeds(baseline)
    parts = np.array([variance_of_mean(one), variance_of_mean(other)])
    degrees = np.array([one.size - 1.0, other.size - 1.0])
    variance = float(parts.sum())
    freedom = variance**2 / float((parts**2 / degrees).sum()) if variance > 0 else float(degrees.sum())
    mean, half = float(one.mean() - other.mean()), float(student_half_width(variance**0.5, freedom, LEVEL))
    return Interval(mean, mean - half, mean + half)


def _of_seeds(values: ArrayLike) -> FloatArray:
    of_seeds = np.asarray(values, dtype=np.float64).ravel()
    _refuse_few(of_seeds.size)
    return of_seeds


def _refuse_few(seeds: int) -> None:
    if seeds < FEWEST_SEEDS:
        raise ValueError(f"an interval needs at least {FEWEST_SEEDS} seeds, got {seeds}: run more, such as --seeds 8")
