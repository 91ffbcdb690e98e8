"""Short runs of the trainer on the tiny world, and a trainer that compares every row with the oracle as it goes."""

from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object
from datasets import Dataset
from trl import GRPOTrainer

from fgrpo.llm import FocalGRPOConfig, FocalGRPOTrainer, FocalWeightMixin
from fgrpo.llm.tiny_world.model import build_model
from fgrpo.llm.tiny_world.task import asked_sum, rows
from fgrpo.llm.tiny_world.tokenizer import build_tokenizer
from reference.focal_advantages import Reward, Row, expected_rows

CHARACTERS = "0123456789:ax"


def easy_start(prompts: Sequence[str], completions: Sequence[str], **_: Any) -> list[float]:
    """1 if the first character is among the first `sum - 5` ones: from 1 of 13 (sum 06) to all of them (18 and up)."""
    pairs = zip(prompts, completions, strict=True)
    return [float(c != "" and c[0] in CHARACTERS[: asked_sum(p) - 5]) for p, c in pairs]


def signed_start(prompts: Sequence[str], completions: Sequence[str], **_: Any) -> list[float]:
    """The same in {-1, 1}."""
    return [2.0 * r - 1.0 for r in easy_start(prompts, completions)]


def long_format(completions: Sequence[str], **_: Any) -> list[float]:
    """A format reward: 1 for four characters."""
    return [float(len(c) == 4) for c in completions]


def unsure_start(prompts: Sequence[str], completions: Sequence[str], **_: Any) -> list[float | None]:
    """`easy_start`, but None for completions with a colon, and for every completion of the sums 07, 11, 15 and 19."""
    values = zip(prompts, completions, easy_start(prompts, completions), strict=True)
    return [None if ":" in c or asked_sum(p) % 4 == 3 else r for p, c, r in values]


def unsure_format(completions: Sequence[str], **_: Any) -> list[float | None]:
    """`long_format`, but None for completions with an x."""
    return [None if "x" in c else r for c, r in zip(completions, long_format(completions), strict=True)]


def always_right(completions: Sequence[str], **_: Any) -> list[float]:
    """Success for everything."""
    return [1.0 for _ in completions]


class Checked:
    """In front of a trainer with focal weights: compares every advantage, rate and weight with the oracle.

    At each generation, in the logs, and in each loss; a difference above `tolerance` is an AssertionError.

    Text is decoded from the tokens of all processes; a training group is the rows of one prompt, wherever they lie.
    """

    weight: Callable[[float], float] | None = None
    tolerance = 1e-6
    rows_seen = 0
    rows_in_loss = 0
    largest_error = 0.0

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        prompts, completions = gather_object(self._texts(output, "prompt")), gather_object(self._texts(output))
        expected = self._expected(prompts, completions)
        count, start = len(inputs), self.accelerator.process_index * len(inputs)
        self._compare(output["advantages"].tolist(), [row.advantage for row in expected[start : start + count]])
        self._compare(self._logs["advantages"], [row.advantage for row in expected])
        for name in ("empirical_success_rate", "focal_weight"):
            self._compare(self._logs["extra"][name], [getattr(row, name) for row in expected])
        if self.model.training:
            self._current = dict(zip(zip(prompts, completions, strict=True), expected, strict=True))
        type(self).rows_seen += count
        return output

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        if self.model.training:
            keys = zip(self._texts(inputs, "prompt"), self._texts(inputs), strict=True)
            self._compare(inputs["advantages"].tolist(), [self._current[key].advantage for key in keys])
            type(self).rows_in_loss += len(inputs["advantages"])
        return super()._compute_loss(model, inputs)

    def _texts(self, batch: dict[str, Any], part: str = "completion") -> list[str]:
        return self.processing_class.batch_decode(batch[f"{part}_ids"], skip_special_tokens=True)

    def _expected(self, prompts: list[str], completions: list[str]) -> list[Row]:
        args, training = self.args, self.model.training
        weight = self.weight or (lambda rate: (1.0 - rate) ** args.focal_gamma)
        names = self.reward_func_names
        # evaluation may repeat a prompt to fill the last batch
        groups = prompts if training else [i // self.num_generations_eval for i in range(len(prompts))]
        return expected_rows(
            prompts,
            completions,
            groups,
            self.reward_funcs,
            success=names.index(args.success_reward) if args.success_reward else 0,
            reward_weights=args.reward_weights,
            threshold=args.success_threshold,
            weight=weight if training else (lambda rate: 1.0),
            scale=args.scale_rewards,
            renormalize=args.focal_renormalize and training,
        )

    def _compare(self, found: Any, expected: list[float]) -> None:
        found = list(found)
        assert found
        for one, other in zip(reversed(found), reversed(expected), strict=False):  # logs keep the latest, or fewer
            if one != one and other != other:
                continue
            type(self).largest_error = max(self.largest_error, abs(one - other))
            assert abs(one - other) <= self.tolerance, f"{one} is not {other}"


class CheckedTrainer(Checked, FocalGRPOTrainer):
    """The trainer, checked."""


def settings(out: Path | str, **changes: Any) -> dict[str, Any]:
    """Settings of a short run on the CPU: 4 groups of 4 rollouts per generation, a large step."""
    return {
        "output_dir": str(out),
        "per_device_train_batch_size": 16,
        "num_generations": 4,
        "max_completion_length": 4,
        "max_steps": 3,
        "learning_rate": 1e-2,
        "logging_steps": 1,
        "activation_checkpointing": False,
        "bf16": False,
        "disable_tqdm": True,
        "report_to": [],
        "save_strategy": "no",
        "use_cpu": True,
        **changes,
    }


def build(
    trainer_class: type[GRPOTrainer], out: Path | str, rewards: Sequence[Reward] = (easy_start,), **changes: Any
) -> GRPOTrainer:
    """A trainer on the 16 prompts; settings that plain TRL does not know are left out for it. See `settings`."""
    model = changes.pop("model", None) or build_model(seed=0)
    other = {key: changes.pop(key) for key in ("peft_config", "callbacks", "eval_dataset") if key in changes}
    config_class = FocalGRPOConfig
    if not issubclass(trainer_class, FocalWeightMixin):
        config_class = FocalGRPOConfig.__mro__[1]
        changes = {k: v for k, v in changes.items() if k not in ("focal_gamma", "focal_renormalize", "success_reward")}
    args = config_class(**settings(out, **changes))
    tokenizer = build_tokenizer()
    data = Dataset.from_list(rows())
    return trainer_class(model, list(rewards), args, train_dataset=data, processing_class=tokenizer, **other)


def history(trainer: GRPOTrainer) -> list[tuple[float, float]]:
    """Loss and gradient norm of each logged step."""
    return [(entry["loss"], entry.get("grad_norm", nan)) for entry in trainer.state.log_history if "loss" in entry]
