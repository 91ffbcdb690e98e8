"""What `torchrun` runs on each rank: the trainer's cases with two processes. Writes rank<k>.json into the given folder.

Every case runs to its end on all ranks, also where one of them finds an error, so that no rank waits for another.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from datasets import Dataset
from peft import LoraConfig
from trl import GRPOTrainer

from fgrpo.llm import FocalGRPOTrainer
from fgrpo.llm.tiny_world.task import rows
from reference.llm_runs import CheckedTrainer, build, easy_start, history, long_format, unsure_format, unsure_start

SPLIT = {"per_device_train_batch_size": 10, "num_generations": 4, "max_steps": 2}  # the third group lies on both ranks
CASES: dict[str, dict[str, Any]] = {
    "split group": SPLIT,
    "minibatches": {
        "per_device_train_batch_size": 4,
        "num_generations": 8,
        "gradient_accumulation_steps": 2,
        "steps_per_generation": 4,
        "num_iterations": 2,
        "max_steps": 5,
    },
    "renormalized, None": {
        **SPLIT,
        "focal_renormalize": True,
        "rewards": (unsure_format, unsure_start),
        "success_reward": "unsure_start",
    },
    "evaluation": {
        **SPLIT,
        "rewards": (long_format, easy_start),
        "success_reward": "easy_start",
        "eval_strategy": "steps",
        "eval_steps": 2,
        "eval_dataset": Dataset.from_list(rows()[:5]),
        "per_device_eval_batch_size": 3,
        "num_generations_eval": 2,
    },
}


class Lenient(CheckedTrainer):
    """Keeps the largest error."""

    tolerance = float("inf")


class RankZero(Lenient):
    """Mutant: every rank takes the weights of the first one for the loss, and nothing in the trainer looks."""

    def _apply(self, generation: Any, output: dict[str, Any]) -> None:
        super()._apply(replace(generation, here=slice(0, len(output["advantages"]))), output)

    def _log_weighted(self, generation: Any, used: torch.Tensor) -> None:
        unweighted = torch.tensor(list(self._logs["advantages"])[generation.here])
        super()._log_weighted(generation, unweighted * torch.tensor(generation.weight_B[generation.here]).float())


def largest_error(trainer_class: type[Lenient], out: Path, **changes: Any) -> float:
    own = type(trainer_class.__name__, (trainer_class,), {"rows_seen": 0, "rows_in_loss": 0, "largest_error": 0.0})
    trainer = build(own, out, **{"focal_gamma": 1.0, **changes})
    trainer.train()
    assert trainer.rows_in_loss > 0
    return float(own.largest_error)


def outcome(trainer_class: type[GRPOTrainer], out: Path, **changes: Any) -> tuple[Any, Any]:
    trainer = build(trainer_class, out, **changes)
    trainer.train()
    model = trainer.accelerator.unwrap_model(trainer.model)
    return {name: value.clone() for name, value in model.state_dict().items()}, history(trainer)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def main(folder: Path) -> None:
    """Run the cases and write what came of them."""
    state = PartialState(cpu=True)
    result: dict[str, Any] = {"world": state.num_processes, "backend": torch.distributed.get_backend()}
    result["errors"] = {case: largest_error(Lenient, folder, **changes) for case, changes in CASES.items()}
    for case, changes in {
        "split group": SPLIT,
        "cispo, adapter": {**SPLIT, "loss_type": "cispo", "epsilon_high": 6.0, "steps_per_generation": 2, "beta": 0.05},
    }.items():
        if "adapter" in case:
            changes["peft_config"] = LoraConfig(r=4, target_modules=["q_proj"], task_type="CAUSAL_LM")
        plain, plain_history = outcome(GRPOTrainer, folder, **changes)
        focal, focal_history = outcome(FocalGRPOTrainer, folder, **changes, focal_gamma=0.0)
        other, _ = outcome(FocalGRPOTrainer, folder, **changes, focal_gamma=1.0)
        result[f"{case}: gamma 0 is plain"] = same(plain, focal) and plain_history == focal_history
        result[f"{case}: gamma 1 is not"] = not same(plain, other)
        sums = gather_object([[float(value.double().sum()) for value in other.values()]])
        result[f"{case}: ranks agree"] = sums[0] == sums[-1]
    result["mutant error"] = largest_error(RankZero, folder, **SPLIT)
    (folder / f"rank{state.process_index}.json").write_text(json.dumps(result))
    state.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main(Path(sys.argv[1]))
