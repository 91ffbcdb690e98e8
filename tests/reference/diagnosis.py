"""A literal diagnosis: loops over lists of groups, powers as they are written, no arrays.

A group is (step, prompt, list of (reward or None, answer)).
"""

from itertools import combinations
from math import sqrt
from typing import Any

from scipy import stats

Group = tuple[int, str, list[tuple[float | None, str]]]


def blocks(rows: list[dict[str, Any]], group_size: int, reward: str) -> list[Group]:
    """Every `group_size` consecutive rows are a group."""
    groups = []
    for start in range(0, len(rows), group_size):
        members = rows[start : start + group_size]
        assert len({str(row["prompt"]) for row in members}) == 1
        rollouts = [(None if row[reward] != row[reward] else row[reward], row["completion"]) for row in members]
        groups.append((members[0]["step"], str(members[0]["prompt"]), rollouts))
    return groups


def count(group: Group, threshold: float) -> tuple[int, int]:
    """Right and scored rollouts."""
    scored = [reward for reward, _ in group[2] if reward is not None]
    return sum(reward > threshold for reward in scored), len(scored)


def mean_interval(values: list[float]) -> tuple[float, float, float]:
    mean = sum(values) / len(values)
    error = sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1)) / sqrt(len(values))
    half = stats.t.ppf(0.975, len(values) - 1) * error
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def share_interval(part: int, whole: int) -> tuple[float, float, float]:
    limits = stats.binomtest(part, whole).proportion_ci(0.95, method="exact")
    return part / whole, limits.low, limits.high


def miss(mu: float, tau: float, n: float) -> float:
    return (1 - tau) ** n - (mu - tau) ** n - (1 - mu) ** n


def regime(mu: float, tau: float, n: int, level: float) -> str:
    if miss(mu, tau, n) >= level:
        return "miss-prone"
    return "inactive" if miss(mu, tau, n + 1e-5) >= miss(mu, tau, n - 1e-5) else "covered"


def diagnose(
    groups: list[Group], *, threshold: float, rhos: list[float], gammas: list[float], n: int, level: float
) -> dict[str, Any]:
    """The numbers of a run or of a part of it; groups without a scored rollout must have been left out."""
    counts = [count(group, threshold) for group in groups]
    active = [(x, size) for x, size in counts if 0 < x < size]
    result: dict[str, Any] = {
        "groups": len(groups),
        "rollouts": sum(size for _, size in counts),
        "success_rate": mean_interval([x / size for x, size in counts]),
        "active_share": share_interval(len(active), len(groups)),
        "all_wrong_share": share_interval(sum(x == 0 for x, _ in counts), len(groups)),
        "all_right_share": share_interval(sum(x == size for x, size in counts), len(groups)),
        "tail_miss": [mean_interval([(1 - rho) ** x if 0 < x < size else 0.0 for x, size in counts]) for rho in rhos],
        "plug_in": [sum(miss(x / size, rho * x / size, size) for x, size in counts) / len(groups) for rho in rhos],
    }

    prompts: dict[str, list[int]] = {}
    for (_, prompt, _), (x, size) in zip(groups, counts, strict=True):
        totals = prompts.setdefault(prompt, [0, 0])
        totals[0] += x
        totals[1] += size
    result["prompts"] = prompts
    result["regimes"] = [
        {
            name: sum(
                regime((x + 1) / (size + 2), rho * (x + 1) / (size + 2), n, level) == name
                for x, size in prompts.values()
            )
            / len(prompts)
            for name in ("inactive", "miss-prone", "covered")
        }
        for rho in rhos
    ]

    right = [[answer for r, answer in group[2] if r is not None and r > threshold] for group in groups]
    filled = [len(set(answers)) for answers in right if answers]
    result["distinct_correct"] = sum(filled) / len(filled)
    pairs = [a != b for answers in right for a, b in combinations(answers, 2)]
    result["correct_pairs_differ"] = sum(pairs) / len(pairs)
    per_prompt: dict[str, set[str]] = {}
    for group, answers in zip(groups, right, strict=True):
        per_prompt.setdefault(group[1], set()).update(answers)
    result["distinct_of_prompts"] = {prompt: len(answers) for prompt, answers in per_prompt.items()}

    result["what_if"] = [_what_if(counts, active, gamma, rhos) for gamma in gammas]
    return result


def _what_if(
    counts: list[tuple[int, int]], active: list[tuple[int, int]], gamma: float, rhos: list[float]
) -> dict[str, Any]:
    weights = [(1 - x / size) ** gamma for x, size in active]
    answer: dict[str, Any] = {
        "mean_weight": sum((1 - x / size) ** gamma for x, size in counts) / len(counts),
        "mean_weight_given_active": sum(weights) / len(weights),
        "effective_groups": sum(weights) ** 2 / sum(weight**2 for weight in weights),
    }
    for scale in ("std", "none"):
        strength, bare = [], []
        for (x, size), weight in zip(active, weights, strict=True):
            deviations = [1 - x / size] * x + [x / size] * (size - x)  # |reward - mean|, rewards 1 and 0
            spread = sqrt(sum(d * d for d in deviations) / size) if scale == "std" else 1.0
            bare.append(sum(deviations) / size / spread)
            strength.append(weight * bare[-1])
        total = sum(strength)
        answer[scale] = {
            "matched_scale": total / sum(bare),
            "shares": [
                sum(s for (x, size), s in zip(active, strength, strict=True) if low <= x / size < low + 0.25) / total
                for low in (0.0, 0.25, 0.5, 0.75)
            ],
            "tail_miss_shares": [
                sum(s * (1 - rho) ** x for (x, _), s in zip(active, strength, strict=True)) / total for rho in rhos
            ],
        }
    return answer
