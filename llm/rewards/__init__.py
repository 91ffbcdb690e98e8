"""Rewards in TRL's convention: f(prompts, completions, **columns) gives each completion a float, or None: no say.

A completion is a text or a list of chat messages. `MathReward` judges mathematics, `exact_match` compares texts,
`thresholded` turns any scorer into a success of 0 or 1. `REWARDS` has those that need no arguments, by name.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from fgrpo.llm.rewards.completions import RewardFunction, completion_text, last_box
from fgrpo.llm.rewards.matching import exact_match, thresholded
from fgrpo.llm.rewards.math_reward import MathReward

REWARDS: Mapping[str, Callable[[], RewardFunction]] = MappingProxyType(
    {
        "math_reward": MathReward,
        "signed_math_reward": partial(MathReward, reward_wrong=-1.0, name="signed_math_reward"),
        "exact_match": lambda: exact_match,
    }
)
"""What makes each reward that a recipe may name: `REWARDS[name]()`. The name is also that of TRL's columns."""

__all__ = ["REWARDS", "MathReward", "RewardFunction", "completion_text", "exact_match", "last_box", "thresholded"]
