"""The figure of the tiny-world experiment: what training keeps, step by step and at the same pass@1.

Four panels: pass@1 and retained mass against updates, retained mass against pass@1 (where curves that lie on each other
differ in speed only), and observed tail misses against the closed form.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from fgrpo.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PAGE_WIDTH, PURPLE, SKY, VERMILLION, figure_style

_COLOURS = (BLACK, SKY, BLUE, ORANGE, VERMILLION, GREEN, PURPLE)
_MOST_CURVES = len(_COLOURS)


def tiny_world_data(curves: DataFrame, tail_miss: DataFrame, labels: Mapping[str, str]) -> DataFrame:
    """What the figure draws, as one table.

    Args:
        curves: A row per arm, seed and step with correct_mass and retained_mass.
        tail_miss: A row per arm with observed, expected, standard_error.
        labels: Names of the arms to draw, in order; at most seven.

    Returns:
        Rows of two panels: 'curve' (arm, label, step, and means over the seeds of correct_mass and retained_mass with
        the standard error of the latter) and 'tail_miss' (arm, label, observed, expected, and the standard error of
        the observed share).

    Raises:
        ValueError: If there are more arms than colours, or none.
    """
    if not 0 < len(labels) <= _MOST_CURVES:
        raise ValueError(f"the figure must have 1 to {_MOST_CURVES} arms, got {len(labels)}: select fewer")
    rows: list[dict[str, object]] = []
    for arm, label in labels.items():
        for step, part in curves[curves["arm"] == arm].groupby("step"):
            retained = part["retained_mass"]
            rows.append(
                {
                    "panel": "curve",
                    "arm": arm,
                    "label": label,
                    "step": step,
                    "correct_mass": part["correct_mass"].mean(),
                    "retained_mass": retained.mean(),
                    "standard_error": retained.std(ddof=1) / np.sqrt(len(retained)) if len(retained) > 1 else np.nan,
                }
            )
        for _, row in tail_miss[tail_miss["arm"] == arm].iterrows():
            rows.append(
                {
                    "panel": "tail_miss",
                    "arm": arm,
                    "label": label,
                    "observed": row["observed"],
                    "expected": row["expected"],
                    "standard_error": row["standard_error"],
                }
            )
    return DataFrame(rows)


@figure_style()
def figure_tiny_world(data: DataFrame) -> Figure:
    """The figure, at its size in print.

    Args:
        data: The table of `tiny_world_data`.
    """
    figure = Figure(figsize=(PAGE_WIDTH, 5.2))
    axes = figure.subplots(2, 2)
    by_arm = [(label, data[data["label"] == label]) for label in data["label"].unique()]
    for (label, rows), colour in zip(by_arm, _COLOURS, strict=False):
        curve = rows[rows["panel"] == "curve"]
        axes[0, 0].plot(curve["step"], curve["correct_mass"], color=colour, label=label)
        axes[0, 1].plot(curve["step"], curve["retained_mass"], color=colour)
        axes[0, 1].fill_between(
            curve["step"],
            curve["retained_mass"] - curve["standard_error"],
            curve["retained_mass"] + curve["standard_error"],
            color=colour,
            alpha=0.2,
            linewidth=0,
        )
        axes[1, 0].plot(curve["correct_mass"], curve["retained_mass"], color=colour)
        misses = rows[rows["panel"] == "tail_miss"]
        axes[1, 1].errorbar(
            misses["expected"],
            misses["observed"],
            yerr=2 * misses["standard_error"],
            color=colour,
            marker="o",
            markersize=4,
            linestyle="none",
        )
    axes[1, 1].axline((0.0, 0.0), slope=1.0, color=GREY, linewidth=0.8, zorder=0)
    _name(axes[0, 0], "update", "pass@1 (mean correct mass)")
    _name(axes[0, 1], "update", "retained mass, band: 1 s.e.")
    _name(axes[1, 0], "pass@1 (mean correct mass)", "retained mass")
    _name(axes[1, 1], "tail misses, closed form", "observed, bars: 2 s.e.")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def _name(ax: Axes, x: str, y: str) -> None:
    ax.set_xlabel(x)
    ax.set_ylabel(y)


def tiny_world_alt_text(data: DataFrame) -> str:
    """One sentence for readers who do not see the figure, with the last values of its curves."""
    curve = data[data["panel"] == "curve"]
    last = curve[curve["step"] == curve["step"].max()]
    texts: Sequence[str] = [
        f"{row['label']} {row['correct_mass']:.2f} and {row['retained_mass']:.2f}" for _, row in last.iterrows()
    ]
    return f"Pass@1 and retained mass in the tiny world after {curve['step'].max():g} updates: {'; '.join(texts)}."
