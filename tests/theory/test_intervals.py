"""Student's interval: by hand, by coverage, and where there is none."""

import math

import numpy as np
import pytest
from scipy import stats

from fgrpo.theory.intervals import Interval, mean_interval, student_half_width, variance_of_mean


def test_interval_by_hand() -> None:
    found = mean_interval([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.half_width == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert (found.lower + found.upper) / 2 == pytest.approx(2.0)
    wide = mean_interval([1.0, 2.0, 3.0], 0.99)
    assert wide.half_width == pytest.approx(9.924843 / math.sqrt(3), rel=1e-6)


def test_side_of_zero() -> None:
    assert [mean_interval(np.array([1.0, 1.1, 1.2]) * sign).sign for sign in (1, -1)] == [1, -1]
    assert mean_interval([-1.0, 1.0]).sign == 0
    assert Interval(0.0, 0.0, 0.0).sign == 0
    assert mean_interval([1.0]).sign is None


def test_fewer_than_two_values_have_no_limits() -> None:
    assert mean_interval([1.5])[:1] == (1.5,)
    assert np.isnan(mean_interval([1.5])[1:]).all()
    assert np.isnan(mean_interval([])).all()
    assert np.isnan(mean_interval([1.0, math.nan])).all()


def test_equal_values_have_an_interval_of_no_length() -> None:
    assert np.var([0.1] * 7) > 0  # which rounding makes of them
    assert variance_of_mean(np.full(7, 0.1)) == 0.0
    assert mean_interval([0.1] * 7).half_width == 0.0


def test_half_width_of_arrays_and_levels_near_1() -> None:
    found = student_half_width([1.0, 2.0], [3.0, 2.5], 1 - 1e-12)
    assert found == pytest.approx([stats.t.isf(5e-13, 3.0), 2 * stats.t.isf(5e-13, 2.5)], rel=1e-3)


def test_coverage() -> None:
    """Of 4,000 intervals of five normal values .95 cover, within 4 s.e. (false alarm 6e-5); normal ones do not."""
    values = np.random.default_rng(0).normal(size=(4000, 5))
    covered = np.mean([mean_interval(row).sign == 0 for row in values])
    assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 4000)
    too_short = 1.959964 * values.std(axis=1, ddof=1) / math.sqrt(5)
    assert abs(np.mean(np.abs(values.mean(axis=1)) < too_short) - 0.95) > 4 * math.sqrt(0.95 * 0.05 / 4000)
