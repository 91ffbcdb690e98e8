"""Success rates and weights of groups from rows of rewards, without a trainer."""

import numpy as np
import pytest

from fgrpo.llm.groups import PromptGroups, renormalized

NAN = float("nan")


def groups(*rewards: float, size: int = 2, threshold: float = 0.5) -> PromptGroups:
    return PromptGroups.from_rewards(np.array(rewards), size, threshold)


def test_counts_rows_of_each_group() -> None:
    found = groups(1, 0, 1, 0, 0, 0, NAN, 1, 0, NAN, NAN, NAN, size=3)
    assert found.scorable_P.tolist() == [3, 3, 2, 0]
    assert found.correct_P.tolist() == [2, 0, 1, 0]
    assert found.known_P.tolist() == [True, True, True, False]
    assert found.active_P.tolist() == [True, False, True, False]
    np.testing.assert_array_equal(found.empirical_success_rate_P, [2 / 3, 0, 1 / 2, NAN])


def test_success_is_above_the_threshold_strictly() -> None:
    assert groups(0.5, 0.5000001).correct_P.tolist() == [1]
    for value in (0.1, 0.7, 0.9):  # as float32 above, below, below what they are as float64
        single = np.array([value, np.nextafter(np.float32(value), np.float32(1))], dtype=np.float32)
        assert PromptGroups.from_rewards(single, 2, value).correct_P.tolist() == [1]
    assert groups(-1, 1).correct_P.tolist() == groups(0, 1).correct_P.tolist() == [1]
    assert groups(-1, 0, threshold=-0.5).correct_P.tolist() == [1]


def test_groups_of_one_are_never_active() -> None:
    assert not groups(0, 1, NAN, size=1).active_P.any()


def test_rows_of_a_group_stand_side_by_side() -> None:
    assert groups(0, 1, 1, 1).rows(np.array([0.5, 1.0])).tolist() == [0.5, 0.5, 1.0, 1.0]


def test_refuses_part_of_a_group() -> None:
    with pytest.raises(ValueError, match="rows must come in whole groups of 2, got 3 rows: "):
        groups(0, 1, 1)


def test_renormalized_weights_have_mean_1_over_active_groups() -> None:
    weights, active = np.array([0.25, 0.75, 1.0, 0.0]), np.array([True, True, False, False])
    assert renormalized(weights, active).tolist() == [0.5, 1.5, 2.0, 0.0]
    assert renormalized(weights, ~active & (weights == 0)).tolist() == weights.tolist()  # mean 0
    assert renormalized(weights, np.zeros(4, bool)).tolist() == weights.tolist()  # no active group
    assert renormalized(np.ones(3), np.ones(3, bool)).tolist() == [1.0, 1.0, 1.0]
