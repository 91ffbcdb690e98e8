"""With gamma = 0 the trainer is TRL's, bit for bit: parameters, losses, gradient norms. Runs resume as they were."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from transformers import PreTrainedTokenizerFast
from trl import GRPOTrainer

from fgrpo.llm import FocalGRPOTrainer, FocalWeightMixin
from fgrpo.llm.tiny_world.model import build_model
from fgrpo.llm.tiny_world.tokenizer import build_tokenizer
from reference.llm_runs import build, easy_start, history, long_format

MINIBATCHES = {
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "steps_per_generation": 4,
    "num_iterations": 2,
    "max_steps": 6,
}
CASES: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "grpo"},
    "dapo": {"loss_type": "dapo", "epsilon_high": 0.28},
    "cispo": {"loss_type": "cispo", "epsilon_high": 6.0},
    "grpo, minibatches": {"loss_type": "grpo", **MINIBATCHES},
    "cispo, minibatches": {"loss_type": "cispo", "epsilon_high": 6.0, **MINIBATCHES},
    "unscaled": {"scale_rewards": "none"},
    "renormalized": {"focal_renormalize": True},
    "two rewards": {"rewards": (long_format, easy_start), "success_reward": "easy_start"},
}


def outcome(trainer_class: type[GRPOTrainer], out: Path, **changes: Any) -> tuple[list[torch.Tensor], list[Any]]:
    trainer = build(trainer_class, out, **changes)
    trainer.train()
    return list(trainer.model.state_dict().values()), history(trainer)


def assert_same(one: tuple[list[torch.Tensor], list[Any]], other: tuple[list[torch.Tensor], list[Any]]) -> None:
    assert one[1] == other[1]
    assert all(torch.equal(*pair) for pair in zip(one[0], other[0], strict=True))


@pytest.mark.parametrize("case", CASES)
def test_gamma_0_is_plain_trl(tmp_path: Path, case: str) -> None:
    plain = outcome(GRPOTrainer, tmp_path / "plain", **CASES[case])
    assert len({tuple(step) for step in plain[1]}) > 1  # the steps do something
    assert_same(plain, outcome(FocalGRPOTrainer, tmp_path / "focal", focal_gamma=0.0, **CASES[case]))


def test_gamma_1_is_not_plain_trl(tmp_path: Path) -> None:
    plain = outcome(GRPOTrainer, tmp_path / "plain")
    focal = outcome(FocalGRPOTrainer, tmp_path / "focal", focal_gamma=1.0)
    assert plain[1] != focal[1]
    assert not all(torch.equal(*pair) for pair in zip(plain[0], focal[0], strict=True))


def test_advantages_per_token_are_weighted_alike(tmp_path: Path) -> None:
    class PerToken(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            rows, tokens = output["completion_ids"].shape
            return {**output, "advantages": output["advantages"][:, None].expand(rows, tokens).clone()}

    class FocalPerToken(FocalWeightMixin, PerToken):
        pass

    one, other = (outcome(c, tmp_path, focal_gamma=1.0) for c in (FocalGRPOTrainer, FocalPerToken))
    assert_same(one, other)


@pytest.mark.parametrize(
    "aggregation", [{"scale_rewards": "batch"}, {"multi_objective_aggregation": "normalize_then_sum"}]
)
def test_gamma_0_is_plain_trl_where_it_warns(tmp_path: Path, aggregation: dict[str, str]) -> None:
    plain = outcome(GRPOTrainer, tmp_path / "plain", **aggregation)
    with pytest.warns(UserWarning, match=next(iter(aggregation))):
        assert_same(plain, outcome(FocalGRPOTrainer, tmp_path / "focal", focal_gamma=0.0, **aggregation))


def test_gamma_0_is_plain_trl_with_a_reference_model(tmp_path: Path) -> None:
    build_model().save_pretrained(tmp_path / "base")

    def run(trainer_class: type[GRPOTrainer], **changes: Any) -> tuple[list[torch.Tensor], list[Any]]:
        model = build_model()
        model.config._name_or_path = str(tmp_path / "base")  # where TRL loads the reference from
        return outcome(trainer_class, tmp_path / trainer_class.__name__, model=model, beta=0.05, **changes)

    assert_same(run(GRPOTrainer), run(FocalGRPOTrainer, focal_gamma=0.0))


def test_gamma_0_is_plain_trl_with_an_adapter(tmp_path: Path) -> None:
    def run(trainer_class: type[GRPOTrainer], **changes: Any) -> tuple[list[torch.Tensor], list[Any]]:
        adapter = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
        return outcome(trainer_class, tmp_path / trainer_class.__name__, peft_config=adapter, beta=0.05, **changes)

    plain, focal = run(GRPOTrainer), run(FocalGRPOTrainer, focal_gamma=0.0)
    assert len(plain[0]) > len(build_model().state_dict())
    assert_same(plain, focal)


@pytest.mark.parametrize("schedule", [{}, {**MINIBATCHES, "num_iterations": 1}])
def test_resume_on_a_generation_boundary_is_bit_identical(tmp_path: Path, schedule: dict[str, Any]) -> None:
    changes = {"focal_gamma": 1.0, "max_steps": 4, **schedule, "save_strategy": "steps", "save_steps": 2}
    changes["max_steps"] = 4
    whole = outcome(FocalGRPOTrainer, tmp_path, **changes)
    resumed = build(FocalGRPOTrainer, tmp_path, **changes)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert resumed.args.focal_gamma == 1.0
    assert_same(whole, (list(resumed.model.state_dict().values()), history(resumed)))


def test_checkpoint_keeps_the_focal_settings_and_the_tokenizer(tmp_path: Path) -> None:
    build(FocalGRPOTrainer, tmp_path, focal_gamma=2.0, save_strategy="steps", save_steps=1, max_steps=1).train()
    saved = torch.load(tmp_path / "checkpoint-1" / "training_args.bin", weights_only=False)
    assert (saved.focal_gamma, type(saved).__name__) == (2.0, "FocalGRPOConfig")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path / "checkpoint-1")
    assert tokenizer("a06:?")["input_ids"] == build_tokenizer()("a06:?")["input_ids"]
    assert "[F-GRPO: Don't Let Your Policy" in (tmp_path / "README.md").read_text()
