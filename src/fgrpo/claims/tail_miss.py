"""Claims about the tail miss (Sections 2.2, 3.1, 3.2): A1 to A11, without A6 and A7, which are about a figure."""

from fractions import Fraction
from math import factorial

import numpy as np
from scipy.optimize import brentq

from fgrpo.claims.model import Claim, Finding, Verdict, computed, holds
from fgrpo.claims.text import numbers, yes
from fgrpo.theory.risk import risk_interval, tail_miss_per_rollout, tail_miss_regime, tail_misses_before_first_hit
from fgrpo.theory.tail_miss import active_probability, peak_group_size, tail_miss_probability
from fgrpo.theory.updates import CENTRED, logit_update


def _equal_rewards() -> Finding:
    policy, correct = [0.5, 0.25, 0.25], [True, True, False]
    homogeneous = [[3, 1, 0], [0, 0, 4]]
    centred = max(np.abs(logit_update(policy, correct, homogeneous, surrogate=name)).max() for name in CENTRED)
    raw = np.abs(logit_update(policy, correct, homogeneous)).max(axis=1)
    return holds(
        centred == 0.0,
        f"largest logit step of the mean-centred surrogates in an all-correct and an all-wrong group: {centred:g}; "
        f"under Eq 5 (raw rewards) the same groups move logits by up to {numbers(raw, '.4f')} eta",
    )


def _chance(n: int, event: tuple[bool, bool, bool], probabilities: tuple[Fraction, Fraction, Fraction]) -> Fraction:
    """Probability that exactly the marked kinds (rare correct, other correct, wrong) are seen in n rollouts."""
    total = Fraction(0)
    for rare in range(n + 1):
        for common in range(n + 1 - rare):
            seen = (rare, common, n - rare - common)
            if tuple(count > 0 for count in seen) == event:
                ways = Fraction(factorial(n))
                for count, probability in zip(seen, probabilities, strict=True):
                    ways *= probability**count / factorial(count)
                total += ways
    return total


def _active_formula() -> Finding:
    cases = [(Fraction(k, 7), n) for k in range(1, 7) for n in range(1, 9)]
    # without a rare kind: correct and wrong are both seen
    enumerated = [_chance(n, (False, True, True), (Fraction(0), mu, 1 - mu)) for mu, n in cases]
    right = sum(value == 1 - mu**n - (1 - mu) ** n for (mu, n), value in zip(cases, enumerated, strict=True))
    rises = bool(np.all(np.diff(active_probability([[k / 20] for k in range(1, 20)], np.arange(1, 40)), axis=1) > 0))
    ends = active_probability(0.3, [1, 2, 200])
    return holds(
        right == len(cases) and rises and ends[0] == 0 and ends[-1] > 1 - 1e-12,
        f"equal to the enumeration of all outcomes in {right} of {len(cases)} cases, exactly; strictly increasing in N on 19 values "
        f"of mu: {yes(rises)}; at mu = .3 it is {numbers(ends, '.3g')} at N = 1 / 2 / 200",
    )


def _lemma() -> Finding:
    cases = [(Fraction(m, 6), Fraction(t, 6), n) for m in range(2, 7) for t in range(1, m) for n in range(1, 9)]
    enumerated = [_chance(n, (False, True, True), (tau, mu - tau, 1 - mu)) for mu, tau, n in cases]
    formula = [(1 - tau) ** n - (mu - tau) ** n - (1 - mu) ** n for mu, tau, n in cases]
    right = sum(one == other for one, other in zip(enumerated, formula, strict=True))
    return holds(
        right == len(cases),
        f"equal to the enumeration of all outcomes in {right} of {len(cases)} cases (mu = 1 among them), exactly",
    )


