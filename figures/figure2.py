"""Figure 2 of the paper (v1; Figure 3 in v2): the tail-miss probability against the group size.

Reproduces:
1. three panels, success rates 0.8, 0.5 and 0.2; in each the rare fractions 0.01, 0.05, 0.1 and 0.2;
2. group sizes 1 to 512 on a log2 axis;
3. a star at each curve's peak over whole group sizes.

Deviation: curves are drawn through all whole group sizes, not only through powers of two, because most peaks lie
between those.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from fgrpo.figures.style import (
    BLUE,
    GREEN,
    PAGE_WIDTH,
    PURPLE,
    VERMILLION,
    axes_or_new,
    figure_style,
    group_size_axis,
    probability_axis,
)
from fgrpo.theory import peak_group_size, tail_miss_probability

_SUCCESS_RATES = (0.8, 0.5, 0.2)
_RARE_FRACTIONS = (0.01, 0.05, 0.1, 0.2)
_LARGEST_GROUP_SIZE = 512
_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE)  # of the rare fractions, smallest first


def figure_2_data() -> DataFrame:
    """The curves of figure 2.

    Returns:
        One row per panel, curve and whole group size from 1 to 512: success_rate, rare_fraction, rare_mass (their
        product), group_size, tail_miss_probability, and is_peak (True where the curve is largest, on one row of each).

    Source: Figure 2 in v1, Figure 3 in v2.
    """
    return tail_miss_curves(_SUCCESS_RATES, _RARE_FRACTIONS, _LARGEST_GROUP_SIZE)


def tail_miss_curves(
    success_rates: Sequence[float], rare_fractions: Sequence[float], largest_group_size: int
) -> DataFrame:
    """Rows as of `figure_2_data`, for other success rates and rare fractions and up to another group size."""
    success_rate, rare_fraction, group_size = (
        grid.ravel()
        for grid in np.meshgrid(success_rates, rare_fractions, np.arange(1, largest_group_size + 1), indexing="ij")
    )
    rare_mass = rare_fraction * success_rate
    return DataFrame(
        {
            "success_rate": success_rate,
            "rare_fraction": rare_fraction,
            "rare_mass": rare_mass,
            "group_size": group_size,
            "tail_miss_probability": tail_miss_probability(success_rate, rare_mass, group_size),
            "is_peak": peak_group_size(success_rate, rare_mass) == group_size,
        }
    )


@figure_style()
def plot_tail_miss_curves(data: DataFrame, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw one panel: the tail-miss probability against the group size, a curve per rare fraction, the peaks starred.

    Args:
        data: Rows of `figure_2_data` for one success rate.
        ax: Axes to draw on; a new figure if omitted.
        legend: Whether to name the curves in this panel.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If the rows belong to none or several success rates, or to more than four rare fractions.
    """
    success_rates = data["success_rate"].unique()
    if len(success_rates) != 1:
        raise ValueError(
            f"a panel must have one success_rate, got {sorted(success_rates.tolist())}: select the rows of one panel"
        )
    curves = data.sort_values("group_size").groupby("rare_fraction")
    if len(curves) > len(_COLOURS):
        raise ValueError(f"a panel must have at most {len(_COLOURS)} rare fractions, got {len(curves)}: select fewer")
    ax = axes_or_new(ax)
    for (rare_fraction, curve), colour in zip(curves, _COLOURS, strict=False):
        ax.plot(curve["group_size"], curve["tail_miss_probability"], color=colour, label=f"{rare_fraction:g}")
        peak = curve[curve["is_peak"]]
        ax.plot(
            peak["group_size"],
            peak["tail_miss_probability"],
            linestyle="none",
            marker="*",
            markersize=9,
            markerfacecolor=colour,
            markeredgecolor="black",
            markeredgewidth=0.5,
            zorder=3,
        )
    group_size_axis(ax, data["group_size"].min(), data["group_size"].max(), label_every=2)
    probability_axis(ax, "Pr(tail miss)")
    ax.set_title(f"success rate {success_rates[0]:g}")
    if legend:
        ax.legend(title="rare fraction")
    return ax


@figure_style()
def figure_2(data: DataFrame | None = None) -> Figure:
    """Figure 2: a panel per success rate, from the highest to the lowest.

    Args:
        data: The curves; `figure_2_data()` if omitted.

    Returns:
        The figure, at its size in print.
    """
    data = figure_2_data() if data is None else data
    panels = sorted(data["success_rate"].unique(), reverse=True)
    figure = Figure(figsize=(PAGE_WIDTH, 2.5))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, success_rate in zip(axes, panels, strict=True):
        plot_tail_miss_curves(data[data["success_rate"] == success_rate], ax, legend=False)
        ax.label_outer()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        [f"rare fraction {label}" for label in labels],
        loc="outside upper center",
        ncols=len(labels),
    )
    return figure


def figure_2_alt_text(data: DataFrame) -> str:
    """One sentence for readers who do not see figure 2, with the peaks taken from its data."""
    peaks = data[data["is_peak"]].sort_values(["success_rate", "rare_fraction"], ascending=[False, True])
    panels = "; ".join(
        f"success rate {success_rate:g}: {', '.join(f'{size:g}' for size in panel['group_size'])}"
        for success_rate, panel in peaks.groupby("success_rate", sort=False)
    )
    fractions = ", ".join(f"{fraction:g}" for fraction in sorted(data["rare_fraction"].unique()))
    return (
        f"Tail-miss probability against group size {data['group_size'].min()} to {data['group_size'].max()}: every "
        f"curve rises to one peak and falls; peaks for rare fractions {fractions} at these group sizes: {panels}."
    )
