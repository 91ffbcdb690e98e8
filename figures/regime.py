"""Regime diagrams: where a group size stands, and what a sweep kept. Not in the paper.

a  Success rate x rare fraction at one group size, coloured by tail-miss regime (`fgrpo.theory.tail_miss_regime`).
b  Group size x success rate at one rare fraction: contours of the tail-miss probability, and the line of their peaks.
c  Group size x gamma: the retained mass that a sweep of the simulator ended with, if there is one.

Prompts of the user's own stand in a and b at their shrunk success rate and the rare fraction assumed for all of them.
The regimes are a statement about one prompt and one update; they do not locate the collapse zone of c.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import NDArray
from pandas import DataFrame
from scipy.ndimage import distance_transform_edt

from fgrpo.figures.style import (
    BLACK,
    PAGE_WIDTH,
    REGIME_COLOURS,
    VERMILLION,
    axes_or_new,
    caption_below,
    figure_style,
    group_size_axis,
    range_words,
)
from fgrpo.simulate.summary import COLLAPSE_LEVEL
from fgrpo.theory import risk_interval

_CONTOURS = (0.1, 0.25, 0.5, 0.75, 0.9)
_APART = 0.08  # of the level: contours nearer to it are left out
_TINT = 0.35  # of a colour on white, so that black text on it is legible
_NAME_LENGTH, _NAME_HEIGHT = 0.14, 0.04  # half the room of a region's name (height: per line), in sizes of the axes
_LABELLED_RATES = np.array([0.55, 0.4, 0.7, 0.25, 0.85, 0.12])  # where contours may bear their value, by preference
_MOST_LABELLED_SIZES = 20
_BEYOND = 1e3  # more than any logarithm of a group size


@figure_style()
def plot_regimes(data: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw panel a: success rate x rare fraction, coloured by regime; prompts as circles, their numbers by regime.

    The solid line is where the tail-miss probability is the level, the dashed one where the group size is the peak.

    Args:
        data: The rows of `regime_diagram_data`.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.
    """
    ax = axes_or_new(ax)
    field = _panel(data, "regimes")
    level, n = field["level"].iloc[0], field["group_size"].iloc[0]
    mu, rho, miss = _grid(field, "rare_fraction", "tail_miss_probability")
    beyond_peak = np.log(n / _grid(field, "rare_fraction", "peak_group_size")[2])
    tints = {name: _tint(colour) for name, colour in REGIME_COLOURS.items()}
    ax.contourf(
        mu, rho, beyond_peak, levels=(-_BEYOND, 0.0, _BEYOND), colors=[tints["inactive"], tints["covered"]], zorder=0
    )
    ax.contourf(mu, rho, miss, levels=(level, 2.0), colors=[tints["miss-prone"]], zorder=0.1)
    _line(ax, mu, rho, miss, level, "-")
    _line(ax, mu, rho, beyond_peak, 0.0, "--")
    ax.set_xlim(0.0, 1.0)
    ax.set_yscale("log")
    ax.set_ylim(rho.min(), 1.0)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e-0", "e-")))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("success rate")
    ax.set_ylabel("rare fraction")
    ax.grid(False)
    prompts = data[data["panel"] == "prompts"]
    _name_regimes(ax, mu, rho, _grid(field, "rare_fraction", "regime")[2], prompts)
    _circles(ax, prompts, "success_rate", "rare_fraction")
    return ax


