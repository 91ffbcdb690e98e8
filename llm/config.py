"""Configuration of the trainer: TRL's `GRPOConfig` and what the focal weight adds."""

import math
import sys
import warnings
from dataclasses import dataclass, field

from trl import GRPOConfig

from fgrpo.llm.groups import SUCCESS_THRESHOLD
from fgrpo.theory import _validation as check

_LARGEST_MEANT = {
    **dict.fromkeys(("learning_rate", "beta", "weight_decay"), sys.float_info.max),
    **dict.fromkeys(("epsilon", "epsilon_high"), math.inf),  # no clipping
}
"""Settings that are at least 0, of which TRL takes any number, with the largest value that means something."""


@dataclass
class FocalGRPOConfig(GRPOConfig):
    """TRL's `GRPOConfig` with the settings of the focal weight; everything else means what it means there.

    Attributes:
        focal_gamma: Focal exponent, >= 0; 0 turns the weight off (bit for bit TRL's own training). The paper selects
            0.5 or 1, by model and loss.
        success_reward: Name of the reward function that defines success. May be left out where there is only one. A
            success signal that is not to be trained on is a reward function of weight 0 in `reward_weights`.
        success_threshold: A rollout is a success if the value of that function is above this, strictly; 0.5 serves
            rewards in {0, 1} and in {-1, 1}.
        focal_renormalize: Whether the weights of each generation are divided by their mean over its active groups (all
            processes), so that this mean is 1. False is the paper's method.
        rare_fractions: Rare fractions, in (0, 1), for which the tail-miss probability is estimated in the logs.

    Raises:
        ValueError: If focal_gamma is negative or not finite, success_threshold is not finite, a rare fraction is out of
            range, a setting of TRL is out of its range (a negative learning_rate, beta, epsilon, ... or top_p outside
            (0, 1]), the loss is cispo without epsilon_high (TRL would take 0.2, which scales every token down), or TRL
            refuses the rest.

    Warns:
        UserWarning: If checkpoints fall between two generations, or advantages are scaled across prompts
            (multi_objective_aggregation="normalize_then_sum", scale_rewards="batch"): each says what it means here.

    Source: Section 4 (v1 and v2) for the weight; the rest: this project.
    """

    focal_gamma: float = field(default=0.5, metadata={"help": "Focal exponent, at least 0; 0 turns the weight off."})
    success_reward: str | None = field(
        default=None,
        metadata={"help": "Name of the reward function that defines success; needed when there are several."},
    )
    success_threshold: float = field(
        default=SUCCESS_THRESHOLD, metadata={"help": "A rollout is a success if that reward is above this value."}
    )
    focal_renormalize: bool = field(
        default=False, metadata={"help": "Divide the weights by their mean over the active groups of a generation."}
    )
    rare_fractions: list[float] = field(
        default_factory=lambda: [0.01, 0.05, 0.2],
        metadata={"help": "Rare fractions for which the tail-miss probability is estimated in the logs."},
    )

    def __post_init__(self) -> None:
        """Check the focal settings, then TRL's, then what they mean together."""
        check.scalar("focal_gamma", check.gamma(self.focal_gamma))
        threshold = check.finite("success_threshold", self.success_threshold, "0.5 serves {0, 1} and {-1, 1}")
        check.scalar("success_threshold", threshold)
        check.open_probability("rare_fractions", self.rare_fractions)
        for name, largest in _LARGEST_MEANT.items():
            value = getattr(self, name)
            if value is not None and not 0.0 <= value <= largest:
                rule = "at least 0" if largest == math.inf else "finite and at least 0"
                default = type(self).__dataclass_fields__[name].default
                raise ValueError(f"{name} must be {rule}, got {value}: the default is {default}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}: 1 keeps all tokens")
        if self.loss_type == "cispo" and self.epsilon_high is None:
            raise ValueError(
                "epsilon_high must be set for loss_type='cispo', got None: it is the ceiling of the importance ratio, "
                "6.0 in the paper (TRL falls back to 0.2, which scales every token down)"
            )
        super().__post_init__()
        self._warn_of_lost_generations()
        self._warn_of_scaling_across_prompts()

    def _warn_of_lost_generations(self) -> None:
        steps_between = self.steps_per_generation * self.num_iterations
        if self.save_strategy != "steps" or self.save_steps < 1:
            return  # a share of all steps, which are not known here
        if self.save_steps * self.gradient_accumulation_steps % steps_between:
            warnings.warn(
                f"save_steps={self.save_steps:g} times gradient_accumulation_steps={self.gradient_accumulation_steps} "
                f"is no multiple of steps_per_generation * num_iterations = {steps_between}: TRL does not save "
                "rollouts, so a run resumed from such a checkpoint drops the rest of a generation and is not the run "
                "without a break",
                stacklevel=3,
            )

    def _warn_of_scaling_across_prompts(self) -> None:
        if self.multi_objective_aggregation == "normalize_then_sum":
            warnings.warn(
                "multi_objective_aggregation='normalize_then_sum' standardises each reward within its group and their "
                "sum over the whole batch: the focal weight comes after both, and is taken from success_reward alone",
                stacklevel=3,
            )
        elif self.scale_rewards == "batch":
            warnings.warn(
                "scale_rewards='batch' divides by one standard deviation for all prompts: the focal weight comes after "
                "it, so the size of an advantage is not that of the paper, which divides by each group's own",
                stacklevel=3,
            )
