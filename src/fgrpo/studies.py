"""Studies of the simulation: runs what is missing, compares, draws; the tables behind `fgrpo sweep compare` and others.

Each writes a figure with its data (NAME.png, NAME.pdf, NAME.csv) into the results folder of its runs.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fgrpo import figures
from fgrpo.simulate import RunConfig, load_results, run_sweep
from fgrpo.simulate.comparison import Arm, compare_arms
from fgrpo.simulate.readings import readings_table
from fgrpo.simulate.zones import zone_table

if TYPE_CHECKING:
    from pandas import DataFrame

COMPARISON, READINGS, ZONE = "comparison", "readings", "zone"


def compare(
    arms: Sequence[Arm], out: str | os.PathLike[str], *, workers: int | None = None, progress: bool = True
) -> tuple["DataFrame", list[Path]]:
    """Arms at matched progress: runs those of their runs that `out` does not hold, compares and draws them.

    Args:
        arms: The baseline first, see `fgrpo.simulate.comparison.comparison_arms`.
        out: Results folder; finished runs in it are reused.
        workers: Processes; None for one per core.
        progress: Whether to show a progress bar, if stderr is a terminal.

    Returns:
        The rows of `compare_arms`, and the paths of the files written.

    Raises:
        ValueError: If the arms cannot be compared, or the folder cannot be used.
        OSError: If a file cannot be written; finished runs stay stored.
    """
    results = run_sweep([run for arm in arms for run in arm.runs], out, workers=workers, progress=progress)
    table = compare_arms(results, arms)
    figure, description = figures.figure_comparison(table), figures.comparison_alt_text(table)
    return table, figures.save_figure(figure, out, COMPARISON, data=table, description=description)


def readings(
    plan: Mapping[str, Sequence[RunConfig]],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    progress: bool = True,
) -> tuple["DataFrame", list[Path]]:
    """The table of readings; arguments, returns and errors as `compare`, with the rows of `readings_table`.

    Args:
        plan: The runs of each reading, see `fgrpo.simulate.readings.readings_sweep`.
        out: Results folder; finished runs in it are reused.
        workers: Processes; None for one per core.
        progress: Whether to show a progress bar, if stderr is a terminal.
    """
    results = run_sweep([run for runs in plan.values() for run in runs], out, workers=workers, progress=progress)
    table = readings_table(results, plan)
    figure, description = figures.figure_readings(table), figures.readings_alt_text(table)
    return table, figures.save_figure(figure, out, READINGS, data=table, description=description)


def zone(out: str | os.PathLike[str], steps: Sequence[int]) -> tuple["DataFrame", list[Path]]:
    """The collapse zone of the sweep that lies in `out`, after each of these numbers of updates.

    Returns:
        The rows of `zone_table`, and the paths of the files written.

    Raises:
        ValueError: If the folder holds no sweep, a step was not recorded, or there are fewer than two seeds.
        OSError: If a file cannot be written.
    """
    table = zone_table(load_results(out), steps)
    figure, description = figures.figure_zone(table), figures.zone_alt_text(table)
    return table, figures.save_figure(figure, out, ZONE, data=table, description=description)
