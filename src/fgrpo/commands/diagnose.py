"""The command that judges a training run from its logged rollouts: diagnose."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fgrpo.commands.options import Json, list_of


def diagnose(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="Run folder of TRL (log_completions=True), or JSONL, CSV or parquet with a row per rollout.",
        ),
    ],
    success_column: Annotated[
        str | None, typer.Option("--success-column", metavar="NAME", help="Reward that says which rollouts are right.")
    ] = None,
    success_threshold: Annotated[
        float, typer.Option("--success-threshold", metavar="R", help="Right is above it; .5 serves 0/1 and -1/1.")
    ] = 0.5,
    group_size: Annotated[
        int | None, typer.Option("--group-size", metavar="N", help="Rollouts per prompt; default: found.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id-column", metavar="NAME", help="Column that tells prompts apart.")
    ] = None,
    step_column: Annotated[
        str | None, typer.Option("--step-column", metavar="NAME", help="Column of the step, in plain rows.")
    ] = None,
    group_column: Annotated[
        str | None,
        typer.Option("--group-column", metavar="NAME", help="Column that tells groups of one prompt and step apart."),
    ] = None,
    rare_fraction: Annotated[
        str, typer.Option("--rare-fraction", metavar="RHO,RHO,...", help="Assumed tau / mu, comma-separated.")
    ] = "0.05,0.1",
    gamma: Annotated[
        str, typer.Option("--gamma", metavar="G,G,...", help="Focal exponents to recompute weights for.")
    ] = "0.5,1,2",
    level: Annotated[
        float, typer.Option("--level", metavar="P", help="Tail-miss probability that counts as risky.")
    ] = 0.5,
    windows: Annotated[
        int, typer.Option("--windows", metavar="K", help="Parts that the logged steps are cut into.")
    ] = 10,
    answer: Annotated[
        str, typer.Option("--answer", metavar="KIND", help="What tells answers apart: auto, boxed or text.")
    ] = "auto",
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write one self-contained page with plots.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Diagnose a run: success, active groups, tail misses, distinct answers, and what a focal weight would do.

    Groups. TRL's tables: consecutive rows of an equal prompt (text, or chat list message by message) within a logged
    step are cut into blocks of N; N is --group-size, or the largest that fits every run of equal prompts. The same
    prompt twice in a step gives two groups; a generation logged at several steps counts once. Plain rows: the rollouts
    of one prompt and step (and --group-column) form a group, with --group-size every N of them.

    Plain rows need columns for the prompt (prompt_id, id, prompt, ...), the step (step, ...) and the reward (reward,
    score, success, ...); a completion (completion, response, output, answer) is optional.

    Example: fgrpo diagnose runs/grpo --html diagnosis.html
    """
    from fgrpo.diagnosis.columns import Reading
    from fgrpo.diagnosis.diagnose import diagnose as run
    from fgrpo.diagnosis.text import diagnosis_text

    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--html must name a file that ends in .html, got {html}: pass for example diagnosis.html")
    if html is not None and (html.is_dir() or not html.parent.is_dir()):  # before the work, not after it
        what = "is a folder" if html.is_dir() else f"lies in no folder: {html.parent} is none"
        raise ValueError(f"--html must name a file in a folder that exists, got {html}, which {what}: choose another")
    diagnosis = run(
        path,
        reading=Reading(
            success_threshold=success_threshold,
            success_column=success_column,
            id_column=id_column,
            step_column=step_column,
            group_column=group_column,
            group_size=group_size,
        ),
        rare_fractions=list_of(float, "--rare-fraction", rare_fraction),
        gammas=list_of(float, "--gamma", gamma),
        level=level,
        windows=windows,
        answer=answer,
    )
    if html is not None:
        from fgrpo.diagnosis.page import write_page

        write_page(diagnosis, html)
    print(json.dumps(diagnosis.to_dict(), indent=2, allow_nan=False) if as_json else diagnosis_text(diagnosis))
