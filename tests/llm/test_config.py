"""The configuration refuses what cannot be meant, and warns of what means something else here."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from transformers import HfArgumentParser
from trl import GRPOConfig

from fgrpo.llm import FocalGRPOConfig
from reference.llm_runs import settings

PARTS = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "steps_per_generation": 4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"focal_gamma": -0.5}, "gamma must be finite and at least 0, got -0.5: pass a focal exponent"),
        ({"focal_gamma": float("nan")}, "gamma must be finite and at least 0, got nan"),
        ({"focal_gamma": float("inf")}, "gamma must be finite and at least 0, got inf"),
        ({"focal_gamma": "1"}, "gamma must be a real number"),
        ({"focal_gamma": [1.0, 2.0]}, "focal_gamma must be one number"),
        ({"success_threshold": float("inf")}, "success_threshold must be finite, got inf: 0.5 serves"),
        ({"success_threshold": None}, "success_threshold must be a real number"),
        ({"rare_fractions": [0.1, 1.0]}, "rare_fractions must be strictly between 0 and 1, got 1"),
        ({"rare_fractions": [0.0]}, "rare_fractions must be strictly between 0 and 1, got 0"),
        ({"loss_type": "cispo"}, "epsilon_high must be set for loss_type='cispo', got None: .* 6.0 in the paper"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, got 1.5"),
        ({"num_generations": 1}, "at least 2 generations"),
        ({"num_generations": 5}, "must be divisible by num_generations"),
    ],
)
def test_refuses(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        FocalGRPOConfig(**settings(tmp_path, **changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("changes", [{"focal_gamma": 0}, {"focal_gamma": 2}, {"rare_fractions": []}, {"epsilon": 0.1}])
def test_takes(tmp_path: Path, changes: dict[str, Any]) -> None:
    config = FocalGRPOConfig(**settings(tmp_path, **changes))
    assert {name: getattr(config, name) for name in changes} == changes


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"save_steps": 3}, False),
        ({"save_steps": 3, **PARTS}, True),  # the buffer has four parts, six are used
        ({"save_steps": 4, **PARTS}, False),
        ({"save_steps": 4, **PARTS, "num_iterations": 2}, False),
        ({"save_steps": 2, **PARTS, "num_iterations": 2}, True),
        ({"save_steps": 0.5, **PARTS}, False),
        ({"save_steps": 3, **PARTS, "save_strategy": "no"}, False),
        ({"save_steps": 3, **PARTS, "save_strategy": "epoch"}, False),
    ],
)
def test_warns_of_checkpoints_within_a_generation(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, changes: dict[str, Any], lost: bool
) -> None:
    if lost:
        with pytest.warns(UserWarning, match=f"save_steps={changes['save_steps']} times .* drops the rest"):
            FocalGRPOConfig(**settings(tmp_path, save_strategy="steps") | changes)
    else:
        FocalGRPOConfig(**settings(tmp_path, save_strategy="steps") | changes)
        assert not recwarn


@pytest.mark.parametrize("name", ["learning_rate", "beta", "weight_decay", "epsilon", "epsilon_high"])
def test_refuses_numbers_that_trl_takes(tmp_path: Path, name: str) -> None:
    for value in (-1.0, float("nan")):
        with pytest.raises(ValueError, match=rf"{name} must be .*at least 0, got {value}: the default is"):
            FocalGRPOConfig(**settings(tmp_path, **{name: value}))
    infinite = settings(tmp_path, **{name: float("inf")})
    if name.startswith("epsilon"):
        assert getattr(FocalGRPOConfig(**infinite), name) == float("inf")  # no clipping
    else:
        with pytest.raises(ValueError, match=f"{name} must be finite and at least 0, got inf"):
            FocalGRPOConfig(**infinite)


def test_warns_of_scaling_across_prompts(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="scale_rewards='batch' divides by one standard deviation for all prompts"):
        FocalGRPOConfig(**settings(tmp_path, scale_rewards="batch"))
    with pytest.warns(UserWarning, match="'normalize_then_sum' standardises .* from success_reward alone"):
        FocalGRPOConfig(**settings(tmp_path, multi_objective_aggregation="normalize_then_sum"))


def test_command_line_takes_the_focal_keys(tmp_path: Path) -> None:
    line = ["--output_dir", str(tmp_path), "--focal_gamma", "1", "--rare_fractions", "0.1", "0.2", "--use_cpu"]
    (config,) = HfArgumentParser(FocalGRPOConfig).parse_args_into_dataclasses([*line, "--bf16", "false"])
    assert (config.focal_gamma, config.rare_fractions, config.success_reward) == (1.0, [0.1, 0.2], None)


def test_every_own_setting_is_explained() -> None:
    own = {field.name for field in fields(FocalGRPOConfig)} - {field.name for field in fields(GRPOConfig)}
    assert own == {"focal_gamma", "success_reward", "success_threshold", "focal_renormalize", "rare_fractions"}
    for field in fields(FocalGRPOConfig):
        if field.name in own:
            assert field.metadata["help"]
            assert f"{field.name}: " in str(FocalGRPOConfig.__doc__)
