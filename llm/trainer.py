"""The trainer: TRL's GRPO with the advantages of each prompt times the focal weight of its group.

Two methods of TRL are overridden, both call super, and nothing of them is repeated. `_calculate_rewards` returns the
rewards of all processes, rows in the order of the ranks, so that the rollouts of a prompt stand side by side: there the
success rates and weights are taken. `_generate_and_score_completions` returns the advantages of this process: there
they are multiplied, before TRL shuffles them, splits them for accumulation and keeps them for further iterations, so
that weights travel with their rows. The weight is on the advantage and not on the loss: a KL or entropy term is not
weighted.

What this means in the corners:

1. Success is the reward function `success_reward` above `success_threshold`, never the weighted sum of rewards.
2. A rollout whose success reward is None enters no success rate. A group without any has weight 1: nothing is known
   of how easy it is, so it is trained as without the weight.
3. A group with success rate 1 has weight 0 (gamma > 0), also where other rewards gave its rollouts different
   advantages: the weight silences the prompt, not the reward.
4. Truncated rollouts count as whatever the success reward says (wrong, as a rule), also with
   `mask_truncated_completions`, where TRL keeps them in its baseline and out of the loss.
5. Evaluation is never weighted. Its groups have `num_generations_eval` rollouts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from trl import GRPOTrainer

from fgrpo.llm import contract, diagnostics
from fgrpo.llm.config import FocalGRPOConfig
from fgrpo.llm.groups import PromptGroups, renormalized
from fgrpo.llm.resuming import ResumingCallback
from fgrpo.theory import focal_weight
from fgrpo.theory._validation import FloatArray

if TYPE_CHECKING:
    from trl import GRPOTrainer as _Trainer  # which stands behind the mixin wherever it is used
else:
    _Trainer = object

_weight_of = lru_cache(maxsize=2**16)(focal_weight)
"""The rates of groups of N rollouts are few, and come again at every step: each is computed and checked once."""


@dataclass
class _Generation:
    """One call of `_generate_and_score_completions` in training: the weights of all its rows, and whether applied."""

    weight_B: FloatArray
    here: slice  # rows of this process
    applied: bool = False


class FocalWeightMixin(_Trainer):
    """Focal weights for `GRPOTrainer` or a subclass that keeps its two methods; goes in front of it among the bases.

    The one thing that changes is the advantages in training. See `FocalGRPOTrainer` for the ready class.
    """

    args: FocalGRPOConfig
    _generation: _Generation | None = None

    def __init__(self, model: Any, reward_funcs: Any = None, args: Any = None, *rest: Any, **keywords: Any) -> None:
        contract.check_class(type(self), FocalWeightMixin)
        if not isinstance(args, FocalGRPOConfig):
            raise ValueError(f"args must be a FocalGRPOConfig, got {type(args).__name__}: pass args=FocalGRPOConfig()")
        super().__init__(model, reward_funcs, args, *rest, **keywords)
        contract.check_trainer(self)
        self.add_callback(ResumingCallback(self))
        self._success_index = success_index(self.reward_func_names, args.success_reward)

    def group_weights(self, success_rate_P: FloatArray) -> FloatArray:
        """Weight of each group from its empirical success rate: `fgrpo.theory.focal_weight` at `focal_gamma`.

        Override it for another weight. It is called once per generation, on every process with the same rates: those of
        all groups with a scorable rollout, float64 in [0, 1].

        Returns:
            Finite weights >= 0, one per group.
        """
        gamma = self.args.focal_gamma
        return np.array([_weight_of(rate, gamma) for rate in success_rate_P.tolist()])

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        """Rewards as TRL has them; on the way, success rates and weights are taken and logged."""
        rewards: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        rows, processes = len(prompts), self.accelerator.num_processes
        if rewards.size(0) != rows * processes:
            raise contract.changed(f"rewards must have {processes} times {rows} rows", str(rewards.size(0)))
        groups = self._prompt_groups(rewards)
        first = self.accelerator.process_index * rows
        here = slice(first, first + rows)
        if self.environments is None and not {"image", "images"} & set(inputs[0]):
            _check_prompts(prompts, first, groups.group_size)  # an environment may give each rollout its own
        training = self.model.training
        weight_P = self._weights(groups) if training else np.ones_like(groups.empirical_success_rate_P)
        weight_B = groups.rows(weight_P)
        self._generation = _Generation(weight_B, here) if training else None
        self._log_columns(groups, weight_B, here)
        self._log_diagnostics(groups, weight_P)
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        """TRL's rollouts with their advantages, in training those times the weight."""
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        generation, self._generation = self._generation, None
        if self.model.training:
            if generation is None:
                raise contract.changed("advantages must be made from _calculate_rewards", "a generation without a call")
            if not generation.applied:
                self._apply(generation, output)
                self._log_weighted(generation, output["advantages"])
        return output

    def _transform_advantages(self, advantages: torch.Tensor) -> torch.Tensor:
        """Advantages of all processes times the weight: the hook of a later TRL, which logs what it returns."""
        base = getattr(super(), "_transform_advantages", None)
        advantages = advantages if base is None else base(advantages)
        if self._generation is None:
            return advantages
        self._generation.applied = True
        weighted = advantages * _like(self._generation.weight_B, advantages)
        self._log_magnitudes(advantages, weighted)
        return weighted

    def _apply(self, generation: _Generation, output: dict[str, Any]) -> None:
        """Multiply the advantages of this process."""
        advantages, here = output["advantages"], generation.weight_B[generation.here]
        if advantages.size(0) != len(here):
            raise contract.changed(f"advantages must have {len(here)} rows", str(advantages.size(0)))
        output["advantages"] = advantages * _like(here, advantages)

    def _log_weighted(self, generation: _Generation, used: torch.Tensor) -> None:
        """Put the weighted advantages of all processes in the place of those that TRL has logged already."""
        logged = self._logs["advantages"]  # of all rows, or of the last ones where it holds no more
        count = min(len(logged), len(generation.weight_B))
        unweighted = torch.tensor([logged.pop() for _ in range(count)][::-1], dtype=used.dtype)
        weighted = unweighted * _like(generation.weight_B[-count:], unweighted)
        logged.extend(weighted.tolist())
        comparable = count == len(generation.weight_B) and used.dim() == weighted.dim()
        if comparable and not torch.equal(weighted[generation.here], used.cpu()):
            raise contract.changed("logged advantages must be those of the ranks in order", "others")
        self._log_magnitudes(unweighted, weighted)

    def _prompt_groups(self, rewards: torch.Tensor) -> PromptGroups:
        size = self.num_generations if self.model.training else self.num_generations_eval
        success_rewards_B = rewards[:, self._success_index].cpu().numpy()
        return PromptGroups.from_rewards(success_rewards_B, size, self.args.success_threshold)

    def _weights(self, groups: PromptGroups) -> FloatArray:
        """Of all groups; 1 for those without a scorable rollout."""
        known = groups.known_P
        weight_P = np.ones(len(known))
        weight_P[known] = self.group_weights(groups.empirical_success_rate_P[known])
        weights = weight_P.tolist()
        if not all(0.0 <= weight < inf for weight in weights):  # a NaN is neither
            raise ValueError(
                f"group_weights must return finite weights of at least 0, got {weights}: "
                "bound the weight at success rates 0 and 1"
            )
        if self.args.focal_renormalize:
            weight_P[known] = renormalized(weight_P[known], groups.active_P[known])
        return weight_P

    def _log_columns(self, groups: PromptGroups, weight_B: FloatArray, here: slice) -> None:
        rate_B = groups.rows(groups.empirical_success_rate_P)
        for name, values in (("empirical_success_rate", rate_B), ("focal_weight", weight_B)):
            if name in self._pending_extra_logs:
                raise ValueError(
                    f"the completions table already has a column {name!r}, got another of that name from a reward "
                    "function: rename what it logs"
                )
            self._log_completion_extra(name, values[here].tolist())

    def _log_diagnostics(self, groups: PromptGroups, weight_P: FloatArray) -> None:
        training = self.model.training
        metrics = self._metrics["train" if training else "eval"]
        values = diagnostics.success_diagnostics(groups, self.args.rare_fractions)
        if training:
            values |= diagnostics.weight_diagnostics(groups, weight_P)
        if metrics.get("completions/clipped_ratio"):
            values["focal/truncated_share"] = metrics["completions/clipped_ratio"][-1]
        for key, value in values.items():
            metrics[key].append(value)

    def _log_magnitudes(self, unweighted: torch.Tensor, weighted: torch.Tensor) -> None:
        metrics = self._metrics["train"]
        metrics["focal/advantage_magnitude_unweighted"].append(unweighted.abs().mean().item())
        metrics["focal/advantage_magnitude"].append(weighted.abs().mean().item())


