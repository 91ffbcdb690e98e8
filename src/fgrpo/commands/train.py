"""Training language models: train."""

import sys
from functools import partial
from typing import Annotated

import typer

from fgrpo.commands.options import Quiet


def train(
    context: typer.Context,
    config: Annotated[
        str,
        typer.Option(
            "--config", metavar="NAME|FILE,...", help="Recipe or YAML files as for `trl grpo`; later ones win."
        ),
    ] = "tiny",
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Model of the paper, name on the hub, or folder.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the configuration, its batches and the theory of its N; train not.")
    ] = False,
    recipes: Annotated[bool, typer.Option("--recipes", help="List the recipes and end.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the latest checkpoint in the folder.")] = False,
    quiet: Quiet = False,
) -> None:
    """Train a language model with focal weights through TRL; without options a tiny one, offline, on the CPU.

    Any key of TRL's GRPOConfig, ModelConfig and script arguments may follow as --key value, any of `accelerate launch`
    too; the focal ones are --focal_gamma, --success_reward, --success_threshold, --focal_renormalize, --rare_fractions.
    The run goes into --output_dir DIR; the tiny one by default into runs/tiny.
    Also under torchrun --nproc_per_node K -m fgrpo train ... and accelerate launch -m fgrpo train ...

    Example: fgrpo train --config focal_grpo,vllm_colocate --model qwen3-4b-base --num_generations 16 --dry-run
    """
    try:
        from fgrpo.llm.launch import is_launched, launch
        from fgrpo.llm.settings import read_settings
    except ModuleNotFoundError as error:
        from fgrpo.theory._validation import install

        raise ValueError(f"fgrpo train needs the extra llm, got no module {error.name}: {install('llm')}") from None
    if recipes:
        from fgrpo.llm.dry_run import recipes_text

        print(recipes_text())
        return
    settings = read_settings(config, model, context.args)
    if dry_run:
        from fgrpo.llm.dry_run import dry_run_text
        from fgrpo.llm.quiet import quiet as quiet_libraries

        with quiet_libraries(partial(print, file=sys.stderr)):  # stdout is a file for --config
            text = dry_run_text(settings)
        print(text)
    elif settings.launch and not is_launched():
        flags = {"--overwrite": overwrite, "--resume": resume, "--quiet": quiet}
        named = ["--config", config, *(() if model is None else ("--model", model))]
        raise typer.Exit(
            launch(settings.launch, ["train", *named, *(flag for flag in flags if flags[flag]), *context.args])
        )
    else:
        from fgrpo.llm.train import train as run

        try:
            run(settings, overwrite=overwrite, resume=resume, write=_nothing if quiet else _print_at_once)
        except KeyboardInterrupt:
            raise ValueError("interrupted: --resume goes on from the latest checkpoint") from None


def _print_at_once(line: str) -> None:
    print(line, flush=True)


def _nothing(line: str) -> None:
    """Where progress goes with --quiet."""
