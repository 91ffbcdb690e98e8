"""Every logged value against a literal computation, and the table of keys against what is logged."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset

from fgrpo.llm import FocalSummaryCallback
from fgrpo.llm.diagnostics import COLUMNS, SUCCESS_KEYS, WEIGHT_KEYS, success_diagnostics, weight_diagnostics
from fgrpo.llm.groups import PromptGroups
from fgrpo.llm.summary import summary_line
from fgrpo.llm.tiny_world.task import rows
from reference.llm_runs import CheckedTrainer, build, easy_start

NAN = float("nan")
REWARDS = [0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, NAN, 1, 1, 0, NAN, NAN, NAN, NAN]
GROUPS = PromptGroups.from_rewards(np.array(REWARDS, dtype=np.float64), 4, 0.5)


def test_success_values() -> None:
    rates = [0.0, 1.0, 0.25, 2 / 3]
    expected = {
        "focal/success_rate": sum(rates) / 4,
        "focal/histogram/0": 1,
        "focal/histogram/1": 1,
        "focal/histogram/2": 1,
        "focal/histogram/3": 0,
        "focal/histogram/4": 1,
        "focal/all_wrong_share": 1 / 4,
        "focal/all_right_share": 1 / 4,
        "focal/active_share": 2 / 4,
        "focal/above_0.75_share": 1 / 4,
        "focal/unscorable_rollout_share": 5 / 20,
        "focal/unscorable_group_share": 1 / 5,
        "focal/tail_miss_estimate/0.05": ((1 - 0.05) + (1 - 0.05) ** 2) / 4,
        "focal/tail_miss_estimate/0.2": ((1 - 0.2) + (1 - 0.2) ** 2) / 4,
    }
    assert success_diagnostics(GROUPS, [0.05, 0.2]) == pytest.approx(expected, rel=1e-12)


def test_weight_values() -> None:
    weights = np.array([1.0, 0.0, 0.75, 1 / 3, 1.0])
    expected = {
        "focal/mean_weight": np.mean(weights),
        "focal/mean_weight_given_active": (0.75 + 1 / 3) / 2,
        "focal/effective_groups": (0.75 + 1 / 3) ** 2 / (0.75**2 + 1 / 9),
    }
    assert weight_diagnostics(GROUPS, weights) == pytest.approx(expected, rel=1e-12)


def test_nothing_to_average_is_nan() -> None:
    nothing = PromptGroups.from_rewards(np.full(4, NAN), 2, 0.5)
    values = success_diagnostics(nothing, [0.1])
    assert math.isnan(values["focal/success_rate"])
    assert values["focal/histogram/2"] == 0
    assert values["focal/unscorable_group_share"] == 1
    assert weight_diagnostics(nothing, np.ones(2))["focal/effective_groups"] == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[str]]:
    """A run with evaluation, a table of completions, and two steps per generation."""
    lines: list[str] = []
    trainer = build(
        CheckedTrainer,
        tmp_path_factory.mktemp("run"),
        focal_gamma=1.0,
        steps_per_generation=2,
        max_steps=4,
        per_device_train_batch_size=8,
        rare_fractions=[0.05],
        eval_strategy="steps",
        eval_steps=4,
        eval_dataset=Dataset.from_list(rows()[:3]),
        per_device_eval_batch_size=8,
        log_completions=True,
        num_completions_to_print=0,
        callbacks=[FocalSummaryCallback(lines.append)],
    )
    trainer.train()
    return trainer, lines


def test_table_of_keys_is_what_is_logged(run: tuple[Any, list[str]]) -> None:
    logged = {key for entry in run[0].state.log_history for key in entry}
    filled = {"{k}": "[0-4]", "{rare_fraction}": "0.05"}

    def pattern(key: str) -> str:
        for name, value in filled.items():
            key = key.replace(name, value)
        return key

    training = [pattern(key) for key in (*SUCCESS_KEYS, *WEIGHT_KEYS)]
    for key in training:
        assert any(re.fullmatch(key, name) for name in logged), key
    for key in SUCCESS_KEYS:
        assert any(re.fullmatch(f"eval_{pattern(key)}", name) for name in logged), key
    for name in logged:
        if "focal/" in name:
            known = training if name.startswith("focal/") else [f"eval_{pattern(key)}" for key in SUCCESS_KEYS]
            assert any(re.fullmatch(key, name) for key in known), name
    assert all(text.endswith(".") for text in (*SUCCESS_KEYS.values(), *WEIGHT_KEYS.values(), *COLUMNS.values()))


def test_steps_without_a_generation_have_no_keys(run: tuple[Any, list[str]]) -> None:
    entries = [entry for entry in run[0].state.log_history if "loss" in entry]
    assert ["focal/success_rate" in entry for entry in entries] == [True, False, True, False]


def test_table_of_completions_has_the_weights_that_the_loss_used(run: tuple[Any, list[str]]) -> None:
    table = pd.read_parquet(Path(run[0].args.output_dir, "completions", "completions_00001.parquet"))
    assert set(COLUMNS) < set(table.columns)
    for _, group in table.groupby("prompt"):
        rate = group["easy_start"].mean()
        assert (group["empirical_success_rate"] == rate).all()
        assert (group["focal_weight"] == 1.0 - rate).all()
        deviation = group["easy_start"].std() + 1e-4
        expected = (1.0 - rate) * (group["easy_start"] - rate) / deviation
        np.testing.assert_allclose(group["advantage"], expected, atol=1e-6)


def test_summary_is_one_line_per_generation(run: tuple[Any, list[str]]) -> None:
    trainer, lines = run
    assert len(lines) == 3  # two generations of training, one evaluation
    assert all("\n" not in line and len(line) < 120 for line in lines)
    first = trainer.state.log_history[0]
    assert lines[0].startswith(f"step 1  success {first['focal/success_rate']:.2f}  all wrong ")
    assert lines[-1].startswith("eval step 4  success ")


def test_summary_shows_what_is_not_known_as_a_dash() -> None:
    assert summary_line(3, {"loss": 1.0}) is None
    line = summary_line(3, {"focal/success_rate": None, "focal/active_share": 0.5})
    assert line is not None
    assert "success -  " in line
    assert "active 0.50" in line


@pytest.mark.parametrize("name", COLUMNS)
def test_reward_with_the_name_of_a_column_is_refused(tmp_path: Path, name: str) -> None:
    def reward(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
        return easy_start(prompts, completions)

    reward.__name__ = name
    with pytest.raises(ValueError, match=f"a reward function must not be called '{name}', got {name}: "):
        build(CheckedTrainer, tmp_path, [reward])


def test_reward_that_logs_a_column_of_that_name_is_refused(tmp_path: Path) -> None:
    def reward(prompts: list[str], completions: list[str], log_extra: Any, **_: Any) -> list[float]:
        log_extra("focal_weight", [0.0] * len(prompts))
        return easy_start(prompts, completions)

    with pytest.raises(ValueError, match="already has a column 'focal_weight', got another"):
        build(CheckedTrainer, tmp_path, [reward]).train()
