"""Advantages recomputed from text, literally: rewards, group means, sample standard deviations, focal weights."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import fmean, stdev
from typing import Any

EPSILON = 1e-4  # what TRL adds to a standard deviation

Reward = Callable[..., list[Any]]


@dataclass(frozen=True)
class Row:
    """What one rollout should have."""

    advantage: float
    empirical_success_rate: float
    focal_weight: float


def expected_rows(
    prompts: Sequence[str],
    completions: Sequence[str],
    groups: Sequence[Hashable],
    rewards: Sequence[Reward],
    *,
    success: int,
    reward_weights: Sequence[float] | None = None,
    threshold: float = 0.5,
    weight: Callable[[float], float],
    scale: str = "group",
    renormalize: bool = False,
) -> list[Row]:
    """Rows of one generation; `groups` says which belong together, `success` which reward function defines success."""
    columns = [[nan if r is None else float(r) for r in f(prompts=prompts, completions=completions)] for f in rewards]
    factors = reward_weights or [1.0] * len(rewards)
    totals = []
    for values in zip(*columns, strict=True):
        known = [f * v for f, v in zip(factors, values, strict=True) if not isnan(v)]
        totals.append(sum(known) if known else nan)
    members: dict[Hashable, list[int]] = {}
    for i, group in enumerate(groups):
        members.setdefault(group, []).append(i)
    everything = [t for t in totals if not isnan(t)]
    rate, weights, active, advantage = {}, {}, {}, {}
    for group, rows in members.items():
        scored = [columns[success][i] > threshold for i in rows if not isnan(columns[success][i])]
        rate[group] = sum(scored) / len(scored) if scored else nan
        weights[group] = weight(rate[group]) if scored else 1.0
        active[group] = bool(scored) and 0 < sum(scored) < len(scored)
        known = [totals[i] for i in rows if not isnan(totals[i])]
        spread = {"group": known, "batch": everything, "none": []}[scale]
        for i in rows:
            if isnan(totals[i]):
                advantage[i] = 0.0
                continue
            deviation = stdev(spread) if len(spread) > 1 else 0.0
            advantage[i] = (totals[i] - fmean(known)) / (1.0 if scale == "none" else deviation + EPSILON)
    live = [weights[g] for g in members if active[g]]
    if renormalize and live and fmean(live) > 0:
        weights = {g: w if isnan(rate[g]) else w / fmean(live) for g, w in weights.items()}
    return [Row(advantage[i] * weights[g], rate[g], weights[g]) for i, g in enumerate(groups)]
