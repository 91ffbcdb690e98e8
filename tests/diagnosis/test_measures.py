"""Measures: the tail-miss estimate is unbiased by enumeration, intervals and trends, distinct answers, regimes."""

from math import isnan

import numpy as np
import pytest
from scipy import stats

from fgrpo.diagnosis.measures import (
    change,
    distinct_in_groups,
    mean_estimate,
    regime_of_counts,
    share_estimate,
)
from reference.diagnosis import mean_interval, regime, share_interval


def test_intervals() -> None:
    values = np.array([0.0, 0.25, 0.5, 1.0])
    found = mean_estimate(values)
    assert (found.estimate, found.lower, found.upper) == pytest.approx(mean_interval(values.tolist()))
    assert isnan(mean_estimate(values[:1]).lower)
    assert isnan(mean_estimate(values[:0]).estimate)
    assert isnan(share_estimate(0, 0).estimate)
    for part, whole in [(0, 5), (3, 5), (5, 5)]:
        share = share_estimate(part, whole)
        assert (share.estimate, share.lower, share.upper) == pytest.approx(share_interval(part, whole), abs=1e-12)


def test_change_is_welchs_interval() -> None:
    before, after = np.array([0.0, 0.5, 0.25, 0.5]), np.array([1.0, 0.75, 1.0])
    limits = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    found = change(before, after)
    assert (found.estimate, found.lower, found.upper) == pytest.approx(
        (after.mean() - before.mean(), limits.low, limits.high)
    )
    assert isnan(change(before[:1], after).lower)
    constant = change(np.zeros(3), np.ones(3))
    assert (constant.lower, constant.upper) == (1.0, 1.0)


def test_distinct_answers_and_pairs() -> None:
    group, code = np.array([0, 0, 0, 2, 2, 2, 2, 3]), np.array([5, 5, 6, 7, 7, -1, 8, -1])
    distinct, pairs, differ = distinct_in_groups(group, code, 4)
    assert distinct.tolist() == [2, 0, 2, 0]
    assert pairs.tolist() == [3, 0, 3, 0]
    assert differ.tolist() == [2, 0, 2, 0]


@pytest.mark.parametrize("n", [2, 8, 64])
@pytest.mark.parametrize("rho", [0.05, 0.3])
def test_regimes_of_counts(n: int, rho: float) -> None:
    scored = np.array([4, 4, 4, 8, 8, 40, 4])
    correct = np.array([0, 2, 4, 1, 8, 30, 2])
    rates = [(x + 1) / (size + 2) for x, size in zip(correct.tolist(), scored.tolist(), strict=True)]
    expected = [regime(rate, rho * rate, n, 0.4) for rate in rates]
    assert regime_of_counts(correct, scored, rho, n, 0.4).tolist() == expected
