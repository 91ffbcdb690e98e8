"""Figure 4 of the paper (v1; Figure 2 in v2): the simulated policy over training, by group size.

Reproduces:
1. a, b: correct mass and retained mass against the step, for N = 2, 256, 8192 and 131072;
2. c: both after the last step against every N, the collapse zone shaded;
3. solid without the focal weight (gamma 0), dashed with it (gamma 1), in all panels.

Deviations:
1. the zone is computed from the data (`fgrpo.simulate.collapse_zone`), and each stretch of neighbouring group sizes in
   it is shaded; the paper shades a zone without giving bounds;
2. lines are means over the seeds and bands reach from the smallest to the largest seed, because near the edges of the
   zone single seeds differ a lot;
3. c also shows the tail-miss probability of one leaf of the start policy: it does not locate the zone;
4. d, where the results hold longer runs: retained mass when training goes on, because whether a large N retains is a
   matter of when one stops;
5. the caption names the reading of the update rule, which the paper's text leaves open.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame, Series

from fgrpo.figures.style import (
    BLACK,
    GREY,
    ORANGE,
    PAGE_WIDTH,
    SKY,
    axes_or_new,
    caption_below,
    figure_style,
    gamma_line_style,
    group_size_axis,
    group_size_style,
    probability_axis,
    range_words,
)
from fgrpo.simulate.summary import block_words, contiguous_blocks, zone_of

_MARKERS_PER_CURVE = 8


@figure_style()
def plot_correct_mass(data: DataFrame, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw panel a: correct mass against the step, a colour per group size, a line style per gamma.

    Args:
        data: The rows of `figure_4_data`.
        ax: Axes to draw on; a new figure if omitted.
        legend: Whether to name group sizes and gammas in this panel.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If the data hold no trajectories of the sweep.
    """
    return _plot_trajectories(_panel(data, "sweep", "correct_mass"), "correct mass", ax, legend)


