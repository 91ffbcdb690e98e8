"""Commands about the rare-correct probe: fgrpo rare build, score."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fgrpo.commands.evaluate import language_models, say_unless
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
)

app = typer.Typer(help="The rare-correct probe: build it from a base model, score others.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def _rare(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def build(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The base model: a folder, or a name on the hub.")],
    data: Data,
    samples: Samples,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The probe, a new .parquet file.")],
    top: Annotated[
        float, typer.Option("--top", metavar="P", help="Share of the correct completions that is the rare set.")
    ] = 0.01,
    reward: Reward = "math",
    temperature: Temperature = 1.0,
    top_p: TopP = 1.0,
    max_new_tokens: MaxNewTokens = 1024,
    backend: BackendChoice = "transformers",
    batch_size: BatchSize = 64,
    score_batch_size: Annotated[
        int, typer.Option("--score-batch-size", metavar="B", help="Completions scored at a time.")
    ] = 8,
    dtype: Dtype = "float32",
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Sample a base model and keep its least likely correct completions, beside as many common ones.

    Example: fgrpo rare build runs/base --data train.jsonl --samples 800 --out probe.parquet
    """
    with language_models(say_unless(quiet)):
        from fgrpo.llm.evaluation.backends import SamplingSettings
        from fgrpo.rare_probe import build_probe

        summary = build_probe(
            model,
            data,
            samples,
            out,
            top=top,
            reward=reward,
            settings=SamplingSettings(max_new_tokens, temperature, top_p, batch_size, seed, dtype),
            backend=backend,  # type: ignore[arg-type]  # checked there
            score_batch_size=score_batch_size,
            overwrite=overwrite,
            progress=not quiet,
        )
    if as_json:
        print(json.dumps({"probe": str(out), **asdict(summary)}, indent=2))
        return
    print(f"{summary.correct:,} of {summary.samples:,} completions are correct")
    print(
        f"{out}: {summary.set_size:,} rare ones and {summary.set_size:,} common ones, {summary.matched:,} of these "
        "from the problems of rare ones"
    )


@app.command()
def score(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders, or names on the hub.")],
    probe: Annotated[Path, typer.Option("--probe", metavar="FILE", help="From fgrpo rare build.")],
    out: Out = Path("results"),
    batch_size: BatchSize = 8,
    level: Level = 0.95,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Mean rise of the NLL per token since the base model, of the rare and of the common completions.

    Example: fgrpo rare score runs/a/checkpoint-100 --probe probe.parquet
    """
    with language_models(say_unless(quiet)):
        from fgrpo.rare_probe import score_probe
        from fgrpo.rare_report import probe_rises, rises_text

        scored = [
            score_probe(model, probe, out=out, batch_size=batch_size, overwrite=overwrite, progress=not quiet)
            for model in models
        ]
    rises = [probe_rises(one.scores, level=level) for one in scored]
    if as_json:
        print(json.dumps([{"model": m, **asdict(one)} for m, one in zip(models, rises, strict=True)], indent=2))
    else:
        print(rises_text(models, rises))