def _random_pairs(cases: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Seeded mu and tau, each of shape [cases, 1]."""
    rng = np.random.default_rng(0)
    mu = rng.uniform(0.03, 0.97, size=(cases, 1))
    return mu, mu * np.exp(rng.uniform(np.log(1e-3), np.log(0.99), size=(cases, 1)))


def _one_peak() -> Finding:
    mu, tau = _random_pairs()
    n = np.arange(1, 3001)
    steps = np.diff(tail_miss_probability(mu, tau, n), axis=1)
    peak = peak_group_size(mu, tau)
    noise = 1e-13  # next to a flat peak the sign of a step is rounding
    one = np.all(np.where(n[1:] <= peak, steps > -noise, steps < noise), axis=1) & (steps[:, 0] > 0)
    at_two = np.mean((peak == 2) == (tau >= 1 / 3)) == 1
    return holds(
        bool(one.all()),
        f"rises to one peak and falls after it, N to {n[-1]}, in {one.sum()} of {one.size} random cases with 0 < tau < mu < 1; peaks at "
        f"N = {peak.min():.0f} to {peak.max():.0f}, and at 2 exactly where tau >= 1/3: {yes(at_two)}",
    )


def _coverage_and_activity() -> Finding:
    mu, tau = _random_pairs()
    n = np.arange(1, 1001)
    miss = tail_miss_probability(mu, tau, n)
    not_covered = np.exp(n * np.log1p(-tau))
    active = active_probability((mu - tau) / (1 - tau), n)
    error = np.abs(miss - not_covered * active).max()
    one_way = bool(np.all(np.diff(not_covered) <= 0) and np.all(np.diff(active) >= -1e-15))
    per_rollout = tail_miss_per_rollout(mu, tau, n[1:200])
    waiting = tail_misses_before_first_hit(mu, tau, n[1:200])
    falls = [int(np.all(np.diff(curve) <= 1e-15, axis=1).sum()) for curve in (per_rollout, waiting)]
    return holds(
        error < 1e-12 and one_way,
        f"Pr(B) = (1 - tau)^N times the active probability given that nothing rare is drawn (largest difference {error:.0e}); the first "
        f"factor falls and the second rises in {mu.size} random cases: {yes(one_way)}. Scope: Pr(B)/N falls from N = 2 on in {falls[0]}, and the "
        f"expected misses before the first hit in {falls[1]} of them",
    )


def _very_small_groups() -> Finding:
    mu = np.linspace(0, 1, 1001)
    homogeneous = 1 - active_probability(mu, 2)
    edge = float(brentq(lambda rate: float(active_probability(rate, 4)) - 0.5, 0.01, 0.5))
    return holds(
        bool(homogeneous.min() >= 0.5),
        f"N = 2: at least {homogeneous.min():.3f} of the groups whatever mu is (least at mu = {mu[homogeneous.argmin()]:g}), "
        f"{1 - float(active_probability(0.63, 2)):.3f} at mu = .63; N = 4: more than half only outside mu = {edge:.3f} to {1 - edge:.3f}",
    )


def _regime_descriptor() -> Finding:
    starts = ((0.64, 6.3e-5), (0.3, 0.03), (0.9, 0.01))
    ends = [tuple(int(end) for end in risk_interval(mu, tau, 0.5)) for mu, tau in starts]
    words = ", ".join(
        f"{low} to {high} at ({mu:g}, {tau:g})" for (mu, tau), (low, high) in zip(starts, ends, strict=True)
    )
    return holds(
        len(set(ends)) == len(ends),
        f"Pr(B) >= 1/2 for N = {words} (mu, tau): the bounds are another for each start, as the hedge says; the paper prints none",
    )


def _conflicting_advice() -> Finding:
    rates = np.linspace(0.02, 0.98, 49)[:, None]
    rare = rates * np.geomspace(1e-5, 0.99, 60)
    regimes = {
        n: sorted({str(name) for name in tail_miss_regime(rates, rare, n, level=0.25).ravel()}) for n in (2, 32, 512)
    }
    open_to = min(len(names) for names in regimes.values())
    measured = "; ".join(f"N = {n} can be {', '.join(names)}" for n, names in regimes.items())
    measured = (
        f"depending on mu and tau (level .25) {measured}: without those of the cited runs the lemma decides nothing"
    )
    return Finding(Verdict.UNDETERMINED if open_to > 1 else Verdict.HOLDS, measured)


TAIL_MISS_CLAIMS = (
    Claim(
        "A1",
        "Section 2.2",
        "Equal rewards give every rollout advantage 0 and no signal: groups that are all right or all wrong.",
        computed(_equal_rewards),
        "It needs mean-centred advantages; under the raw rewards of Eq 5 such groups do move logits (C5).",
        ("logit_update",),
    ),
    Claim(
        "A2",
        "Section 3.1",
        "Pr(A_N) = 1 - mu^N - (1 - mu)^N; it rises with N from near 0 to 1.",
        computed(_active_formula),
        "Strictly increasing for 0 < mu < 1; 0 at N = 1 and 2 mu (1 - mu) <= 1/2 at N = 2.",
    ),
    Claim(
        "A3",
        "Lemma 3.1",
        "Pr(B) = (1 - tau)^N - (mu - tau)^N - (1 - mu)^N for N >= 1, 0 < tau < mu.",
        computed(_lemma),
        "True up to mu = 1, where it is 0. App. D says 'conditioned on this event' and goes on with joint probabilities: the wording only.",
        ("lemma_3_1",),
    ),
    Claim(
        "A4",
        "Section 3.1, Conclusion",
        "The probability of an active miss is not monotone in N; middle N maximise it.",
        computed(_one_peak),
        "For 0 < tau < mu < 1 it is strictly log-concave in N: one peak, and every {N: Pr(B) >= level} an interval. The whole-number peak is "
        "at 2 iff tau >= 1/3; then N = 1 is all that is smaller.",
        ("log_concavity", "integer_peak"),
    ),
    Claim(
        "A5",
        "Section 3.1",
        "The factor (1 - tau)^N falls while activity rises: small groups are inactive, large ones cover the tail.",
        computed(_coverage_and_activity),
        "A statement per step. Scope: per rollout, and counted until the rare region is first drawn, misses only fall with N from 2 on.",
        ("lemma_3_1", "per_rollout_monotone", "misses_before_first_hit"),
    ),
    Claim(
        "A9",
        "Section 3.2",
        "At very small N most groups are homogeneous.",
        computed(_very_small_groups),
        "At N = 2 for every mu: 1 - 2 mu (1 - mu) >= 1/2, with equality at mu = 1/2 only.",
    ),
    Claim(
        "A10",
        "Sections 3.1, 5.1",
        "The lemma describes regimes; their boundaries depend on the start and are no prediction for language models.",
        computed(_regime_descriptor),
        "mu and tau move during training, too.",
    ),
    Claim(
        "A11",
        "Section 3.1",
        "The lemma helps to reconcile Wu et al. (N = 2), He et al. (N = 32) and Hu et al. (large N).",
        computed(_conflicting_advice),
        "The paper says 'consistent with' and 'helps reconcile'; to decide it takes mu and tau of those runs.",
    ),
)
