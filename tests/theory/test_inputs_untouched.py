"""Closed forms take arrays without copying them, so none may write into what it was given."""

import numpy as np
import pytest

from fgrpo import theory

CALLS = {
    "tail_miss_probability": (0.3, 0.03, 8.0),
    "active_probability": (0.3, 8.0),
    "peak_group_size": (0.3, 0.03),
    "coverage_group_size": (0.3, 0.03, 0.5),
    "tail_miss_per_rollout": (0.3, 0.03, 8.0),
    "tail_misses_before_first_hit": (0.3, 0.03, 8.0),
    "tail_miss_regime": (0.3, 0.03, 8.0),
    "focal_weight": (0.3, 1.0),
    "focal_tail_miss": (0.3, 0.03, 8.0, 1.0),
    "advantage_weighted_tail_miss": (0.3, 0.03, 8.0, 1.0),
    "expected_focal_weight": (0.3, 8.0, 0.5),
    "focal_weight_variance": (0.3, 8.0, 2.0),
    "pass_at_k": (16.0, 3.0, 4.0),
    "ema_success_rate": (0.3, 0.4, 0.1),
    "shrunk_success_rate": (0.375, 8.0),
    "delta_nll_rare": (0.3, 0.4),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_stay_as_they_were(name: str) -> None:
    arguments = [np.full(3, value) for value in CALLS[name]]
    for argument in arguments:
        argument.flags.writeable = False
    getattr(theory, name)(*arguments)
    for argument, value in zip(arguments, CALLS[name], strict=True):
        np.testing.assert_array_equal(argument, value)
