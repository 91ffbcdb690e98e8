"""What the groups of a run show: success, activity, tail misses, regimes and answers, over all steps or some.

Tail misses. A run does not show which right answers are rare, so a rare fraction rho = tau / mu is assumed. The
estimate is that of `fgrpo.theory.tail_miss_estimate`, unbiased whatever the success rates.

Regimes are those of the prompts' counts in a window at the shrunk success rate (X + 1) / (n + 2).
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fgrpo.diagnosis.answers import NO_ANSWER
from fgrpo.diagnosis.model import Estimate, Part, Regimes, TailMiss, Trend
from fgrpo.diagnosis.rollouts import IntArray, Rollouts
from fgrpo.simulate.intervals import FEWEST_SEEDS, LEVEL, difference_interval, mean_interval
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.pass_estimates import pass_at_k_interval
from fgrpo.theory.risk import tail_miss_regime
from fgrpo.theory.success_estimates import shrunk_success_rate
from fgrpo.theory.tail_miss import tail_miss_estimate, tail_miss_probability

CONFIDENCE = LEVEL
BoolArray = NDArray[np.bool_]


def mean_estimate(values: FloatArray) -> Estimate:
    """Mean of independent values in [0, 1] with Student's interval, cut to [0, 1]; its limits need two values."""
    if len(values) < FEWEST_SEEDS:
        return Estimate(float(values[0]) if len(values) else np.nan, np.nan, np.nan)
    mean, low, high = mean_interval(values)
    return Estimate(mean, max(low, 0.0), min(high, 1.0))


@cache
def share_estimate(part: int, whole: int) -> Estimate:
    """A share of independent trials with its exact (Clopper-Pearson) interval."""
    if not whole:
        return Estimate(np.nan, np.nan, np.nan)
    interval = pass_at_k_interval(whole, part, 1, level=CONFIDENCE, method="single_problem")
    return Estimate(*(float(value) for value in interval))


def change(before: FloatArray, after: FloatArray) -> Estimate:
    """Difference of two means of independent values with Welch's interval; its limits need two values each."""
    if min(len(before), len(after)) < FEWEST_SEEDS:
        return Estimate(float(after.mean() - before.mean()), np.nan, np.nan)
    return Estimate(*difference_interval(after, before))


def regime_of_counts(
    correct: IntArray, scored: IntArray, rare_fraction: float, group_size: int, level: float
) -> NDArray[np.str_]:
    """Tail-miss regime at a group size, from counts: at the shrunk success rate, equal counts worked out once."""
    pairs, place = np.unique(np.stack((correct, scored)), axis=1, return_inverse=True)
    rate = shrunk_success_rate(pairs[0] / pairs[1], pairs[1])
    regime: NDArray[np.str_] = tail_miss_regime(rate, rare_fraction * rate, group_size, level=level)
    return regime[place.reshape(-1)]


def answer_codes(rollouts: Rollouts, answer: str) -> IntArray:
    """Codes of the right rollouts' answers, [C]: of boxed ones or of whole texts."""
    return rollouts.boxed_C if answer == "boxed" else rollouts.text_C


def distinct_in_groups(group_C: IntArray, code_C: IntArray, groups: int) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct answers, pairs of rollouts, and pairs with different answers, of each group.

    A rollout without an answer (no box) counts nowhere.
    """
    answered = code_C != NO_ANSWER
    group, code = group_C[answered], code_C[answered]
    pair, copies = np.unique(np.stack((group, code)), axis=1, return_counts=True)
    right = np.bincount(group, minlength=groups)
    distinct = np.bincount(pair[0], minlength=groups)
    alike = np.bincount(pair[0], copies * (copies - 1) // 2, groups).astype(np.int64)
    pairs = right * (right - 1) // 2
    return distinct, pairs, pairs - alike


class Measure:
    """Measures parts of one run with the same assumptions."""

    def __init__(
        self, rollouts: Rollouts, rare_fractions: Sequence[float], group_size: int, level: float, answer: str
    ) -> None:
        self.rollouts, self.rare_fractions = rollouts, tuple(rare_fractions)
        self.group_size, self.level, self.answer = group_size, level, answer
        groups = len(rollouts.step_G)
        self.distinct_G, self.pairs_G, self.differ_G = distinct_in_groups(
            rollouts.answer_group_C, answer_codes(rollouts, answer), groups
        )
        self.tail_miss_G = tuple(
            tail_miss_estimate(rollouts.correct_G, rollouts.scored_G, rho) for rho in self.rare_fractions
        )

    def part(self, chosen: BoolArray) -> Part:
        """What the chosen groups, at least one, hold."""
        run = self.rollouts
        steps, correct, scored = run.step_G[chosen], run.correct_G[chosen], run.scored_G[chosen]
        groups = len(steps)
        prompts, place = np.unique(run.prompt_G[chosen], return_inverse=True)
        counts = [np.bincount(place, part).astype(np.int64) for part in (correct, scored)]
        rate, found = correct / scored, self.distinct_G[chosen]
        pairs = int(self.pairs_G[chosen].sum())
        shares = [run.truncated[step] for step in np.unique(steps).tolist() if step in run.truncated]
        return Part(
            first_step=int(steps.min()),
            last_step=int(steps.max()),
            groups=groups,
            rollouts=int(scored.sum()),
            prompts=len(prompts),
            success_rate=mean_estimate(rate),
            active_share=share_estimate(int(run.active_G[chosen].sum()), groups),
            all_wrong_share=share_estimate(int((correct == 0).sum()), groups),
            all_right_share=share_estimate(int((correct == scored).sum()), groups),
            tail_miss=tuple(
                TailMiss(
                    rho,
                    mean_estimate(missed[chosen]),
                    float(tail_miss_probability(rate, rho * rate, scored).mean()),
                )
                for rho, missed in zip(self.rare_fractions, self.tail_miss_G, strict=True)
            ),
            regimes=tuple(self._regimes(rho, *counts) for rho in self.rare_fractions),
            distinct_correct=float(found[found > 0].mean()) if found.any() else np.nan,
            correct_pairs_differ=int(self.differ_G[chosen].sum()) / pairs if pairs else np.nan,
            truncated_share=float(np.mean(shares)) if shares else np.nan,
        )

    def _regimes(self, rho: float, correct: IntArray, scored: IntArray) -> Regimes:
        regime = regime_of_counts(correct, scored, rho, self.group_size, self.level)
        return Regimes(rho, *(float((regime == name).mean()) for name in ("inactive", "miss-prone", "covered")))

    def trends(self, first: BoolArray, last: BoolArray) -> tuple[Trend, ...]:
        """Change from the first window to the last of success, activity and tail misses."""
        run = self.rollouts
        quantities = [
            ("success_rate", np.nan, run.empirical_success_rate_G),
            ("active_share", np.nan, run.active_G.astype(np.float64)),
            *(("tail_miss", rho, values) for rho, values in zip(self.rare_fractions, self.tail_miss_G, strict=True)),
        ]
        trends = []
        for name, rho, values in quantities:
            difference = change(values[first], values[last])
            direction = "rising" if difference.lower > 0 else "falling" if difference.upper < 0 else "not clear"
            trends.append(Trend(name, rho, difference, direction))
        return tuple(trends)
