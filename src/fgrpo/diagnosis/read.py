"""Finds out what a path holds: a run of TRL, a folder of plain files, or one file."""

from os import PathLike
from pathlib import Path

from fgrpo.diagnosis.columns import Reading
from fgrpo.diagnosis.elsewhere import refuse_folder, refuse_missing, refuse_sweep, run_around
from fgrpo.diagnosis.rollouts import Rollouts
from fgrpo.diagnosis.row_files import SUFFIXES, read_rows
from fgrpo.diagnosis.trl_folder import TABLES, is_trl_table, read_trl


def read_rollouts(path: str | PathLike[str], reading: Reading | None = None) -> Rollouts:
    """Rollouts of a run, in groups.

    Args:
        path: A run folder of TRL (with completions/completions_*.parquet), its folder of completions, one such table;
            or a JSONL, CSV or parquet file with a row per rollout, or a folder of such files.
        reading: What is to be taken as what; the defaults if omitted.

    Returns:
        The rollouts, with what was noted while reading.

    Raises:
        ValueError: One line that says what is wrong with the path, a column, a cell or the grouping.

    Source: this project.
    """
    place, wanted = Path(path), reading or Reading()
    if "\0" in str(place) or not place.exists():
        refuse_missing(place)
    if place.is_file():
        if place.suffix.lower() not in SUFFIXES:
            run = run_around(place)
            way = "convert it to one of them" if run is None else f"pass the folder of its run, {str(run)!r}"
            raise ValueError(f"a file of rollouts must end in {', '.join(SUFFIXES)}, got {str(place)!r}: {way}")
        if place.suffix.lower() == ".parquet" and is_trl_table(place):
            return read_trl([place], _run_of(place.parent), wanted)
        return read_rows([place], wanted)
    for folder in (place / "completions", place):
        if tables := sorted(folder.glob(TABLES)):
            return read_trl(tables, _run_of(folder), wanted)
    refuse_sweep(place)
    for suffix in SUFFIXES:
        if files := sorted(file for file in place.glob(f"*{suffix}") if file.is_file()):
            return read_rows(files, wanted)
    refuse_folder(place)


def _run_of(tables: Path) -> Path:
    """The run's folder, given that of its tables: the one above a folder named completions."""
    return tables.parent if tables.name == "completions" else tables
