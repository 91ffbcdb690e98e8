"""All numbers of the report, from the tables of the runs alone: the same tables give the same numbers."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from fgrpo.llm.experiment.arms import ARMS
from fgrpo.llm.experiment.groups_table import tail_misses, unsampled_changes, weight_spread
from fgrpo.llm.experiment.intervals import (
    METRICS,
    change,
    curves,
    last_step,
    paired_differences,
    seeds_where,
    t_interval,
)
from fgrpo.llm.experiment.protocol import BASELINE, EVALUATION, GROUP, PRIMARY_ARM, Protocol

FURTHER_PAIRS = ((PRIMARY_ARM, "low_lr"), (PRIMARY_ARM, "constant_scale"), (PRIMARY_ARM, "focal_g05_n8"))
"""Comparisons beside those of each arm with its baseline."""


def experiment_numbers(runs: pd.DataFrame, protocol: Protocol) -> dict[str, Any]:
    """Everything that the report says, as tables.

    Args:
        runs: The rows of all runs (`fgrpo.llm.experiment.run.run_arm`).
        protocol: The protocol that they followed.

    Returns:
        Tables by name: `curves` (means over the prompts), `final` and `changes` (an arm's last values, and their
        change from the start), `comparisons` (paired differences of two arms at equal steps, equal rollouts, matched
        pass@1 and matched KL), `who_gains` (per prompt), `tail_miss`, `unsampled`, `weights`.

    Source: this project.
    """
    evaluations = runs[runs["table"] == EVALUATION]
    groups = runs[runs["table"] == GROUP]
    all_curves = curves(evaluations)
    arms = [name for name in ARMS if name in set(all_curves["arm"])]
    return {
        "curves": all_curves,
        "final": pd.DataFrame(_final(all_curves, arms, protocol)),
        "changes": pd.DataFrame(_changes(all_curves, arms, protocol)),
        "comparisons": pd.DataFrame(_comparisons(all_curves, arms, protocol)),
        "who_gains": pd.DataFrame(_who_gains(evaluations, arms, protocol)),
        "tail_miss": tail_misses(groups),
        "unsampled": unsampled_changes(groups, protocol.level),
        "weights": weight_spread(groups),
    }


def pairs_of(arms: list[str]) -> list[tuple[str, str]]:
    """The comparisons among these arms: each with its baseline, and the further ones."""
    with_baseline = [(name, baseline) for name in arms if (baseline := ARMS[name].baseline) is not None]
    return [pair for pair in (*with_baseline, *FURTHER_PAIRS) if set(pair) <= set(arms)]


def _final(all_curves: pd.DataFrame, arms: list[str], protocol: Protocol) -> Iterator[dict[str, Any]]:
    for arm in arms:
        values = seeds_where(all_curves, arm, "step", last_step(all_curves, [arm]))
        for metric in METRICS:
            yield {"arm": arm, "metric": metric, **t_interval(values[metric].to_numpy(), protocol.level).columns()}


def _changes(all_curves: pd.DataFrame, arms: list[str], protocol: Protocol) -> Iterator[dict[str, Any]]:
    for arm in arms:
        for metric in METRICS:
            yield {"arm": arm, "metric": metric, **change(all_curves, arm, metric, protocol.level).columns()}


def _comparisons(all_curves: pd.DataFrame, arms: list[str], protocol: Protocol) -> Iterator[dict[str, Any]]:
    for arm, other in pairs_of(arms):
        rollouts = all_curves[all_curves["arm"].isin((arm, other))].groupby("arm")["rollouts"].max().min()
        places = [
            ("step", float(last_step(all_curves, [arm, other]))),
            ("rollouts", float(rollouts)),
            *(("correct_mass", level) for level in protocol.matched_pass_at_1),
            *(("kl", level) for level in protocol.matched_kl),
        ]
        for on, level in places:
            found = paired_differences(all_curves, (arm, other), on, level, protocol.level)
            for metric, difference in found.items():
                yield {"arm": arm, "other": other, "on": on, "level": level, "metric": metric, **difference.columns()}


def _who_gains(evaluations: pd.DataFrame, arms: list[str], protocol: Protocol) -> Iterator[dict[str, Any]]:
    """Per prompt, known by its base success rate as the seeds give it to different sums: start, end, differences."""
    rows = evaluations.assign(rate=evaluations["base_success_rate"].round(4))
    start = rows[(rows["step"] == 0) & (rows["arm"] == BASELINE)].groupby("rate")["correct_mass"].mean()
    final = rows[rows["step"] == rows["step"].max()].set_index(["arm", "rate", "seed"]).sort_index()
    for arm, other in pairs_of(arms):
        for rate, at_start in start.items():
            both = [final.loc[(name, rate)] for name in (arm, other)]
            row: dict[str, Any] = {"arm": arm, "other": other, "base_success_rate": rate, "start": float(at_start)}
            for metric in ("correct_mass", "retained_mass"):
                values, others = (part[metric] for part in both)
                difference = t_interval((values - others).to_numpy(), protocol.level)
                row |= {
                    f"{metric}_arm": float(values.mean()),
                    f"{metric}_other": float(others.mean()),
                    **{f"{metric}_{name}": value for name, value in difference.columns().items()},
                }
            yield row
