"""Paths without rollouts: what they are instead, and where the rollouts are or which command reads them."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from fgrpo.counts import COLUMN_NAMES
from fgrpo.simulate.store import PLAN, SWEEP

COMPLETIONS = "completions"
_TABLES = f"{COMPLETIONS}/completions_*.parquet"
_RUN_LEVELS = 2  # run/checkpoint-100/file


def refuse_missing(place: Path) -> NoReturn:
    """Raise for a path that does not exist; the message has the nearest one that does.

    Raises:
        ValueError: Always.
    """
    way = "pass a run folder or a file of rollouts"
    if "\0" not in str(place):
        missing = next(part for part in (*reversed(place.parents), place) if not part.exists())
        names = [child.name for child in missing.parent.iterdir()] if missing.parent.is_dir() else []
        for near in get_close_matches(missing.name, names, n=1):
            guess = missing.parent / near / place.relative_to(missing)
            way = f"did you mean {str(guess)!r}?" if guess.exists() else way
    raise ValueError(f"the path must exist, got {str(place)!r}: {way}")


def refuse_sweep(folder: Path) -> None:
    """Raise if a folder is that of a simulated sweep.

    Raises:
        ValueError: If it is.
    """
    if (folder / PLAN).is_file() or (folder / SWEEP).is_file():
        raise ValueError(
            f"the folder must be that of a training run, got {str(folder)!r} of a simulated sweep: fgrpo sweep status "
            f"{folder} and fgrpo figure 4 --results {folder} read it"
        )


def refuse_other_tables(found: Sequence[str]) -> None:
    """Raise if a table's columns are those of something else that this toolkit writes or reads.

    Args:
        found: Names of the columns.

    Raises:
        ValueError: If it holds counts per prompt, or records of a simulated sweep.
    """
    samples, correct = ([name for name in found if name in COLUMN_NAMES[column]] for column in ("samples", "correct"))
    if samples and correct and "step" not in found:
        raise ValueError(
            f"the file must have a row per rollout, got counts per prompt ({samples[0]!r} and {correct[0]!r}): fgrpo "
            "evaluate table FILE, fgrpo advise --counts FILE and fgrpo figure regime --counts FILE read them"
        )
    if "run_id" in found and "retained_mass" in found:
        raise ValueError(
            "the file must have a row per rollout, got records of a simulated sweep: fgrpo sweep status DIR reads them "
            f"(DIR: the folder with {SWEEP})"
        )


def refuse_folder(folder: Path) -> NoReturn:
    """Raise for a folder without rollouts; the message says where they are, or how they come there.

    Raises:
        ValueError: Always.
    """
    runs = sorted(child for child in folder.iterdir() if child.is_dir() and any(child.glob(_TABLES)))
    if folder.name == COMPLETIONS or (folder / COMPLETIONS).is_dir():
        got = "without a table: the first is written at the first logging step (logging_steps), so wait for it"
    elif (run := run_around(folder)) is not None:
        got = f"inside a run: pass the run's folder, {str(run)!r}"
    elif runs:
        got = f"around {'runs: pass one of them, such as' if runs[1:] else 'a run: pass'} {str(runs[0])!r}"
    else:
        got = "without any: train with log_completions=True, or pass JSONL, CSV or parquet with a row per rollout"
    raise ValueError(f"a run's folder must hold {_TABLES}, got {str(folder)!r} {got}")


def run_around(place: Path) -> Path | None:
    """The run that a checkpoint or another part of it belongs to; None if there is none above."""
    return next((folder for folder in place.parents[:_RUN_LEVELS] if any(folder.glob(_TABLES))), None)
