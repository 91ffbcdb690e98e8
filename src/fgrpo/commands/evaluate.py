"""Commands that judge models: fgrpo evaluate run, table, compare."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fgrpo.commands.options import (
    BackendChoice,
    BatchSize,
    Data,
    Dtype,
    Json,
    Level,
    MaxNewTokens,
    Out,
    Overwrite,
    Quiet,
    Reward,
    Samples,
    Seed,
    Temperature,
    TopP,
    list_of,
)

if TYPE_CHECKING:
    from fgrpo.evaluation import Counts

app = typer.Typer(help="Judge models: sample and count, tables of pass@k, comparisons.", rich_markup_mode=None)

Tries = Annotated[str, typer.Option("--k", metavar="K,K,...", help="Tries of pass@k, comma-separated.")]
Interval = Annotated[
    str | None,
    typer.Option(
        "--interval", metavar="NAME", help="over_problems (default), within_problems (2 k <= n), single_problem."
    ),
]
SelectBest = Annotated[
    str | None,
    typer.Option(
        "--select-best", metavar="RUN", help="Baseline: its best checkpoint, and others' best at no more compute."
    ),
]
Runs = Annotated[
    str | None,
    typer.Option("--runs", metavar="NAME,...", help="The run of each model; default: the folder of a checkpoint."),
]
Compute = Annotated[
    str | None,
    typer.Option("--compute", metavar="C,...", help="Compute of each model; default: its step in trainer_state.json."),
]


@app.callback(invoke_without_command=True)
def _evaluate(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def run(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders, or names on the hub.")],
    data: Data,
    samples: Samples,
    k: Tries = "1",
    reward: Reward = "math",
    out: Out = Path("results"),
    temperature: Temperature = 1.0,
    top_p: TopP = 1.0,
    max_new_tokens: MaxNewTokens = 1024,
    backend: BackendChoice = "transformers",
    batch_size: BatchSize = 64,
    dtype: Dtype = "auto",
    seed: Seed = 0,
    interval: Interval = None,
    level: Level = 0.95,
    select: SelectBest = None,
    runs: Runs = None,
    compute: Compute = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Sample models on problems, verify, store counts per problem, and print pass@k with intervals.

    An interrupted run goes on where it was; what is finished is reused. Needs the extra llm.

    Example: fgrpo evaluate run runs/a/checkpoint-100 runs/a/checkpoint-200 --data aime.jsonl --samples 64 --k 1,8,32
    """
    tries = list_of(int, "--k", k)
    if max(tries) > samples:
        raise ValueError(f"--k must be at most --samples, got {max(tries)} > {samples}: draw more, or ask for less")
    say = say_unless(quiet)
    with language_models(say):
        from fgrpo.evaluation_run import evaluate_models
        from fgrpo.llm.evaluation.backends import SamplingSettings

        settings = SamplingSettings(max_new_tokens, temperature, top_p, batch_size, seed, dtype)
        paths = evaluate_models(
            models,
            data,
            samples,
            out=out,
            reward=reward,
            settings=settings,
            backend=backend,  # type: ignore[arg-type]  # checked there
            overwrite=overwrite,
            progress=not quiet,
            write=say_always,
        )
    for path in paths:
        say(f"counts: {path}")
    _print_table(paths, tries, level, interval, select, runs, compute, as_json)


@app.command()
def table(
    counts: Annotated[
        list[Path], typer.Argument(metavar="COUNTS...", help="Counts per problem: CSV, JSONL, JSON or parquet.")
    ],
    k: Tries = "1",
    interval: Interval = None,
    level: Level = 0.95,
    select: SelectBest = None,
    runs: Runs = None,
    compute: Compute = None,
    as_json: Json = False,
) -> None:
    """Pass@k with intervals from counts alone: columns prompt, samples (n) and correct (c).

    Example: fgrpo evaluate table base.csv trained.csv --k 1,8,64
    """
    _print_table(counts, list_of(int, "--k", k), level, interval, select, runs, compute, as_json)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Counts of one model.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Counts of the other.")],
    k: Tries = "1",
    subsample: Annotated[
        int | None, typer.Option("--subsample", metavar="m", help="Samples drawn per iteration; default: n/4.")
    ] = None,
    variant: Annotated[
        str, typer.Option("--variant", metavar="NAME", help="raw (the paper), rescaled, finite_population.")
    ] = "raw",
    correction: Annotated[
        str, typer.Option("--correction", metavar="NAME", help="Over the values of k: holm or none.")
    ] = "holm",
    common: Annotated[bool, typer.Option("--common", help="Leave out problems that only one file has.")] = False,
    iterations: Annotated[int, typer.Option("--iterations", metavar="K", help="Draws of the test.")] = 50_000,
    level: Level = 0.95,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare two models on the same problems by the paired subsampling test, from counts alone.

    Example: fgrpo evaluate compare focal.parquet grpo.parquet --k 1,256 --subsample 256
    """
    from fgrpo.evaluation import compare as run_test
    from fgrpo.evaluation import load_counts
    from fgrpo.evaluation_text import comparison_text

    comparison = run_test(
        load_counts(a),
        load_counts(b),
        list_of(int, "--k", k),
        subsample=subsample,
        variant=variant,  # type: ignore[arg-type]  # checked there
        correction=correction,  # type: ignore[arg-type]
        common=common,
        iterations=iterations,
        level=level,
        seed=seed,
    )
    if a.resolve() == b.resolve():
        say_always(f"warning: A and B are one file, {a}: nothing is compared")
    if comparison.only_a or comparison.only_b:
        say_always(
            f"warning: {comparison.only_a} problems only in A and {comparison.only_b} only in B are left out of the "
            "comparison"
        )
    print(json.dumps(asdict(comparison), indent=2) if as_json else comparison_text(comparison))


def _print_table(
    paths: list[Path],
    k: list[int],
    level: float,
    interval: str | None,
    select: str | None,
    runs: str | None,
    compute: str | None,
    as_json: bool,
) -> None:
    from fgrpo.evaluation import load_counts, pass_row, regrouped, select_best, to_json
    from fgrpo.evaluation_text import table_text, table_warnings

    counts: list[Counts] = regrouped(
        [load_counts(path) for path in paths],
        runs=None if runs is None else runs.split(","),
        compute=None if compute is None else list_of(float, "--compute", compute),
    )
    rows = [pass_row(one, k, level=level, interval=interval) for one in counts]  # type: ignore[arg-type]
    selected = None if select is None else select_best(counts, select)
    for line in table_warnings(paths, counts):  # where nothing is wrong: an error is one line
        say_always(f"warning: {line}")
    print(json.dumps(to_json(rows, selected), indent=2) if as_json else table_text(rows, selected))


def say_always(line: str) -> None:
    """A line beside what the command prints, for a person."""
    print(line, file=sys.stderr, flush=True)


def say_unless(quiet: bool) -> Any:
    """Where lines about progress go."""
    return (lambda line: None) if quiet else say_always


def language_models(say: Any) -> Any:
    """The context for commands that load language models: other libraries are quiet; the extra llm must be there."""
    try:
        from fgrpo.llm.quiet import quiet
    except ModuleNotFoundError as error:
        from fgrpo.theory._validation import install

        raise ValueError(
            f"sampling and scoring models needs the extra llm, got no module {error.name}: {install('llm')}"
        ) from None
    return quiet(say)
