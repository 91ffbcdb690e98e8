"""Readings of the update rule: final correct mass and retained mass by group size, one panel per reading.

Reproduces nothing of the paper: its Figure 4 (v1; Figure 2 in v2) is one reading, which the text does not settle.
Bars are 95 % intervals over seeds; the letters are the paper's sentences S1 to S4 that the reading makes true.
"""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from fgrpo.figures.style import (
    BLACK,
    PAGE_WIDTH,
    SKY,
    axes_or_new,
    figure_style,
    group_size_axis,
    interval_bars,
    probability_axis,
)
from fgrpo.simulate.readings import SENTENCES

_COLUMNS = 3
_MASSES = {"correct mass": ("correct_mass", "correct", SKY), "retained mass": ("retained_mass", "retained", BLACK)}


@figure_style()
def plot_reading(table: DataFrame, reading: str, ax: Axes | None = None) -> Axes:
    """Draw one reading.

    Args:
        table: The rows of `fgrpo.simulate.readings.readings_table`.
        reading: Its name.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If the table does not hold it.
    """
    ax = axes_or_new(ax)
    rows = table[table["reading"] == reading].sort_values("group_size")
    if rows.empty:
        raise ValueError(
            f"the reading must be one of {', '.join(table['reading'].unique())}, got {reading}: pass one of them"
        )
    for label, (mean, interval, colour) in _MASSES.items():
        of_mass = (rows[name] for name in ("group_size", mean, f"{interval}_low", f"{interval}_high"))
        interval_bars(ax, *of_mass, color=colour, marker=".", label=label)
    group_size_axis(ax, rows["group_size"].min(), rows["group_size"].max(), label_every=4)
    probability_axis(ax, "mass after the last step")
    ax.set_title(f"{reading}: {_met(rows)}")
    return ax


@figure_style()
def figure_readings(table: DataFrame) -> Figure:
    """All readings of the table, three to a row.

    Args:
        table: The rows of `fgrpo.simulate.readings.readings_table`.

    Returns:
        The figure, at its size in print.
    """
    names = list(table["reading"].unique())
    lines = math.ceil(len(names) / _COLUMNS)
    figure = Figure(figsize=(PAGE_WIDTH, 1.8 * lines + 0.4))
    panels = list(figure.subplots(lines, _COLUMNS, squeeze=False, sharey=True, sharex=True).flat)
    for ax, name in zip(panels, names, strict=False):
        plot_reading(table, name, ax)
        ax.label_outer()
    for ax in panels[len(names) :]:
        ax.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def readings_alt_text(table: DataFrame) -> str:
    """One sentence for readers who do not see the figure, built from its data."""
    met = {str(name): _met(rows) for name, rows in table.groupby("reading", sort=False)}
    every = [name for name, words in met.items() if words == " ".join(SENTENCES)]
    return (
        f"Final correct and retained mass against group size for {len(met)} readings of the update rule; "
        f"the sentences of the paper that hold: {'; '.join(f'{name}: {words}' for name, words in met.items())}. "
        f"All of them: {', '.join(every) or 'no reading'}."
    )


def _met(rows: DataFrame) -> str:
    return " ".join(sentence for sentence in SENTENCES if rows[sentence].iloc[0]) or "none"