class FocalGRPOTrainer(FocalWeightMixin, GRPOTrainer):
    """TRL's `GRPOTrainer` with focal weights: the advantages of a prompt times (1 - empirical success rate)^gamma.

    Takes the arguments of `GRPOTrainer`, with a `FocalGRPOConfig` as `args`. With `focal_gamma = 0` parameters, losses
    and gradient norms are bit for bit those of `GRPOTrainer`.

    Raises:
        ValueError: If `args` is no `FocalGRPOConfig`, if success is not defined (no reward function of that name, or
            several and none named), if a reward function has the name of a logged column, or if the installed TRL
            works otherwise than expected.

    Source: Section 4 (v1 and v2).
    """

    _tag_names = ["trl", "grpo", "fgrpo"]  # noqa: RUF012  (TRL's attribute)
    _name = "F-GRPO"
    _paper = {  # noqa: RUF012
        "title": "F-GRPO: Don't Let Your Policy Learn the Obvious and Forget the Rare",
        "id": "2602.06717",
    }


def success_index(names: Sequence[str], success_reward: str | None) -> int:
    """Index of the reward function that defines success.

    Args:
        names: Names of the reward functions as TRL logs them.
        success_reward: One of them; None where there is only one.

    Raises:
        ValueError: If success is not defined, or a function has the name of a column that is logged.
    """
    for name in diagnostics.COLUMNS:
        if name in names:
            raise ValueError(
                f"a reward function must not be called {name!r}, got {', '.join(names)}: the completions table has a "
                "column of that name, rename the function"
            )
    if success_reward is None and len(names) == 1:
        return 0
    listed = ", ".join(names)
    if success_reward is None:
        raise ValueError(f"success_reward must name one of the reward functions, got None and {listed}: set it")
    if names.count(success_reward) != 1:
        raise ValueError(
            f"success_reward must name exactly one reward function, got {success_reward!r} and {listed}: "
            "pass one of these names, or rename a function"
        )
    return list(names).index(success_reward)


def _check_prompts(prompts: list[Any], first_row: int, group_size: int) -> None:
    """Refuse rows of which one group has two prompts; `first_row` of all rows is the first one here."""
    for i in range(1, len(prompts)):
        if (first_row + i) % group_size and prompts[i] != prompts[i - 1]:
            raise contract.changed(f"each {group_size} rows in turn must share their prompt", f"two at row {i}")


def _like(weights_B: FloatArray, advantages: torch.Tensor) -> torch.Tensor:
    """Weights [B] as a tensor that multiplies advantages [B] or [B, T]."""
    weights = torch.as_tensor(weights_B, dtype=advantages.dtype, device=advantages.device)
    return weights.reshape(-1, *[1] * (advantages.dim() - 1))