@figure_style()
def plot_risk(data: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw panel b: group size x success rate, contours of the tail-miss probability, dashed the line of the peaks.

    Args:
        data: The rows of `regime_diagram_data`.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.
    """
    ax = axes_or_new(ax)
    field = _panel(data, "risk")
    mu, sizes, miss = _grid(field, "group_size", "tail_miss_probability")
    level = field["level"].iloc[0]
    values = sorted([level, *(value for value in _CONTOURS if abs(value - level) > _APART)])
    shades = [_tint(VERMILLION, 0.7 * value) for value in (0.0, *values)]
    ax.contourf(sizes, mu, miss, levels=[0.0, *values, 1.0], colors=shades, zorder=0)
    n = _panel(data, "regimes")["group_size"].iloc[0]
    drawn = [value for value in values if miss.min() < value < miss.max()]
    if drawn:
        widths = [1.4 if value == level else 0.6 for value in drawn]
        contours = ax.contour(sizes, mu, miss, levels=drawn, colors=BLACK, linewidths=widths)
        places = [place for value in drawn for place in _falling_side(field, value, n)]
        ax.clabel(contours, fmt="%g", fontsize=7, manual=places)
    peaks = field.groupby("success_rate")["peak_group_size"].first()
    ax.plot(peaks, peaks.index, "--", color=BLACK)
    ax.axvline(n, color=BLACK, linewidth=0.8)
    prompts = data[data["panel"] == "prompts"]
    _circles(ax, prompts, "group_size", "success_rate")
    doublings = np.log2(sizes.max() / sizes.min())
    group_size_axis(ax, sizes.min(), sizes.max(), label_every=max(1, round(doublings / 4)))
    ax.set_xlim(sizes.min(), sizes.max())
    ax.set_ylim(0.0, 1.0)
    ax.set_ylabel("success rate")
    ax.grid(False)
    return ax


@figure_style()
def plot_sweep_retention(data: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw panel c: group size x gamma, coloured by the retained mass after the last step, written in where it fits.

    Bold numbers are below 1/2, the level of the collapse zone. What was not run is left white.

    Args:
        data: The rows of `regime_diagram_data` of a sweep's results.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If the data hold no sweep.
    """
    ax = axes_or_new(ax)
    kept = _panel(data, "sweep").pivot(index="gamma", columns="group_size", values="retained_mass")
    rows, columns = kept.shape
    cells = ax.pcolormesh(
        np.ma.masked_invalid(kept.to_numpy()), cmap="cividis", vmin=0.0, vmax=1.0, edgecolors="white", linewidth=1
    )
    if columns <= _MOST_LABELLED_SIZES:
        for (row, column), value in np.ndenumerate(kept.to_numpy()):
            if not np.isnan(value):
                low = value < COLLAPSE_LEVEL
                ax.text(
                    column + 0.5,
                    row + 0.5,
                    f"{value:.2f}",
                    color="white" if low else "black",
                    weight="bold" if low else "normal",
                    ha="center",
                    va="center",
                )
    every = -(-columns // 10)
    ax.set_xticks(np.arange(columns)[::every] + 0.5, [f"{size:.0f}" for size in kept.columns[::every]])
    ax.set_yticks(np.arange(rows) + 0.5, [f"{gamma:g}" for gamma in kept.index])
    ax.tick_params(length=0)
    ax.set_xlabel("group size N")
    ax.set_ylabel("gamma")
    ax.grid(False)
    ax.figure.colorbar(cells, ax=ax, label="retained", ticks=[0, 0.5, 1], pad=0.01, aspect=8)
    return ax


@figure_style()
def regime_diagram(data: DataFrame) -> Figure:
    """The regime diagram: panels a and b, and c if the data hold a sweep; the caption says what was assumed.

    Args:
        data: The rows of `regime_diagram_data`.

    Returns:
        The figure, at its size in print.
    """
    swept = data[data["panel"] == "sweep"]
    heights = (2.6, 0.8 + 0.2 * swept["gamma"].nunique()) if len(swept) else (2.6,)
    figure = Figure(figsize=(PAGE_WIDTH, sum(heights) + 0.6))
    panels = figure.subplot_mosaic("ab;cc" if len(swept) else "ab", height_ratios=heights)
    n, rho = _panel(data, "regimes")["group_size"].iloc[0], _panel(data, "risk")["rare_fraction"].iloc[0]
    plot_regimes(data, panels["a"]).set_title(f"a  regimes at N = {n:.0f}")
    plot_risk(data, panels["b"]).set_title(f"b  Pr(tail miss), rare fraction {rho:g}")
    if len(swept):
        plot_sweep_retention(data, panels["c"]).set_title("c  retained mass after the last step of a sweep")
    caption_below(figure, _caption(data))
    return figure


def regime_diagram_alt_text(data: DataFrame) -> str:
    """One sentence for readers who do not see the regime diagram, built from its data."""
    regimes, risk = _panel(data, "regimes"), _panel(data, "risk")
    n, level = regimes["group_size"].iloc[0], regimes["level"].iloc[0]
    shares = regimes["regime"].value_counts(normalize=True)
    parts = [
        f"Regimes at N = {n:.0f} over success rate and the logarithm of the rare fraction: "
        + ", ".join(f"{name} {shares.get(name, 0.0):.0%} of the panel" for name in REGIME_COLOURS)
        + f" (miss-prone from a tail-miss probability of {level:g} on)"
    ]
    middle = risk[(risk["success_rate"] > 0.1) & (risk["success_rate"] < 0.9)]["peak_group_size"]
    parts.append(
        f"at rare fraction {risk['rare_fraction'].iloc[0]:g} tail misses are most frequent at N = {middle.min():.1f} "
        f"to {middle.max():.1f} for success rates .1 to .9"
    )
    prompts = data[data["panel"] == "prompts"]
    if len(prompts):
        standing = prompts.groupby("regime")["prompts"].sum()
        each = ", ".join(f"{standing.get(name, 0.0):.0f} {name}" for name in REGIME_COLOURS)
        parts.append(f"{_prompt_words(prompts['prompts'].sum())}: {each}")
    swept = data[data["panel"] == "sweep"]
    if len(swept):
        ordered = swept.sort_values("retained_mass")
        ends = " to ".join(
            f"{row.retained_mass:.2f} (N = {row.group_size:.0f}, gamma {row.gamma:g})"
            for row in ordered.iloc[[0, -1]].itertuples()
        )
        parts.append(f"the retained mass of the sweep goes from {ends}")
    return "; ".join(parts) + "."


def _caption(data: DataFrame) -> str:
    level = data["level"].iloc[0]
    n, rho = _panel(data, "regimes")["group_size"].iloc[0], _panel(data, "risk")["rare_fraction"].iloc[0]
    text = (
        "Independent rollouts (Lemma 3.1); rare fraction: rare mass / success rate. a: miss-prone from "
        f"Pr(tail miss) = {level:g} (solid line) on; dashed: where N = {n:.0f} has most tail misses. b: "
        f"dashed: the N with most tail misses; thick: {level:g}; vertical: N = {n:.0f}."
    )
    prompts = data[data["panel"] == "prompts"]
    if len(prompts):
        text += (
            f" Circles: {_prompt_words(prompts['prompts'].sum())} at their success rate (of counts: "
            f"shrunk), rare fraction {rho:g} assumed for all."
        )
    swept = data[data["panel"] == "sweep"]
    if len(swept):
        text += (
            f" c: reading {swept['reading'].iloc[0]}, mean over seeds ({range_words(swept['seeds'])}); "
            f"bold: below {COLLAPSE_LEVEL:g}."
        )
    return text


def _prompt_words(count: float) -> str:
    return "1 prompt" if count == 1 else f"{count:.0f} prompts"


def _panel(data: DataFrame, panel: str) -> DataFrame:
    rows = data[data["panel"] == panel]
    if rows.empty:
        raise ValueError(f"data must hold the panel '{panel}', got no such rows: pass those of regime_diagram_data")
    return rows


def _grid(field: DataFrame, across: str, value: str) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
    """Success rates, the other coordinate, and values of a panel as arrays [success rate, other]."""
    table = field.pivot(index="success_rate", columns=across, values=value)
    other, mu = np.meshgrid(table.columns.to_numpy(), table.index.to_numpy())
    return mu, other, table.to_numpy()


def _tint(colour: str, strength: float = _TINT) -> tuple[float, float, float]:
    """A colour thinned with white."""
    red, green, blue = (1.0 - strength * (1.0 - part) for part in to_rgb(colour))
    return red, green, blue


def _line(ax: Axes, mu: NDArray[Any], rho: NDArray[Any], values: NDArray[Any], level: float, style: str) -> None:
    if values.min() < level < values.max():
        ax.contour(mu, rho, values, levels=[level], colors=BLACK, linewidths=0.9, linestyles=style)


def _falling_side(field: DataFrame, value: float, n: float) -> list[tuple[float, float]]:
    """Group size and success rate at which a contour may bear its value: beyond the peak, apart from N; if any."""
    rho = field["rare_fraction"].iloc[0]
    _, sizes = risk_interval(_LABELLED_RATES, rho * _LABELLED_RATES, value, integer=False)
    free = (sizes < field["group_size"].max() / 2) & (np.abs(np.log2(sizes / n)) > 0.6)
    return [(float(sizes[free][0]), float(_LABELLED_RATES[free][0]))] if free.any() else []


def _name_regimes(ax: Axes, mu: NDArray[Any], rho: NDArray[Any], regime: NDArray[Any], prompts: DataFrame) -> None:
    """Write each regime's name where its region has room for it, upright if need be, or else into a legend."""
    steps = [1.0 / (points - 1) for points in regime.shape]
    heights = np.log(rho[0] / rho[0, 0]) / np.log(rho[0, -1] / rho[0, 0])
    crowded = []
    for name, colour in REGIME_COLOURS.items():
        lines, free = [name], regime == name
        if len(prompts):
            lines.append(_prompt_words(prompts.loc[prompts["regime"] == name, "prompts"].sum()))
            free = free & (np.abs(heights - heights[np.abs(rho[0] - prompts["rare_fraction"].iloc[0]).argmin()]) > 0.04)
        across, along = _NAME_HEIGHT * len(lines), _NAME_LENGTH
        for angle, halves in ((0, (along, across)), (90, (across, along))):
            units = [step / half for step, half in zip(steps, halves, strict=True)]
            room = distance_transform_edt(np.pad(free, 1), sampling=units)[1:-1, 1:-1]
            place = np.unravel_index(room.argmax(), room.shape)
            if room[place] > 1.0:
                ground = {"facecolor": _tint(colour), "edgecolor": "none", "pad": 0.5}  # lines pass behind
                at = (mu[place], rho[place])
                ax.text(*at, "\n".join(lines), rotation=angle, ha="center", va="center", bbox=ground, zorder=3)
                break
        else:
            if (regime == name).any():
                crowded.append(Patch(facecolor=_tint(colour), edgecolor=BLACK, linewidth=0.4, label=", ".join(lines)))
    if crowded:
        ax.legend(handles=crowded, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=len(crowded))


def _circles(ax: Axes, prompts: DataFrame, x: str, y: str) -> None:
    """A circle per success rate, its area by the number of prompts."""
    if len(prompts):
        area = 10.0 + 80.0 * prompts["prompts"] / prompts["prompts"].sum()
        ax.scatter(prompts[x], prompts[y], s=area, facecolors="none", edgecolors=BLACK, linewidths=0.8, zorder=2.5)
