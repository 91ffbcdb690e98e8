"""With gamma > 0 every advantage is the one recomputed from the text, wherever TRL moves it; mutants are noticed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from trl import GRPOTrainer
from trl.experimental.gmpo import GMPOTrainer

from fgrpo.llm import FocalWeightMixin
from fgrpo.llm import trainer as trainer_module
from fgrpo.llm.groups import PromptGroups
from fgrpo.llm.tiny_world.task import rows
from fgrpo.theory import hard_upweight
from reference.llm_runs import (
    Checked,
    CheckedTrainer,
    always_right,
    build,
    easy_start,
    long_format,
    signed_start,
    unsure_format,
    unsure_start,
)

EVALUATION = {
    "eval_strategy": "steps",
    "eval_steps": 2,
    "eval_dataset": Dataset.from_list(rows()[:7]),  # 28 rollouts: the last batch of 8 is a partial one
    "per_device_eval_batch_size": 8,
    "num_generations_eval": 4,
    "num_generations": 8,
    "max_steps": 2,
}
TWO_REWARDS = {"rewards": (long_format, easy_start), "success_reward": "easy_start"}
UNSURE = {"rewards": (unsure_start, unsure_format), "success_reward": "unsure_start"}
RENORMALIZED = {"focal_renormalize": True, "gradient_accumulation_steps": 2, "per_device_train_batch_size": 8}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulation": {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 8},
    "minibatches": {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4, "steps_per_generation": 4},
    "iterations": {"per_device_train_batch_size": 8, "steps_per_generation": 2, "num_iterations": 2, "max_steps": 6},
    "slices that split groups": {"per_device_train_batch_size": 6, "steps_per_generation": 2, "focal_gamma": 0.5},
    "groups over slices": {"num_generations": 8, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 8},
    "cispo": {"loss_type": "cispo", "epsilon_high": 6.0, "steps_per_generation": 2, "focal_gamma": 2.0},
    "truncated rollouts masked": {"mask_truncated_completions": True},
    "unscaled": {"scale_rewards": "none", "focal_gamma": 0.7},
    "renormalized": RENORMALIZED,
    "renormalized, None": {**UNSURE, "focal_renormalize": True, "per_device_train_batch_size": 32},
    "{-1, 1}": {"rewards": (signed_start,)},
    "format reward": TWO_REWARDS,
    "weights": {**TWO_REWARDS, "reward_weights": [0.5, 2.0]},
    "success that is not trained on": {**TWO_REWARDS, "reward_weights": [1.0, 0.0]},
    "success rate 1": {"rewards": (long_format, always_right), "success_reward": "always_right"},
    "None, one function": {"rewards": (unsure_start,)},
    "None, all functions": UNSURE,
    "None, not in success": {"rewards": (easy_start, unsure_format), "success_reward": "easy_start"},
    "evaluation": EVALUATION,
    "evaluation, groups of 1": {**EVALUATION, "num_generations_eval": 1},
    "evaluation, more rows than the log keeps": {**EVALUATION, **TWO_REWARDS, "per_device_eval_batch_size": 32},
}


def checked(out: Path, trainer_class: type[Any] = CheckedTrainer, **changes: Any) -> Any:
    """A run that compared every row, in a class of its own that counted them."""
    own = type(trainer_class.__name__, (trainer_class,), {"rows_seen": 0, "rows_in_loss": 0, "largest_error": 0.0})
    trainer = build(own, out, **{"focal_gamma": 1.0, "max_steps": 2, **changes})
    trainer.train()
    assert trainer.rows_seen > 0
    assert trainer.rows_in_loss > 0
    return trainer


@pytest.mark.parametrize("case", CASES)
def test_every_row_is_that_of_the_oracle(tmp_path: Path, case: str) -> None:
    checked(tmp_path, **CASES[case])


def test_scale_over_the_batch_warns_and_is_that_of_the_oracle(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="scale_rewards='batch'"):
        checked(tmp_path, scale_rewards="batch")


def test_rewards_in_0_1_and_minus_1_1_have_equal_weights(tmp_path: Path) -> None:
    tables = []
    for reward in (easy_start, signed_start):
        trainer = build(CheckedTrainer, tmp_path / reward.__name__, [reward], focal_gamma=1.0, max_steps=1)
        trainer.train()
        tables.append({**trainer._logs["extra"], "completion": trainer._logs["completion"]})
    assert tables[0] == tables[1]
    assert len(set(tables[0]["focal_weight"])) > 1


def test_groups_without_a_scorable_rollout_have_weight_1(tmp_path: Path) -> None:
    trainer = checked(tmp_path, **UNSURE, num_generations=4, per_device_train_batch_size=64, max_steps=1)
    rates, weights = (np.array(trainer._logs["extra"][name]) for name in ("empirical_success_rate", "focal_weight"))
    unknown = np.isnan(rates)
    assert unknown.sum() >= 16  # the four sums of which nothing is scorable
    assert np.all(weights[unknown] == 1.0)
    (entry,) = (e for e in trainer.state.log_history if "loss" in e)
    assert entry["focal/unscorable_group_share"] == unknown.sum() / 64
    assert entry["focal/unscorable_rollout_share"] > unknown.sum() / 64
    advantages = np.array(trainer._logs["advantages"])
    assert np.all(np.isfinite(advantages))
    assert np.any(advantages[unknown] != 0)  # the format reward still trains them, unweighted
    assert all(torch.isfinite(p).all() for p in trainer.model.parameters())


def test_success_rate_1_silences_other_rewards(tmp_path: Path) -> None:
    trainer = build(CheckedTrainer, tmp_path, **CASES["success rate 1"], focal_gamma=1.0, max_steps=1)
    before = [p.clone() for p in trainer.model.parameters()]
    trainer.train()
    assert trainer.state.log_history[0]["focal/advantage_magnitude_unweighted"] > 0
    assert trainer.state.log_history[0]["focal/advantage_magnitude"] == 0
    assert all(torch.equal(*pair) for pair in zip(before, trainer.model.parameters(), strict=True))


def test_weights_may_be_overridden(tmp_path: Path) -> None:
    class Hard(CheckedTrainer):
        def group_weights(self, success_rate_P: np.ndarray[Any, Any]) -> Any:
            return hard_upweight(success_rate_P, 3.0)

        weight = staticmethod(lambda rate: 1.0 + 3.0 * (1.0 - rate))

    checked(tmp_path, Hard, focal_renormalize=True)


@pytest.mark.parametrize("bad", [np.inf, np.nan, -1.0])
def test_weights_must_be_finite_and_not_negative(tmp_path: Path, bad: float) -> None:
    class Bad(CheckedTrainer):
        def group_weights(self, success_rate_P: np.ndarray[Any, Any]) -> Any:
            return np.full_like(success_rate_P, bad)

    with pytest.raises(ValueError, match="group_weights must return finite weights of at least 0, got"):
        build(Bad, tmp_path).train()


def test_goes_in_front_of_a_subclass(tmp_path: Path) -> None:
    class CheckedGMPO(Checked, FocalWeightMixin, GMPOTrainer):
        pass

    checked(tmp_path, CheckedGMPO)


def test_hook_of_a_later_release_is_used(tmp_path: Path) -> None:
    """It takes the advantages of all processes, before they are logged and cut."""
    calls = []

    class Later(GRPOTrainer):
        def _transform_advantages(self, advantages: torch.Tensor) -> torch.Tensor:
            calls.append(len(advantages))
            return advantages

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            for _ in inputs:
                self._logs["advantages"].pop()
            output["advantages"] = self._transform_advantages(output["advantages"])
            self._logs["advantages"].extend(output["advantages"].tolist())
            return output

    class CheckedLater(Checked, FocalWeightMixin, Later):
        def _apply(self, *_: Any) -> None:
            raise AssertionError("weighted twice")

    checked(tmp_path, CheckedLater, **EVALUATION)
    assert calls


def eval_group_size(self: Any, rewards: torch.Tensor) -> PromptGroups:
    success_rewards_B = rewards[:, self._success_index].double().numpy()
    return PromptGroups.from_rewards(success_rewards_B, self.num_generations, self.args.success_threshold)


def summed_success(self: Any, rewards: torch.Tensor) -> PromptGroups:
    success_rewards_B = rewards.nansum(dim=1).double().numpy()
    return PromptGroups.from_rewards(success_rewards_B, self.num_generations, self.args.success_threshold)


def none_is_wrong(self: Any, rewards: torch.Tensor) -> PromptGroups:
    success_rewards_B = rewards[:, self._success_index].double().nan_to_num(0.0).numpy()
    return PromptGroups.from_rewards(success_rewards_B, self.num_generations, self.args.success_threshold)


def scaled_evaluation(self: Any, inputs: Any) -> Any:
    output = RIGHT_GENERATE(self, inputs)
    if not self.model.training:
        rates = list(self._logs["extra"]["empirical_success_rate"])[-len(inputs) :]
        output["advantages"] = output["advantages"] * (1.0 - torch.tensor(rates))
    return output


RIGHT_GENERATE = FocalWeightMixin._generate_and_score_completions
MUTANTS: dict[str, tuple[Any, str, Callable[..., Any], dict[str, Any]]] = {
    "training group size in evaluation": (FocalWeightMixin, "_prompt_groups", eval_group_size, EVALUATION),
    "weighted sum as success": (FocalWeightMixin, "_prompt_groups", summed_success, TWO_REWARDS),
    "None as wrong": (FocalWeightMixin, "_prompt_groups", none_is_wrong, UNSURE),
    "evaluation scaled": (FocalWeightMixin, "_generate_and_score_completions", scaled_evaluation, EVALUATION),
    "logged before the weight": (FocalWeightMixin, "_log_weighted", lambda *_: None, {}),
    "weighted twice": (FocalWeightMixin, "group_weights", lambda _, rates: (1.0 - rates) ** 2, {}),
    "repeat for repeat_interleave": (PromptGroups, "rows", lambda g, v: np.tile(v, g.group_size), {}),
    "renormalized over all groups": (trainer_module, "renormalized", lambda w, _: w / w.mean(), RENORMALIZED),
    "never renormalized": (trainer_module, "renormalized", lambda w, _: w, RENORMALIZED),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    target, name, replacement, changes = MUTANTS[mutant]
    monkeypatch.setattr(target, name, replacement)
    monkeypatch.setattr(trainer_module, "_check_prompts", lambda *_: None)  # the oracle alone must notice
    with pytest.raises(AssertionError, match="is not"):
        checked(tmp_path, **{"max_steps": 3, **changes})


def test_groups_with_two_prompts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FocalWeightMixin, "_prompt_groups", eval_group_size)
    with pytest.raises(ValueError, match="each 8 rows in turn must share their prompt, got two at row 4: trl"):
        checked(tmp_path, **EVALUATION)
