"""The command line. Commands import what they need when they run, so that `fgrpo --help` stays fast.

Every failure that a user can cause is one line on stderr and exit code 2: the rule, the value received, the way out.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.exceptions import TyperException

from fgrpo.figure_number import FigureNumber

Number = TypeVar("Number", int, float)

PROOF_FAILED = 1
USER_ERROR = 2
INTERRUPTED = 130  # what typer returns for Ctrl-C
NO_READER = 141  # what a shell reports of a process that writes to a closed pipe
TRACEBACK = "FGRPO_TRACEBACK"  # environment variable: 1 raises errors instead, to see where one comes from

app = typer.Typer(
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for results; finished runs in it are reused.")]
Workers = Annotated[int | None, typer.Option("--workers", metavar="K", help="Processes; default: one per core.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no closing summary.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        import fgrpo

        print(f"fgrpo {fgrpo.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What group-relative RL with verifiable rewards does to rare correct answers: theory, simulation, figures."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
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


@app.command()
def figure(
    number: Annotated[FigureNumber, typer.Argument(help="Number of the figure in version 1 of the paper.")],
    out: Out = Path("results"),
) -> None:
    """Draw one figure: PNG, PDF and the drawn data. Figure 4 reads the results stored in --out.

    Example: fgrpo figure 2 --out results
    """
    from fgrpo.reproduce import draw_figure

    print("\n".join(str(path) for path in draw_figure(number, out)))


@app.command("tail-miss")
def tail_miss(
    success_rate: Annotated[float, typer.Option("--success-rate", metavar="MU", help="mu, in [0, 1].")],
    rare_mass: Annotated[float, typer.Option("--rare-mass", metavar="TAU", help="tau, in [0, mu].")],
    group_size: Annotated[
        str, typer.Option("--group-size", metavar="N,N,...", help="Group sizes, comma-separated.")
    ] = "2,4,8,16,32,64,128",
    as_json: Json = False,
) -> None:
    """Probability that a group is active and misses the rare-correct region (Lemma 3.1), by group size.

    Example: fgrpo tail-miss --success-rate 0.3 --rare-mass 0.03 --group-size 2,8,32
    """
    from fgrpo.theory import active_probability, peak_group_size, tail_miss_probability

    sizes = _list_of(int, "--group-size", group_size)
    active = active_probability(success_rate, sizes)
    miss = tail_miss_probability(success_rate, rare_mass, sizes)
    peak = float(peak_group_size(success_rate, rare_mass))
    if as_json:
        rows = [
            {"group_size": n, "active_probability": a, "tail_miss_probability": b}
            for n, a, b in zip(sizes, active.tolist(), miss.tolist(), strict=True)
        ]
        finite_peak = int(peak) if math.isfinite(peak) else None
        print(json.dumps({"peak_group_size": finite_peak, "rows": rows}, indent=2))
        return
    print(f"{'N':>10}  {'Pr(active)':>12}  {'Pr(tail miss)':>13}")
    for n, a, b in zip(sizes, active, miss, strict=True):
        print(f"{n:>10}  {a:>12.6g}  {b:>13.6g}")
    if math.isnan(peak):
        print("no group size has a tail miss")
    elif math.isinf(peak):
        print("a region of no mass is always missed: tail misses are the active groups and rise with N")
    else:
        print(f"most tail misses per step at N = {peak:.0f}")


@app.command()
def advise(
    success_rate: Annotated[
        float | None, typer.Option("--success-rate", metavar="MU", help="mu of one prompt, in [0, 1].")
    ] = None,
    rare_mass: Annotated[
        float | None, typer.Option("--rare-mass", metavar="TAU", help="Assumed tau of that prompt, in [0, mu].")
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option("--counts", metavar="FILE", help="Samples and correct per prompt: CSV, JSONL, JSON or parquet."),
    ] = None,
    rare_fraction: Annotated[
        float | None, typer.Option("--rare-fraction", metavar="RHO", help="Assumed tau / mu; needed with --counts.")
    ] = None,
    group_size: Annotated[int, typer.Option("--group-size", metavar="N", help="Rollouts per prompt.")] = 8,
    rollouts_per_step: Annotated[
        int | None, typer.Option("--rollouts-per-step", metavar="R", help="A multiple of N: compares budgets.")
    ] = None,
    gamma: Annotated[
        float | None, typer.Option("--gamma", metavar="G", help="Focal exponent: says what it changes.")
    ] = None,
    level: Annotated[
        float, typer.Option("--level", metavar="P", help="Tail-miss probability that counts as risky.")
    ] = 0.5,
    as_json: Json = False,
) -> None:
    """Say in words where a group size stands: inactive, miss-prone or covered, and what a focal weight changes.

    The rare mass is an assumption. With --counts it is --rare-fraction times each prompt's estimated success rate.

    Example: fgrpo advise --success-rate 0.3 --rare-mass 0.03 --group-size 8 --rollouts-per-step 512 --gamma 1
    """
    from fgrpo.advice import advise as run
    from fgrpo.advice_text import advice_text
    from fgrpo.counts import read_counts

    advice = run(
        success_rate=success_rate,
        rare_mass=rare_mass,
        counts=None if counts is None else read_counts(counts),
        rare_fraction=rare_fraction,
        group_size=group_size,
        rollouts_per_step=rollouts_per_step,
        gamma=gamma,
        level=level,
    )
    print(json.dumps(advice.to_dict(), indent=2, allow_nan=False) if as_json else advice_text(advice))


@app.command()
def prove(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Proofs; default: all.")] = None,
    as_json: Json = False,
) -> None:
    """Run the proofs of the theory with sympy; exit code 1 if one fails.

    Example: fgrpo prove lemma_3_1 log_concavity
    """
    from fgrpo.theory._validation import one_of
    from fgrpo.theory.proofs import PROOFS, verify

    reports = []
    for name in [one_of("name", name, tuple(PROOFS)) for name in names or PROOFS]:
        report = verify(name)
        reports.append(report)
        if not as_json:
            print(report, *(f"  not established: {step.text}" for step in report.failed), sep="\n", flush=True)
    if as_json:
        rows = [
            {
                "name": report.name,
                "ok": report.ok,
                "checked": report.checked,
                "on_lemmas": report.on_lemmas,
                "seconds": report.seconds,
                "steps": [asdict(step) for step in report.steps],
            }
            for report in reports
        ]
        print(json.dumps(rows, indent=2))
    if not all(report.ok for report in reports):
        raise typer.Exit(PROOF_FAILED)


@app.command()
def claims(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File to write, e.g. docs/claims.md; default: stdout.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="Folder of `fgrpo reproduce`; default: results.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge every checkable claim of the paper: verdict, evidence computed now, sharpened statement.

    Claims about runs of the simulation need the results of `fgrpo reproduce`. Example: fgrpo claims --results results
    """
    from fgrpo.claims.evidence import stored_evidence
    from fgrpo.claims.ledger import claims_ledger, ledger_json, ledger_markdown
    from fgrpo.simulate.files import write_atomically

    if results is not None and not results.is_dir():
        raise ValueError(
            f"--results must be a results folder, got {results}: run `fgrpo reproduce --out {results}` first"
        )
    folder = results or Path("results")
    evidence = stored_evidence(folder)
    entries = claims_ledger(evidence)
    text = ledger_json(entries) if as_json else ledger_markdown(entries, evidence)
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, text.encode())
    if undetermined := [entry.claim.id for entry in entries if entry.needs_runs]:
        print(
            f"fgrpo: {', '.join(undetermined)} undetermined: {folder} lacks results of `fgrpo reproduce` (--results)",
            file=sys.stderr,
        )


