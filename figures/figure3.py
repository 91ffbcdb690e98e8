"""Figure 3 of the paper (v1; Figure 4 in v2): the focal-weighted size of the advantages against the success rate.

Reproduces g |A| of correct rollouts (solid) and of wrong ones (dashed) for gamma 0, 0.5 and 1.

Deviations: none in the curves. Those without bound are cut off at the top of the axis; the success rates 0 and 1 are
left out, because such groups have no advantages.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType
from pandas import DataFrame

from fgrpo.figures.style import BLACK, BLUE, GREY, PAGE_WIDTH, VERMILLION, axes_or_new, figure_style
from fgrpo.theory import advantage_magnitude

_COLOURS = {0.0: BLACK, 0.5: BLUE, 1.0: VERMILLION}  # of the gammas; line styles tell correct from wrong here
_LINE_STYLES: dict[bool, LineStyleType] = {True: "-", False: "--"}
_STEPS = 500
_TOP = 3.0


def figure_3_data() -> DataFrame:
    """The curves of figure 3.

    Returns:
        A row per gamma (0, 0.5, 1), kind of rollout (correct: True or False) and empirical success rate (0.002 to
        0.998): gamma, correct, empirical_success_rate, advantage_magnitude (g |A|, population standard deviation).

    Source: Figure 3 in v1, Figure 4 in v2.
    """
    rate = np.arange(1, _STEPS) / _STEPS
    return DataFrame(
        [
            (gamma, correct, *point)
            for gamma in _COLOURS
            for correct in _LINE_STYLES
            for point in zip(rate, advantage_magnitude(rate, correct=correct, gamma=gamma), strict=True)
        ],
        columns=["gamma", "correct", "empirical_success_rate", "advantage_magnitude"],
    )


@figure_style()
def plot_advantage_magnitudes(data: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw g |A| against the success rate of the group: a colour per gamma, solid correct, dashed wrong.

    Args:
        data: The rows of `figure_3_data`.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If a gamma is none of 0, 0.5 and 1.
    """
    unknown = sorted(set(data["gamma"]) - set(_COLOURS))
    if unknown:
        raise ValueError(f"gamma must be one of 0, 0.5, 1 to have a colour, got {unknown[0]:g}: select such curves")
    ax = axes_or_new(ax)
    ordered = data.sort_values("empirical_success_rate")
    for gamma in sorted(set(data["gamma"])):
        for correct, style in _LINE_STYLES.items():
            curve = ordered[(ordered["gamma"] == gamma) & (ordered["correct"] == correct)]
            ax.plot(
                curve["empirical_success_rate"], curve["advantage_magnitude"], color=_COLOURS[gamma], linestyle=style
            )
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, _TOP)
    ax.set_xlabel("success rate of the group")
    ax.set_ylabel("focal weight times |advantage|")
    gammas = [Line2D([], [], color=colour, label=f"$\\gamma$ = {gamma:g}") for gamma, colour in _COLOURS.items()]
    kinds = [
        Line2D([], [], color=GREY, linestyle=style, label="correct" if correct else "wrong")
        for correct, style in _LINE_STYLES.items()
    ]
    ax.legend(handles=gammas + kinds, loc="upper center", bbox_to_anchor=(0.52, 1.0))
    return ax


@figure_style()
def figure_3(data: DataFrame | None = None) -> Figure:
    """Figure 3, half a page wide.

    Args:
        data: The curves; `figure_3_data()` if omitted.

    Returns:
        The figure, at its size in print.
    """
    figure = Figure(figsize=(PAGE_WIDTH / 2, 2.6))
    plot_advantage_magnitudes(figure_3_data() if data is None else data, figure.add_subplot())
    return figure


def figure_3_alt_text(data: DataFrame) -> str:
    """One sentence for readers who do not see figure 3, with values taken from its data."""
    last = data["empirical_success_rate"].max()
    wrong = data[(data["empirical_success_rate"] == last) & ~data["correct"]].sort_values("gamma")
    ends = ", ".join(f"{row.advantage_magnitude:.3g} at gamma {row.gamma:g}" for row in wrong.itertuples())
    return (
        "Focal-weighted size of the advantage against the success rate of the group: for correct rollouts it falls "
        f"from large values to 0 at every gamma, for wrong ones it rises from 0 and reaches at success rate {last:g} "
        f"{ends}."
    )
