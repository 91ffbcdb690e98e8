"""What the closed forms say about a training run: one prompt of assumed rare mass, or a file of per-prompt counts.

With counts the success rate of a prompt is not known. A uniform prior makes it Beta(X + 1, n - X + 1) after X correct
of n samples. Its mean, the shrunk rate (X + 1) / (n + 2), places the prompt: regime, bands, update shares, noise of the
weight. Every other quantity is averaged over that Beta law, because Pr(B_tau) at X/n in place of mu is biased: it takes
a prompt without a success in n samples for one that is never solved.
"""

from functools import partial
from math import isfinite, nan

import numpy as np
import pandas as pd

from fgrpo.advice_model import (
    REGIMES,
    Advice,
    BudgetRow,
    ExposedPrompt,
    Focal,
    PromptRisk,
    PromptsRisk,
    WeightBand,
    WeightRow,
)
from fgrpo.advice_prompts import CountedPrompts, KnownPrompt
from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.advantages import matched_learning_rate
from fgrpo.theory.focal_moments import expected_focal_weight, focal_weight_variance
from fgrpo.theory.risk import risk_interval, tail_miss_regime, tail_misses_before_first_hit
from fgrpo.theory.tail_miss import coverage_group_size, peak_group_size, tail_miss_probability
from fgrpo.theory.utilities import Normalisation, utility_slope
from fgrpo.theory.weighted_tail_miss import advantage_weighted_tail_miss
from fgrpo.theory.weights import constant_weight, focal_weight

BAND_EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shrunk success rates that part the bands of a count file; a band holds its lower edge, the last one both."""
REFERENCE_RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Success rates at which the weight of a prompt is tabulated."""
MOST_EXPOSED = 5


def advise(
    *,
    success_rate: float | None = None,
    rare_mass: float | None = None,
    counts: pd.DataFrame | None = None,
    rare_fraction: float | None = None,
    group_size: int = 8,
    rollouts_per_step: int | None = None,
    gamma: float | None = None,
    level: float = 0.5,
) -> Advice:
    """Where a group size stands between inactive, miss-prone and covered, and what a focal weight would change.

    Args:
        success_rate: mu in [0, 1] of one prompt. Either this or counts.
        rare_mass: tau in [0, mu] of that prompt: an assumption, no data show it.
        counts: A row per prompt with the columns prompt, samples and correct, as `fgrpo.counts.read_counts` returns.
        rare_fraction: rho = tau / mu in [0, 1], an assumption: with counts for every prompt, since counts alone do not
            tell rare correct answers from others; with success_rate in place of rare_mass.
        group_size: N, rollouts per prompt, a whole number >= 1.
        rollouts_per_step: R, a multiple of N: adds the budget of a step.
        gamma: Focal exponent, >= 0: adds what the focal weight does.
        level: Tail-miss probability in (0, 1) from which on a group size counts as miss-prone.

    Returns:
        The numbers, as frozen dataclasses; `Advice.to_dict` for JSON.

    Raises:
        ValueError: If an argument is out of range, missing or at odds with another.

    Cost: with counts O(N) for each distinct pair of samples and correct.

    Source: this project.
    """
    n = int(check.whole("group_size", group_size, 1, "pass the number of rollouts per prompt"))
    delta = float(check.open_probability("level", level))
    rollouts = None if rollouts_per_step is None else _multiple(rollouts_per_step, n)
    exponent = None if gamma is None else float(check.gamma(gamma))
    _refuse_wrong_pairs(success_rate, rare_mass, counts, rare_fraction)
    prompts: KnownPrompt | CountedPrompts
    if counts is None:
        known = prompts = KnownPrompt.of(success_rate, rare_mass, rare_fraction)
        prompt_risk, prompts_risk = _prompt_risk(known, n, delta), None
    else:
        counted = prompts = CountedPrompts.of(counts, rare_fraction)
        prompt_risk, prompts_risk = None, _prompts_risk(counts, counted, n, delta)
    return Advice(
        group_size=n,
        level=delta,
        prompt=prompt_risk,
        prompts=prompts_risk,
        rollouts_per_step=rollouts,
        budget=() if rollouts is None else _budget(prompts, n, rollouts),
        focal=None if exponent is None else _focal(prompts, n, exponent),
    )


