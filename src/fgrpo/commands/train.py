"""Training language models: train."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from fgrpo.commands.options import Quiet

HINTS = {
    "out": "--output_dir DIR",
    "output": "--output_dir DIR",
    "steps": "--max_steps T",
    "epochs": "--num_train_epochs K",
    "group_size": "--num_generations N",
    "n": "--num_generations N",
    "samples": "--num_generations N",
    "lr": "--learning_rate ETA",
    "batch_size": "--per_device_train_batch_size B",
    "workers": "--num_processes K",
    "seeds": "--seed S, one run for each",
    "gamma": "--focal_gamma G",
    "recipe": "--config NAME",
    "data": "--dataset_name FILE",
    "dataset": "--dataset_name FILE",
    "reward": "--reward_funcs NAME",
    "max_new_tokens": "--max_completion_length T",
    "success_column": "--success_reward NAME",
}
"""What the other commands, or habit, call a key of TRL's that is spelt in no similar way."""


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
    recipes: Annotated[bool, typer.Option("--recipes", help="List what --config and --model take, and end.")] = False,
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
        print(_launchable())
        return
    _refuse_other_names(context.args)
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
            way_out = "--resume goes on from the latest checkpoint, --overwrite starts anew where there is none"
            raise ValueError(f"interrupted: {way_out}") from None


def _refuse_other_names(arguments: Sequence[str]) -> None:
    """Raise where an option is one of `HINTS`, or a recipe stands without --config.

    Raises:
        ValueError: One line with the option that is meant.
    """
    from fgrpo.llm.recipe_files import ADDITIONS, RECIPES

    for argument in arguments:
        option = argument.partition("=")[0]
        if option.startswith("--") and (meant := HINTS.get(option[2:].replace("-", "_"))):
            raise ValueError(
                f"every key must be one of TRL's or a focal one, got {option}: TRL's name for it is {meant}"
            )
    if arguments and (arguments[0] in (*RECIPES, *ADDITIONS) or arguments[0].endswith((".yaml", ".yml"))):
        raise ValueError(f"arguments must be --key value, got {arguments[0]!r}: did you mean --config {arguments[0]}?")


def _launchable() -> str:
    """What --config, --model and --accelerate_config take."""
    from fgrpo.llm.dry_run import recipes_text
    from fgrpo.llm.presets import MODELS
    from fgrpo.llm.recipe_files import ADDITIONS, FOLDER, LAUNCHES

    texts = {name: (FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in ADDITIONS}
    return "\n".join(
        [
            recipes_text(),
            "after one of these and a comma, such as --config focal_grpo,vllm_colocate:",
            *(f"{name:<20} {text.partition(':')[0].removeprefix('# ')}" for name, text in texts.items()),
            f"--model: {', '.join(MODELS)}, or any name on the hub or folder",
            f"--accelerate_config: {', '.join(LAUNCHES)}, a name that TRL has, or a file",
        ]
    )


def _print_at_once(line: str) -> None:
    print(line, flush=True)


def _nothing(line: str) -> None:
    """Where progress goes with --quiet."""
