"""Results of a sweep, summarised: its length, final values, means over seeds, and the collapse zone.

The functions take the tidy table that `load_results` and `run_sweep` return: one row per run and recorded step.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import fields
from itertools import groupby
from typing import TYPE_CHECKING

from fgrpo.simulate.config import RunConfig, UpdateConfig
from fgrpo.simulate.policy_config import PolicyClass, PolicyConfig

if TYPE_CHECKING:
    import pandas as pd

COLLAPSE_LEVEL = 0.5
"""Mean final retained mass at gamma 0 below which a group size belongs to the collapse zone."""
RETAINED = 0.9
"""Retained mass from which on a run counts as keeping its correct modes, in the checks of sentences."""
THROUGHOUT = 0.95
"""Retained mass that counts as near 1 at every record."""

_RUN = ("group_size", "gamma", "seed", "steps")
_THREE_CLASSES = ("actions", "correct", "anchor_logit", "correct_logit", "wrong_logit")
_MASSES = ("correct_mass", "retained_mass")


def _setting_columns() -> tuple[str, ...]:
    """Columns of all that decides a run but what a sweep varies; named as `Trajectory.to_frame` flattens them."""
    names = ["reading"]
    for kind in (RunConfig, PolicyConfig, UpdateConfig):
        names += [one.name for one in fields(kind)]
    varied_or_nested = (*_RUN, "record_every", "policy", "update")
    flattened = [("beta1", "beta2") if name == "betas" else (name,) for name in names if name not in varied_or_nested]
    return tuple(column for columns in flattened for column in columns)


SETTINGS = _setting_columns()
"""Columns that say what was run, but for group size, gamma, seed and length."""


def collapse_zone(results: "pd.DataFrame") -> tuple[int, ...]:
    """Group sizes whose mean final retained mass at gamma 0 is below 1/2.

    The mean is over the seeds, and 'final' is the last step of the sweep (`sweep_steps`).

    Args:
        results: Tidy results of one setting, one row per run and recorded step.

    Returns:
        The group sizes, ascending, whether or not they are neighbours on the grid that was run; empty if none
        collapses.

    Raises:
        ValueError: If columns or the runs with gamma 0 are missing, the results mix settings, or a run of the sweep was
            not recorded to its end.

    Source: this project (the paper shades a zone in Figure 4c in v1, 2c in v2, without giving its bounds).
    """
    sweep, _ = split_by_length(results)
    return zone_of(seed_summary(final_rows(sweep), ["retained_mass"]))


def zone_of(summary: "pd.DataFrame") -> tuple[int, ...]:
    """`collapse_zone` from the rows of `seed_summary` of final values."""
    final = summary[(summary["metric"] == "retained_mass") & (summary["gamma"] == 0.0)]
    return tuple(sorted(int(size) for size in final.loc[final["mean"] < COLLAPSE_LEVEL, "group_size"]))


def contiguous_blocks(chosen: Collection[int], grid: Sequence[int]) -> list[tuple[int, int]]:
    """First and last group size of each stretch of chosen ones that are neighbours on an ascending grid."""
    stretches = [list(sizes) for inside, sizes in groupby(grid, key=lambda size: size in chosen) if inside]
    return [(sizes[0], sizes[-1]) for sizes in stretches]


def block_words(chosen: Collection[int], grid: Sequence[int]) -> str:
    """The blocks in words, such as '2, 128 to 8192'; empty if nothing is chosen."""
    blocks = contiguous_blocks(chosen, grid)
    return ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in blocks)


def sweep_steps(results: "pd.DataFrame") -> int:
    """Length of the sweep: the run length that covers most group sizes, the shorter one if two cover equally many."""
    covered = results.groupby("steps")["group_size"].nunique()
    return int(covered[covered == covered.max()].index.min())


def split_by_length(results: "pd.DataFrame") -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Check the results and split them into the sweep and the longest of the runs that are longer (possibly none).

    Raises:
        ValueError: If columns or the runs with gamma 0 are missing, or the results mix settings or hold a run twice.
    """
    missing = [name for name in (*_RUN, "step", *_MASSES, *SETTINGS) if name not in results.columns]
    if missing:
        raise ValueError(
            f"results must have the columns of a sweep, got none named {', '.join(missing)}: "
            "pass what fgrpo.simulate.load_results returns"
        )
    for name in SETTINGS:
        values = results[name].unique()
        if len(values) > 1:
            raise ValueError(
                f"results must share one {name}, got {', '.join(map(str, values))}: select the rows of one of them"
            )
    if results.duplicated([*_RUN, "step"]).any():
        raise ValueError(
            "results must hold each group_size, gamma, seed, steps and step once, got some of them twice: "
            "drop the repeated runs"
        )
    if not (results["gamma"] == 0.0).any():
        raise ValueError(
            "results must include runs with gamma 0, got none: run the sweep with gammas 0 and 1 and pass both"
        )
    length, longest = sweep_steps(results), results["steps"].max()
    return (
        results[results["steps"] == length],
        results[(results["steps"] == longest) & (longest > length)],
    )


def counted(count: int, thing: str) -> str:
    """A number of things in words: '1 run', '2 runs'."""
    plural = "es" if thing.endswith("s") else "s"
    return f"{count} {thing}" if count == 1 else f"{count} {thing}{plural}"


def final_rows(runs: "pd.DataFrame") -> "pd.DataFrame":
    """The last step of each run.

    Raises:
        ValueError: If a run was not recorded to its end.
    """
    final = runs[runs["step"] == runs["steps"]]
    unfinished = runs[[*_RUN]].drop_duplicates().merge(final[[*_RUN]], how="left", indicator=True)
    unfinished = unfinished[unfinished["_merge"] == "left_only"]
    if not unfinished.empty:
        run = unfinished.iloc[0]
        raise ValueError(
            f"results must record each run to its last step, got a run (group_size {run['group_size']}, gamma "
            f"{run['gamma']:g}, seed {run['seed']}) without step {run['steps']}: finish the sweep"
        )
    return final


def seed_summary(rows: "pd.DataFrame", metrics: Sequence[str] = _MASSES) -> "pd.DataFrame":
    """Statistics over the seeds.

    Args:
        rows: Rows of runs that differ in group size, gamma and seed only.
        metrics: Columns to summarise.

    Returns:
        A row per metric, group_size, gamma and step: mean, smallest and largest value, and the number of seeds.
    """
    long = rows.melt(["group_size", "gamma", "step", "seed"], list(metrics), var_name="metric")
    return long.groupby(["metric", "group_size", "gamma", "step"], as_index=False).agg(
        mean=("value", "mean"), smallest=("value", "min"), largest=("value", "max"), seeds=("value", "count")
    )


def start_policy(results: "pd.DataFrame") -> PolicyConfig:
    """The start of the first run of a table."""
    row = results.iloc[0]
    if row["classes"]:
        classes = tuple(PolicyClass(**one) for one in json.loads(row["classes"]))
        return PolicyConfig(classes=classes, leaf_class=row["leaf_class"])
    return PolicyConfig(**{name: row[name] for name in _THREE_CLASSES})
