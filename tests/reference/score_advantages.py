"""Focal advantages taken literally, from scores: one rollout at a time, in numpy float64."""

from collections.abc import Hashable, Sequence

import numpy as np


def score_advantages(
    scores: Sequence[float | None],
    prompts: Sequence[Hashable],
    gamma: float,
    *,
    threshold: float = 0.5,
    epsilon: float = 1e-6,
    normalise: bool = True,
) -> list[float]:
    """Advantage of each rollout; None or NaN is no score, gives 0 and does not count in its group."""
    advantages = []
    for score, prompt in zip(scores, prompts, strict=True):
        everyone = [other for other, p in zip(scores, prompts, strict=True) if p == prompt]
        group = np.array([other for other in everyone if other is not None and not np.isnan(other)], dtype=np.float64)
        if score is None or np.isnan(score) or (len(group) == 1 and len(everyone) > 1):
            advantages.append(0.0)
            continue
        wrong = sum(1 for other in group if not other > threshold)
        mean, deviation = (group.mean(), group.std(ddof=1)) if len(group) > 1 else (0.0, 1.0)
        scale = deviation + epsilon if normalise else 1.0
        advantages.append(float((score - mean) / scale * (wrong / len(group)) ** gamma))
    return advantages
