"""Readings of the update rule that the paper leaves open, and which of its sentences each of them makes true.

Appendix J leaves open whether p_j stands for p_j / p_j^old, what 'gradient ascent' is (the set-up that it adopts has
AdamW), the decay, eps, and how advantages are scaled. `READINGS` are the combinations tried; the sentences about
Figure 4 (v1; Figure 2 in v2) are judged by these rules, from means over seeds at gamma 0:

S1  Q_pos increases for all N: the final mean is above the start's at every N that was run.
S2  M_ret is not monotone, small and large N retain, the middle collapses: the final mean is at least .9 at the smallest
    and at the largest N, and below 1/2 at one between them.
S3  The largest N keeps M_ret near 1 throughout: the mean over seeds is at least .95 at every record.
S4  It is the only such N: S3 holds, and of no other N that was run.

Readings that this simulator cannot do: several PPO epochs on one group, and ratios with raw rewards.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fgrpo.simulate.config import PRESETS, RunConfig, UpdateConfig
from fgrpo.simulate.intervals import enough_seeds, mean_interval
from fgrpo.simulate.summary import COLLAPSE_LEVEL, RETAINED, THROUGHOUT, final_rows
from fgrpo.simulate.sweep import paper_sweep
from fgrpo.theory._validation import one_of

if TYPE_CHECKING:
    import pandas as pd

READING_GROUP_SIZES = (2, 32, 512, 8192, 131072)
SENTENCES = ("S1", "S2", "S3", "S4")

READINGS: dict[str, UpdateConfig] = {
    **PRESETS,
    "ratio, AdamW": UpdateConfig(weight_decay=0.01),
    "ratio over std, Adam": UpdateConfig(advantage_scale="std"),
    "ratio, RMSprop": UpdateConfig(optimizer="rmsprop"),
    "ratio, sign": UpdateConfig(optimizer="signsgd"),
    "ratio, SGD": UpdateConfig(optimizer="sgd"),
    "p, Adam": UpdateConfig(surrogate="linear"),
    "p, Adam eps 1e-20": UpdateConfig(surrogate="linear", eps=1e-20),
    "p distinct, Adam": UpdateConfig(surrogate="linear_distinct"),
    "p distinct, Adam eps 1e-15": UpdateConfig(surrogate="linear_distinct", eps=1e-15),
}
"""Update rules by name: the presets, then surrogate (ratio: p_j / p_j^old; p: as printed; p distinct: Eq 7) and
optimizer."""


def readings_sweep(
    names: Iterable[str] = tuple(READINGS),
    *,
    group_sizes: Iterable[int] = READING_GROUP_SIZES,
    seeds: Iterable[int] = range(8),
    **changes: Any,
) -> dict[str, list[RunConfig]]:
    """The runs of each reading, at gamma 0.

    Args:
        names: Keys of READINGS.
        group_sizes: Values of N, at least three: the sentences speak of small, middle and large ones.
        seeds: At least two seeds.
        changes: Fields of RunConfig or PolicyConfig, the same for all readings.

    Raises:
        ValueError: If a reading or a field is unknown, a value is invalid, or there are too few group sizes or seeds.
    """
    sizes, seeds = sorted(set(group_sizes)), enough_seeds(seeds)
    _refuse_few_sizes(len(sizes))
    updates = {name: READINGS[one_of("reading", name, READINGS)] for name in names}
    return {
        name: paper_sweep(group_sizes=sizes, gammas=(0.0,), seeds=seeds, update=update, **changes)
        for name, update in updates.items()
    }


def readings_table(results: "pd.DataFrame", plan: Mapping[str, Iterable[RunConfig]]) -> "pd.DataFrame":
    """Final masses of each reading, and the sentences.

    Args:
        results: Tidy results that hold all runs of the plan.
        plan: The runs of each reading, see `readings_sweep`; of at least three group sizes.

    Returns:
        A row per reading (its name) and group_size: retained_mass, correct_mass and entropy after the last step (means)
        with retained_low, retained_high, correct_low, correct_high (`mean_interval`), lowest_retained_mass (over the
        records, of the mean over seeds), seeds, and S1 to S4 (the same in all rows of a reading).

    Raises:
        ValueError: If a run is missing, or there are fewer than two seeds or three group sizes.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for name, configs in plan.items():
        ids = {one.run_id for one in configs}
        runs = results[results["run_id"].isin(ids)]
        if runs["run_id"].nunique() < len(ids):
            raise ValueError(
                f"results must hold all {len(ids)} runs of the reading {name!r}, got {runs['run_id'].nunique()}: "
                "pass the results of run_sweep"
            )
        _refuse_few_sizes(runs["group_size"].nunique())
        of_reading = [_at_group_size(of_size) for _, of_size in runs.groupby("group_size")]
        judged = _judge(of_reading, float(runs.loc[runs["step"] == 0, "correct_mass"].iloc[0]))
        rows += [{"reading": name, **row, **judged} for row in of_reading]
    return pd.DataFrame(rows)


def _at_group_size(runs: "pd.DataFrame") -> dict[str, Any]:
    final = final_rows(runs)
    retained, correct = mean_interval(final["retained_mass"]), mean_interval(final["correct_mass"])
    return {
        "group_size": int(runs["group_size"].iloc[0]),
        "retained_mass": retained.mean,
        "retained_low": retained.lower,
        "retained_high": retained.upper,
        "lowest_retained_mass": runs.groupby("step")["retained_mass"].mean().min(),
        "correct_mass": correct.mean,
        "correct_low": correct.lower,
        "correct_high": correct.upper,
        "entropy": final["entropy"].mean(),
        "seeds": len(final),
    }


def _refuse_few_sizes(sizes: int) -> None:
    if sizes < 3:
        raise ValueError(f"the sentences speak of small, middle and large N, got {sizes} of them: pass 3 at least")


def _judge(rows: list[dict[str, Any]], start: float) -> dict[str, bool]:
    """The sentences; rows by ascending group size, `start` the correct mass before training."""
    first, *middle, last = (row["retained_mass"] for row in rows)
    *others, largest = (row["lowest_retained_mass"] >= THROUGHOUT for row in rows)
    return {
        "S1": all(row["correct_mass"] > start for row in rows),
        "S2": min(first, last) >= RETAINED and min(middle) < COLLAPSE_LEVEL,
        "S3": largest,
        "S4": largest and not any(others),
    }


def readings_text(table: "pd.DataFrame") -> str:
    """The table as text: a line per reading, M_ret and Q_pos by group size, y or n for each sentence."""
    sizes = [int(size) for size in sorted(table["group_size"].unique())]
    width = max(len(name) for name in table["reading"])
    header = f"{'reading':<{width}}  " + "  ".join(f"{f'N = {size}':>19}" for size in sizes)
    lines = [
        f"{header}  {' '.join(SENTENCES)}",
        f"{'':<{width}}  " + "  ".join(f"{'M_ret':>11}{'Q_pos':>8}" for _ in sizes),
    ]
    for name, rows in table.groupby("reading", sort=False):
        cells = [
            f"{row['retained_mass']:5.3f}±{(row['retained_high'] - row['retained_low']) / 2:5.3f} "
            f"{row['correct_mass']:7.4f}"
            for row in rows.sort_values("group_size").to_dict("records")
        ]
        verdicts = "  ".join("y" if rows[sentence].iloc[0] else "n" for sentence in SENTENCES)
        lines.append(f"{name:<{width}}  " + "  ".join(cells) + f"   {verdicts}")
    return "\n".join(lines)
