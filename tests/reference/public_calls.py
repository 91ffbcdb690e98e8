"""One valid call of every public callable of `fgrpo.theory`, by the names of its parameters.

A number stands for an argument that broadcasts with the others; an array is one of its own shape, whose leading axes
broadcast; anything else is passed as it is.
"""

from functools import partial
from typing import Any

import numpy as np

from fgrpo.theory import ActionClasses, focal_weight

_P = np.array([0.5, 0.25, 0.25])
_CORRECT = np.array([True, False, True])
_COUNTS = np.array([2.0, 1.0, 0.0])
_REWARDS: dict[str, Any] = {"reward_correct": 1.0, "reward_wrong": -1.0}
_RARE: dict[str, Any] = {"success_rate": 0.3, "rare_mass": 0.03, "group_size": 8.0}
_WEIGHT: dict[str, Any] = {"success_rate": 0.3, "group_size": 8.0, "gamma": 0.5}
_PRIOR: dict[str, Any] = {"alpha": 1.0, "beta": 2.0}
_MODES: dict[str, Any] = {"success_rate": 0.3, "rare_masses": np.array([0.01, 0.02]), "group_size": 8.0}
_UTILITY: dict[str, Any] = {"success_rate": 0.3, "group_size": 8.0, "weight": partial(focal_weight, gamma=1.0)}
_BETA: dict[str, Any] = {"alpha": 1.0, "beta": 2.0, "group_size": 8.0, "gamma": 0.5}
_GROUP: dict[str, Any] = {"policy": _P, "correct": _CORRECT, "sampled": _COUNTS}
_STEP: dict[str, Any] = {"policy": _P, "logit_step": np.array([0.1, -0.2, 0.3]), "subset": _CORRECT}
_CLASSES: dict[str, Any] = {
    "classes": ActionClasses([1, 1, 2], [0.5, 0.3, 0.1], [True, False, True]),
    "group_size": 8.0,
}
_TEST: dict[str, Any] = {
    "samples": 16.0,
    "correct_a": np.array([3.0, 4.0]),
    "correct_b": np.array([2.0, 5.0]),
    "k": 4,
    "subsample": 4,
    "level": 0.9,
}
_BEFORE_AND_AFTER: dict[str, Any] = {"initial_probabilities": _P, "probabilities": np.array([0.25, 0.5, 0.25])}