def _multiple(rollouts_per_step: int, n: int) -> int:
    rollouts = int(check.whole("rollouts_per_step", rollouts_per_step, 1, "pass the rollouts of one step"))
    if rollouts % n:
        below = rollouts - rollouts % n
        fitting = f"{below} or {below + n}" if below else f"{n}"
        raise ValueError(
            f"rollouts_per_step must be a multiple of group_size {n}, got {rollouts}: the nearest that fit: {fitting}"
        )
    return rollouts


def _refuse_wrong_pairs(
    success_rate: float | None, rare_mass: float | None, counts: pd.DataFrame | None, rare_fraction: float | None
) -> None:
    way_out = "pass success_rate with rare_mass or rare_fraction, or counts with rare_fraction"
    if success_rate is not None and counts is not None:
        raise ValueError(f"success_rate and counts must not come together, got both: {way_out}")
    if success_rate is None and rare_mass is not None:
        raise ValueError(
            f"rare_mass must come with success_rate, got rare_mass {check.shown(rare_mass)} without it: {way_out}"
        )
    if success_rate is None and counts is None:
        raise ValueError(f"success_rate or counts must be given, got neither: {way_out}")
    if rare_mass is None and rare_fraction is None:
        raise ValueError(f"the rare-correct region must be assumed, got no mass or fraction: {way_out}")
    if rare_mass is not None and rare_fraction is not None:
        raise ValueError(f"rare_mass and rare_fraction must not come together, got both: {way_out}")


def _prompt_risk(prompt: KnownPrompt, n: int, level: float) -> PromptRisk:
    mu, tau = float(prompt.success_rate[0]), float(prompt.rare_mass[0])
    peak = _whole_number(peak_group_size(mu, tau))
    low, high = risk_interval(mu, tau, level)
    return PromptRisk(
        success_rate=mu,
        rare_mass=tau,
        regime=str(tail_miss_regime(mu, tau, n, level=level)),
        active_probability=float(prompt.active(n)[0]),
        tail_miss_probability=float(prompt.tail_miss(n)[0]),
        peak_group_size=peak,
        peak_probability=float(tail_miss_probability(mu, tau, peak)) if isfinite(peak) else float(peak > 0),
        coverage_group_size=_whole_number(coverage_group_size(mu, tau, level)),
        risky_from=_whole_number(low),
        risky_to=_whole_number(high),
        misses_before_first_hit=float(tail_misses_before_first_hit(mu, tau, n)),
    )


def _prompts_risk(counts: pd.DataFrame, prompts: CountedPrompts, n: int, level: float) -> PromptsRisk:
    regime = tail_miss_regime(prompts.success_rate, prompts.rare_mass, n, level=level)
    miss = prompts.tail_miss(n)
    exposed = np.argsort(-miss[prompts.kind], kind="stable")[:MOST_EXPOSED]
    return PromptsRisk(
        prompts=len(counts),
        samples=int(counts["samples"].sum()),
        rare_fraction=prompts.rare_fraction,
        success_rate=prompts.mean(prompts.success_rate),
        regimes={name: int(prompts.copies[regime == name].sum()) for name in REGIMES},
        all_wrong=prompts.mean(prompts.all_wrong(n)),
        all_right=prompts.mean(prompts.all_right(n)),
        active_probability=prompts.mean(prompts.active(n)),
        tail_miss_probability=prompts.mean(miss),
        most_exposed=tuple(
            ExposedPrompt(
                prompt=str(counts["prompt"].iloc[row]),
                samples=int(counts["samples"].iloc[row]),
                correct=int(counts["correct"].iloc[row]),
                success_rate=float(prompts.success_rate[prompts.kind[row]]),
                tail_miss_probability=float(miss[prompts.kind[row]]),
                regime=str(regime[prompts.kind[row]]),
            )
            for row in exposed
        ),
    )


