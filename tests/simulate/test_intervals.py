"""Intervals over seeds against scipy's tests, and their limiting cases."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from fgrpo.simulate.intervals import difference_interval, mean_interval

SAMPLES = st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=2, max_size=12)


@given(SAMPLES)
def test_mean_interval_is_students(values: list[float]) -> None:
    assume(np.std(values) > 1e-6)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    got = mean_interval(values)
    assert got.mean == pytest.approx(np.mean(values), abs=1e-12)
    assert (got.lower, got.upper) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-9)
    assert got.half_width == pytest.approx((expected.high - expected.low) / 2, rel=1e-9)


@given(SAMPLES, SAMPLES)
def test_difference_interval_is_welchs(values: list[float], baseline: list[float]) -> None:
    assume(min(np.std(values), np.std(baseline)) > 1e-6)
    expected = stats.ttest_ind(values, baseline, equal_var=False).confidence_interval(0.95)
    got = difference_interval(values, baseline)
    assert (got.lower, got.upper) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-9)
    pooled = stats.ttest_ind(values, baseline).confidence_interval(0.95)
    if abs(pooled.low - expected.low) > 1e-6:  # the target that a pooled variance would have
        assert got.lower != pytest.approx(pooled.low, rel=1e-9, abs=1e-9)


def test_equal_values_have_an_interval_of_no_length() -> None:
    assert mean_interval([0.1] * 7) == (pytest.approx(0.1),) * 3
    assert difference_interval([0.3] * 3, [0.1] * 7) == (pytest.approx(0.2),) * 3
    one_varies = difference_interval([0.3, 0.5], [0.1] * 7)
    assert one_varies.half_width == pytest.approx(mean_interval([0.3, 0.5]).half_width)


def test_one_that_is_missing_leaves_no_mean() -> None:
    assert np.isnan(mean_interval([0.1, np.nan])).all()
    assert np.isnan(difference_interval([0.1, 0.2], [0.1, np.nan])).all()


@pytest.mark.parametrize("values", [[], [1.0]])
def test_one_seed_has_no_interval(values: list[float]) -> None:
    with pytest.raises(ValueError, match=f"an interval needs at least 2 seeds, got {len(values)}: run more"):
        mean_interval(values)
    with pytest.raises(ValueError, match="an interval needs at least 2 seeds"):
        difference_interval([0.1, 0.2], values)
