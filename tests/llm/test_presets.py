"""Presets against the paper's settings as reported, against TRL's own fields and arithmetic."""

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trl import ModelConfig
from trl.scripts.grpo import GRPOScriptArguments

from fgrpo.llm import FocalGRPOConfig
from fgrpo.llm.batch_arithmetic import BatchArithmetic, fit_batches
from fgrpo.llm.presets import GROUP_SIZES, METHODS, MODELS, Preset, preset, tiny_preset
from fgrpo.reported import reported_setting

PAPER_NAME = {
    "qwen2.5-7b": "Qwen2.5-7B",
    "qwen3-4b-base": "Qwen3-4B-Base",
    "llama-3.2-3b-instruct": "Llama-3.2-3B-Instruct",
}
GRID = [
    *(preset(method, model) for method in METHODS for model in MODELS),
    *(preset("grpo", group_size=n) for n in GROUP_SIZES),
    tiny_preset(),
]
FIELDS = {
    field.name for kind in (GRPOScriptArguments, FocalGRPOConfig, ModelConfig) for field in dataclasses.fields(kind)
}


def reported(key: str) -> float:
    return float(reported_setting(key))


@pytest.mark.parametrize("recipe", GRID, ids=lambda recipe: recipe.summary)
def test_every_key_is_one_of_trl_or_a_focal_one(recipe: Preset) -> None:
    assert recipe.keys.keys() <= FIELDS
    assert recipe.keys["success_reward"] in recipe.keys["reward_funcs"]


@pytest.mark.parametrize(
    ("key", "setting"),
    [
        ("learning_rate", "learning_rate"),
        ("weight_decay", "weight_decay"),
        ("adam_beta1", "adam_beta1"),
        ("adam_beta2", "adam_beta2"),
        ("max_grad_norm", "grad_norm_clip"),
        ("warmup_steps", "warmup_steps"),
        ("num_train_epochs", "num_training_epochs"),
        ("num_iterations", "ppo_epochs"),
        ("temperature", "sampling_temperature"),
        ("top_p", "sampling_top_p"),
        ("beta", "kl_coefficient"),
        ("epsilon", "clip_eps_low.grpo"),
        ("epsilon_high", "clip_eps_high.grpo"),
        ("num_generations", "group_size"),
    ],
)
def test_grpo_has_the_settings_of_the_paper(key: str, setting: str) -> None:
    assert preset("grpo").keys[key] == reported(setting)
    assert reported_setting("loss_aggregation") == "token-mean"
    assert preset("grpo").keys["loss_type"] == "dapo"  # TRL's name of it
    assert preset("grpo").keys["top_k"] == 0  # off, as -1 in verl


def test_methods_differ_from_grpo_where_the_paper_says_so() -> None:
    def differing(method: str) -> dict[str, Any]:
        plain, other = preset("grpo").keys, preset(method).keys
        keys = (plain.keys() | other.keys()) - {"output_dir"}
        return {key: other.get(key) for key in keys if plain.get(key) != other.get(key)}

    assert differing("deepseek_grpo") == {"loss_type": "grpo"}
    assert differing("dapo") == {"epsilon_high": reported("clip_eps_high.dapo")}
    # clip(r, 1 - low, 1 + high) is what TRL's ceiling and the sign of a ratio make
    assert reported("clip_eps_low.cispo") == 1.0
    ceiling = 1 + reported("clip_eps_high.cispo")
    assert differing("cispo") == {"loss_type": "cispo", "epsilon": None, "epsilon_high": ceiling}
    assert differing("grpo_entropy") == {"entropy_coef": reported("control.entropy_coef")}
    assert differing("grpo_kl") == {"beta": reported("control.kl_coef"), "use_bias_correction_kl": False}
    for method in ("grpo", "deepseek_grpo", "dapo", "cispo"):
        plain, focal = preset(method).keys, preset(f"focal_{method}").keys
        changed = {key for key in plain if plain[key] != focal[key]}
        assert changed == {"output_dir", "focal_gamma"}
        assert plain["focal_gamma"] == 0


@pytest.mark.parametrize("model", PAPER_NAME)
def test_gamma_and_length_are_those_of_the_model(model: str) -> None:
    name = PAPER_NAME[model]
    for method in ("grpo", "dapo", "cispo"):
        keys = preset(f"focal_{method}", model).keys
        assert keys["focal_gamma"] == reported(f"gamma.{name}.F-{method.upper()}")
        assert keys["max_completion_length"] == reported(f"max_response_tokens.{name}")
        assert keys["model_name_or_path"].endswith(name)