CALLS: dict[str, dict[str, Any]] = {
    "ActionClasses": {"count": np.array([1.0, 2.0]), "probability": np.array([0.5, 0.25]), "correct": _CORRECT[:2]},
    "active_probability": {"success_rate": 0.3, "group_size": 8.0},
    "advantage_magnitude": {**_WEIGHT, "correct": True, "ddof": 1, "epsilon": 0.1},
    "advantage_weighted_tail_miss": {**_RARE, "gamma": 1.0},
    "any_mode_missed_probability": _MODES,
    "batch_baseline": {**_GROUP, **_REWARDS},
    "batch_baseline_increment": {**_CLASSES, "successes": 3.0, **_REWARDS},
    "batch_baseline_is_monotone": _REWARDS,
    "beta_tail_miss_rare_fraction": {**_BETA, "rare_fraction": 0.1},
    "beta_tail_miss_rare_mass": {**_BETA, "rare_mass": 0.1},
    "centred_mass_change": {**_GROUP, **_REWARDS, "learning_rate": 0.1},
    "conditional_batch_baseline": {**_CLASSES, "successes": 3.0, **_REWARDS},
    "conditional_sampled_mass": {**_CLASSES, "successes": 3.0},
    "constant_weight": {"success_rate": 0.3, "value": 2.0},
    "correct_entropy": {"probabilities": _P, "correct": _CORRECT, "count": 1.0},
    "correct_mass_change": {**_GROUP, **_REWARDS, "learning_rate": 0.1},
    "correct_overlap": {**_BEFORE_AND_AFTER, "correct": _CORRECT, "count": 1.0},
    "correct_rise_margin": {**_GROUP, **_REWARDS},
    "correlated_tail_miss": {**_RARE, "correlation": 0.1, "gamma": 0.5},
    "coverage_group_size": {"success_rate": 0.3, "rare_mass": 0.03, "level": 0.5},
    "delta_nll_rare": {"nll_before": np.array([1.0, 2.0]), "nll_after": np.array([2.0, 2.5]), "lengths": 4.0},
    "ema_moments": {"success_rate": 0.3, "group_size": 8.0, "rate": 0.2, "slope": 0.01},
    "ema_success_rate": {"previous": 0.3, "empirical_success_rate": 0.5, "rate": 0.1},
    "estimate_pass_at_k_variance": {"samples": 16.0, "correct": 3.0, "k": 4.0},
    "exact_mass_change": _STEP,
    "exact_paired_subsampling_test": _TEST,
    "expected_batch_baseline": {**_CLASSES, **_REWARDS},
    "expected_correct_mass_change": {**_CLASSES, **_REWARDS, "learning_rate": 0.1},
    "expected_focal_weight": _WEIGHT,
    "expected_logit_update": {**_CLASSES, **_REWARDS, "learning_rate": 0.1},
    "expected_mass_missed": _MODES,
    "expected_modes_missed": _MODES,
    "expected_moments": _CLASSES,
    "expected_unsampled_correct_mass_change": {**_CLASSES, **_REWARDS, "learning_rate": 0.1},
    "finite_step_bound": {"logit_step": np.array([0.1, -0.2, 0.3])},
    "first_order_mass_change": _STEP,
    "focal_tail_miss": {**_RARE, "gamma": 1.0},
    "focal_tail_miss_peak": {"success_rate": 0.3, "rare_mass": 0.03},
    "focal_utility": {"success_rate": 0.3, "gamma": 0.5},
    "focal_utility_slope": {"success_rate": 0.3, "gamma": 0.5},
    "focal_weight": {"success_rate": 0.3, "gamma": 0.5},
    "focal_weight_bias": _WEIGHT,
    "focal_weight_standard_deviation": _WEIGHT,
    "focal_weight_variance": _WEIGHT,
    "graded_tail_miss_probability": {"level_masses": np.array([0.4, 0.5]), "rare_mass": 0.1, "group_size": 8.0},
    "hard_upweight": {"success_rate": 0.3, "alpha": 1.0},
    "holm_adjust": {"p_values": 0.02},
    "inverse_weight": {"success_rate": 0.3},
    "logit_gain_threshold": {"classes": _CLASSES["classes"]},
    "logit_update": {**_GROUP, **_REWARDS, "learning_rate": 0.1},
    "matched_learning_rate": {"gamma": 0.5, "learning_rate": 1e-6, **_PRIOR},
    "mean_advantage_magnitude": {"success_rate": 0.3, "gamma": 0.5},
    "mean_field_orbit": {"classes": _CLASSES["classes"], "correct_mass": np.array([0.8, 0.9]), "gamma": 0.5},
    "modes_missed_distribution": _MODES,
    "nll_rise_parts": {**_BEFORE_AND_AFTER, "members": _CORRECT},
    "paired_subsampling_test": {**_TEST, "iterations": 99, "rng": np.random.default_rng(0)},
    "pass_at_k": {"samples": 16.0, "correct": 3.0, "k": 4.0},
    "pass_at_k_interval": {
        "samples": 16.0,
        "correct": np.array([3.0, 4.0]),
        "k": np.array([1.0, 4.0]),
        "level": 0.9,
        "method": "over_problems",
    },
    "pass_at_k_variance": {"success_rate": 0.3, "samples": 16.0, "k": 4.0},
    "pass_at_k_weight": {"success_rate": 0.25, "k": 4, "group_size": 8},
    "peak_group_size": {"success_rate": 0.3, "rare_mass": 0.03},
    "posterior_focal_weight": {"empirical_success_rate": 0.375, "group_size": 8.0, "gamma": 0.5, **_PRIOR},
    "posterior_weight_moments": {**_WEIGHT, **_PRIOR},
    "retained_mass": {**_BEFORE_AND_AFTER, "correct": _CORRECT, "count": 1.0},
    "risk_interval": {"success_rate": 0.3, "rare_mass": 0.03, "level": 0.5},
    "sampled_moments": _GROUP,
    "shrunk_moments": {"success_rate": 0.3, "group_size": 8.0, **_PRIOR},
    "shrunk_success_rate": {"empirical_success_rate": 0.375, "group_size": 8.0, **_PRIOR},
    "shrunk_weight_moments": {**_WEIGHT, **_PRIOR},
    "step_weight": {"success_rate": 0.3, "threshold": 0.5, "below": 1.0, "above": 0.0},
    "strongest_success_rate": {"gamma": 0.5},
    "tail_miss_estimate": {"correct": 3.0, "group_size": 8.0, "rare_fraction": 0.1},
    "tail_miss_per_rollout": _RARE,
    "tail_miss_probability": {**_RARE, "failure_rate": 0.7},
    "tail_miss_regime": {**_RARE, "level": 0.5},
    "tail_miss_update_share": _RARE,
    "tail_miss_without_replacement": {"pool_size": 32.0, "correct": 10.0, "rare": 2.0, "group_size": 8.0, "gamma": 0.5},
    "tail_misses_before_first_hit": _RARE,
    "unsampled_correct_mass_change": {**_GROUP, **_REWARDS, "learning_rate": 0.1},
    "unsampled_decline_margin": {**_GROUP, **_REWARDS},
    "utility": {**_UTILITY, "normalisation": "std", "ddof": 1, "epsilon": 0.1},
    "utility_slope": {**_UTILITY, "normalisation": "std", "ddof": 1, "epsilon": 0.1},
    "weight_moments": _UTILITY,
}
