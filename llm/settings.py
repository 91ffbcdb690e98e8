"""From `--config`, `--model` and overrides to the settings of a run, in TRL's own convention.

Flat keys; an `env` block; the command line beats YAML, a later file beats an earlier one, and a recipe lies under all.
Keys of `accelerate launch` (`num_processes`, `accelerate_config`, ...) are kept apart, as `trl grpo` does.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any, NoReturn

from trl import DatasetMixtureConfig, ModelConfig, TrlParser
from trl.scripts.grpo import GRPOScriptArguments

from fgrpo.llm.batch_arithmetic import BatchArithmetic, counted
from fgrpo.llm.config import FocalGRPOConfig
from fgrpo.llm.launch import is_launched, running_processes
from fgrpo.llm.presets import find_model, preset, tiny_preset
from fgrpo.llm.recipe_files import FOLDER, LAUNCHES, read_layers, read_yaml
from fgrpo.theory import _validation as check

KINDS = (GRPOScriptArguments, FocalGRPOConfig, ModelConfig, DatasetMixtureConfig)
"""What keys may belong to: the script, the trainer, the model, a mixture of data sets."""


@dataclass(frozen=True)
class Settings:
    """The settings of a run before anything is built from them.

    Attributes:
        values: Every key that was set, and its value; all others have TRL's defaults.
        launch: Arguments of `accelerate launch` that were among them.
        world_size: Processes that run, or that `launch` asks for.
    """

    values: Mapping[str, Any]
    launch: tuple[str, ...]
    world_size: int

    def get(self, key: str) -> Any:
        """The value of a key, or its default."""
        return self.values[key] if key in self.values else self.default(key)

    def default(self, key: str) -> Any:
        """What a key is where nobody sets it."""
        field = next(field for kind in KINDS for field in fields(kind) if field.name == key)
        return field.default_factory() if callable(field.default_factory) else field.default

    @property
    def processes_to_start(self) -> int:
        """How many processes stand in the place of each one that runs: 1 once the run is launched."""
        return self.world_size // running_processes()

    @property
    def batches(self) -> BatchArithmetic:
        """What the batch keys come to.

        Raises:
            ValueError: If they do not fit each other; the message has numbers that do.
        """
        size, accumulation = (self.get(key) for key in ("per_device_train_batch_size", "gradient_accumulation_steps"))
        steps, generation = self.get("steps_per_generation"), self.get("generation_batch_size")
        if steps is not None and generation is not None:
            raise ValueError(
                f"steps_per_generation and generation_batch_size must not come together, got {steps} and {generation}: "
                "leave one out"
            )
        if generation is not None:
            per_step = size * self.world_size
            if generation % per_step:
                fitting = -(-generation // per_step) * per_step
                raise ValueError(
                    f"generation_batch_size must be a multiple of {size} per device x "
                    f"{counted('process', self.world_size)}, got {generation}: pass {fitting}"
                )
            steps = generation // per_step
        return BatchArithmetic(
            group_size=self.get("num_generations"),
            world_size=self.world_size,
            per_device_train_batch_size=size,
            gradient_accumulation_steps=accumulation,
            steps_per_generation=accumulation if steps is None else steps,
            num_iterations=self.get("num_iterations"),
        )

    def refuse_misfits(self) -> None:
        """Raise where batches, in training or in evaluation, do not hold whole groups, or a run has no update.

        Raises:
            ValueError: With numbers that fit.
        """
        steps, epochs = self.get("max_steps"), self.get("num_train_epochs")
        if steps == 0 or (steps < 0 and not 0 < epochs < inf):  # TRL makes one update all the same
            name, value = ("max_steps", steps) if steps == 0 else ("num_train_epochs", epochs)
            raise ValueError(
                f"{name} must be above 0, got {value}: pass for example --max_steps 100, or --dry-run to see what a "
                "run would be"
            )
        n = self.get("num_generations_eval") or self.batches.group_size
        size = self.get("per_device_eval_batch_size")
        if str(self.get("eval_strategy")) != "no" and (size < 1 or size * self.world_size % n):
            start = max(size, 1)
            fitting = next(k for k in range(start, start + n) if k * self.world_size % n == 0)
            raise ValueError(
                f"the rollouts of an evaluation batch must be a multiple of num_generations {n}, got {size} per device "
                f"x {counted('process', self.world_size)}: what fits is per_device_eval_batch_size {fitting}"
            )

    def build(self, kind: Any, **others: Any) -> Any:
        """One of `KINDS` from the keys that belong to it."""
        names = {field.name for field in fields(kind) if field.init}
        return kind(**{**{key: value for key, value in self.values.items() if key in names}, **others})


def read_settings(config: str, model: str | None, arguments: Sequence[str]) -> Settings:
    """Settings of a run from the command line; sets the environment variables of `env` blocks.

    Args:
        config: What `--config` names (`fgrpo.llm.recipe_files.read_layers`).
        model: A name of `fgrpo.llm.presets.MODELS`, a name on the hub or a folder; None leaves it to the keys.
        arguments: The other arguments, as `--key value` or `--key=value`.

    Returns:
        The settings.

    Raises:
        ValueError: If a recipe, file, key or value is not what it must be; unknown keys come with the nearest names.

    Source: the convention of TRL's TrlParser.
    """
    layers = read_layers(config)
    os.environ.update(layers.environment)
    keys = _Keys()
    given, launch = keys.parse(layers.values, arguments)
    world_size = _world_size(launch)
    if model is not None:
        known = find_model(model)
        given["model_name_or_path"] = model if known is None else known.hub_name
    if layers.recipe is None:
        return Settings(given, launch, world_size)
    if layers.recipe == "tiny":
        return Settings({**tiny_preset().keys, **given}, launch, world_size)
    size = given.get("per_device_train_batch_size")
    recipe = preset(
        layers.recipe,
        model or given.get("model_name_or_path") or "qwen2.5-7b",
        group_size=given.get("num_generations", 8),
        world_size=world_size,
        most_per_device=2 if size is None else size,
    )
    fitted = recipe.keys["per_device_train_batch_size"]
    if size not in (None, fitted) and "gradient_accumulation_steps" not in given:
        raise ValueError(
            f"per_device_train_batch_size must divide the rollouts of an update on a device, got {size}: "
            f"pass {fitted}, or gradient_accumulation_steps and steps_per_generation too"
        )
    return Settings({**recipe.keys, **given}, launch, world_size)


def _world_size(launch: Sequence[str]) -> int:
    """Processes that run; before a launch, those that it asks for."""
    asked = _asked_processes(launch)
    if not is_launched():
        return asked or 1
    running = running_processes()
    if asked not in (None, running):
        raise ValueError(  # accelerate runs one process on a CPU whatever it is asked for
            f"num_processes must be the processes that run, got {asked} where {running} run: on a CPU use "
            "torchrun --nproc_per_node K -m fgrpo train"
        )
    return running


def _asked_processes(launch: Sequence[str]) -> int | None:
    if "--num_processes" in launch:
        asked = int(launch[launch.index("--num_processes") + 1])
    elif "--config_file" in launch:
        asked = read_yaml(Path(launch[launch.index("--config_file") + 1])).get("num_processes", 1)
    else:
        return None
    return int(check.scalar("num_processes", check.whole("num_processes", asked, 1, "pass the number of devices")))


class _Parser(TrlParser):
    """TRL's parser that raises instead of printing a usage of three hundred options and ending the process."""

    def error(self, message: str) -> NoReturn:
        short = message if len(message) < 200 else message.partition(" (choose from")[0]
        raise ValueError(f"{short}: see the documentation of TRL's GRPOConfig for what it takes")


