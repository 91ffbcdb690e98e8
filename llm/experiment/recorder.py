"""The trainer of the experiment: F-GRPO's, with the weight of an arm and exact records of what each generation does.

Scoring takes no random numbers and changes nothing, so a recorded run is bit for bit the run without records.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import TrainerCallback

from fgrpo.llm.experiment.arms import Arm
from fgrpo.llm.tiny_world.exact import ExactPolicy, exact_policy, measures, world_policies
from fgrpo.llm.tiny_world.modes import AnswerModes
from fgrpo.llm.tiny_world.task import SUMS, asked_sum, prompts
from fgrpo.llm.tiny_world.tree import PAIRS
from fgrpo.llm.trainer import FocalGRPOTrainer
from fgrpo.theory import tail_miss_probability
from fgrpo.theory._validation import FloatArray


class Records:
    """Rows of two tables: exact evaluations, one per step and prompt; groups, one per prompt of a generation.

    Args:
        arm: The arm that runs.
        modes: The modes of its world.
        evaluated_steps: Updates after which the policy is evaluated.
        updates_of_groups: Generations before this update are recorded.
    """

    def __init__(self, arm: Arm, modes: AnswerModes, evaluated_steps: Sequence[int], updates_of_groups: int) -> None:
        self.arm, self.modes = arm, modes
        self.evaluated_steps = frozenset(evaluated_steps)
        self.updates_of_groups = updates_of_groups
        self.evaluations: list[dict[str, Any]] = []
        self.groups: list[dict[str, Any]] = []
        self._start: dict[str, ExactPolicy] = {}
        self._open: list[tuple[dict[str, Any], int, NDArray[np.bool_]]] = []  # groups whose change is not known yet

    def evaluate(self, model: Any, step: int, rollouts: int) -> None:
        """Exact numbers of the policy after an update."""
        policies = world_policies(model)
        self._start = self._start or policies
        columns = measures(self._start, policies, self.modes)
        for row, total in enumerate(SUMS):
            numbers = {name: float(values[row]) for name, values in columns.items()}
            self.evaluations.append(
                {
                    "step": step,
                    "rollouts": rollouts,
                    "prompt": prompts()[row],
                    "sum": total,
                    "base_success_rate": float(self.modes.success_rate_P[row]),
                    **numbers,
                }
            )

    def generation(
        self,
        model: Any,
        step: int,
        asked_P: Sequence[str],
        completions: Sequence[str],
        rewards: FloatArray,
        weight_P: FloatArray,
    ) -> None:
        """Groups drawn from the present policy: what was expected of them, what came, what they were weighted with."""
        present = exact_policy(model, prompts())
        self.close_changes(present)
        if step >= self.updates_of_groups:
            return
        size = self.arm.group_size
        for group, (prompt, weight) in enumerate(zip(asked_P, weight_P, strict=True)):
            row, drawn = SUMS.index(asked_sum(prompt)), slice(group * size, (group + 1) * size)
            correct = rewards[drawn] > 0
            sampled_A = np.zeros(PAIRS, dtype=np.bool_)
            sampled_A[[int(text[:2]) for text, right in zip(completions[drawn], correct, strict=True) if right]] = True
            probability_A = present.correct_PA[row]
            success_rate = min(float(probability_A.sum()), 1.0)
            rare_mass = min(float(probability_A[self.modes.rare_PA[row]].sum()), success_rate)
            active = 0 < correct.sum() < size
            record = {
                "step": step,
                "prompt": prompt,
                "group_size": size,
                "base_success_rate": float(self.modes.success_rate_P[row]),
                "success_rate": success_rate,
                "rare_mass": rare_mass,
                "empirical_success_rate": float(correct.mean()),
                "focal_weight": float(weight),
                "is_active": active,
                "is_tail_miss": bool(active and not (sampled_A & self.modes.rare_PA[row]).any()),
                "tail_miss_probability": float(tail_miss_probability(success_rate, rare_mass, size)),
                "unsampled_correct_mass": float(probability_A[~sampled_A].sum()),
            }
            self.groups.append(record)
            self._open.append((record, row, ~sampled_A))

    def close_changes(self, present: ExactPolicy) -> None:
        """What the updates from the last generation have done to correct mass, all of it and what was not sampled."""
        for record, row, unsampled_A in self._open:
            after_A = present.correct_PA[row]
            record["correct_mass_change"] = float(after_A.sum()) - record["success_rate"]
            record["unsampled_mass_change"] = float(after_A[unsampled_A].sum()) - record["unsampled_correct_mass"]
        self._open = []


class RecordedTrainer(FocalGRPOTrainer):
    """`FocalGRPOTrainer` with the weights of an arm, which writes down its groups.

    Args:
        records: Where to, and the arm.
        *positional: As for `FocalGRPOTrainer`.
        **named: As for `FocalGRPOTrainer`.
    """

    def __init__(self, *positional: Any, records: Records, **named: Any) -> None:
        super().__init__(*positional, **named)
        self.records = records
        self._asked_P: list[str] = []
        self._easy = dict(zip(SUMS, records.modes.easy_P, strict=True))

    def group_weights(self, success_rate_P: FloatArray) -> FloatArray:
        """The weight of the arm; every rollout of the tiny world can be scored, so there is one rate per prompt."""
        easy_P = np.array([self._easy[asked_sum(prompt)] for prompt in self._asked_P])
        return self.records.arm.weights(success_rate_P, easy_P)

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        """Rewards as always; the policy is still the one that drew, so this is where it is scored."""
        size = self.num_generations
        self._asked_P = prompts[::size]
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        step = self.state.global_step
        assert self._generation is not None  # the experiment only trains
        if step <= self.records.updates_of_groups:
            self.records.generation(
                self.model,
                step,
                self._asked_P,
                completions,
                rewards[:, 0].double().cpu().numpy(),
                self._generation.weight_B[::size],
            )
        return rewards


class EvaluationCallback(TrainerCallback):
    """Evaluates exactly before the first update and after those that the records ask for."""

    def __init__(self, records: Records, rollouts_per_update: float) -> None:
        self.records, self.rollouts_per_update = records, rollouts_per_update

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The policy at the start."""
        self._evaluate(others["model"], 0)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The policy after an update."""
        if state.global_step in self.records.evaluated_steps:
            self._evaluate(others["model"], state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The change that the last generation made."""
        self.records.close_changes(exact_policy(others["model"], prompts()))

    def _evaluate(self, model: Any, step: int) -> None:
        self.records.evaluate(model, step, round(step * self.rollouts_per_update))
