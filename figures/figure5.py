"""Figure 5 of the paper (v1 and v2): the tail-miss probability of one leaf of the simulated policy.

Reproduces:
1. the curve for success rate 0.64 and rare mass 6.3e-5, as printed, group sizes 2^0 to 2^17;
2. the same for the success rate and rare mass with which the simulated policy starts (0.63008 and 6.2967e-5).

Deviations: the two curves are not told apart by eye, so a second panel shows their difference. Marked are the peak and
the group sizes from which on the start's curve stays at or below 1/2 and 1/1000.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, concat

from fgrpo.figures.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    PAGE_WIDTH,
    VERMILLION,
    axes_or_new,
    figure_style,
    group_size_axis,
    group_size_grid,
    probability_axis,
)
from fgrpo.theory import coverage_group_size, peak_group_size, tail_miss_probability

_PRINTED = ("as printed", 0.64, 6.3e-5)
_START = "start policy"
_LARGEST_GROUP_SIZE = 2**17
_LEVELS = {0.5: "1/2", 1e-3: "1/1000"}


def figure_5_data(start_success_rate: float, start_rare_mass: float) -> DataFrame:
    """The curves of figure 5: one as printed, one for the policy at the start of the simulation.

    Args:
        start_success_rate: Correct mass of the policy that the simulation starts from (0.63008 for the default one).
        start_rare_mass: Probability of one correct action other than the anchor there (6.2967e-5 for the default one).

    Returns:
        One row per curve and group size: curve ('as printed' or 'start policy'), success_rate, rare_mass, group_size
        (whole numbers about eight to each doubling, powers of two included), tail_miss_probability.

    Raises:
        ValueError: If a probability is out of range or start_rare_mass exceeds start_success_rate.

    Source: Figure 5 (v1 and v2); the start policy is that of Appendix J.
    """
    group_size = group_size_grid(1, _LARGEST_GROUP_SIZE)
    curves = (_PRINTED, (_START, start_success_rate, start_rare_mass))
    return concat(
        [
            DataFrame(
                {
                    "curve": name,
                    "success_rate": success_rate,
                    "rare_mass": rare_mass,
                    "group_size": group_size,
                    "tail_miss_probability": tail_miss_probability(success_rate, rare_mass, group_size),
                }
            )
            for name, success_rate, rare_mass in curves
        ],
        ignore_index=True,
    )


@figure_style()
def plot_leaf_tail_miss(data: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the curves, a star at the start policy's peak, and where it has come down to 1/2 and to 1/1000.

    Args:
        data: The rows of `figure_5_data`.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.
    """
    ax = axes_or_new(ax)
    printed, start = _curves(data)
    # the wide light line stays visible under the thin dark one
    for curve, colour, width in ((printed, ORANGE, 4.0), (start, BLUE, 1.2)):
        mu, tau = _parameters(curve)
        label = f"{curve['curve'].iloc[0]}\nsuccess rate {mu:.5g}, rare mass {tau:.4g}".replace("e-0", "e-")
        ax.plot(curve["group_size"], curve["tail_miss_probability"], color=colour, linewidth=width, label=label)
    mu, tau = _parameters(start)
    peak = peak_group_size(mu, tau)
    highest = tail_miss_probability(mu, tau, peak)
    ax.plot(peak, highest, "*", color=BLUE, markeredgecolor="black", markeredgewidth=0.5, markersize=9)
    ax.annotate(f"peak {highest:.4f}\nat N = {peak:g}", (peak, highest), (4, -8), textcoords="offset points", va="top")
    for level, name in _LEVELS.items():
        covered = coverage_group_size(mu, tau, level)
        ax.plot(covered, level, "o", color=VERMILLION)
        ax.annotate(
            f"{name} at N = {covered:.0f}",
            (covered, level),
            (-45, 7),
            textcoords="offset points",
            ha="right",
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.6, "color": GREY},
        )
    group_size_axis(ax, data["group_size"].min(), data["group_size"].max(), label_every=4)
    probability_axis(ax, "Pr(tail miss)")
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 0.14), labelspacing=0.9, handlelength=1.8)
    return ax


@figure_style()
def plot_leaf_tail_miss_difference(data: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the start policy's curve minus the printed one.

    Args:
        data: The rows of `figure_5_data`.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.
    """
    ax = axes_or_new(ax)
    printed, start = _curves(data)
    difference = start["tail_miss_probability"].to_numpy() - printed["tail_miss_probability"].to_numpy()
    ax.axhline(0.0, color=GREY, linewidth=0.7)
    ax.plot(start["group_size"], difference, color=BLACK)
    group_size_axis(ax, data["group_size"].min(), data["group_size"].max(), label_every=4)
    ax.set_ylabel("start policy minus as printed")
    return ax


@figure_style()
def figure_5(data: DataFrame) -> Figure:
    """Figure 5: the two curves, and their difference beside them.

    Args:
        data: The rows of `figure_5_data`.

    Returns:
        The figure, at its size in print.
    """
    figure = Figure(figsize=(PAGE_WIDTH, 2.6))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    plot_leaf_tail_miss(data, left).set_title("a  tail miss of one leaf")
    plot_leaf_tail_miss_difference(data, right).set_title("b  difference of the two curves")
    return figure


def figure_5_alt_text(data: DataFrame) -> str:
    """One sentence for readers who do not see figure 5, built from its data."""
    printed, start = _curves(data)
    mu, tau = _parameters(start)
    gap = np.abs(start["tail_miss_probability"].to_numpy() - printed["tail_miss_probability"].to_numpy()).max()
    falls = ", ".join(f"{name} at N = {coverage_group_size(mu, tau, level):.0f}" for level, name in _LEVELS.items())
    return (
        f"Tail-miss probability of one leaf against group size {data['group_size'].min()} to "
        f"{data['group_size'].max()}: it is highest at N = {peak_group_size(mu, tau):.0f}, stays near 1 over a wide "
        f"range and falls to {falls}; the curve for success rate {mu:.5g} differs from the printed one, "
        f"{_parameters(printed)[0]:.5g}, by at most {gap:.2g}."
    )


def _curves(data: DataFrame) -> list[DataFrame]:
    """The printed curve and the start's, each by rising group size."""
    ordered = data.sort_values("group_size")
    return [ordered[ordered["curve"] == name] for name in (_PRINTED[0], _START)]


def _parameters(curve: DataFrame) -> tuple[float, float]:
    """Success rate and rare mass of one curve."""
    return float(curve["success_rate"].iloc[0]), float(curve["rare_mass"].iloc[0])
