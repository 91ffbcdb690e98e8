"""Closed forms: what can be known about group-relative RL with verifiable rewards without sampling.

By subject: `tail_miss`, `risk`, `modes`, `weighted_tail_miss`, `difficulty` (how often updates miss a rare mode);
`updates`, `mass_dynamics`, `finite_step`, `action_classes`, `expected_mass`, `baseline`, `retention`, `mean_field`
(what an update does to correct mass); `weights`, `focal_moments`, `advantages`, `utilities`, `success_estimates` (the
weight); `pass_estimates`, `significance`, `rare_nll`, `intervals` (judging a model). `proofs` has the proofs.
"""

from fgrpo.theory.action_classes import ActionClasses
from fgrpo.theory.advantages import (
    advantage_magnitude,
    matched_learning_rate,
    mean_advantage_magnitude,
    strongest_success_rate,
)
from fgrpo.theory.baseline import (
    SampledMass,
    batch_baseline,
    batch_baseline_increment,
    batch_baseline_is_monotone,
    conditional_batch_baseline,
    conditional_sampled_mass,
)
from fgrpo.theory.difficulty import (
    beta_tail_miss_rare_fraction,
    beta_tail_miss_rare_mass,
    correlated_tail_miss,
    graded_tail_miss_probability,
    tail_miss_without_replacement,
)
from fgrpo.theory.expected_mass import (
    expected_batch_baseline,
    expected_correct_mass_change,
    expected_logit_update,
    expected_moments,
    expected_unsampled_correct_mass_change,
    logit_gain_threshold,
)
from fgrpo.theory.finite_step import exact_mass_change, finite_step_bound, first_order_mass_change
from fgrpo.theory.focal_moments import (
    Moments,
    expected_focal_weight,
    focal_weight_bias,
    focal_weight_standard_deviation,
    focal_weight_variance,
    weight_moments,
)
from fgrpo.theory.mass_dynamics import (
    CentredMassChange,
    CorrectMassChange,
    UnsampledMassChange,
    centred_mass_change,
    correct_mass_change,
    correct_rise_margin,
    unsampled_correct_mass_change,
    unsampled_decline_margin,
)
from fgrpo.theory.mean_field import MeanFieldOrbit, mean_field_orbit
from fgrpo.theory.modes import (
    any_mode_missed_probability,
    expected_mass_missed,
    expected_modes_missed,
    modes_missed_distribution,
)
from fgrpo.theory.pass_estimates import (
    PassAtKInterval,
    estimate_pass_at_k_variance,
    pass_at_k,
    pass_at_k_interval,
    pass_at_k_variance,
)
from fgrpo.theory.rare_nll import NLLRise, delta_nll_rare, nll_rise_parts
from fgrpo.theory.retention import correct_entropy, correct_overlap, retained_mass
from fgrpo.theory.risk import (
    risk_interval,
    tail_miss_per_rollout,
    tail_miss_regime,
    tail_misses_before_first_hit,
)
from fgrpo.theory.significance import PairedTest, exact_paired_subsampling_test, holm_adjust, paired_subsampling_test
from fgrpo.theory.success_estimates import (
    ema_moments,
    ema_success_rate,
    posterior_focal_weight,
    posterior_weight_moments,
    shrunk_moments,
    shrunk_success_rate,
    shrunk_weight_moments,
)
from fgrpo.theory.tail_miss import (
    active_probability,
    coverage_group_size,
    peak_group_size,
    tail_miss_estimate,
    tail_miss_probability,
)
from fgrpo.theory.updates import SURROGATES, SampledMoments, logit_update, sampled_moments
from fgrpo.theory.utilities import focal_utility, focal_utility_slope, utility, utility_slope
from fgrpo.theory.weighted_tail_miss import (
    advantage_weighted_tail_miss,
    focal_tail_miss,
    focal_tail_miss_peak,
    tail_miss_update_share,
)
from fgrpo.theory.weights import (
    WEIGHTS,
    constant_weight,
    focal_weight,
    hard_upweight,
    inverse_weight,
    pass_at_k_weight,
    step_weight,
)

__all__ = [
    "SURROGATES",
    "WEIGHTS",
    "ActionClasses",
    "CentredMassChange",
    "CorrectMassChange",
    "MeanFieldOrbit",
    "Moments",
    "NLLRise",
    "PairedTest",
    "PassAtKInterval",
    "SampledMass",
    "SampledMoments",
    "UnsampledMassChange",
    "active_probability",
    "advantage_magnitude",
    "advantage_weighted_tail_miss",
    "any_mode_missed_probability",
    "batch_baseline",
    "batch_baseline_increment",
    "batch_baseline_is_monotone",
    "beta_tail_miss_rare_fraction",
    "beta_tail_miss_rare_mass",
    "centred_mass_change",
    "conditional_batch_baseline",
    "conditional_sampled_mass",
    "constant_weight",
    "correct_entropy",
    "correct_mass_change",
    "correct_overlap",
    "correct_rise_margin",
    "correlated_tail_miss",
    "coverage_group_size",
    "delta_nll_rare",
    "ema_moments",
    "ema_success_rate",
    "estimate_pass_at_k_variance",
    "exact_mass_change",
    "exact_paired_subsampling_test",
    "expected_batch_baseline",
    "expected_correct_mass_change",
    "expected_focal_weight",
    "expected_logit_update",
    "expected_mass_missed",
    "expected_modes_missed",
    "expected_moments",
    "expected_unsampled_correct_mass_change",
    "finite_step_bound",
    "first_order_mass_change",
    "focal_tail_miss",
    "focal_tail_miss_peak",
    "focal_utility",
    "focal_utility_slope",
    "focal_weight",
    "focal_weight_bias",
    "focal_weight_standard_deviation",
    "focal_weight_variance",
    "graded_tail_miss_probability",
    "hard_upweight",
    "holm_adjust",
    "inverse_weight",
    "logit_gain_threshold",
    "logit_update",
    "matched_learning_rate",
    "mean_advantage_magnitude",
    "mean_field_orbit",
    "modes_missed_distribution",
    "nll_rise_parts",
    "paired_subsampling_test",
    "pass_at_k",
    "pass_at_k_interval",
    "pass_at_k_variance",
    "pass_at_k_weight",
    "peak_group_size",
    "posterior_focal_weight",
    "posterior_weight_moments",
    "retained_mass",
    "risk_interval",
    "sampled_moments",
    "shrunk_moments",
    "shrunk_success_rate",
    "shrunk_weight_moments",
    "step_weight",
    "strongest_success_rate",
    "tail_miss_estimate",
    "tail_miss_per_rollout",
    "tail_miss_probability",
    "tail_miss_regime",
    "tail_miss_update_share",
    "tail_miss_without_replacement",
    "tail_misses_before_first_hit",
    "unsampled_correct_mass_change",
    "unsampled_decline_margin",
    "utility",
    "utility_slope",
    "weight_moments",
]