@figure_style()
def plot_retained_mass(data: DataFrame, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw panel b: retained mass (Eq 26) against the step; arguments and errors as `plot_correct_mass`."""
    return _plot_trajectories(_panel(data, "sweep", "retained_mass"), "retained mass", ax, legend)


@figure_style()
def plot_long_retained_mass(data: DataFrame, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw panel d: retained mass against the step of the longer runs; arguments and errors as `plot_correct_mass`."""
    return _plot_trajectories(_panel(data, "long", "retained_mass"), "retained mass", ax, legend)


@figure_style()
def plot_final_masses(data: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw panel c: final correct and retained mass against the group size, the collapse zone shaded.

    Each shade covers group sizes of the zone that are neighbours on the grid that was run, and reaches half a power of
    two beyond them, or half-way to the next size if that is nearer.
    The thin line is the tail-miss probability of a correct action other than the anchor, before training.

    Args:
        data: The rows of `figure_4_data`.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If the data hold no final values.
    """
    ax = axes_or_new(ax)
    # in the order of the legend's two columns: the shade and the thin line go under the curves by their zorder
    _plot_final(ax, data, "correct_mass", SKY)
    for place, (low, high) in enumerate(_shades(data)):
        label = "collapse zone" if place == 0 else "_"  # one entry in the legend
        ax.axvspan(low, high, color=ORANGE, alpha=0.15, lw=0, zorder=0, label=label)
    _plot_final(ax, data, "retained_mass", BLACK)
    tail_miss = _panel(data, "final", "tail_miss_probability")
    label = "Pr(tail miss), start"
    ax.plot(tail_miss["group_size"], tail_miss["mean"], color=GREY, linewidth=0.8, zorder=1.5, label=label)
    group_size_axis(ax, tail_miss["group_size"].min(), tail_miss["group_size"].max(), label_every=4)
    probability_axis(ax, "mass after the last step")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2)
    return ax


@figure_style()
def figure_4(data: DataFrame) -> Figure:
    """Figure 4: panels a to c, and d if the data hold runs longer than the sweep's; the caption says what was run.

    Args:
        data: The rows of `figure_4_data`.

    Returns:
        The figure, at its size in print.

    Raises:
        ValueError: If the data lack a panel.
    """
    longer = (data["panel"] == "long").any()
    figure = Figure(figsize=(PAGE_WIDTH, 5.8))
    panels = figure.subplot_mosaic("ab;cd" if longer else "ab;cc")
    plot_correct_mass(data, panels["a"], legend=False).set_title("a  correct mass")
    plot_retained_mass(data, panels["b"], legend=False).set_title("b  retained mass")
    plot_final_masses(data, panels["c"]).set_title("c  after the last step")
    if longer:
        plot_long_retained_mass(data, panels["d"], legend=False).set_title("d  retained mass, training continued")
    handles = _legend_handles(_panel(data, "sweep", "correct_mass"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    caption_below(figure, _caption(data))
    return figure


def figure_4_alt_text(data: DataFrame) -> str:
    """One sentence for readers who do not see figure 4, built from its data."""
    zone, grid = _zone_and_grid(data)
    outcome = (
        f"on average it falls below 1/2 for group sizes {block_words(zone, grid)} without the focal weight"
        if zone
        else "no group size loses half of it on average"
    )
    return (
        f"Correct and retained mass of a softmax policy with {data['actions'].iloc[0]:,} actions against training "
        f"step and, after the last step, against group size {grid[0]} to {grid[-1]}: of the retained mass, {outcome}."
    )


def _zone_and_grid(data: DataFrame) -> tuple[tuple[int, ...], list[int]]:
    """The collapse zone, and all group sizes of the sweep."""
    final = _panel(data, "final", "retained_mass")
    return zone_of(final), _group_sizes(final)


def _shades(data: DataFrame) -> list[tuple[float, float]]:
    """Left and right end of each stretch of the zone, in group sizes."""
    zone, grid = _zone_and_grid(data)
    shades = []
    for first, last in contiguous_blocks(zone, grid):
        below = [size for size in grid if size < first][-1:]
        above = [size for size in grid if size > last][:1]
        left = max([first / 2**0.5, *((size * first) ** 0.5 for size in below)])
        right = min([last * 2**0.5, *((size * last) ** 0.5 for size in above)])
        shades.append((left, right))
    return shades


def _panel(data: DataFrame, panel: str, metric: str) -> DataFrame:
    rows = data[(data["panel"] == panel) & (data["metric"] == metric)]
    if rows.empty:
        raise ValueError(
            f"data must hold {metric} of panel '{panel}', got no such rows: "
            "pass figure_4_data of results that include them"
        )
    return rows.sort_values(["group_size", "gamma", "step"])


def _plot_final(ax: Axes, data: DataFrame, metric: str, colour: str) -> None:
    rows = _panel(data, "final", metric)
    for gamma in _gammas(rows):
        curve = rows[rows["gamma"] == gamma]
        label = f"{metric.replace('_', ' ')}, {_gamma_label(gamma)}"
        ax.plot(curve["group_size"], curve["mean"], color=colour, ls=gamma_line_style(gamma), marker=".", label=label)
        _band(ax, curve["group_size"], curve, colour)


def _plot_trajectories(rows: DataFrame, label: str, ax: Axes | None, legend: bool) -> Axes:
    ax = axes_or_new(ax)
    sizes = _group_sizes(rows)
    for place, size in enumerate(sizes):
        style = group_size_style(size)
        for gamma in _gammas(rows):
            curve = rows[(rows["group_size"] == size) & (rows["gamma"] == gamma)]
            every = max(1, len(curve) // _MARKERS_PER_CURVE)
            first = place * every // len(sizes)  # staggered, so that curves that coincide all show
            ax.plot(
                curve["step"],
                curve["mean"],
                color=style.color,
                linestyle=gamma_line_style(gamma),
                marker=style.marker,
                markevery=(first, every),
            )
            _band(ax, curve["step"], curve, style.color)
    ax.set_xlabel("step")
    probability_axis(ax, label)
    if legend:
        ax.legend(handles=_legend_handles(rows))
    return ax


def _band(ax: Axes, x: Series, curve: DataFrame, colour: str) -> None:
    """Shade from the smallest to the largest seed."""
    ax.fill_between(x, curve["smallest"], curve["largest"], color=colour, alpha=0.2, linewidth=0)


def _gamma_label(gamma: float) -> str:
    return f"$\\gamma$ = {gamma:g}"


def _legend_handles(rows: DataFrame) -> list[Line2D]:
    """A handle per group size (colour and marker) and per gamma (line style)."""
    sizes = [Line2D([], [], **group_size_style(size)._asdict(), label=f"N = {size}") for size in _group_sizes(rows)]
    gammas = [
        Line2D([], [], color=GREY, linestyle=gamma_line_style(gamma), label=_gamma_label(gamma))
        for gamma in _gammas(rows)
    ]
    return sizes + gammas


def _group_sizes(rows: DataFrame) -> list[int]:
    return sorted({int(size) for size in rows["group_size"]})


def _gammas(rows: DataFrame) -> list[float]:
    return sorted({float(gamma) for gamma in rows["gamma"]})


def _caption(data: DataFrame) -> str:
    zone, grid = _zone_and_grid(data)
    found = f"N = {block_words(zone, grid)}" if zone else "none"
    text = (
        f"Reading {data['reading'].iloc[0]} (the paper's text leaves the update open); "
        f"{data['actions'].iloc[0]:,} actions; seeds per curve: {range_words(data['seeds'])}; lines: mean over the "
        "seeds; bands: smallest to largest. Collapse zone (mean final retained mass at $\\gamma$ = 0 below 1/2): "
        f"{found}."
    )
    return text if (data["panel"] == "long").any() else f"{text} These results hold no longer runs (panel d)."
