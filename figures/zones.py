"""The collapse zone by setting: retained mass against group size, a line for each number of updates.

One panel per setting that the sweep varied (at most twelve). Bars are 95 % intervals over seeds; below the thin line at
1/2 a group size is in the zone.
"""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from fgrpo.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PAGE_WIDTH,
    PURPLE,
    VERMILLION,
    axes_or_new,
    figure_style,
    group_size_axis,
    interval_bars,
    probability_axis,
)
from fgrpo.simulate.summary import COLLAPSE_LEVEL, block_words
from fgrpo.simulate.zones import setting_columns, setting_words

_COLOURS = (BLUE, VERMILLION, BLACK, GREEN, PURPLE, ORANGE)
_MOST_PANELS = 12
_COLUMNS = 2


@figure_style()
def plot_zone(rows: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw one setting.

    Args:
        rows: Rows of `fgrpo.simulate.zones.zone_table` of one setting.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.
    """
    ax = axes_or_new(ax)
    ax.axhline(COLLAPSE_LEVEL, color=GREY, linewidth=0.6)
    for place, (step, curve) in enumerate(rows.groupby("step")):
        of_curve = (curve[name] for name in ("group_size", "retained_mass", "retained_low", "retained_high"))
        interval_bars(ax, *of_curve, color=_COLOURS[place % len(_COLOURS)], marker=".", label=f"T = {step}")
    group_size_axis(ax, rows["group_size"].min(), rows["group_size"].max(), label_every=4)
    probability_axis(ax, "retained mass")
    return ax


@figure_style()
def figure_zone(table: DataFrame) -> Figure:
    """All settings of the table, two to a row.

    Args:
        table: The rows of `fgrpo.simulate.zones.zone_table`.

    Returns:
        The figure, at its size in print.

    Raises:
        ValueError: If there are more than twelve settings.
    """
    settings = _settings(table)
    if len(settings) > _MOST_PANELS:
        raise ValueError(
            f"the figure of the zone must have at most {_MOST_PANELS} settings, got {len(settings)}: "
            "run a sweep that varies less, or select rows"
        )
    columns = min(_COLUMNS, len(settings))
    lines = math.ceil(len(settings) / columns)
    figure = Figure(figsize=(PAGE_WIDTH, 2.2 * lines + 0.4))
    panels = list(figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).flat)
    for ax, (words, rows) in zip(panels, settings.items(), strict=False):
        plot_zone(rows, ax).set_title(words)
        ax.label_outer()
    for ax in panels[len(settings) :]:
        ax.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def zone_alt_text(table: DataFrame) -> str:
    """One sentence for readers who do not see the figure, built from its data."""
    found = []
    for words, rows in _settings(table).items():
        for step, at_step in rows.groupby("step"):
            grid = [int(size) for size in at_step["group_size"]]
            zone = block_words([int(size) for size in at_step.loc[at_step["in_zone"], "group_size"]], grid)
            found.append(f"{words}, T = {step}: {zone or 'none'}")
    return f"Retained mass against group size; group sizes below one half on average: {'; '.join(found)}."


def _settings(table: DataFrame) -> dict[str, DataFrame]:
    """Rows by the setting in words."""
    names = setting_columns(table)
    if not names:
        return {"all runs": table}
    return {setting_words(names, values): rows for values, rows in table.groupby(names, sort=False)}
