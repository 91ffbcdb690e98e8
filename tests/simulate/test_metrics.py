import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.simulate.metrics import GroupStatistics, entropy, policy_metrics
from fgrpo.simulate.policy import softmax
from reference import simulation

logits_9 = st.lists(st.floats(-6, 6), min_size=9, max_size=9)


@given(logits=logits_9, start=logits_9, correct=st.integers(1, 8))
def test_measures_equal_their_definitions(logits, start, correct):
    # equal logits are the one place where rounding could decide `share_improved`
    actual = policy_metrics(np.array(logits), np.array(start), correct)
    expected = simulation.policy_metrics(logits, start, correct)
    assert list(actual) == list(expected)
    close = softmax(np.array(logits))[:correct] - softmax(np.array(start))[:correct]
    for name, value in expected.items():
        if name != "share_improved" or np.abs(close).min() > 1e-12:
            assert actual[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_the_start_retains_everything_exactly():
    logits = np.array([5.0, 3.0, 3.0, 0.0, 0.0])
    start = policy_metrics(logits, logits, 3)
    assert (start["retained_mass"], start["correct_overlap"], start["share_improved"], start["worst_drop"]) == (
        1,
        1,
        0,
        0,
    )


def test_a_collapsed_policy_has_finite_measures():
    start = np.zeros(4)
    collapsed = policy_metrics(np.array([2000.0, 0.0, 0.0, 0.0]), start, 2)
    assert collapsed == {
        "correct_mass": 1.0,
        "retained_mass": 0.5,
        "entropy": 0.0,
        "correct_entropy": 0.0,
        "correct_overlap": 0.5,
        "share_improved": 0.5,
        "worst_drop": 0.25,
        "anchor_mass": 1.0,
    }
    all_wrong = policy_metrics(np.array([0.0, 0.0, 2000.0, 0.0]), start, 2)
    assert (all_wrong["correct_mass"], all_wrong["retained_mass"], all_wrong["correct_overlap"]) == (0.0, 0.0, 1.0)
    assert all_wrong["correct_entropy"] == pytest.approx(math.log(2))


def test_worst_drop_is_negative_where_all_gain():
    gained = policy_metrics(np.array([1.0, 1.0, 0.0]), np.zeros(3), 2)
    assert gained["worst_drop"] < 0
    assert gained["share_improved"] == 1.0


def test_entropy_of_equal_logits():
    assert entropy(np.full(128_000, 7.0)) == pytest.approx(math.log(128_000), rel=1e-14)


def test_group_statistics_average_since_the_last_record():
    groups = GroupStatistics()
    assert all(math.isnan(value) for value in groups.take().values())
    for active, weight, distinct in ((True, 0.25, 3), (False, 1.0, 0), (True, 0.75, 1), (False, 0.0, 4)):
        groups.add(active, weight, distinct)
    assert groups.take() == {"active_share": 0.5, "mean_weight": 0.5, "distinct_correct": 2.0}
    groups.add(False, 1.0, 2)
    only_inactive = groups.take()
    assert (only_inactive["active_share"], only_inactive["distinct_correct"]) == (0.0, 2.0)
    assert math.isnan(only_inactive["mean_weight"])
