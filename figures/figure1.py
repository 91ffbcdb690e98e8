"""Figure 1 of the paper (v1 and v2): the tail-miss probability, and what the group size did to two benchmarks.

Reproduces:
1. a: success rate 0.3, rare fractions 0.05, 0.1 and 0.2, group sizes 1 to 128;
2. b, c: pass@1 against pass@256 on AIME25 and IFEval, GRPO with N = 2, 8 and 32, F-GRPO with N = 8.

Deviations:
1. a: the paper calls its curves schematic; these are Lemma 3.1, with a star at the peak over whole group sizes;
2. b, c: the numbers are those of the paper's Table 10 (Qwen2.5-7B), as reported, not rerun, and marked so. They do not
   bear out the caption's 'N = 8 improves pass@1 over N = 2' on AIME25 (8.3 to 6.7 %), only on IFEval.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, concat

from fgrpo.figures.figure2 import plot_tail_miss_curves, tail_miss_curves
from fgrpo.figures.style import GREY, PAGE_WIDTH, axes_or_new, caption_below, figure_style, group_size_style

BENCHMARKS = {"aime25": "AIME25", "ifeval": "IFEval"}
"""The benchmarks of panels b and c: their names in the table and in print."""

_SUCCESS_RATE = 0.3
_RARE_FRACTIONS = (0.05, 0.1, 0.2)
_LARGEST_GROUP_SIZE = 128
_RUNS = (("GRPO", 2), ("GRPO", 8), ("GRPO", 32), ("F-GRPO", 8))
_BEFORE_AND_AFTER = (("GRPO", 8), ("F-GRPO", 8))
_PLACE = "arXiv 2602.06717v2, Table 10"


def figure_1_data(reported: DataFrame) -> DataFrame:
    """What figure 1 draws.

    Args:
        reported: The paper's scores by group size, in percent: method, group_size, benchmark, k, value, as
            `fgrpo.reported.reported_table("group_size")` returns them.

    Returns:
        Panel 'tail_miss': a row per curve and whole group size, columns of `figure_2_data`. Panels 'aime25' and
        'ifeval': a row per run with method, group_size, pass_at_1 and pass_at_256 in percent, and source, which says
        that they are as reported and where.

    Raises:
        ValueError: If a column, or a score of one of the runs, is missing or there twice.

    Source: Figure 1 (v1 and v2); scores: Table 10 in v2.
    """
    curves = tail_miss_curves([_SUCCESS_RATE], _RARE_FRACTIONS, _LARGEST_GROUP_SIZE)
    missing = [name for name in ("method", "group_size", "benchmark", "k", "value") if name not in reported.columns]
    if missing:
        raise ValueError(
            f"the reported scores must have the column {missing[0]}, got {', '.join(map(str, reported.columns))}: "
            "pass reported_table('group_size')"
        )
    runs = [
        {
            "panel": benchmark,
            "method": method,
            "group_size": group_size,
            **{f"pass_at_{k}": _score(reported, method, group_size, benchmark, k) for k in (1, 256)},
            "source": f"as reported, {_PLACE}",
        }
        for benchmark in BENCHMARKS
        for method, group_size in _RUNS
    ]
    return concat([curves.assign(panel="tail_miss"), DataFrame(runs)], ignore_index=True)


@figure_style()
def plot_reported_pass_rates(data: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw panel b or c: pass@256 against pass@1, a labelled mark per run, an arrow from GRPO to F-GRPO at N = 8.

    Args:
        data: Rows of `figure_1_data` of one benchmark.
        ax: Axes to draw on; a new figure if omitted.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If the rows belong to none or several benchmarks.
    """
    panels = data["panel"].unique().tolist()
    if len(panels) != 1 or panels[0] not in BENCHMARKS:
        raise ValueError(
            f"a panel must show one of the benchmarks {', '.join(BENCHMARKS)}, got {panels}: select the rows of one"
        )
    ax = axes_or_new(ax)
    ax.margins(0.22)
    places = {}
    scores = zip(data["method"], data["group_size"].astype(int), data["pass_at_1"], data["pass_at_256"], strict=True)
    for method, group_size, first, many in scores:
        places[method, group_size] = (first, many)
        style = group_size_style(group_size)
        inside = style.color if method == "GRPO" else "white"
        ax.plot(first, many, marker=style.marker, color=style.color, markerfacecolor=inside, markersize=6, ls="none")
        right = first > data["pass_at_1"].mean()  # written towards the middle of the panel, where there is room
        ax.annotate(
            f"{method}, N = {group_size}",
            (first, many),
            (-6 if right else 6, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},  # the arrow passes behind
        )
    before, after = (places[run] for run in _BEFORE_AND_AFTER)
    arrow = {"arrowstyle": "->", "color": GREY, "linewidth": 0.8, "shrinkA": 5, "shrinkB": 5}
    ax.annotate("", after, before, arrowprops=arrow, zorder=1)
    ax.set_xlabel("pass@1 in %, as reported")
    ax.set_ylabel("pass@256 in %, as reported")
    return ax