class _Keys:
    """All keys that a run knows, and how values are read."""

    def __init__(self) -> None:
        from accelerate.commands.launch import launch_command_parser

        self.parser = _Parser(KINDS, allow_abbrev=False, add_help=False, argument_default=argparse.SUPPRESS)
        self.actions: dict[str, argparse.Action] = {}
        for action in self.parser._actions:
            action.default = argparse.SUPPRESS  # only what was given comes out
            self.actions.setdefault(action.dest, action)
        self.launcher = launch_command_parser()
        self.launcher.exit_on_error = False
        self.launch_actions = {
            option: action
            for action in self.launcher._actions
            for option in action.option_strings
            if action.dest not in self.actions and action.dest != "help"
        }
        self.launch_actions["--accelerate_config"] = argparse.Action(["--accelerate_config"], "accelerate_config")

    def parse(self, values: Mapping[str, Any], arguments: Sequence[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Keys and values from YAML and from the command line, which wins; and what is for `accelerate launch`."""
        raw: dict[str, Any] = {}
        texts: list[str] = []
        launch: list[str] = []
        for key, value in values.items():
            if key in self.actions:
                text = self._texts(self.actions[key], key, value)
                texts += text or []
                if text is None:
                    raw[key] = value
            elif f"--{key}" in self.launch_actions:
                flag = self.launch_actions[f"--{key}"].nargs == 0
                launch += [f"--{key}"] * bool(value) if flag else [f"--{key}", str(value)]
            else:
                self._refuse(key)
        from_files = vars(self.parser.parse_args(texts))
        from_line, rest = self.parser.parse_known_args(list(arguments))
        launch = _resolved([*launch, *self._launch_arguments(rest)])
        try:
            self.launcher.parse_args([*launch, "-m", "fgrpo"])
        except argparse.ArgumentError as error:
            raise ValueError(f"{error}: see accelerate launch --help for what it takes") from None
        return {**raw, **from_files, **vars(from_line)}, tuple(launch)

    def _texts(self, action: argparse.Action, key: str, value: Any) -> list[str] | None:
        """A YAML value as arguments, so that it is checked like one; None if it stays as it is."""
        if value is None or isinstance(value, dict) or (isinstance(value, bool) and action.type is str):
            return None
        if isinstance(value, list):
            flat = action.nargs == "+" and value and not any(isinstance(item, dict | list) for item in value)
            return [f"--{key}", *map(str, value)] if flat else None
        return [f"--{key}", str(value)] if action.nargs == "+" else [f"--{key}={value}"]

    def _launch_arguments(self, rest: Sequence[str]) -> Iterator[str]:
        known = False
        for text in rest:
            if text.startswith("--"):
                name, equals, value = text.partition("=")
                known = name in self.launch_actions
                if not known:
                    self._refuse(name.removeprefix("--").replace("-", "_"))
                yield from (name, value) if equals else (name,)
            elif known:
                yield text
            else:
                raise ValueError(f"arguments must be --key value, got {text!r}: write which key it belongs to")

    def _refuse(self, key: str) -> NoReturn:
        nearest = get_close_matches(key, self.actions, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else "TRL's GRPOConfig lists the keys"
        raise ValueError(f"every key must be one of TRL's or a focal one, got {key!r}: {hint}")


def _resolved(launch: Sequence[str]) -> list[str]:
    """`--accelerate_config NAME` as the `--config_file PATH` of accelerate."""
    arguments = list(launch)
    while "--accelerate_config" in arguments:
        place = arguments.index("--accelerate_config")
        name = "".join(arguments[place + 1 : place + 2])
        named = (FOLDER / "accelerate", Path(str(files("trl.accelerate_configs"))))
        path = next((file for folder in named if (file := folder / f"{name}.yaml").is_file()), Path(name))
        if not path.is_file():
            raise ValueError(
                f"accelerate_config must be {', '.join(LAUNCHES)}, a name that TRL has or a file, got "
                f"{check.shown(name)}: check the path"
            )
        arguments[place : place + 2] = ["--config_file", str(path)]
    return arguments
