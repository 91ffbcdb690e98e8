"""The command line. Commands import what they need when they run, so that `fgrpo --help` stays fast.

Every failure that a user can cause is one line on stderr and exit code 2: the rule, the value received, the way out.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from fgrpo.as_typed import as_typed, misuse
from fgrpo.commands import diagnose, evaluate, experiment, figure, info, paper, rare, studies, sweep, theory, train

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


def _show_version(wanted: bool) -> None:
    if wanted:
        import fgrpo

        print(f"fgrpo {fgrpo.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog="Example: fgrpo tail-miss --success-rate 0.3 --rare-mass 0.03")
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What group-relative RL with verifiable rewards does to rare correct answers: theory, simulation, figures."""
    if context.invoked_subcommand is None:
        print(context.get_help())


for command in (
    paper.reproduce,
    figure.figure,
    theory.tail_miss,
    theory.advise,
    theory.prove,
    paper.claims,
    diagnose.diagnose,
    info.doctor,
    info.cite,
):
    app.command()(command)
# whatever else follows is for TRL
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(train.train)
for study in (studies.compare, studies.readings, studies.zone):
    sweep.app.command()(study)
for group, name, example in (
    (sweep.app, "sweep", "run --group-size 2,8,32 --gamma 0,1 --seeds 4 --out results/small"),
    (evaluate.app, "evaluate", "table base.csv trained.csv --k 1,8,64"),
    (rare.app, "rare", "build runs/base --data train.jsonl --samples 800 --out probe.parquet"),
    (experiment.app, "experiment", "tiny-world --seeds 2 --arms grpo_n8,focal_g1_n8 --steps 50"),
):
    app.add_typer(group, name=name, epilog=f"Example: fgrpo {name} {example}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments` (default: the process's own) and return the exit code."""
    typed = sys.argv[1:] if arguments is None else list(arguments)
    try:
        result: Any = app(args=typed, prog_name="fgrpo", standalone_mode=False)
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
        return _complain(misuse(error, typed))
    except (ValueError, OSError) as error:
        if os.environ.get(TRACEBACK) == "1":
            raise
        if isinstance(error, ValueError):
            return _complain(as_typed(str(error), typer.main.get_command(app), typed))
        if isinstance(error, FileNotFoundError) and error.filename:
            return _complain(f"a file must exist, got {error.filename}, which does not: check the path")
        if error.filename:
            return _complain(f"a file must be readable and writable, got {error.filename} ({error.strerror}): check it")
        return _complain(error.strerror or str(error))


def _complain(message: str) -> int:
    print(f"fgrpo: {' '.join(message.split())}", file=sys.stderr)
    return USER_ERROR
