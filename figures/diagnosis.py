"""Plots of a run's diagnosis, drawn from tables: success and activity, tail misses and regimes, prompts, strength.

Lines and areas are coloured so that they can be told apart on light and on dark ground; text and axes take the colour
of `inline_svg`.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from pandas import DataFrame

from fgrpo.figures.style import BLUE, GREEN, GREY, PAGE_WIDTH, PURPLE, REGIME_COLOURS, VERMILLION, probability_axis
from fgrpo.figures.svg import page_style

LINES = ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "^"), (PURPLE, "D"))
_HEIGHT = 2.6
_BAR_WIDTH = 0.8
_SHADES = 20  # so few that the scale is drawn as shapes, not as an image


@page_style()
def plot_shares_over_time(windows: DataFrame) -> Figure:
    """Success rate and active share with their intervals, and the zero-variance groups, over the windows.

    Args:
        windows: A row per window: steps (its name), then for each of success_rate, active_share, all_wrong_share and
            all_right_share the estimate under that name, and the limits with _lower and _upper appended.

    Returns:
        Two panels side by side.
    """
    figure = Figure(figsize=(PAGE_WIDTH, _HEIGHT))
    left, right = figure.subplots(1, 2)
    quantities = (("success_rate", "success rate"), ("active_share", "active groups"))
    _lines(left, windows, [(name, label) for name, label in quantities])
    _lines(right, windows, [("all_wrong_share", "all wrong"), ("all_right_share", "all right")])
    probability_axis(left, "mean, share")
    probability_axis(right, "share of groups")
    return figure


@page_style()
def plot_tail_misses_over_time(windows: DataFrame, regimes: DataFrame, rare_fractions: Sequence[float]) -> Figure:
    """Estimated tail-miss probability per rare fraction, and the regimes of the prompts at the first of them.

    Args:
        windows: A row per window: steps, and per rare fraction tail_miss_I, tail_miss_I_lower and tail_miss_I_upper.
        regimes: A row per window: steps, inactive, miss-prone, covered, shares of prompts.
        rare_fractions: The rare fractions, in the order I = 0, 1, ...

    Returns:
        Two panels side by side.
    """
    figure = Figure(figsize=(PAGE_WIDTH, _HEIGHT))
    left, right = figure.subplots(1, 2)
    _lines(left, windows, [(f"tail_miss_{i}", f"rare fraction {rho:g}") for i, rho in enumerate(rare_fractions)])
    probability_axis(left, "estimated Pr(tail miss)")
    bottom = np.zeros(len(regimes))
    for name, colour in REGIME_COLOURS.items():
        right.bar(_places(regimes), regimes[name], bottom=bottom, color=colour, width=_BAR_WIDTH, label=name)
        bottom += regimes[name].to_numpy()
    _steps_axis(right, regimes)
    probability_axis(right, f"share of prompts (at {rare_fractions[0]:g})")
    _legend(right, 3)
    return figure


@page_style()
def plot_prompts_over_time(rates: NDArray[np.float64], steps: Sequence[str]) -> Figure:
    """Success rate of prompts in each window, as shades; a gap where a window did not see the prompt.

    Args:
        rates: Success rates, [prompts, windows], nan for a gap; the first row is drawn at the top.
        steps: Names of the windows.

    Returns:
        One panel with its scale.
    """
    figure = Figure(figsize=(PAGE_WIDTH, 1.2 + 0.07 * len(rates)))
    ax = figure.subplots()
    shades = ax.pcolormesh(
        np.ma.masked_invalid(rates), cmap=colormaps["cividis"].resampled(_SHADES), vmin=0.0, vmax=1.0, linewidth=0
    )
    ax.invert_yaxis()
    every = _every(len(steps), 10)
    ax.set_xticks(np.arange(len(steps))[::every] + 0.5, steps[::every])
    ax.set_xlabel("steps")
    ax.set_yticks([])
    ax.set_ylabel("prompts, hardest first")
    ax.grid(False)
    figure.colorbar(shades, ax=ax, label="success rate", pad=0.02)
    return figure


@page_style()
def plot_strength(shares: DataFrame) -> Figure:
    """Share of the update strength that each band of empirical success rates has, per focal exponent.

    Args:
        shares: A row per band: band (its name), and a column per gamma, named by its number as text.

    Returns:
        One panel.
    """
    figure = Figure(figsize=(PAGE_WIDTH, _HEIGHT))
    ax = figure.subplots()
    gammas = [column for column in shares.columns if column != "band"]
    width = _BAR_WIDTH / len(gammas)
    for i, gamma in enumerate(gammas):
        colour = (GREY, *(colour for colour, _ in LINES))[i % (1 + len(LINES))]
        offset = (i - (len(gammas) - 1) / 2) * width
        ax.bar(_places(shares) + offset, shares[gamma], width=0.92 * width, color=colour, label=f"gamma {gamma}")
    ax.set_xticks(_places(shares), shares["band"].tolist())
    ax.set_xlabel("empirical success rate of the group")
    ax.set_ylabel("share of update strength")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    _legend(ax, len(gammas))
    return figure


def _lines(ax: Axes, windows: DataFrame, quantities: Sequence[tuple[str, str]]) -> None:
    for i, (name, label) in enumerate(quantities):
        colour, marker = LINES[i % len(LINES)]
        ax.plot(_places(windows), windows[name], color=colour, marker=marker, label=label)
        lower, upper = windows[f"{name}_lower"], windows[f"{name}_upper"]
        ax.fill_between(_places(windows), lower, upper, color=colour, alpha=0.25, linewidth=0)
    _steps_axis(ax, windows)
    _legend(ax, 2)


def _places(table: DataFrame) -> NDArray[np.int64]:
    return np.arange(len(table))


def _steps_axis(ax: Axes, windows: DataFrame) -> None:
    every = _every(len(windows), 5)
    ax.set_xticks(_places(windows)[::every], windows["steps"].tolist()[::every])
    ax.set_xlabel("steps")


def _every(count: int, labels: int) -> int:
    """Distance of labels such that at most so many stand beside each other."""
    return -(-count // labels)


def _legend(ax: Axes, columns: int) -> None:
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
