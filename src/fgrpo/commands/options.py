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
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Compute finished results again.")]
Level = Annotated[float, typer.Option("--level", metavar="P", help="Confidence of the intervals.")]

# for commands that sample language models
Data = Annotated[
    Path,
    typer.Option("--data", metavar="FILE", help="Problems: prompt (or problem), answer; CSV, JSONL, JSON or parquet."),
]
Samples = Annotated[int, typer.Option("--samples", metavar="n", help="Completions of each problem.")]
Reward = Annotated[str, typer.Option("--reward", metavar="NAME", help="math, exact, or module:function of one's own.")]
Temperature = Annotated[float, typer.Option("--temperature", metavar="T", help="Divides the logits.")]
TopP = Annotated[float, typer.Option("--top-p", metavar="P", help="Mass of the tokens drawn from.")]
MaxNewTokens = Annotated[int, typer.Option("--max-new-tokens", metavar="T", help="Most tokens of a completion.")]
BatchSize = Annotated[int, typer.Option("--batch-size", metavar="B", help="Completions computed at a time.")]
BackendChoice = Annotated[str, typer.Option("--backend", metavar="NAME", help="What draws: transformers or vllm.")]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="Seed of the draws.")]
Dtype = Annotated[str, typer.Option("--dtype", metavar="NAME", help="Number format of the weights, e.g. bfloat16.")]


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
