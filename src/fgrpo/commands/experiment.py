"""Experiments with language models: fgrpo experiment tiny-world."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fgrpo.commands.options import Json, Out, Quiet, Workers

app = typer.Typer(help="Experiments with language models, measured exactly.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def _experiment(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def tiny_world(
    seeds: Annotated[int, typer.Option("--seeds", metavar="K", help="Number of seeds, from 0 on.")] = 5,
    arms: Annotated[str, typer.Option("--arms", metavar="NAMES", help="core, all, or names with commas.")] = "core",
    steps: Annotated[int, typer.Option("--steps", metavar="T", help="Updates of every run.")] = 150,
    out: Out = Path("results/tiny_world"),
    workers: Workers = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Do finished runs again.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a language model whose every answer can be scored, with and without focal weights; report what is kept.

    Finished runs are kept and reused: a broken-off call goes on where it was.
    Example: fgrpo experiment tiny-world --seeds 2 --arms grpo_n8,focal_g1_n8 --steps 50
    """
    from fgrpo.experiment_jobs import run_experiment
    from fgrpo.experiment_report import NUMBERS, write_report
    from fgrpo.llm.experiment.arms import select_arms
    from fgrpo.llm.experiment.protocol import Protocol

    chosen, protocol = select_arms(arms), Protocol(seeds=seeds, steps=steps)
    runs = run_experiment(
        chosen, protocol, out, workers=workers, overwrite=overwrite, write=_nothing if quiet else _progress
    )
    written = write_report(runs, protocol, out)
    if as_json:
        print((out / NUMBERS).read_text(encoding="utf-8"), end="")
    elif not quiet:
        print("\n".join(map(str, written)))


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _nothing(line: str) -> None:
    """Where progress goes with --quiet."""
