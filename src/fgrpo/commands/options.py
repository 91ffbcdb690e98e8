"""Options that mean the same in every command, and lists as the command line writes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

Number = TypeVar("Number", int, float)

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for results; finished runs in it are reused.")]
Workers = Annotated[int | None, typer.Option("--workers", metavar="K", help="Processes; default: one per core.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no closing summary.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")]


def list_of(number: Callable[[str], Number], option: str, text: str) -> list[Number]:
    """Numbers separated by commas."""
    try:
        return [number(item) for item in text.split(",")]
    except ValueError:
        from fgrpo.theory._validation import shown

        kind = "whole numbers" if number is int else "numbers"
        raise ValueError(
            f"{option} must be {kind} separated by commas, got {shown(text)}: write for example 2,8,32"
        ) from None
