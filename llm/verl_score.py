"""verl's reward function for mathematics: `MathReward` behind the signature of a custom reward function.

To be named in verl's configuration: reward.custom_reward_function.path=pkg://fgrpo.llm.verl_score.
"""

import functools
from typing import Any

from fgrpo.llm.rewards import MathReward


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> float:
    r"""Score of a response: 1.0 if the last \boxed{} equals the reference answer by math-verify, else 0.0.

    verl calls it from threads of its reward workers; each worker process keeps one process that compares.

    Args:
        data_source: Not used.
        solution_str: The response's text.
        ground_truth: The reference answer.
        extra_info: Not used.

    Returns:
        1.0 or 0.0; NaN where the reference answer is no mathematics: `focal_grpo` leaves such a rollout out of its
        group (verl's `grpo` would spread the NaN over the group).

    Source: App. L (v2): rewards 1.0 / 0.0 by math-verify.
    """
    (reward,) = _reward()(None, [solution_str], answer=[ground_truth])
    return float("nan") if reward is None else reward


@functools.cache
def _reward() -> MathReward:
    return MathReward(name="verl_score")
