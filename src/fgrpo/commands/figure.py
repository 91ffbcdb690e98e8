"""The command that draws figures: of the paper, the regime diagram, or all that can be drawn."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fgrpo.commands.options import Out
from fgrpo.figure_name import FigureName


def figure(
    name: Annotated[
        FigureName, typer.Argument(help="Number in version 1 of the paper, or the regime diagram, or all.")
    ],
    out: Out = Path("results"),
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="DIR", help="Folder of a sweep, for 4 and regime; default: --out."),
    ] = None,
    group_size: Annotated[
        int | None, typer.Option("--group-size", metavar="N", help="Rollouts per prompt, for regime; default: 8.")
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(
            "--level", metavar="P", help="Tail-miss probability that counts as risky, for regime; default: .5."
        ),
    ] = None,
    rare_fraction: Annotated[
        float | None, typer.Option("--rare-fraction", metavar="RHO", help="Assumed tau / mu, for regime; default: .1.")
    ] = None,
    success_rate: Annotated[
        float | None, typer.Option("--success-rate", metavar="MU", help="mu of a prompt, to be marked in regime.")
    ] = None,
    rare_mass: Annotated[
        float | None, typer.Option("--rare-mass", metavar="TAU", help="Its assumed tau, in place of --rare-fraction.")
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option("--counts", metavar="FILE", help="Samples and correct per prompt, to be marked in regime."),
    ] = None,
) -> None:
    """Draw a figure: PNG, PDF and the drawn data. Figure 4 needs the results of a sweep.

    The regime diagram shows where a group size is inactive, miss-prone or covered, with --success-rate or --counts
    where your prompts stand, and what a sweep retained. With 'all', figures without
    their results are named and left out.

    Example: fgrpo figure regime --group-size 16 --success-rate 0.3 --rare-mass 0.03
    """
    given = {
        "--group-size": group_size,
        "--level": level,
        "--rare-fraction": rare_fraction,
        "--success-rate": success_rate,
        "--rare-mass": rare_mass,
        "--counts": counts,
        "--results": results,
    }
    for option, value in given.items():
        takers = [FigureName.REGIME, FigureName.ALL, *([FigureName.FOUR] if option == "--results" else [])]
        if value is not None and name not in takers:
            raise ValueError(f"{option} must come with {' or '.join(takers)}, got it with figure {name}: leave it out")

    if rare_mass is not None:
        if success_rate is None or rare_fraction is not None or not 0.0 < rare_mass < success_rate:
            raise ValueError(
                f"--rare-mass must be above 0 and below the --success-rate that it comes with, and without "
                f"--rare-fraction, got {rare_mass}: pass for example --success-rate 0.3 --rare-mass 0.03"
            )
        rare_fraction = rare_mass / success_rate

    from fgrpo.counts import read_counts
    from fgrpo.drawing import Material, draw_figures

    standard = Material()
    material = Material(
        results=out if results is None else results,
        required=results is not None,
        group_size=standard.group_size if group_size is None else group_size,
        level=standard.level if level is None else level,
        rare_fraction=standard.rare_fraction if rare_fraction is None else rare_fraction,
        success_rate=success_rate,
        counts=None if counts is None else read_counts(counts),
    )
    drawn = draw_figures(name, out, material)
    print("\n".join(str(path) for path in drawn.paths))
    if drawn.missing:
        reasons = "; ".join(f"{lacking} ({reason})" for lacking, reason in drawn.missing.items())
        print(f"fgrpo: not drawn: {reasons}", file=sys.stderr)
