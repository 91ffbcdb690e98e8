"""The one reader of per-prompt count files: how many samples each prompt had, and how many of them were correct."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fgrpo.rows import Row, csv_rows, cut, json_object, short

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
    file = Path(path)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise ValueError(f"counts file must end in {', '.join(_READERS)}, got {str(file)!r}: convert it to one of them")
    if "\0" in str(file) or not file.is_file():
        raise ValueError(f"counts file must exist, got {str(file)!r}: check the path")
    try:
        rows, found = reader(file)
        return _table(rows, _columns(found))
    except UnicodeDecodeError:
        raise ValueError(f"counts file must be UTF-8 text, got {str(file)!r}: convert its encoding") from None
    except OSError as error:
        raise ValueError(f"counts file must be readable, got {str(file)!r}: {error.strerror}") from None
    except RecursionError:
        raise ValueError(
            f"{str(file)!r}: content must be flat, got JSON nested too deeply: write plain counts"
        ) from None
    except ValueError as error:
        raise ValueError(f"{str(file)!r}: {error}") from None


def _read_csv(file: Path) -> tuple[list[Row], list[str]]:
    with file.open(newline="", encoding="utf-8-sig") as stream:
        header, rows = csv_rows(stream)
        return list(rows), header


def _read_jsonl(file: Path) -> tuple[list[Row], list[str]]:
    with file.open(encoding="utf-8-sig") as stream:
        rows = [json_object(text, f"line {number}", "prompt") for number, text in enumerate(stream, 1) if text.strip()]
    return rows, _keys(rows)


def _read_json(file: Path) -> tuple[list[Row], list[str]]:
    text = file.read_text(encoding="utf-8-sig")
    try:
        rows = json.loads(text) if text.strip() else []
    except json.JSONDecodeError as error:
        raise ValueError(
            f"line {error.lineno} must be JSON, got damage ({error.msg}): use .jsonl for one object a line"
        ) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"content must be one array of JSON objects, got {short(text.strip())}: one object per prompt")
    return rows, _keys(rows)


def _read_parquet(file: Path) -> tuple[list[Row], list[str]]:
    try:
        with pq.ParquetFile(file) as parquet:
            found = parquet.schema_arrow.names
            wanted = [name for name in found if any(name in names for names in COLUMN_NAMES.values())]
            return parquet.read(columns=wanted).to_pylist(), found
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"content must be parquet, got damage ({short(str(error))}): write it again") from None


_READERS: dict[str, Callable[[Path], tuple[list[Row], list[str]]]] = {
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".parquet": _read_parquet,
}


def _keys(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


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
            listed = ", ".join(map(short, found))
            raise ValueError(f"{column} must be a column, got {listed}: name it {' or '.join(names)}")
    return columns


def _table(rows: Sequence[Row], columns: Mapping[str, str]) -> pd.DataFrame:
    if not rows:
        raise ValueError("content must have at least one row, got none: write one row per prompt")
    prompts: dict[str, int] = {}
    samples, correct = [], []
    for number, row in enumerate(rows, 1):
        prompt = _prompt(row.get(columns["prompt"]), number) if "prompt" in columns else str(number)
        if prompt in prompts:
            raise ValueError(
                f"prompt in row {number} must be new, got {short(prompt)} of row {prompts[prompt]}: add their counts"
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
        got = short(value) if isinstance(value, str) else cut(repr(value))
        raise ValueError(f"{place} must be a whole number of at least {minimum}, got {got}: count samples, not shares")
    return count
