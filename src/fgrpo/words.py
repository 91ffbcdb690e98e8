"""Paragraphs, tables and numbers as the texts of the command line show them, and dataclasses as JSON has them."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, isnan
from textwrap import fill
from typing import Any

WIDTH = 100
"""Columns at which texts are legible."""

_LONGEST_NAME = 36
_LONGEST_WHOLE = 10**12


def words(text: str, indent: str = "") -> str:
    """A paragraph of lines of at most `WIDTH` characters."""
    return fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def name(prompt: str) -> str:
    """A prompt's name on one line, cut where it is long."""
    line = " ".join(prompt.split())
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 3] + "..."


def short(value: float) -> str:
    """A number to four digits, whole ones in full; '-' for nan."""
    if isnan(value):
        return "-"
    return str(value) if isinstance(value, int) and value < _LONGEST_WHOLE else f"{value:.4g}"


def percent(share: float) -> str:
    """A share in per cent; '-' for nan."""
    return "-" if isnan(share) else f"{share:.1%}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, indent: str = "  ", left: int = 0) -> list[str]:
    """Lines of a table whose columns are flush right, but for the first `left` ones."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = ["<" if i < left else ">" for i in range(len(widths))]
    columns = list(zip(sides, widths, strict=True))
    return [
        indent + "  ".join(f"{cell:{side}{width}}" for cell, (side, width) in zip(line, columns, strict=True))
        for line in lines
    ]


def plain(value: Any) -> Any:
    """Nested dicts, tuples and lists as dicts and lists for JSON: None for numbers that are infinite or undefined."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
