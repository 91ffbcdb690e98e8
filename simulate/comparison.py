"""Arms compared at matched progress: what a weight changes beyond how far a run has come.

A focal weight makes steps smaller, so at equal steps a weighted run is behind an unweighted one. Arms are therefore
read where they have come equally far:
1. rollouts: steps times N, that is, at equal cost;
2. correct_mass: where Q_pos first reaches a level;
3. start_kl: where KL(policy || start) first reaches a level.
Between two records a run is followed on a straight line. Every number is a mean over seeds with an interval
(fgrpo.simulate.intervals); a level that not all seeds of an arm reach has no mean, since those that do are selected.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.intervals import difference_interval, enough_seeds, mean_interval
from fgrpo.simulate.policy_config import PolicyClass, PolicyConfig
from fgrpo.simulate.sweep import paper_sweep
from fgrpo.theory import matched_learning_rate
from fgrpo.theory._validation import FloatArray, one_of

if TYPE_CHECKING:
    import pandas as pd


COMPARED_GAMMAS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0)
"""Focal exponents that are compared where none are given."""
OUTCOMES = ("retained_mass", "correct_entropy")
"""What is read at matched progress."""
LEVELS: dict[str, tuple[float, ...]] = {
    "correct_mass": (0.65, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
    "start_kl": (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0),
}
"""Levels of the two other kinds of progress."""
ROLLOUT_SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Levels of the rollouts, as shares of those of a whole run."""

_NAMES = {
    "retained_mass": "M_ret (retained_mass)",
    "correct_entropy": "entropy within the correct actions (correct_entropy, nats)",
    "rollouts": "rollouts",
    "correct_mass": "Q_pos (correct_mass)",
    "start_kl": "KL to the start (start_kl, nats)",
}

BASELINE, FOCAL, LOW_LEARNING_RATE, CONSTANT_SCALE = "baseline", "focal", "low learning rate", "constant scale"


@dataclass(frozen=True)
class Arm:
    """Runs that differ in group size and seed only.

    Attributes:
        kind: BASELINE (no weight), FOCAL, or a control: LOW_LEARNING_RATE, CONSTANT_SCALE.
        gamma: Focal exponent; of a control, the one whose step size it has.
        success_estimate: What the focal weight sees.
        runs: Its runs.
    """

    kind: str
    gamma: float
    success_estimate: str
    runs: tuple[RunConfig, ...]

    @property
    def label(self) -> str:
        """Its name in tables and legends."""
        if self.kind == BASELINE:
            return self.kind
        estimate = "" if self.success_estimate == "empirical" else f", {self.success_estimate} rate"
        return f"{self.kind} {self.gamma:g}{estimate}"


def comparison_arms(
    preset: str = "figure_matching",
    *,
    group_sizes: Iterable[int],
    gammas: Iterable[float] = COMPARED_GAMMAS,
    seeds: Iterable[int] = range(8),
    success_estimates: Iterable[str] = ("empirical",),
    **changes: Any,
) -> list[Arm]:
    """The unweighted baseline, the focal weights, and controls that have their step size but not their weight.

    Controls: for each gamma the paper's low learning rate, m_gamma times that of the others (`matched_learning_rate`,
    Appendix N in v2); and for the largest gamma all advantages times the constant m_gamma. The latter is a smaller step
    under SGD and none under Adam, which cancels constant factors: there it should show nothing.

    Args:
        preset: Update rule of all arms.
        group_sizes: Values of N; arms are compared within each.
        gammas: Focal exponents, at least one, above 0.
        seeds: At least two seeds.
        success_estimates: What the focal weights see, an arm for each.
        changes: Other fields, the same for all arms.

    Raises:
        ValueError: If no gamma or one that is not above 0 is given, there are fewer than two seeds, a field is
            unknown, or a value is invalid.
    """
    gammas, sizes, seeds = tuple(gammas), tuple(group_sizes), enough_seeds(seeds)
    if not gammas or not all(gamma > 0 for gamma in gammas):
        got = ", ".join(f"{gamma:g}" for gamma in gammas) or "none"
        raise ValueError(
            f"gamma must be at least one focal exponent above 0, got {got}: 0 is the baseline, which is always there"
        )

    def arm(kind: str, gamma: float, success_estimate: str = "empirical", **own: Any) -> Arm:
        exponent = gamma if kind == FOCAL else 0.0
        given = {**changes, "success_estimate": success_estimate, **own}
        runs = paper_sweep(preset, group_sizes=sizes, gammas=(exponent,), seeds=seeds, **given)
        return Arm(kind, gamma, success_estimate, tuple(runs))

    baseline = arm(BASELINE, 0.0)
    rate = baseline.runs[0].update.learning_rate
    strongest = max(gammas)
    return [
        baseline,
        *(arm(FOCAL, gamma, estimate) for gamma in gammas for estimate in success_estimates),
        *(arm(LOW_LEARNING_RATE, gamma, learning_rate=float(matched_learning_rate(gamma, rate))) for gamma in gammas),
        arm(CONSTANT_SCALE, strongest, weight="constant", weight_scale=float(matched_learning_rate(strongest))),
    ]


