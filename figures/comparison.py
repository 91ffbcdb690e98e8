"""Arms at matched progress: retained mass where runs have come equally far, with and without a focal weight.

One column per group size; one row per progress: rollouts, correct mass, KL to the start. Lines join the means over the
seeds at the levels that all seeds of an arm reach; bars are 95 % intervals. An arm that lies on the baseline in the
lower rows and above it in the first one has only made smaller steps.
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame

from fgrpo.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PAGE_WIDTH,
    PURPLE,
    SKY,
    VERMILLION,
    axes_or_new,
    figure_style,
    interval_bars,
    probability_axis,
)
from fgrpo.simulate.comparison import BASELINE, CONSTANT_SCALE, FOCAL, LOW_LEARNING_RATE

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, GREY)
_LINES = {BASELINE: ("-", "o"), FOCAL: ("-", "."), LOW_LEARNING_RATE: ("--", "x"), CONSTANT_SCALE: (":", "+")}
_AXES = {
    "rollouts": ("rollouts", "linear"),
    "correct_mass": ("correct mass", "logit"),
    "start_kl": ("KL to the start (nats)", "log"),
}
_LARGEST_PAGE = 4
_LABELLED_MASSES = (0.7, 0.9, 0.99)


@figure_style()
def plot_matched(table: DataFrame, group_size: int, progress: str, ax: Axes | None = None) -> Axes:
    """Draw retained mass against one progress for one group size.

    Args:
        table: The rows of `fgrpo.simulate.comparison.compare_arms`.
        group_size: N, one of the table's.
        progress: "rollouts", "correct_mass" or "start_kl".
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If the table has no such rows.
    """
    ax = axes_or_new(ax)
    rows = _retained(table)
    rows = rows[(rows["group_size"] == group_size) & (rows["progress"] == progress)]
    if rows.empty:
        raise ValueError(
            f"the table must hold group_size {group_size} at matched {progress}, got no such rows: "
            "pass what compare_arms returned for it"
        )
    styles = _styles(table)
    for arm, curve in rows.groupby("arm", sort=False):
        drawn = curve[curve["mean"].notna()]
        interval_bars(ax, drawn["level"], drawn["mean"], drawn["low"], drawn["high"], **styles[str(arm)])
    label, scale = _AXES[progress]
    ax.set_xscale(scale)
    ax.set_xlabel(label)
    if scale == "linear":
        ax.xaxis.set_major_locator(MaxNLocator(3))
    if scale == "logit":
        ax.set_xticks(_LABELLED_MASSES, [f"{mass:g}" for mass in _LABELLED_MASSES])
        ax.set_xticks([], minor=True)
    if scale == "log":
        levels = sorted(rows["level"].unique())[::-2]  # every other one has room for its label
        ax.set_xticks(levels, [f"{level:g}" for level in levels])
        ax.set_xticks([], minor=True)
    probability_axis(ax, "retained mass")
    return ax


@figure_style()
def figure_comparison(table: DataFrame) -> Figure:
    """All group sizes (at most four: of more, evenly chosen ones) against each progress.

    Args:
        table: The rows of `fgrpo.simulate.comparison.compare_arms`.

    Returns:
        The figure, at its size in print.
    """
    sizes = _shown_sizes(table)
    figure = Figure(figsize=(PAGE_WIDTH, 7.2))
    panels = figure.subplots(len(_AXES), len(sizes), squeeze=False, sharey=True)
    for row, progress in zip(panels, _AXES, strict=True):
        for ax, size in zip(row, sizes, strict=True):
            plot_matched(table, size, progress, ax)
            if ax is not row[0]:
                ax.set_ylabel("")
            if progress == "rollouts":
                ax.set_title(f"N = {size}")
    handles = [Line2D([], [], label=arm, **style) for arm, style in _styles(table).items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def comparison_alt_text(table: DataFrame) -> str:
    """One sentence for readers who do not see the figure, built from its data."""
    rows = _retained(table)
    at_correct_mass = rows[(rows["progress"] == "correct_mass") & (rows["kind"] == FOCAL) & rows["gain"].notna()]
    sizes = ", ".join(f"{size}" for size in _shown_sizes(table))
    found = (
        "no level of correct mass is reached by all seeds of both"
        if at_correct_mass.empty
        else f"at equal correct mass the focal weights retain between {at_correct_mass['gain'].min():+.2f} and "
        f"{at_correct_mass['gain'].max():+.2f} of the initial correct mass more than the arm {rows['arm'].iloc[0]}"
    )
    return (
        f"Retained mass at matched rollouts, correct mass and KL to the start for group sizes {sizes}, with focal "
        f"weights, lower learning rates and neither: {found}."
    )


def _retained(table: DataFrame) -> DataFrame:
    return table[table["outcome"] == "retained_mass"]


def _shown_sizes(table: DataFrame) -> list[int]:
    sizes = [int(size) for size in table["group_size"].unique()]
    if len(sizes) <= _LARGEST_PAGE:
        return sizes
    return [sizes[round(place * (len(sizes) - 1) / (_LARGEST_PAGE - 1))] for place in range(_LARGEST_PAGE)]


def _styles(table: DataFrame) -> dict[str, dict[str, Any]]:
    """Colour by gamma, line and marker by kind; of several success estimates, by estimate."""
    arms = table.drop_duplicates("arm")
    gammas = sorted({float(gamma) for gamma in arms.loc[arms["kind"] != BASELINE, "gamma"]})
    estimates = list(dict.fromkeys(arms.loc[arms["kind"] == FOCAL, "success_estimate"]))
    markers = dict(zip(estimates, (".", "s", "^", "D"), strict=False))
    styles = {}
    for row in arms.to_dict("records"):
        line, marker = _LINES[row["kind"]]
        if row["kind"] == FOCAL:
            marker = markers[row["success_estimate"]]
        colour = BLACK if row["kind"] == BASELINE else _COLOURS[gammas.index(row["gamma"]) % len(_COLOURS)]
        styles[row["arm"]] = {"color": colour, "linestyle": line, "marker": marker}
    return styles