def _budget(prompts: KnownPrompt | CountedPrompts, n: int, rollouts: int) -> tuple[BudgetRow, ...]:
    smaller = [n // divisor for divisor in (4, 2) if n % divisor == 0 and n // divisor > 1]
    rows = []
    for size in (*smaller, n, 2 * n, 4 * n):
        if rollouts % size == 0:
            miss = prompts.mean(prompts.tail_miss(size))
            per_rollout = miss / size
            active = prompts.mean(prompts.active(size))
            rows.append(BudgetRow(size, rollouts // size, active, miss, rollouts * per_rollout, per_rollout))
    return tuple(rows)


def _focal(prompts: KnownPrompt | CountedPrompts, n: int, gamma: float) -> Focal:
    mu, tau = prompts.success_rate, prompts.rare_mass
    active, weight = prompts.active(n), prompts.active(n, gamma)
    with np.errstate(invalid="ignore"):  # 0 / 0 where no group is active or has strength
        variance_given_active = focal_weight_variance(mu, n, gamma, given_active=True)
        mean_given_active = prompts.mean(weight) / np.float64(prompts.mean(active))
        spread_given_active = np.sqrt(prompts.mean(active * variance_given_active) / np.float64(prompts.mean(active)))
        update_share, weighted_share = (
            prompts.mean(advantage_weighted_tail_miss(mu, tau, n, gamma=exponent))
            / np.float64(prompts.mean(advantage_weighted_tail_miss(mu, 0.0, n, gamma=exponent)))
            for exponent in (0.0, gamma)
        )
    return Focal(
        gamma=gamma,
        true_weight=prompts.mean(prompts.true_weight(gamma)),
        mean_weight=prompts.mean(prompts.mean_weight(n, gamma)),
        mean_weight_given_active=float(mean_given_active),
        spread=float(np.sqrt(prompts.mean(focal_weight_variance(mu, n, gamma)))),
        spread_given_active=float(spread_given_active),
        smallest_active_weight=float(n**-gamma) if n > 1 else nan,
        largest_active_weight=float(focal_weight(1.0 / n, gamma)) if n > 1 else nan,
        update_share=float(update_share),
        weighted_update_share=float(weighted_share),
        matched_learning_rate=float(matched_learning_rate(gamma)),
        rows=_weight_rows(sorted({*REFERENCE_RATES, *(mu if isinstance(prompts, KnownPrompt) else ())}), n, gamma),
        bands=_bands(prompts, active, weight) if isinstance(prompts, CountedPrompts) else (),
    )


def _weight_rows(rates: list[float], n: int, gamma: float) -> tuple[WeightRow, ...]:
    mean = expected_focal_weight(rates, n, gamma, given_active=True)
    return tuple(
        WeightRow(float(rate), float(weight), _step_length(rate, n, gamma, "none"), _step_length(rate, n, gamma, "std"))
        for rate, weight in zip(rates, mean, strict=True)
    )


def _step_length(success_rate: float, n: int, gamma: float, normalisation: Normalisation) -> float:
    """Length of a prompt's expected update in units of that without the weight; nan where there is none."""
    if n == 1:
        return nan
    weighted = utility_slope(success_rate, n, partial(focal_weight, gamma=gamma), normalisation=normalisation)
    return float(weighted / utility_slope(success_rate, n, constant_weight, normalisation=normalisation))


def _bands(prompts: CountedPrompts, active: FloatArray, weight: FloatArray) -> tuple[WeightBand, ...]:
    last = len(BAND_EDGES) - 2
    band = np.minimum(np.searchsorted(BAND_EDGES, prompts.success_rate, side="right") - 1, last)
    members, active_groups, weights = (
        np.bincount(band, prompts.copies * part, last + 1) for part in (np.ones_like(active), active, weight)
    )
    with np.errstate(invalid="ignore"):  # no active groups at N = 1
        shares = np.stack((active_groups / active_groups.sum(), weights / weights.sum()), axis=1)
    return tuple(
        WeightBand(low, high, int(count), *share)
        for low, high, count, share in zip(BAND_EDGES, BAND_EDGES[1:], members, shares.tolist(), strict=False)
    )


def _whole_number(value: FloatArray) -> float:
    return int(value) if isfinite(value) else float(value)
