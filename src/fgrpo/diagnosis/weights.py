"""What a focal weight would have done to the groups of a run, and whether the weights that it logged are focal ones.

The update strength of a group is the mean size of its advantages: 2 sqrt(m (1 - m)) g if they are divided by the
group's (population) standard deviation, 2 m (1 - m) g in units of the reward gap if not, with m = X/N.
"""

from collections.abc import Sequence

import numpy as np

from fgrpo.diagnosis.model import Band, LoggedWeights, Strength, WhatIf
from fgrpo.diagnosis.rollouts import IntArray, Rollouts
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.advantages import mean_advantage_magnitude
from fgrpo.theory.weights import focal_weight

BAND_EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Empirical success rates that part the bands; a band holds its lower edge."""

_TOLERANCE = 1e-3  # of a logged weight: float32 and rounded tables


def bands_of(rollouts: Rollouts) -> tuple[Band, ...]:
    """Active groups by empirical success rate."""
    rate = rollouts.empirical_success_rate_G[rollouts.active_G]
    counts = np.histogram(rate, BAND_EDGES)[0]
    total = max(len(rate), 1)
    return tuple(
        Band(low, high, int(count), count / total if len(rate) else np.nan)
        for low, high, count in zip(BAND_EDGES, BAND_EDGES[1:], counts.tolist(), strict=False)
    )


def what_if(rollouts: Rollouts, gamma: float, tail_miss_G: Sequence[FloatArray]) -> WhatIf:
    """The focal weight at `gamma` on every group, recomputed from the counts.

    Args:
        rollouts: The run.
        gamma: Focal exponent, >= 0.
        tail_miss_G: Per rare fraction the tail-miss estimate of each group.

    Source: this project.
    """
    weight = focal_weight(rollouts.empirical_success_rate_G, gamma)
    active = rollouts.active_G
    live, squares = float(weight[active].sum()), float((weight[active] ** 2).sum())
    effective = live**2 / squares if squares else np.nan
    return WhatIf(
        gamma=gamma,
        mean_weight=float(weight.mean()),
        mean_weight_given_active=live / int(active.sum()) if active.any() else np.nan,
        effective_groups=effective,
        effective_share=effective / int(active.sum()) if active.any() else np.nan,
        strength=tuple(_strength(rollouts, scale, gamma, tail_miss_G) for scale in ("std", "none")),
    )


def _strength(rollouts: Rollouts, scale: str, gamma: float, tail_miss_G: Sequence[FloatArray]) -> Strength:
    active = rollouts.active_G
    rate = rollouts.empirical_success_rate_G[active]
    bare = mean_advantage_magnitude(rate) if scale == "std" else 2.0 * rate * (1.0 - rate)
    strength = focal_weight(rate, gamma) * bare
    total = float(strength.sum())
    by_band = np.histogram(rate, BAND_EDGES, weights=strength)[0]
    if not total:
        return Strength(scale, np.nan, (np.nan,) * len(by_band), (np.nan,) * len(tail_miss_G))
    return Strength(
        advantage_scale=scale,
        matched_scale=total / float(bare.sum()),
        shares=tuple((by_band / total).tolist()),
        # given the group's counts, it is a tail miss with the probability that the estimate states
        tail_miss_shares=tuple(float((strength * missed[active]).sum()) / total for missed in tail_miss_G),
    )


def logged_weights(rollouts: Rollouts) -> LoggedWeights | None:
    """Whether the logged weights are (1 - X/N)^gamma, and for which gamma; None if the run logged none.

    The fit is by least squares in logarithms over active groups; the verdict rests on the largest error of the weight
    itself. With X/N equal in all active groups (N = 2) a focal weight cannot be told from a constant.

    Source: this project.
    """
    logged = ~np.isnan(rollouts.logged_weight_G)
    if not logged.any() and not rollouts.mixed_weight_G.any():
        return None
    rated = logged & ~np.isnan(rollouts.logged_rate_G)
    counted = rollouts.empirical_success_rate_G
    difference = float(np.abs(counted - rollouts.logged_rate_G)[rated].max()) if rated.any() else np.nan
    source = "logged" if rated.any() else "recomputed"
    rate_G = rollouts.logged_rate_G if rated.any() else counted
    used = (rated if rated.any() else logged) & (rate_G > 0) & (rate_G < 1)
    weight, rate, step = rollouts.logged_weight_G[used], rate_G[used], rollouts.step_G[used]
    groups = len(weight)
    mean = float(weight.mean()) if groups else np.nan
    gamma, error, verdict, renormalised = np.nan, np.nan, "cannot tell", False
    if rollouts.mixed_weight_G.any() or (weight <= 0).any():
        verdict = "not focal"
    elif groups:
        gamma, error, verdict, renormalised = _fit(weight, rate, step)
    return LoggedWeights(groups, mean, gamma, error, renormalised, source, difference, verdict)


def _fit(weight: FloatArray, rate: FloatArray, step: IntArray) -> tuple[float, float, str, bool]:
    if np.abs(weight - 1.0).max() <= _TOLERANCE:
        return 0.0, float(np.abs(weight - 1.0).max()), "no weight", False
    x, y = np.log1p(-rate), np.log(weight)
    if np.ptp(weight) <= _TOLERANCE:
        alone = np.ptp(rate) == 0.0
        return (float(y[0] / x[0]) if alone else np.nan), np.nan, "cannot tell" if alone else "constant", False
    gamma = float(x @ y / (x @ x))
    error = float(np.abs(weight - np.exp(gamma * x)).max())
    if error <= _TOLERANCE and gamma >= 0:
        return gamma, error, "focal", False
    place = np.unique(step, return_inverse=True)[1]
    copies = np.bincount(place)
    x_mean, y_mean = (np.bincount(place, part) / copies for part in (x, y))
    x_free, y_free = x - x_mean[place], y - y_mean[place]
    if x_free @ x_free > 0.0:
        free_gamma = float(x_free @ y_free / (x_free @ x_free))
        free_error = float(np.abs(weight - np.exp(free_gamma * x_free + y_mean[place])).max())
        if free_error <= _TOLERANCE and free_gamma >= 0:
            return free_gamma, free_error, "focal, renormalised", True
    return gamma, error, "not focal", False
