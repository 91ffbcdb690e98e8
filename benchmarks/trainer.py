"""Cost of the focal weight as a share of a training step on the tiny model (target: below 1 %), diagnostics apart.

The model is the smallest there is, so the share on any other one is smaller. Run from the repository's root:
python benchmarks/trainer.py
"""

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback
from trl import GRPOTrainer

from fgrpo.llm import FocalGRPOConfig, FocalWeightMixin
from fgrpo.llm.tiny_world.model import build_model
from fgrpo.llm.tiny_world.task import MAX_COMPLETION_LENGTH, rows
from fgrpo.llm.tiny_world.tokenizer import build_tokenizer

OVERRIDDEN = ("_calculate_rewards", "_generate_and_score_completions")
WEIGHT = (*OVERRIDDEN, "_prompt_groups", "_weights", "_apply")
DIAGNOSTICS = ("_log_columns", "_log_diagnostics", "_log_magnitudes", "_log_weighted")
WARM_UP = 5


class Stopwatch(GRPOTrainer):
    """TRL's trainer, which keeps the CPU seconds of methods, step by step, each without those that it calls."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.inner = 0.0
        self.steps: list[dict[str, float]] = []
        self.step_began = 0.0
        for name in (*WEIGHT, *DIAGNOSTICS, "training_step"):
            setattr(self, name, self.timed(name, getattr(self, name)))
        self.trl = {name: self.timed("trl", getattr(super(Stopwatch, self), name)) for name in OVERRIDDEN}
        super().__init__(*arguments, **keywords)

    def timed(self, name: str, method: Any) -> Any:
        """The method, timed under a name."""

        def timed(*arguments: Any, **keywords: Any) -> Any:
            outer, self.inner = self.inner, 0.0
            start = time.thread_time()
            result = method(*arguments, **keywords)
            elapsed = time.thread_time() - start
            self.seconds[name] += elapsed - self.inner
            self.inner = outer + elapsed
            if name == "training_step":  # its end to the next one's: a whole step, with optimizer and loop
                now = time.thread_time()
                self.steps.append({**self.seconds, "step": now - self.step_began})
                self.seconds.clear()
                self.step_began = now
            return result

        return timed

    def _calculate_rewards(self, *arguments: Any) -> Any:
        return self.trl["_calculate_rewards"](*arguments)

    def _generate_and_score_completions(self, *arguments: Any) -> Any:
        return self.trl["_generate_and_score_completions"](*arguments)


class Timed(FocalWeightMixin, Stopwatch):
    """The trainer with focal weights, timed; what TRL does within the overridden methods is not their time."""


def starts_with_a_digit(completions: list[str], **_: Any) -> list[float]:
    """A reward that a model with random weights gets in most groups for some rollouts."""
    return [float(completion[:1].isdigit()) for completion in completions]


def measure(group_size: int, prompts: int, steps: int, folder: str) -> dict[str, float]:
    """Median shares of the CPU time of a training step, generation included; the first steps warm up."""
    args = FocalGRPOConfig(
        output_dir=folder,
        per_device_train_batch_size=group_size * prompts,
        num_generations=group_size,
        max_completion_length=MAX_COMPLETION_LENGTH,
        max_steps=steps + WARM_UP,
        focal_gamma=0.5,
        activation_checkpointing=False,
        bf16=False,
        disable_tqdm=True,
        logging_strategy="no",
        report_to=[],
        save_strategy="no",
        use_cpu=True,
    )
    data = Dataset.from_list(rows())
    model, tokenizer = build_model(), build_tokenizer()
    trainer = Timed(model, starts_with_a_digit, args, train_dataset=data, processing_class=tokenizer)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    taken = trainer.steps[WARM_UP:]
    totals = [step["step"] for step in taken]
    shares = {
        kind: statistics.median(
            sum(step[name] for name in names) / total for step, total in zip(taken, totals, strict=True)
        )
        for kind, names in (("weight", WEIGHT), ("diagnostics", DIAGNOSTICS))
    }
    return {"milliseconds": 1e3 * statistics.median(totals), **shares}


def main() -> None:
    """Print the shares for several group sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--prompts", type=int, default=16)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for group_size in (2, 8, 32):
        with tempfile.TemporaryDirectory() as folder:
            found = measure(group_size, options.prompts, options.steps, folder)
        print(
            f"N = {group_size}, {options.prompts} prompts, {found['milliseconds']:.0f} CPU ms a step: "
            f"weight {found['weight']:.2%}, diagnostics {found['diagnostics']:.2%}"
        )


if __name__ == "__main__":
    main()
