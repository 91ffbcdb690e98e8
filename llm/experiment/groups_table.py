"""What the records of single groups say: tail misses against the closed form, unsampled mass, the spread of weights."""

import numpy as np
import pandas as pd
from scipy import stats

from fgrpo.llm.experiment.arms import ARMS
from fgrpo.theory import expected_focal_weight, focal_weight_variance, tail_miss_probability
from fgrpo.theory.intervals import mean_interval

WINDOWS = 3
"""Stretches of updates into which the spread of a weight is divided."""
WEIGHT_PROMPT = 0.5
"""Base success rate of the prompt whose weights are followed."""


def martingale_z(observed: pd.Series, expected: pd.Series) -> float:
    """(sum o - sum p) / sqrt(sum p (1 - p)) of events o with probability p given all that came before.

    The probabilities may change with the policy, and with the outcomes: the terms are differences of a martingale, so
    that z is about standard normal once the sum in the root is large.
    """
    p = expected.to_numpy(dtype=np.float64)
    variance = float(np.sum(p * (1 - p)))
    return float(np.sum(observed.to_numpy(dtype=np.float64) - p) / np.sqrt(variance)) if variance > 0 else 0.0


def critical_z(false_alarm: float, tests: int) -> float:
    """Bound of |z| that any of some tests exceeds with a probability of at most `false_alarm` (Bonferroni)."""
    return float(stats.norm.ppf(1 - false_alarm / (2 * tests)))


def tail_misses(groups: pd.DataFrame) -> pd.DataFrame:
    """Tail misses of each arm, all seeds together, against the closed form with the masses of the policy that drew.

    Returns:
        A row per arm: group_size, groups, observed and expected share, the standard error
        of the former under the closed form, z, and as a wrong target `z_frozen`, that of the
        closed form with each prompt's masses in the first generation that has it.
    """
    rows = []
    for arm, of_arm in groups.groupby("arm"):
        ordered = of_arm.sort_values("step", kind="stable")
        first = ordered.groupby(["seed", "prompt"])[["success_rate", "rare_mass"]].transform("first")
        size = int(of_arm["group_size"].iloc[0])
        frozen = pd.Series(tail_miss_probability(first["success_rate"].to_numpy(), first["rare_mass"].to_numpy(), size))
        observed, expected = ordered["is_tail_miss"], ordered["tail_miss_probability"]
        rows.append(
            {
                "arm": str(arm),
                "group_size": size,
                "groups": len(of_arm),
                "observed": float(observed.mean()),
                "expected": float(expected.mean()),
                "standard_error": float(np.sqrt(np.sum(expected * (1 - expected))) / len(of_arm)),
                "z": martingale_z(observed, expected),
                "z_frozen": martingale_z(observed, frozen),
            }
        )
    return pd.DataFrame(rows)


def unsampled_changes(groups: pd.DataFrame, level: float) -> pd.DataFrame:
    """What updates did to the correct mass that was not sampled, where the prompt's correct mass rose.

    Returns:
        A row per arm: the share of such groups whose unsampled correct mass fell, with its t interval over seeds; the
        mean change of both masses over these groups.
    """
    rows = []
    for arm, of_arm in groups.groupby("arm"):
        rose = of_arm[of_arm["correct_mass_change"] > 0]
        by_seed = (rose["unsampled_mass_change"] < 0).groupby(rose["seed"]).mean()
        share = mean_interval(by_seed.dropna(), level)
        rows.append(
            {
                "arm": str(arm),
                "groups": len(rose),
                "share_fell": share.mean,
                "lower": share.lower,
                "upper": share.upper,
                "correct_mass_change": float(rose["correct_mass_change"].mean()),
                "unsampled_mass_change": float(rose["unsampled_mass_change"].mean()),
            }
        )
    return pd.DataFrame(rows)


def weight_spread(groups: pd.DataFrame) -> pd.DataFrame:
    """Variance of the focal weight on one prompt over the updates, and where it comes from.

    The prompt is that with base success rate `WEIGHT_PROMPT`, one per seed; updates are divided into stretches. By the
    law of total variance the variance is that of sampling at the success rate of the moment (its mean over the groups,
    exact) plus that of the expected weight, which drifts with the policy (and differs between seeds).

    Returns:
        A row per focal arm and stretch: first and last step, groups, mean weight, observed variance, and both parts as
        the closed forms have them.
    """
    focal = {name: arm for name, arm in ARMS.items() if arm.weight == "focal" and not arm.easiest_half}
    chosen = groups[groups["arm"].isin(focal) & np.isclose(groups["base_success_rate"], WEIGHT_PROMPT)]
    rows = []
    for arm, of_arm in chosen.groupby("arm"):
        gamma = focal[str(arm)].parameters[0]
        length = (int(of_arm["step"].max()) + WINDOWS) // WINDOWS
        for window, part in of_arm.groupby(of_arm["step"] // length):
            rate, size = part["success_rate"].to_numpy(), part["group_size"].to_numpy()
            rows.append(
                {
                    "arm": str(arm),
                    "first_step": int(window) * length,
                    "last_step": int(window + 1) * length - 1,
                    "groups": len(part),
                    "mean_success_rate": float(rate.mean()),
                    "mean_weight": float(part["focal_weight"].mean()),
                    "variance": float(part["focal_weight"].var(ddof=0)),
                    "sampling_variance": float(np.mean(focal_weight_variance(rate, size, gamma))),
                    "drift_variance": float(np.var(expected_focal_weight(rate, size, gamma))),
                }
            )
    return pd.DataFrame(rows)