@figure_style()
def figure_1(data: DataFrame) -> Figure:
    """Figure 1: the tail-miss curves, and the reported scores of the two benchmarks.

    Args:
        data: The rows of `figure_1_data`.

    Returns:
        The figure, at its size in print; its caption says which numbers are as reported.
    """
    figure = Figure(figsize=(PAGE_WIDTH, 2.8))
    curves, *scores = figure.subplots(1, 1 + len(BENCHMARKS))
    tail_miss = data[data["panel"] == "tail_miss"]
    plot_tail_miss_curves(tail_miss, curves, legend=False).set_title(f"a  success rate {_SUCCESS_RATE:g}")
    _label_peaks(curves, tail_miss)
    for letter, ax, (benchmark, name) in zip("bc", scores, BENCHMARKS.items(), strict=True):
        plot_reported_pass_rates(data[data["panel"] == benchmark], ax).set_title(f"{letter}  {name}")
    caption = (
        f"a: Lemma 3.1, stars at the peaks. b, c: the authors' numbers for Qwen2.5-7B as reported in {_PLACE}, "
        "not rerun; open marks: F-GRPO."
    )
    caption_below(figure, caption)
    return figure


def figure_1_alt_text(data: DataFrame) -> str:
    """One sentence for readers who do not see figure 1, with the peaks and the scores taken from its data."""
    peaks = data[(data["panel"] == "tail_miss") & (data["is_peak"] == True)]  # noqa: E712  (the others hold no flag)
    curves = ", ".join(f"{peak.group_size:.0f} ({peak.rare_fraction:g})" for peak in peaks.itertuples())
    scores = "; ".join(
        f"{name} "
        + ", ".join(
            f"{run.method} N = {run.group_size:.0f} {run.pass_at_1:g} and {run.pass_at_256:g}"
            for run in data[data["panel"] == benchmark].itertuples()
        )
        for benchmark, name in BENCHMARKS.items()
    )
    return (
        f"Tail-miss probability at success rate {_SUCCESS_RATE:g} against group size 1 to {_LARGEST_GROUP_SIZE}, with "
        f"peaks at these group sizes (rare fraction): {curves}; and pass@1 and pass@256 in percent as reported in "
        f"{_PLACE}: {scores}."
    )


def _label_peaks(ax: Axes, data: DataFrame) -> None:
    """Write its rare fraction at each star: above the highest curve, below the others, where there is room."""
    peaks = data[data["is_peak"].astype(bool)].sort_values("rare_fraction")
    for place, peak in enumerate(peaks.itertuples()):
        name, shift, side = ("", -7, "top") if place else ("rare fraction ", 6, "bottom")
        ax.annotate(
            f"{name}{peak.rare_fraction:g}",
            (peak.group_size, peak.tail_miss_probability),
            (0, shift),
            textcoords="offset points",
            ha="center",
            va=side,
        )


def _score(reported: DataFrame, method: str, group_size: int, benchmark: str, k: int) -> float:
    rows = reported[
        (reported["method"] == method)
        & (reported["group_size"] == group_size)
        & (reported["benchmark"] == benchmark)
        & (reported["k"] == k)
    ]
    if len(rows) != 1:
        raise ValueError(
            f"the reported scores must hold pass@{k} on {benchmark} of {method}, N = {group_size}, once, got it "
            f"{len(rows)} times: pass reported_table('group_size')"
        )
    return float(rows["value"].iloc[0])