def _list_of(number: Callable[[str], Number], option: str, text: str) -> list[Number]:
    try:
        return [number(item) for item in text.split(",")]
    except ValueError:
        from fgrpo.theory._validation import shown

        kind = "whole numbers" if number is int else "numbers"
        raise ValueError(
            f"{option} must be {kind} separated by commas, got {shown(text)}: write for example 2,8,32"
        ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments` (default: the process's own) and return the exit code."""
    try:
        result: Any = app(args=None if arguments is None else list(arguments), prog_name="fgrpo", standalone_mode=False)
        if result == INTERRUPTED:
            return _complain("interrupted: what was finished is kept, the same command goes on where it was")
        sys.stdout.flush()  # here, where a reader that has gone can be told from an error
        return result if isinstance(result, int) else 0
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # typer's own way to end where nobody reads on
            raise
        return NO_READER
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return NO_READER
    except TyperException as error:
        return _complain(error.format_message())
    except (ValueError, OSError) as error:
        if os.environ.get(TRACEBACK) == "1":
            raise
        if isinstance(error, ValueError):
            return _complain(str(error))
        file = f": {error.filename}" if error.filename else ""
        return _complain(f"{error.strerror or error}{file}")


def _complain(message: str) -> int:
    print(f"fgrpo: {' '.join(message.split())}", file=sys.stderr)
    return USER_ERROR
