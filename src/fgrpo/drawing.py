"""Figures by name into a folder: what each of them is drawn from, and which cannot be drawn from what is there."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure
from pandas import DataFrame

from fgrpo import figures
from fgrpo.claims.evidence import DEFAULT_READING
from fgrpo.figure_name import FigureName
from fgrpo.reported import reported_table
from fgrpo.simulate import PolicyConfig, load_results
from fgrpo.simulate.policy import initial_masses
from fgrpo.simulate.store import SWEEP
from fgrpo.simulate.summary import split_by_length


@dataclass(frozen=True)
class Material:
    """What figures are drawn from, besides theory and the paper's reported numbers.

    Attributes:
        results: Folder of a sweep's results: Figure 4, panel c of the regime diagram.
        required: Whether the regime diagram is refused if those results cannot be used, or drawn without its panel c.
        group_size: N of the regime diagram.
        level: Its tail-miss probability that counts as miss-prone.
        rare_fraction: Its assumed tau / mu.
        success_rate: Of a prompt marked in it.
        counts: Prompts marked in it, as `fgrpo.counts.read_counts` returns them.
    """

    results: str | os.PathLike[str] = "results"
    required: bool = False
    group_size: int = 8
    level: float = 0.5
    rare_fraction: float = 0.1
    success_rate: float | None = None
    counts: DataFrame | None = None


@dataclass
class Drawn:
    """What came of it.

    Attributes:
        paths: PNG, PDF and drawn data of each figure.
        missing: Reason for each figure or panel that could not be drawn, under its name.
    """

    paths: list[Path] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


def draw_figures(name: str, out: str | os.PathLike[str], material: Material) -> Drawn:
    """Draws one figure into a folder, or all that can be drawn.

    Args:
        name: A value of `FigureName`; with 'all', figures without the results that they need are left out.
        out: The folder; figures are named figure_1 to figure_5 and regime.
        material: What to draw them from.

    Raises:
        ValueError: If there is no such figure, an option is out of range, or the one figure lacks its results.
        OSError: If a file cannot be written.
    """
    if name not in list(FigureName):
        raise ValueError(
            f"the figure must be one of {', '.join(FigureName)}, got {name}: numbers are those of the paper's version 1"
        )
    drawn = Drawn()
    for one in _DRAWINGS if name == FigureName.ALL else [FigureName(name)]:
        drawing = _DRAWINGS[one]
        try:
            data = drawing.data(material, drawn)
        except ValueError as error:
            if name != FigureName.ALL or one not in _FROM_RESULTS:
                raise
            drawn.missing[f"figure {one}"] = str(error)
            continue
        title = one if one == FigureName.REGIME else f"figure_{one}"
        text = drawing.alt_text(data)
        drawn.paths += figures.save_figure(drawing.figure(data), out, title, data=data, description=text)
    return drawn


def _figure_4_data(material: Material, _: Drawn) -> DataFrame:
    results = _one_reading(material)
    # the runs that go on longer are those of the group sizes whose trajectories are shown
    __, longer = split_by_length(results)
    sizes = tuple(sorted(int(n) for n in longer["group_size"].unique())) or None
    return figures.figure_4_data(results, group_sizes=sizes)


def _one_reading(material: Material) -> DataFrame:
    """The stored results; those of the default reading where there are several."""
    results = load_results(material.results)
    default = results["reading"] == DEFAULT_READING
    return results[default] if default.any() else results


def _figure_5_data(_: Material, __: Drawn) -> DataFrame:
    start = initial_masses(PolicyConfig())
    return figures.figure_5_data(start["correct_mass"], start["leaf_mass"])


def _regime_data(material: Material, drawn: Drawn) -> DataFrame:
    def data(results: DataFrame | None) -> DataFrame:
        return figures.regime_diagram_data(
            material.group_size,
            level=material.level,
            rare_fraction=material.rare_fraction,
            success_rate=material.success_rate,
            counts=material.counts,
            results=results,
        )

    theory_alone = data(None)  # first, so that what it refuses is not taken for a fault of the results
    if not material.required and not Path(material.results, SWEEP).is_file():
        return theory_alone
    try:
        return data(_one_reading(material))
    except ValueError as error:
        if material.required:
            raise
        drawn.missing["panel c of the regime diagram"] = str(error)
        return theory_alone


class _Drawing(NamedTuple):
    """How a figure comes about: its data, noting what it lacks, and what is made of them."""

    data: Callable[[Material, Drawn], DataFrame]
    figure: Callable[[DataFrame], Figure]
    alt_text: Callable[[DataFrame], str]


_DRAWINGS = {
    FigureName.ONE: _Drawing(
        lambda _, __: figures.figure_1_data(reported_table("group_size")), figures.figure_1, figures.figure_1_alt_text
    ),
    FigureName.TWO: _Drawing(lambda _, __: figures.figure_2_data(), figures.figure_2, figures.figure_2_alt_text),
    FigureName.THREE: _Drawing(lambda _, __: figures.figure_3_data(), figures.figure_3, figures.figure_3_alt_text),
    FigureName.FOUR: _Drawing(_figure_4_data, figures.figure_4, figures.figure_4_alt_text),
    FigureName.FIVE: _Drawing(_figure_5_data, figures.figure_5, figures.figure_5_alt_text),
    FigureName.REGIME: _Drawing(_regime_data, figures.regime_diagram, figures.regime_diagram_alt_text),
}
_FROM_RESULTS = (FigureName.FOUR,)
