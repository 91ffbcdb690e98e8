"""Commands about the paper as a whole: reproduce, claims."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fgrpo.commands.options import Json, Quiet, Workers


def reproduce(
    quick: Annotated[
        bool, typer.Option("--quick", help="A reduced action space: two minutes, the same three regimes.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Results folder; default: results, with --quick results/quick."),
    ] = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Run the sweep of Figure 4, draw Figures 2, 4 and 5 and write report.md.

    Finished runs are kept and reused: a broken-off call goes on where it was. Example: fgrpo reproduce --quick
    """
    from fgrpo.reproduce import reproduce as run

    folder = out or Path("results/quick" if quick else "results")
    written = run(folder, quick=quick, workers=workers, progress=not quiet)
    if not quiet:
        print("\n".join(str(path) for path in written))


def claims(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Claims to judge, such as A3; default: all.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File to write, e.g. docs/claims.md; default: stdout.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="Folder of `fgrpo reproduce`; default: results.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge every checkable claim of the paper: verdict, evidence computed now, sharpened statement.

    Without IDs the whole ledger as a Markdown page. Claims about runs of the simulation need the results of
    `fgrpo reproduce`.

    Example: fgrpo claims A3 D10
    """
    from fgrpo.claims.evidence import stored_evidence
    from fgrpo.claims.ledger import claims_ledger, entry_text, ledger_json, ledger_markdown
    from fgrpo.simulate.files import write_atomically

    if results is not None and not results.is_dir():
        raise ValueError(
            f"--results must be a results folder, got {results}: run `fgrpo reproduce --out {results}` first"
        )
    folder = results or Path("results")
    evidence = stored_evidence(folder)
    entries = claims_ledger(evidence, [id.upper() for id in ids or ()])
    if as_json:
        text = ledger_json(entries)
    elif ids:
        text = "\n".join(map(entry_text, entries))
    else:
        text = ledger_markdown(entries, evidence)
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, text.encode())
    if undetermined := [entry.claim.id for entry in entries if entry.needs_runs]:
        print(
            f"fgrpo: {', '.join(undetermined)} undetermined: {folder} lacks results of `fgrpo reproduce` (--results)",
            file=sys.stderr,
        )
