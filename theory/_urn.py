"""Polya urns: groups in which one rollout may bear on the next, and the law of their number of correct rollouts.

An urn holds masses of several colours; each rollout draws a colour in proportion to its mass, and `added` mass of that
colour goes in. added = 0: independent rollouts. added > 0: correlated rollouts (Dirichlet-multinomial, concentrations
mass / added). added = -1 with whole masses: drawing without replacement.

One urn at a time: the laws are products over draws, which no call of a special function gives to full accuracy.
Means over many groups of independent rollouts at once: `_binomial`.
"""

import numpy as np

from fgrpo.theory._validation import FloatArray

_SMALLEST, _LARGEST = 5e-324, np.finfo(np.float64).max


def log_all_avoid(avoided: float, kept: float, added: float, first: float, last: float) -> float:
    """Logarithm of the probability that draws number first..last-1 (from 0) avoid one colour, if all before them did.

    The sum of ln(1 - avoided / (avoided + kept + i added)): of one sign, so without cancellation, however long.
    """
    if added == 0.0:
        kept_mass, repeats = np.array([kept]), last - first
    else:
        kept_mass, repeats = np.maximum(kept + added * np.arange(first, last), 0.0), 1.0
    share = avoided / (avoided + kept_mass)
    with np.errstate(divide="ignore"):
        logs = np.where(share > 0.5, np.log(kept_mass / (avoided + kept_mass)), np.log1p(-share))
    return repeats * float(np.sum(logs))


def count_law(
    correct: float, wrong: float, added: float, n: float, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """Possible numbers x of correct ones among n draws from an urn of two colours (both masses > 0), and their law.

    Only low..high is looked at, and must hold all but a negligible part of the law, which is normalised over it. It
    comes from the ratios of neighbouring probabilities, without large log-gamma values whose difference would lose
    digits.
    """
    if added < 0.0:  # neither colour can be drawn more often than it is there
        low, high = max(low, n + wrong / added), min(high, -correct / added)
    x = np.arange(low, high + 1.0)
    before, after = x[:-1], x[1:]
    with np.errstate(over="ignore"):
        ratio = (n - before) / after * ((correct + added * before) / (wrong + added * (n - after)))
    rise = np.log(np.clip(ratio, _SMALLEST, _LARGEST))
    # sums that start at the mode stay small where the probability is not
    mode = int(np.argmax(np.concatenate(([0.0], np.cumsum(rise)))))
    log_p = np.concatenate((-np.cumsum(rise[:mode][::-1])[::-1], [0.0], np.cumsum(rise[mode:])))
    p = np.exp(log_p)
    return x, p / np.sum(p)


def tail_miss(rare: float, correct: float, wrong: float, added: float, n: float, gamma: float) -> float:
    """E[(1 - X/N)^gamma 1_B] for a whole number n of draws; `correct` is the correct mass outside the rare region."""
    if n < 2.0 or correct <= 0.0 or wrong <= 0.0:
        return 0.0
    no_rare = np.exp(log_all_avoid(rare, correct + wrong, added, 0.0, n)) if rare > 0.0 else 1.0
    if no_rare == 0.0:
        return 0.0
    u, w = correct / (correct + wrong), wrong / (correct + wrong)
    # the two summands of the activity u (1 - u^(N-1)) + w (1 - w^(N-1)), of which the second is E[1 - X/N; active]
    if gamma in (0.0, 1.0):
        activity = -w * np.expm1(log_all_avoid(correct, wrong, added, 1.0, n))
        if gamma == 0.0:
            activity -= u * np.expm1(log_all_avoid(wrong, correct, added, 1.0, n))
        return float(no_rare * activity)
    x, p = count_law(correct, wrong, added, n, 0.0, n)
    active = (x > 0.0) & (x < n)
    return float(no_rare * np.sum((1.0 - x[active] / n) ** gamma * p[active]))
