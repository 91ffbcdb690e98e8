"""Curves of runs, values on them, and intervals over seeds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fgrpo.theory._validation import FloatArray
from fgrpo.theory.intervals import Interval, mean_interval

METRICS = (
    "correct_mass",
    "retained_mass",
    "effective_number",
    "rare_mass",
    "delta_nll_rare",
    "delta_nll_common",
    "kl",
    "correct_overlap",
    "held_out_pass_at_1",
    "held_out_pass_at_64",
    "held_out_pass_at_256",
)
"""Columns of an evaluation that are averaged over the prompts."""


class SeedMean(NamedTuple):
    """A mean over seeds with its t interval, and how many seeds entered."""

    interval: Interval
    seeds: int

    def columns(self) -> dict[str, float]:
        """A cell for each number of it: mean, lower, upper, seeds."""
        return {**self.interval._asdict(), "seeds": self.seeds}


def t_interval(values: ArrayLike, level: float) -> SeedMean:
    """Mean of independent values and its two-sided Student t interval; no limits with fewer than two of them.

    Args:
        values: One value per seed; nan values are left out.
        level: Confidence level in (0, 1).
    """
    array = np.asarray(values, dtype=np.float64)
    array = array[~np.isnan(array)]
    return SeedMean(mean_interval(array, level), len(array))


def curves(evaluations: pd.DataFrame) -> pd.DataFrame:
    """Means over the prompts: a row per arm, seed and evaluated step, sorted, with `rollouts` and `METRICS`."""
    return evaluations.groupby(["arm", "seed", "step", "rollouts"], as_index=False, sort=True)[list(METRICS)].mean()


def values_where(curve: pd.DataFrame, on: str, level: float) -> FloatArray:
    """All metrics of one run where a column first reaches a level, linear between evaluations.

    Args:
        curve: The rows of `curves` of one run.
        on: `step`, `rollouts`, or a metric that rises.
        level: The level.

    Returns:
        The values in the order of `METRICS`; nan if the run never reaches the level. A run that starts above it has its
        first values.
    """
    course: FloatArray = curve[on].to_numpy(dtype=np.float64)
    values: FloatArray = curve[list(METRICS)].to_numpy(dtype=np.float64)
    reached = np.flatnonzero(course >= level)
    if len(reached) == 0:
        return np.full(len(METRICS), np.nan)
    at = reached[0]
    if at == 0:
        at_start: FloatArray = values[0]
        return at_start
    share = (level - course[at - 1]) / (course[at] - course[at - 1])
    between: FloatArray = values[at - 1] + share * (values[at] - values[at - 1])
    return between


def seeds_where(all_curves: pd.DataFrame, arm: str, on: str, level: float) -> pd.DataFrame:
    """`values_where` of every seed of an arm: a row per seed, a column per metric."""
    rows = all_curves[all_curves["arm"] == arm]
    found = {seed: values_where(curve, on, level) for seed, curve in rows.groupby("seed")}
    return pd.DataFrame.from_dict(found, orient="index", columns=list(METRICS))


def paired_differences(
    all_curves: pd.DataFrame, pair: tuple[str, str], on: str, level: float, confidence: float
) -> dict[str, SeedMean]:
    """Mean paired difference of two arms in each metric where both have reached a level, with its t interval.

    Seeds in which one of the two does not reach it are left out, which `SeedMean.seeds` shows.

    Args:
        all_curves: The table of `curves`.
        pair: The arm and the one that is subtracted.
        on: `step`, `rollouts`, or a metric that rises.
        level: Where on it.
        confidence: Level of the interval.
    """
    arm, other = (seeds_where(all_curves, name, on, level) for name in pair)
    difference = arm - other
    return {metric: t_interval(difference[metric].to_numpy(), confidence) for metric in METRICS}


def change(all_curves: pd.DataFrame, arm: str, metric: str, confidence: float) -> SeedMean:
    """Mean change of a metric from the first to the last evaluation of an arm, with its t interval."""
    rows = all_curves[all_curves["arm"] == arm].groupby("seed")[metric]
    return t_interval((rows.last() - rows.first()).to_numpy(), confidence)


def last_step(all_curves: pd.DataFrame, arms: Sequence[str]) -> int:
    """The last step that every run of these arms has reached."""
    return int(all_curves[all_curves["arm"].isin(arms)].groupby(["arm", "seed"])["step"].max().min())