def test_thinking_mode_and_other_names() -> None:
    assert preset("grpo", "qwen3-4b-base").keys["chat_template_kwargs"] == {"enable_thinking": True}
    assert "chat_template_kwargs" not in preset("grpo").keys
    assert preset("grpo", "Qwen/Qwen3-4B-Base").keys == preset("grpo", "qwen3-4b-base").keys
    mine = preset("focal_grpo", "my/weights", gamma=2)
    assert (mine.keys["model_name_or_path"], mine.keys["focal_gamma"]) == ("my/weights", 2.0)


def test_low_learning_rate_leaves_the_mean_advantage_of_the_focal_run() -> None:
    rate = (np.arange(200_000) + 0.5) / 200_000
    size = np.sqrt(rate * (1 - rate))
    for model in MODELS:
        gamma = preset("focal_grpo", model).keys["focal_gamma"]
        factor = np.sum((1 - rate) ** gamma * size) / np.sum(size)
        assert preset("grpo_low_lr", model).keys["learning_rate"] == pytest.approx(1e-6 * factor, rel=1e-3)
    assert preset("grpo_low_lr", gamma=0.5).keys["learning_rate"] == pytest.approx(reported("control.low_lr"), rel=0.01)


@pytest.mark.parametrize("group_size", GROUP_SIZES)
@pytest.mark.parametrize("world_size", [1, 2, 8, 16, 64])
def test_batches_are_those_of_the_paper_at_any_number_of_processes(group_size: int, world_size: int) -> None:
    keys = preset("grpo", group_size=group_size, world_size=world_size).keys
    size, accumulation = keys["per_device_train_batch_size"], keys["gradient_accumulation_steps"]
    assert size * world_size * accumulation == reported("mini_batch_size") * group_size
    assert size * world_size * keys["steps_per_generation"] == reported("global_batch_size") * group_size
    assert keys["logging_steps"] == 4  # a line per generation


def test_trl_agrees_with_the_arithmetic(tmp_path: Path) -> None:
    keys = dict(preset("focal_dapo", group_size=4, world_size=1).keys)
    names = {field.name for field in dataclasses.fields(FocalGRPOConfig)}
    config = FocalGRPOConfig(
        **{k: v for k, v in keys.items() if k in names} | {"output_dir": str(tmp_path), "use_cpu": True}
    )
    assert config.generation_batch_size == 256 * 4
    assert config.steps_per_generation == 4 * config.gradient_accumulation_steps


def test_arithmetic_in_words() -> None:
    batches = BatchArithmetic(
        group_size=6,
        world_size=2,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        steps_per_generation=3,
        num_iterations=2,
    )
    assert (batches.rollouts_per_update, batches.rollouts_per_generation, batches.prompts_per_generation) == (16, 24, 4)
    assert (batches.prompts_per_update, batches.updates_per_generation) == (Fraction(8, 3), 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group_size": 1}, "num_generations must be at least 2, got 1"),
        ({"steps_per_generation": 0}, "steps_per_generation must be a whole number of at least 1, got 0"),
        ({"group_size": 5}, r"multiple of num_generations 5, got 4 per device x 2 processes x 3 steps = 24"),
    ],
)
def test_arithmetic_refuses(changes: dict[str, int], message: str) -> None:
    good = {"group_size": 6, "world_size": 2, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    with pytest.raises(ValueError, match=message):
        BatchArithmetic(**{**good, "steps_per_generation": 3, **changes})


@pytest.mark.parametrize("group_size", range(2, 34))
def test_what_is_said_to_fit_fits(group_size: int) -> None:
    numbers = {"world_size": 3, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 1}
    if 6 % group_size == 0:
        BatchArithmetic(group_size=group_size, steps_per_generation=1, **numbers)
        return
    with pytest.raises(ValueError, match="what fits is") as caught:
        BatchArithmetic(group_size=group_size, steps_per_generation=1, **numbers)
    words = str(caught.value).split()
    steps = int(words[words.index("steps_per_generation") + 1])
    size = int(words[words.index("per_device_train_batch_size") + 1])
    fitting = BatchArithmetic(group_size=group_size, steps_per_generation=steps, **numbers)
    assert f"({fitting.prompts_per_generation} prompts) or" in str(caught.value)
    BatchArithmetic(group_size=group_size, steps_per_generation=1, **{**numbers, "per_device_train_batch_size": size})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((250, 64, 8), "multiple of prompts_per_update 64, got 250: the nearest is 192"),
        ((256, 0, 8), "prompts_per_update must be a whole number of at least 1, got 0"),
        ((256, 64, 1), "group_size must be a whole number of at least 2, got 1"),
    ],
)
def test_fitting_refuses(arguments: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_batches(*arguments)


def test_processes_that_do_not_divide_are_told_how_many_would() -> None:
    with pytest.raises(ValueError, match=r"must divide the 512 rollouts of an update .* got 24: start 16"):
        preset("grpo", world_size=24)


def test_unknown_method_gets_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="did you mean 'focal_grpo'"):
        preset("focal-grpo")
