"""From the success rewards of one generation to a success rate and a weight for each prompt's group.

Plain numpy on small arrays: the rows of all processes, in the order of their ranks, so that the rollouts of a prompt
stand side by side. Suffix _B: rows (rollouts), _P: groups (prompts).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgrpo.theory._validation import FloatArray

SUCCESS_THRESHOLD = 0.5
"""A reward above this is a success, strictly, where nobody says otherwise: serves {0, 1} and {-1, 1}."""


@dataclass(frozen=True)
class PromptGroups:
    """How many rollouts of each group could be scored, and how many of these are correct.

    Attributes:
        group_size: N, rollouts per prompt.
        scorable_P: Rollouts with a success reward (not None), in 0..N.
        correct_P: Correct ones among these.
    """

    group_size: int
    scorable_P: NDArray[np.int64]
    correct_P: NDArray[np.int64]

    @classmethod
    def from_rewards(
        cls, success_rewards_B: NDArray[np.floating[Any]], group_size: int, threshold: float
    ) -> "PromptGroups":
        """Groups of `group_size` consecutive rows; NaN is a row that could not be scored.

        The threshold is taken in the precision of the rewards, so that a reward of 0.1 is not above 0.1 in float32.

        Raises:
            ValueError: If the rows are no whole number of groups.
        """
        if len(success_rewards_B) % group_size:
            raise ValueError(
                f"rows must come in whole groups of {group_size}, got {len(success_rewards_B)} rows: "
                "this trl groups rollouts in another way, so the focal weight cannot be applied"
            )
        rewards = success_rewards_B.reshape(-1, group_size)
        scorable = rewards == rewards  # a NaN is not itself, and above no threshold
        return cls(group_size, scorable.sum(axis=1), (rewards > threshold).sum(axis=1))

    @cached_property
    def known_P(self) -> NDArray[np.bool_]:
        """Groups with at least one scorable rollout: the others have no success rate."""
        return self.scorable_P > 0

    @cached_property
    def active_P(self) -> NDArray[np.bool_]:
        """Groups with correct and wrong rollouts among the scorable ones."""
        return (self.correct_P > 0) & (self.correct_P < self.scorable_P)

    @cached_property
    def empirical_success_rate_P(self) -> FloatArray:
        """Share of correct ones among the scorable rollouts; NaN where there is none."""
        with np.errstate(invalid="ignore"):
            return self.correct_P / self.scorable_P

    def rows(self, values_P: FloatArray) -> FloatArray:
        """A value per group repeated for its rows: [P] -> [B]."""
        return values_P.repeat(self.group_size)


def renormalized(weight_P: FloatArray, active_P: NDArray[np.bool_]) -> FloatArray:
    """Weights of groups with a success rate, divided by their mean over the active ones.

    As they are if no group is active, or that mean is 0.
    """
    mean = weight_P[active_P].mean() if active_P.any() else 0.0
    return weight_P / mean if mean > 0 else weight_P
