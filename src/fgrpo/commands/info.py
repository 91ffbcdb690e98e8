"""Commands about the toolkit itself: doctor, cite."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fgrpo.commands.options import Json, Out

NOT_WHOLE = 1


def doctor(out: Out = Path("results"), as_json: Json = False) -> None:
    """Say what will work here: versions, extras, devices, disk; exit code 1 if the core installation is not whole.

    Judged by what is installed and of which version; only a GPU is really asked. Example: fgrpo doctor --json
    """
    from fgrpo.doctor import examine, health_text

    health = examine(out)
    print(json.dumps(health.to_dict(), indent=2) if as_json else health_text(health))
    if not health.works:
        raise typer.Exit(NOT_WHOLE)


def cite(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="Keys as in docstrings; default: this project and the paper."),
    ] = None,
) -> None:
    """Print BibTeX: of this project and the paper, or of any source that the code names by its key.

    Example: fgrpo cite holm1979stepdown
    """
    from fgrpo.citation import cite as run

    print(run(keys or ()))