def against(arms: Sequence[Arm], label: str) -> list[Arm]:
    """The arms with another one first, to which `compare_arms` then compares the rest.

    Raises:
        ValueError: If no arm has this label.
    """
    one_of("against", label, [arm.label for arm in arms])
    return sorted(arms, key=lambda arm: arm.label != label)


def start_kl(
    policy: PolicyConfig, entropy: FloatArray, correct_mass: FloatArray, anchor_mass: FloatArray
) -> FloatArray:
    """KL(policy || start) in nats, exactly, from what is recorded: at least 0, and 0 at the start.

    KL = sum p log p - sum p z_0 + log sum exp z_0, where sum p z_0 needs no more than the masses of the sets of equal
    start logits z_0: the anchor, the other correct actions, the wrong ones. Its rounding error is about 1e-14.

    Args:
        policy: The start: one logit for all wrong actions, and one for all correct ones but the first.
        entropy: Of the policies, in nats.
        correct_mass: Q_pos of the policies.
        anchor_mass: Probability of action 0.

    Raises:
        ValueError: If the start has more logits than the recorded masses tell apart.

    Source: this project.
    """
    classes = policy.action_classes
    others = {one.logit for one in _without_first_action(classes) if one.correct}
    wrong = {one.logit for one in classes if not one.correct}
    if len(others) > 1 or len(wrong) > 1:
        raise ValueError(
            "the KL to the start needs a start with one logit for the wrong actions and one for the correct ones but "
            f"the first, got {len(others)} of the correct and {len(wrong)} of the wrong: "
            "match correct_mass and rollouts only"
        )
    anchor_logit, [wrong_logit] = classes[0].logit, wrong
    correct_logit = others.pop() if others else anchor_logit
    expected_logit = (
        wrong_logit * (1.0 - correct_mass) + correct_logit * (correct_mass - anchor_mass) + anchor_logit * anchor_mass
    )
    highest = max(one.logit for one in classes)
    log_total = highest + math.log(sum(one.count * math.exp(one.logit - highest) for one in classes))
    return np.maximum(-entropy - expected_logit + log_total, 0.0)


def _without_first_action(classes: Sequence[PolicyClass]) -> list[PolicyClass]:
    first, *rest = classes
    return [*([PolicyClass(first.count - 1, first.logit, True)] if first.count > 1 else []), *rest]


def at_level(progress: FloatArray, outcome: FloatArray, level: float) -> float:
    """The outcome where the progress first reaches a level, on straight lines between records; NaN if it never does.

    Args:
        progress: Over the records of one run, shape [R].
        outcome: Likewise.
        level: Value of the progress; one that the first record has already gives the first outcome.
    """
    reached = np.flatnonzero(progress >= level)
    if not reached.size:
        return math.nan
    after = int(reached[0])
    if after == 0:
        return float(outcome[0])
    before = after - 1
    part = (level - progress[before]) / (progress[after] - progress[before])
    return float(outcome[before] + part * (outcome[after] - outcome[before]))


def compare_arms(
    results: "pd.DataFrame",
    arms: Sequence[Arm],
    *,
    levels: Mapping[str, Sequence[float]] = LEVELS,
    rollout_shares: Sequence[float] = ROLLOUT_SHARES,
) -> "pd.DataFrame":
    """Every arm at every level of progress, and its difference to the first arm, within each group size.

    Args:
        results: Tidy results that hold all runs of the arms, one row per run and recorded step.
        arms: What the others are compared to first, as `comparison_arms` and `against` have it.
        levels: Levels of correct_mass and start_kl.
        rollout_shares: Levels of the rollouts as shares of the longest run's.

    Returns:
        A row per group_size, progress (its name), level, outcome (its name) and arm (kind, gamma, success_estimate):
        seeds, reached (of them), step (mean number of updates at the level), mean, low, high (`mean_interval`), gain,
        gain_low, gain_high (`difference_interval` to the first arm, NaN of itself). All but the counts are NaN where a
        seed of the arm, or for the gain of the first one, does not reach the level.

    Raises:
        ValueError: If a run is missing, there are fewer than two seeds, or the KL of the start cannot be had (see
            `start_kl`).
    """
    import pandas as pd

    runs = {str(run_id): rows.sort_values("step") for run_id, rows in results.groupby("run_id")}
    rows: list[dict[str, Any]] = []
    for size in dict.fromkeys(run.group_size for run in arms[0].runs):
        curves = [[_curve(runs, run) for run in arm.runs if run.group_size == size] for arm in arms]
        whole = float(max(curve["rollouts"][-1] for of_arm in curves for curve in of_arm))
        grids = {"rollouts": [share * whole for share in rollout_shares], **levels}
        for progress, grid in grids.items():
            for level in grid:
                for outcome in OUTCOMES:
                    rows += _at_one_level(arms, curves, size, progress, level, outcome)
    return pd.DataFrame(rows)


