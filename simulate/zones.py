"""Where the collapse zone lies: retained mass by group size, number of updates and whatever else a sweep varies.

A run of T steps repeats the first steps of every longer one, so that one run answers for all T up to its own.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fgrpo.simulate.intervals import mean_interval
from fgrpo.simulate.summary import COLLAPSE_LEVEL, SETTINGS, block_words

if TYPE_CHECKING:
    import pandas as pd


def varied_settings(results: "pd.DataFrame") -> list[str]:
    """Columns of the configuration, other than group size, seed and length, that take several values."""
    return [name for name in (*SETTINGS, "gamma") if name != "reading" and results[name].nunique() > 1]


def setting_columns(table: "pd.DataFrame") -> list[str]:
    """Columns of a `zone_table` that say the setting."""
    return list(table.columns[: list(table.columns).index("step")])


def setting_words(names: Iterable[str], values: Iterable[object]) -> str:
    """Fields of a setting in words: `learning rate 0.1, gamma 2`."""
    return ", ".join(
        f"{name.replace('_', ' ')} {f'{value:g}' if isinstance(value, float) else value}"
        for name, value in zip(names, values, strict=True)
    )


def zone_table(results: "pd.DataFrame", steps: Iterable[int]) -> "pd.DataFrame":
    """Retained and correct mass after `steps` updates, by setting and group size, with 95 % intervals over seeds.

    Args:
        results: Tidy results, one row per run and recorded step, of any settings.
        steps: Numbers of updates T that were recorded.

    Returns:
        A row per setting (`varied_settings`), step and group_size, sorted by them: retained_mass, retained_low,
        retained_high (`mean_interval`), smallest_retained_mass and largest_retained_mass of a seed, correct_mass
        (mean), seeds, in_zone: whether the mean retained mass is below 1/2, and collapse_step: median over the seeds of
        the first record up to `step` at which a seed's retained mass is below 1/2, NaN if half of them have none.

    Raises:
        ValueError: If no step is asked for or one was not recorded, or a setting has fewer than two seeds.
    """
    import pandas as pd

    setting = varied_settings(results)
    distinct = results.drop_duplicates([*setting, "group_size", "seed", "step"])
    rows = []
    for step in steps:
        until, at_step = (distinct[chosen] for chosen in (distinct["step"] <= step, distinct["step"] == step))
        if at_step.empty:
            raise ValueError(
                f"steps must be recorded ones, got {step}: pass multiples of {results['record_every'].iloc[0]} up to "
                f"{results['steps'].max()}"
            )
        collapsed = until[until["retained_mass"] < COLLAPSE_LEVEL].groupby([*setting, "group_size", "seed"])["step"]
        first_below = collapsed.min()
        for values, runs in at_step.groupby([*setting, "group_size"]):
            retained = mean_interval(runs["retained_mass"])
            rows.append(
                {
                    **dict(zip((*setting, "group_size"), values, strict=True)),
                    "step": step,
                    "retained_mass": retained.mean,
                    "retained_low": retained.lower,
                    "retained_high": retained.upper,
                    "smallest_retained_mass": runs["retained_mass"].min(),
                    "largest_retained_mass": runs["retained_mass"].max(),
                    "correct_mass": runs["correct_mass"].mean(),
                    "seeds": len(runs),
                    "in_zone": retained.mean < COLLAPSE_LEVEL,
                    "collapse_step": _median_or_nan(first_below, [(*values, seed) for seed in runs["seed"]]),
                }
            )
    if not rows:
        raise ValueError("steps must be at least one number of updates, got none: pass for example 1000,2000")
    order = [*setting, "step", "group_size"]
    table = pd.DataFrame(rows)
    return table[[*order, *table.columns.difference(order, sort=False)]].sort_values(order, ignore_index=True)


def _median_or_nan(first_below: "pd.Series[int]", runs: list[tuple[object, ...]]) -> float:
    """Median over runs, those without an entry counted as later than all others."""
    median = first_below.reindex(runs).fillna(math.inf).median()
    return float(median) if math.isfinite(median) else math.nan


def zone_text(table: "pd.DataFrame") -> str:
    """The table as text: for each setting and T the zone, then M_ret [interval], Q_pos, collapse step by group size.

    A group size is in the zone by the mean of its seeds; those whose interval contains 1/2 follow as uncertain.
    """
    setting = setting_columns(table)
    blocks = []
    for values, rows in table.groupby([*setting, "step"], sort=False):
        grid = [int(size) for size in rows["group_size"]]

        def words(chosen: "pd.Series[bool]", rows: "pd.DataFrame" = rows, grid: list[int] = grid) -> str:
            return block_words([int(size) for size in rows.loc[chosen, "group_size"]], grid) or "none"

        uncertain = (rows["retained_low"] < COLLAPSE_LEVEL) & (rows["retained_high"] > COLLAPSE_LEVEL)
        lines = [
            f"{setting_words((*setting, 'T'), values)}: zone N = {words(rows['in_zone'])}"
            + (f", uncertain N = {words(uncertain)}" if uncertain.any() else "")
        ]
        lines += [
            f"  N = {row['group_size']:>7}  M_ret {row['retained_mass']:.3f} [{row['retained_low']:.3f}, "
            f"{row['retained_high']:.3f}]  Q_pos {row['correct_mass']:.4f}"
            + ("" if math.isnan(row["collapse_step"]) else f"  collapsed at {row['collapse_step']:g}")
            for row in rows.to_dict("records")
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
