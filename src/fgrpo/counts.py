"""The one reader of per-prompt count files: how many samples each prompt had, and how many of them were correct."""

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fgrpo.llm.records import Row, cut, literal, read_records

COLUMN_NAMES = {
    "prompt": ("prompt", "prompt_id", "id", "problem_id"),
    "samples": ("samples", "n"),
    "correct": ("correct", "successes", "c"),
}
"""The names under which a file may hold each column."""

_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")
_LARGEST = 2**53  # the largest count that all of float64 arithmetic keeps exact


def read_counts(path: str | PathLike[str]) -> pd.DataFrame:
    """Read per-prompt counts from a CSV, JSONL, JSON or parquet file, by its suffix.

    CSV has a header line; JSONL one object a line; JSON one array of objects. Column names: `samples` or `n`;
    `correct`, `successes` or `c`; `prompt`, `prompt_id`, `id` or `problem_id` (may be absent). Other columns are
    ignored. Whole numbers may be written 8 or 8.0.

    Args:
        path: The file: .csv, .jsonl, .json or .parquet.

    Returns:
        A row per prompt in the file's order: prompt (str; the row number, from 1, if the file has none), samples
        (int64, >= 1) and correct (int64, 0 to samples).

    Raises:
        ValueError: One line that names the file and, where it applies, the row (from 1, without the header): file
            missing, suffix unknown, file empty or damaged, column missing or ambiguous, count missing or not whole or
            out of range, correct above samples, prompt missing or repeated.

    Source: this project.
    """
    rows, found = read_records(path, "counts", only=[name for names in COLUMN_NAMES.values() for name in names])
    try:
        return _table(rows, _columns(found))
    except ValueError as error:
        raise ValueError(f"{str(Path(path))!r}: {error}") from None


def _columns(found: Sequence[str]) -> dict[str, str]:
    """The file's name of each column that it has."""
    columns = {}
    for column, names in COLUMN_NAMES.items():
        present = [name for name in found if name in names]
        if len(present) > 1:
            raise ValueError(f"{column} must be one column, got {', '.join(present)}: keep one of them")
        if present:
            columns[column] = present[0]
        elif column != "prompt" and found:
            listed = ", ".join(map(literal, found))
            raise ValueError(f"{column} must be a column, got {listed}: {_hint(found, names)}")
    return columns


def _hint(found: Sequence[str], names: Sequence[str]) -> str:
    """What most likely keeps a column from being found: another separator, capitals, or its name."""
    if len(found) == 1 and (separator := re.search(r"[;\t|]", found[0])):
        return f"separate the columns by commas, not by {literal(separator[0])}"
    if capitalised := [name for name in found if name.strip().lower() in names]:
        return f"write {literal(capitalised[0])} as {capitalised[0].strip().lower()}"
    return f"name it {' or '.join(names)}"


def _table(rows: Sequence[Row], columns: Mapping[str, str]) -> pd.DataFrame:
    if not rows:
        raise ValueError("content must have at least one row, got none: write one row per prompt")
    prompts: dict[str, int] = {}
    samples, correct = [], []
    for number, row in enumerate(rows, 1):
        prompt = _prompt(row.get(columns["prompt"]), number) if "prompt" in columns else str(number)
        if prompt in prompts:
            raise ValueError(
                f"prompt in row {number} must be new, got {literal(prompt)} of row {prompts[prompt]}: add their counts"
            )
        prompts[prompt] = number
        samples.append(_whole(row.get(columns["samples"]), f"samples in row {number}", 1))
        correct.append(_whole(row.get(columns["correct"]), f"correct in row {number}", 0))
        if correct[-1] > samples[-1]:
            raise ValueError(
                f"correct in row {number} must be at most samples, got {correct[-1]} > {samples[-1]}: check the columns"
            )
    return pd.DataFrame(
        {"prompt": list(prompts), "samples": np.array(samples, np.int64), "correct": np.array(correct, np.int64)}
    )


def _prompt(value: Any, number: int) -> str:
    if value is None or value == "" or value != value:  # nan alone differs from itself
        raise ValueError(
            f"prompt in row {number} must be an identifier, got {cut(repr(value))}: name it, or drop the column"
        )
    return str(value)


def _whole(value: Any, place: str, minimum: int) -> int:
    """A count out of a cell: an int, a float or a text that is a whole number; no bool."""
    count = None
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        count = int(value.partition(".")[0])
    elif (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer()):
        count = int(value)
    if count is None or not minimum <= count <= _LARGEST:
        got = literal(value) if isinstance(value, str) else cut(repr(value))
        raise ValueError(f"{place} must be a whole number of at least {minimum}, got {got}: count samples, not shares")
    return count
