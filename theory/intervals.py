"""Student's intervals of means: what few independent values say of the mean that they are drawn around.

They assume means that are about normal; what the values are (seeds, problems, groups) is for the caller to say.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from fgrpo.theory._validation import FloatArray


class Interval(NamedTuple):
    """A mean and its confidence limits; the limits are nan where the values give none."""

    mean: float
    lower: float
    upper: float

    @property
    def half_width(self) -> float:
        """Half the length: the size from which on a mean difference would have been told from 0."""
        return (self.upper - self.lower) / 2

    @property
    def sign(self) -> int | None:
        """1 if the interval lies above 0, -1 if below, 0 if it holds 0; None where there is none."""
        if np.isnan(self.lower):
            return None
        return int(self.lower > 0) - int(self.upper < 0)


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Mean of independent values and Student's two-sided interval.

    Args:
        values: Numbers of any shape.
        level: Confidence, in (0, 1).

    Returns:
        The interval: of length 0 if all values are equal, without limits for one value, all nan for none or where a
        value is nan.

    Source: this project.
    """
    flat = np.asarray(values, dtype=np.float64).ravel()
    if flat.size == 0:
        return Interval(np.nan, np.nan, np.nan)
    mean = float(flat.mean())
    if flat.size == 1:
        return Interval(mean, np.nan, np.nan)
    half = float(student_half_width(variance_of_mean(flat) ** 0.5, flat.size - 1.0, level))
    return Interval(mean, mean - half, mean + half)


def variance_of_mean(values: FloatArray) -> float:
    """Estimated variance of the mean of at least two independent values; exactly 0 if all are equal."""
    # the rounded mean of equal values need not be their value
    return 0.0 if np.ptp(values) == 0 else float(values.var(ddof=1)) / values.size


def student_half_width(standard_error: ArrayLike, freedom: ArrayLike, level: float) -> FloatArray:
    """Half the length of Student's interval.

    Args:
        standard_error: Estimated standard deviation of the mean, at least 0.
        freedom: Degrees of freedom of that estimate, above 0; need not be whole.
        level: Confidence, in (0, 1).
    """
    quantile: FloatArray = np.asarray(special.stdtrit(np.asarray(freedom), (1.0 - level) / 2.0), dtype=np.float64)
    half: FloatArray = -quantile * np.asarray(standard_error, dtype=np.float64)
    return half
