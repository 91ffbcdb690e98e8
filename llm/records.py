"""The one reader of tables in files: rows of CSV, JSONL, JSON or parquet; a fault is one line that names the file."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
Table = tuple[list[Row], list[str]]

csv.field_size_limit(2**31 - 1)  # Python's own limit, 131,072, is less than a long completion


def read_records(path: str | PathLike[str], kind: str, only: Iterable[str] | None = None) -> Table:
    """Read the rows of a file by its suffix.

    CSV has a header line; JSONL one object a line; JSON one array of objects. A CSV cell is text, other cells keep
    their type.

    Args:
        path: The file: .csv, .jsonl, .json or .parquet, whatever the case of the suffix.
        kind: What the file holds, for the messages: `counts`, `data`.
        only: Columns that the caller has a use for; a parquet file's other columns are not read. None: all.

    Returns:
        The rows in the file's order, and the names of all of the file's columns.

    Raises:
        ValueError: One line that names the file and, where it applies, the line: file missing or unreadable or a
            folder, suffix unknown, damaged, not UTF-8, nested too deeply. A file without rows is no fault here.

    Source: this project.
    """
    file = Path(path)
    reader = _READERS.get(file.suffix.lower())
    if "\0" not in str(file) and file.is_dir():
        raise ValueError(f"{kind} file must be one file, got the folder {str(file)!r}: name a file in it")
    if reader is None:
        raise ValueError(f"{kind} file must end in {', '.join(_READERS)}, got {str(file)!r}: convert it to one of them")
    if "\0" in str(file) or not file.is_file():
        raise ValueError(f"{kind} file must exist, got {str(file)!r}: check the path")
    try:
        return reader(file, None if only is None else frozenset(only))
    except UnicodeDecodeError:
        raise ValueError(f"{kind} file must be UTF-8 text, got {str(file)!r}: convert its encoding") from None
    except OSError as error:
        raise ValueError(f"{kind} file must be readable, got {str(file)!r}: {error.strerror}") from None
    except RecursionError:
        raise ValueError(f"{str(file)!r}: content must be flat, got JSON nested too deeply: write plain rows") from None
    except ValueError as error:
        raise ValueError(f"{str(file)!r}: {error}") from None


def csv_rows(lines: Iterable[str]) -> tuple[list[str], Iterator[Row]]:
    """Header and rows of a CSV text; cells are stripped, empty lines left out.

    Raises:
        ValueError: If quotes are damaged, or (while iterating) a row is not as long as the header.

    Source: this project.
    """
    cells_of = csv.reader(lines, strict=True, skipinitialspace=True)
    try:
        header = [name.strip() for name in next(cells_of, [])]
    except csv.Error as error:
        raise _damaged_csv(cells_of.line_num, error) from None

    def rows() -> Iterator[Row]:
        try:
            for cells in cells_of:
                if cells and len(cells) != len(header):
                    raise ValueError(
                        f"line {cells_of.line_num} must have {len(header)} cells like the header, got {len(cells)}: "
                        "quote cells that contain commas"
                    )
                if cells:
                    yield dict(zip(header, (cell.strip() for cell in cells), strict=True))
        except csv.Error as error:
            raise _damaged_csv(cells_of.line_num, error) from None

    return header, rows()


def _damaged_csv(line: int, error: csv.Error) -> ValueError:
    return ValueError(f"line {line} must be CSV, got damage ({error}): repair the quotes")


def json_object(text: str, place: str, one_per: str) -> Row:
    """The JSON object in a text.

    Raises:
        ValueError: If it is no JSON object; the line names the place and says to write one object per `one_per`.

    Source: this project.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"{place} must be a JSON object, got {literal(text.strip())}: write one object per {one_per}")
    return value


def literal(text: str) -> str:
    """The start of a text as a literal: one line, whatever it contains."""
    return repr(cut(text))


def cut(text: str) -> str:
    """A text of at most 60 characters."""
    return text if len(text) <= 60 else text[:57] + "..."


def _read_csv(file: Path, only: frozenset[str] | None) -> Table:
    with file.open(newline="", encoding="utf-8-sig") as stream:
        header, rows = csv_rows(stream)
        return list(rows), header


def _read_jsonl(file: Path, only: frozenset[str] | None) -> Table:
    with file.open(encoding="utf-8-sig") as stream:
        rows = [json_object(text, f"line {number}", "prompt") for number, text in enumerate(stream, 1) if text.strip()]
    return rows, _keys(rows)


def _read_json(file: Path, only: frozenset[str] | None) -> Table:
    text = file.read_text(encoding="utf-8-sig")
    try:
        rows = json.loads(text) if text.strip() else []
    except json.JSONDecodeError as error:
        raise ValueError(
            f"line {error.lineno} must be JSON, got damage ({error.msg}): use .jsonl for one object a line"
        ) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(
            f"content must be one array of JSON objects, got {literal(text.strip())}: one object per prompt"
        )
    return rows, _keys(rows)


def _read_parquet(file: Path, only: frozenset[str] | None) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as parquet:
            found = parquet.schema_arrow.names
            return parquet.read(columns=[name for name in found if only is None or name in only]).to_pylist(), found
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"content must be parquet, got damage ({literal(str(error))}): write it again") from None


_READERS: dict[str, Callable[[Path, frozenset[str] | None], Table]] = {
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".parquet": _read_parquet,
}


SUFFIXES = tuple(_READERS)
"""What the name of a file that can be read ends in, in lower case."""


def _keys(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))