def _curve(runs: Mapping[str, "pd.DataFrame"], run: RunConfig) -> dict[str, FloatArray]:
    if run.run_id not in runs:
        raise ValueError(
            f"results must hold all runs of the arms, got none of {run.to_json()}: pass the results of run_sweep"
        )
    columns = {
        name: runs[run.run_id][name].to_numpy(dtype=np.float64)
        for name in ("step", "correct_mass", "entropy", "anchor_mass", *OUTCOMES)
    }
    kl = start_kl(run.policy, columns["entropy"], columns["correct_mass"], columns["anchor_mass"])
    return {**columns, "rollouts": columns["step"] * run.group_size, "start_kl": kl}


def _at_one_level(
    arms: Sequence[Arm],
    curves: Sequence[Sequence[Mapping[str, FloatArray]]],
    size: int,
    progress: str,
    level: float,
    outcome: str,
) -> list[dict[str, Any]]:
    rows = []
    of_first = np.array([at_level(curve[progress], curve[outcome], level) for curve in curves[0]])
    for arm, of_arm in zip(arms, curves, strict=True):
        values = np.array([at_level(curve[progress], curve[outcome], level) for curve in of_arm])
        steps = np.array([at_level(curve[progress], curve["step"], level) for curve in of_arm])
        # NaN, and not the mean of those that got there, where a seed did not: NaN in, NaN out
        mean = mean_interval(values)
        gain = difference_interval(math.nan * values if arm is arms[0] else values, of_first)
        rows.append(
            {
                "group_size": size,
                "progress": progress,
                "level": level,
                "outcome": outcome,
                "kind": arm.kind,
                "gamma": arm.gamma,
                "success_estimate": arm.success_estimate,
                "arm": arm.label,
                "seeds": len(values),
                "reached": int(np.isfinite(values).sum()),
                "step": float(steps.mean()),
                "mean": mean.mean,
                "low": mean.lower,
                "high": mean.upper,
                "gain": gain.mean,
                "gain_low": gain.lower,
                "gain_high": gain.upper,
            }
        )
    return rows


def comparison_text(table: "pd.DataFrame", outcome: str = "retained_mass") -> str:
    """The table as text: a block per group size and progress, a line per arm, a column per level.

    A cell is the mean and, in brackets, its difference to the first arm with half the length of its 95 % interval, a
    star where that interval excludes 0; where not all seeds reach the level, how many do. Levels that no arm reaches
    have no column: they are named below the block. The last lines say what the cells are.
    """
    shown = table[table["outcome"] == outcome]
    reached = shown.groupby(["group_size", "progress", "level"])["reached"].transform("max")
    blocks = []
    for (size, progress), asked in shown.groupby(["group_size", "progress"], sort=False):
        rows = asked[reached.loc[asked.index] > 0]
        cells = {(row["arm"], row["level"]): _cell(row) for row in rows.to_dict("records")}
        levels, labels = rows["level"].unique(), rows["arm"].unique()
        width = max(map(len, labels), default=0)
        lines = [f"N = {size}: {_NAMES[outcome]} at matched {_NAMES[str(progress)]}"]
        if len(levels):
            lines.append(" " * width + "".join(f"{level:>22g}" for level in levels))
        lines += [f"{arm:<{width}}" + "".join(f"{cells[arm, level]:>22}" for level in levels) for arm in labels]
        if never := [f"{level:g}" for level in asked["level"].unique() if level not in levels]:
            lines.append(f"reached by no seed of any arm: {progress} {', '.join(never)}")
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, _legend(str(table["arm"].iloc[0]))])


def _legend(first: str) -> str:
    return (
        f"mean over the seeds (difference to {first} ± half of its 95 % interval); *: that interval excludes 0\n"
        "reached k/n: k of n seeds get to the level, so that there is no mean"
    )


def _cell(row: Mapping[Any, Any]) -> str:
    if row["reached"] < row["seeds"]:
        return f"reached {row['reached']}/{row['seeds']}"
    if math.isnan(row["gain"]):
        return f"{row['mean']:.3f}"
    star = "" if row["gain_low"] <= 0 <= row["gain_high"] else "*"
    gain = round(row["gain"], 3) + 0.0  # + 0.0: no -0.000
    return f"{row['mean']:.3f} ({gain:+.3f}±{(row['gain_high'] - row['gain_low']) / 2:.3f}){star}"
