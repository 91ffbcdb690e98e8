"""Rows out of CSV and JSONL text, and how an error message quotes what it found; shared by the readers of files."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]

csv.field_size_limit(2**31 - 1)  # Python's own limit, 131,072, is less than a long completion


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
        raise ValueError(f"{place} must be a JSON object, got {short(text.strip())}: write one object per {one_per}")
    return value


def short(text: str) -> str:
    """The start of a text as a literal: one line, whatever it contains."""
    return repr(cut(text))


def cut(text: str) -> str:
    """The start of a text, 60 characters at most."""
    return text if len(text) <= 60 else text[:57] + "..."
