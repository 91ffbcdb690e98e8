"""The one style of the figures: the style sheet, colours and markers by meaning, and the axes they share.

The palette is that of Okabe and Ito [okabe2008color]. Importing this module changes no global state: `figure_style`
switches the style sheet on and off again.
"""

import math
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter, NullLocator
from matplotlib.typing import LineStyleType
from numpy.typing import NDArray
from pandas import Series

PAGE_WIDTH = 7.0
"""Width in inches of a figure that spans the text of a page; fonts are set for this width."""

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#000000"
GREY = "#777777"

_CAPTION_WIDTH = 135  # letters on a line of a page

REGIME_COLOURS = {"inactive": GREY, "miss-prone": VERMILLION, "covered": BLUE}
"""One colour per tail-miss regime (`fgrpo.theory.tail_miss_regime`)."""

# One entry per power of two from 1 to 131072, ordered so that the paper's four sizes (2, 256, 8192, 131072) and every
# fourth power get different colours; markers tell apart what still shares one.
_GROUP_SIZE_COLOURS = (
    *(BLACK, BLUE, GREEN, PURPLE, VERMILLION, ORANGE, PURPLE, BLACK, VERMILLION),
    *(SKY, GREEN, ORANGE, BLUE, GREEN, BLACK, VERMILLION, SKY, PURPLE),
)
_GROUP_SIZE_MARKERS = ("p", "o", "X", "d", "v", "h", "^", "P", "s")
_GAMMA_LINE_STYLES: dict[float, LineStyleType] = {0.0: "-", 1.0: "--", 0.5: "-.", 2.0: ":"}


class GroupSizeStyle(NamedTuple):
    """Colour and marker of one group size."""

    color: str
    marker: str


def group_size_style(group_size: int) -> GroupSizeStyle:
    """Colour and marker of a group size, the same in every figure.

    Each power of two from 1 to 131072 has a pair of its own; any other size takes that of the nearest power of two (on
    the logarithmic axis), and the pairs repeat beyond 131072.

    Args:
        group_size: N >= 1.

    Raises:
        ValueError: If group_size is below 1.
    """
    if group_size < 1:
        raise ValueError(f"group_size must be at least 1, got {group_size}: pass the number of rollouts per prompt")
    exponent = round(math.log2(group_size)) % len(_GROUP_SIZE_COLOURS)
    return GroupSizeStyle(_GROUP_SIZE_COLOURS[exponent], _GROUP_SIZE_MARKERS[exponent % len(_GROUP_SIZE_MARKERS)])


def gamma_line_style(gamma: float) -> LineStyleType:
    """Line style of a focal exponent: solid 0 (unweighted), dashed 1, dash-dotted 0.5, dotted 2.

    Raises:
        ValueError: If the exponent has no line style.
    """
    try:
        return _GAMMA_LINE_STYLES[float(gamma)]
    except KeyError:
        known = ", ".join(f"{value:g}" for value in sorted(_GAMMA_LINE_STYLES))
        raise ValueError(f"gamma must be one of {known} to have a line style, got {gamma}: select such runs") from None


@contextmanager
def figure_style() -> Iterator[None]:
    """Context manager and decorator (`@figure_style()`) within which the toolkit's style sheet holds.

    The user's own settings are set aside inside, so that a figure looks the same everywhere, and restored on leaving.
    """
    with matplotlib.style.context("fgrpo.figures.fgrpo", after_reset=True):
        yield


def axes_or_new(ax: Axes | None) -> Axes:
    """`ax`, or the axes of a new figure about half a page wide, made without pyplot (no backend, no global state)."""
    return Figure(figsize=(PAGE_WIDTH / 2, 2.6)).add_subplot() if ax is None else ax


def caption_below(figure: Figure, text: str) -> None:
    """Write a caption below the panels of a figure as wide as the page, broken into lines."""
    figure.supxlabel(textwrap.fill(text, _CAPTION_WIDTH), x=0.01, horizontalalignment="left")


def range_words(counts: Series) -> str:
    """Whole numbers as `4` where all are equal, else `2 to 4`; missing ones are left out."""
    known = counts.dropna().astype(int)
    return f"{known.min()}" if known.min() == known.max() else f"{known.min()} to {known.max()}"


def group_size_grid(smallest: int, largest: int) -> NDArray[np.int64]:
    """Whole group sizes from `smallest` to `largest`, about eight to each doubling."""
    doublings = math.log2(largest / smallest)
    return np.unique(np.rint(np.geomspace(smallest, largest, 1 + math.ceil(8 * doublings))).astype(np.int64))


def group_size_axis(ax: Axes, smallest: int, largest: int, *, label_every: int) -> None:
    """Make x a log2 axis of group sizes: a tick at each power of two of the range, every `label_every`-th one labelled.

    Labels are written out (65536, not 2 with an exponent) because an exponent would be printed below 7 pt.
    """
    powers = [2**k for k in range(math.floor(math.log2(smallest)), math.ceil(math.log2(largest)) + 1)]
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(powers[::label_every]))
    ax.xaxis.set_major_formatter(FixedFormatter([str(power) for power in powers[::label_every]]))
    ax.xaxis.set_minor_locator(FixedLocator(powers))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("group size N")


def interval_bars(ax: Axes, place: Series, mean: Series, low: Series, high: Series, **style: Any) -> None:
    """Draw means joined by a line, each with a thin bar over its interval."""
    ax.errorbar(place, mean, yerr=[mean - low, high - mean], elinewidth=0.6, **style)


def probability_axis(ax: Axes, label: str) -> None:
    """Make y an axis from 0 to 1 with room for the markers at both ends."""
    ax.set_ylim(-0.03, 1.05)
    ax.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylabel(label)
