"""What the trainer logs about success rates and weights: every key, with its meaning, and how it is computed.

Scalars are means over the generations since the last log entry. In evaluation TRL puts `eval_` before each key, and
only those that say nothing of weights are there, for weights are not applied.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fgrpo.llm.groups import PromptGroups
from fgrpo.theory import tail_miss_estimate
from fgrpo.theory._validation import FloatArray

PREFIX = "focal/"

SUCCESS_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "focal/success_rate": "Mean empirical success rate of the groups.",
        "focal/histogram/{k}": "Number of groups with k correct rollouts, k = 0..N.",
        "focal/all_wrong_share": "Share of groups without a correct rollout.",
        "focal/all_right_share": "Share of groups without a wrong rollout.",
        "focal/active_share": "Share of active groups: at least one rollout correct and at least one wrong.",
        "focal/above_0.75_share": "Share of groups with an empirical success rate above 3/4.",
        "focal/tail_miss_estimate/{rare_fraction}": (
            "Estimate of the mean tail-miss probability, were the rare-correct region this fraction of each prompt's "
            "success rate: unbiased, from the counts (`fgrpo.theory.tail_miss_estimate`)."
        ),
        "focal/unscorable_rollout_share": "Share of rollouts with success reward None: they enter no success rate.",
        "focal/unscorable_group_share": "Share of groups without a scorable rollout: they have weight 1.",
        "focal/truncated_share": "Share of rollouts that did not end within the length limit (TRL's clipped ratio).",
    }
)
"""Keys logged in training and in evaluation; shares of groups are among those with a success rate, where not said."""

WEIGHT_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "focal/mean_weight": "Mean weight over all groups.",
        "focal/mean_weight_given_active": "Mean weight over the active groups (1 with focal_renormalize).",
        "focal/effective_groups": "(sum g)^2 / sum g^2 over the active groups: how many equal ones they are worth.",
        "focal/advantage_magnitude": "Mean absolute advantage with the weight, as the loss has it.",
        "focal/advantage_magnitude_unweighted": "Mean absolute advantage without the weight.",
    }
)
"""Keys logged in training only."""

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "empirical_success_rate": "Success rate of the row's group in this generation; NaN if nothing was scorable.",
        "focal_weight": "What the row's advantage was multiplied with; 1 in evaluation.",
    }
)
"""Columns in the table of completions (`log_completions`); `advantage` there is the weighted one."""


def success_diagnostics(groups: PromptGroups, rare_fractions: Sequence[float]) -> dict[str, float]:
    """Values of `SUCCESS_KEYS` but for the truncated share, which the trainer knows.

    Shares and means over no group at all are NaN, which TRL leaves out of its averages.
    """
    known = groups.known_P
    rate, correct = groups.empirical_success_rate_P[known], groups.correct_P[known]
    histogram = np.bincount(correct, minlength=groups.group_size + 1)
    values = {
        "success_rate": _mean(rate),
        **{f"histogram/{k}": float(count) for k, count in enumerate(histogram)},
        "all_wrong_share": _mean(correct == 0),
        "all_right_share": _mean(correct == groups.scorable_P[known]),
        "active_share": _mean(groups.active_P[known]),
        "above_0.75_share": _mean(rate > 0.75),
        "unscorable_rollout_share": 1.0 - _mean(groups.scorable_P / groups.group_size),
        "unscorable_group_share": _mean(~known),
    }
    fractions = np.array(rare_fractions, dtype=np.float64)[:, None]
    tail_miss = tail_miss_estimate(correct, groups.scorable_P[known], fractions)
    values |= {f"tail_miss_estimate/{rho:g}": _mean(row) for rho, row in zip(rare_fractions, tail_miss, strict=True)}
    return {PREFIX + key: value for key, value in values.items()}


def weight_diagnostics(groups: PromptGroups, weight_P: FloatArray) -> dict[str, float]:
    """Values of `WEIGHT_KEYS` but for the advantages, which the trainer knows."""
    active = weight_P[groups.active_P]
    squares = float(np.sum(active**2))
    return {
        "focal/mean_weight": _mean(weight_P),
        "focal/mean_weight_given_active": _mean(active),
        "focal/effective_groups": float(np.sum(active)) ** 2 / squares if squares > 0 else 0.0,
    }


def _mean(values: FloatArray | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if values.size else float("nan")
