"""The tail-miss curve as a risk: per rollout, until the rare region is first sampled, and as a range of group sizes.

All of it follows from the shape of Pr(B_tau) in N (`tail_miss`): strictly log-concave, so that it has one peak N* and
every {N: Pr(B_tau) >= level} is an interval, empty or around the peak. The three regimes are the interval and its two
sides.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fgrpo.theory import _tail_miss_kernel as kernel
from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray

_SMALLEST_NORMAL = np.finfo(np.float64).tiny


def tail_miss_per_rollout(success_rate: ArrayLike, rare_mass: ArrayLike, group_size: ArrayLike) -> FloatArray:
    """Tail-miss probability per rollout, Pr(B_tau) / N: tail misses for a given amount of generation.

    It strictly falls with whole N >= 2 (from b c at N = 2 over a b c at N = 3, with a, b, c = 1 - tau, mu - tau, 1 -
    mu): the peak of the tail-miss probability is a statement about steps, not about generated rollouts.

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu].
        group_size: N, rollouts per prompt: 0 or any real number >= 1.

    Returns:
        Value in [0, 1/4], float64, broadcast over all arguments; relative accuracy as `tail_miss_probability`. 0 at
        N = 0 and N = 1, at tau = mu, mu = 0 and mu = 1.

    Raises:
        ValueError: If an argument is out of range or not a number, or rare_mass exceeds success_rate.

    Source: this project (proof `per_rollout_monotone`).
    """
    n = np.maximum(check.group_size(group_size), 1.0)
    mu, tau = kernel.inputs(success_rate, rare_mass, group_size=n)
    return (kernel.tail_miss(kernel.bases(mu, tau), n) / n)[()]


def tail_misses_before_first_hit(success_rate: ArrayLike, rare_mass: ArrayLike, group_size: ArrayLike) -> FloatArray:
    """Expected number of tail-miss groups before the first group with a rollout in the rare region.

    With independent groups of an unchanged policy it is Pr(B_tau) / (1 - (1 - tau)^N). It strictly falls with whole N
    >= 2 (where tau < mu < 1): by this measure N = 2 is the worst choice, not a safe one.

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu].
        group_size: N, rollouts per prompt: 0 or any real number >= 1.

    Returns:
        Number >= 0, float64, broadcast over all arguments; relative error at most 8 eps (1 + N lambda), lambda = -ln(1
        - tau), where Pr(B_tau) / N and mu - tau are normal doubles. inf at tau = 0 where groups can be active (the
        first hit never comes), 0 where none can miss (N = 0, N = 1, tau = mu, mu = 0, mu = 1).

    Raises:
        ValueError: If an argument is out of range or not a number, or rare_mass exceeds success_rate.

    Source: this project (proof `misses_before_first_hit`).
    """
    n = np.maximum(check.group_size(group_size), 1.0)
    mu, tau = kernel.inputs(success_rate, rare_mass, group_size=n)
    bases = kernel.bases(mu, tau)
    miss = kernel.tail_miss(bases, n)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        hit = -np.expm1(n * bases.log_a)
        # where N tau is no normal double, the hit is N tau, and its factor N divides a larger number instead
        per_hit = np.where(hit < _SMALLEST_NORMAL, miss / n / tau, miss / hit)
        return np.where(miss > 0, per_hit, 0.0)[()]


def risk_interval(
    success_rate: ArrayLike, rare_mass: ArrayLike, level: ArrayLike, *, integer: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Ends of {N: Pr(B_tau) >= level}, the group sizes at which a tail miss is at least as likely as `level`.

    Whether an end at which the probability equals the level belongs to the set is decided to rounding. The upper end
    is the whole number before `coverage_group_size`, or that number itself if the level is met exactly there.

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu].
        level: Tail-miss probability in (0, 1).
        integer: Over whole group sizes (default) or over real N >= 1.

    Returns:
        (low, high), float64 (whole numbers if `integer`), broadcast over all arguments. Both nan where the set is empty
        (so where no N has a tail miss: tau = mu, mu = 0, mu = 1); high is inf at tau = 0 < mu < 1.

    Raises:
        ValueError: If an argument is out of range or not a number, or rare_mass exceeds success_rate.

    Source: this project (proof `log_concavity`).
    """
    check.flag("integer", integer)
    delta = check.open_probability("level", level)
    mu, tau = kernel.inputs(success_rate, rare_mass, level=delta)
    shape, tau, bases, peaked, (delta,) = kernel.interior(mu, tau, delta)
    rises_for_ever = (tau == 0) & (bases.small > 0)
    peak = np.where(rises_for_ever, np.inf, np.nan)
    peak[peaked] = kernel.real_peak(kernel.at(bases, peaked))
    top = peak.copy()
    if integer:
        top[peaked] = kernel.integer_peak(kernel.at(bases, peaked), tau[peaked], peak[peaked])

    low, high = np.full(tau.shape, np.nan), np.full(tau.shape, np.nan)
    risky = rises_for_ever.copy()
    risky[peaked] = kernel.log_tail_miss(kernel.at(bases, peaked), top[peaked]) >= np.log(delta[peaked])
    falls = risky & peaked
    low[risky] = kernel.rising_crossing(kernel.at(bases, risky), np.log(delta[risky]), peak[risky])
    high[rises_for_ever] = np.inf
    high[falls] = kernel.falling_crossing(kernel.at(bases, falls), np.log(delta[falls]), peak[falls])
    if integer:
        low[risky] = _first_whole(kernel.at(bases, risky), np.log(delta[risky]), low[risky], top[risky])
        high[falls] = _last_whole(kernel.at(bases, falls), np.log(delta[falls]), high[falls], top[falls])
    return low.reshape(shape)[()], high.reshape(shape)[()]


def _first_whole(bases: kernel.Bases, log_level: FloatArray, crossing: FloatArray, top: FloatArray) -> FloatArray:
    """First whole N of the interval; the crossing is known to rounding only, so its lower neighbour is tried too."""
    below = np.clip(np.ceil(crossing) - 1.0, 1.0, np.finfo(np.float64).max)  # inf where no double is large enough
    with np.errstate(over="ignore"):
        first = np.where(kernel.log_tail_miss(bases, below) >= log_level, below, below + 1.0)
    return np.minimum(np.where(np.isinf(crossing), np.inf, first), top)


def _last_whole(bases: kernel.Bases, log_level: FloatArray, crossing: FloatArray, top: FloatArray) -> FloatArray:
    """Last whole N of the interval; the crossing is known to rounding only, so its upper neighbour is tried too."""
    above = np.floor(crossing) + 1.0
    return np.maximum(np.where(kernel.log_tail_miss(bases, above) >= log_level, above, above - 1.0), top)


def tail_miss_regime(
    success_rate: ArrayLike, rare_mass: ArrayLike, group_size: ArrayLike, *, level: ArrayLike = 0.5
) -> NDArray[np.str_]:
    """Position of the group size against {N: Pr(B_tau) >= level}: 'inactive', 'miss-prone' or 'covered'.

    'miss-prone' if Pr(B_tau) >= level (decided to rounding). Otherwise 'inactive' up to the real peak N*, where a
    larger group would miss more often because it is active more often, and 'covered' beyond it, where the rare region
    is being sampled. If the set is not empty these are its two sides; if it is empty the peak still parts them.

    Where the probability is 0 at every N (tau = mu, mu = 0, mu = 1) the peak is replaced by its limit max(1, 1 /
    lambda), lambda = -ln(1 - tau): so N <= 1 is 'inactive' always, every N is at tau = mu = 0, and tau = 1 is
    'covered' from N > 1. At tau = 0 < mu < 1 there is no peak and no N is 'covered'.

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu].
        group_size: N, rollouts per prompt: 0 or any real number >= 1.
        level: Tail-miss probability in (0, 1) from which on a group size counts as miss-prone.

    Returns:
        Strings, broadcast over all arguments.

    Raises:
        ValueError: If an argument is out of range or not a number, or rare_mass exceeds success_rate.

    Source: this project (proof `log_concavity`).
    """
    n, delta = np.maximum(check.group_size(group_size), 1.0), check.open_probability("level", level)
    mu, tau = kernel.inputs(success_rate, rare_mass, group_size=n, level=delta)
    shape, tau, bases, peaked, (n, delta) = kernel.interior(mu, tau, n, delta)
    with np.errstate(divide="ignore", over="ignore"):
        peak = np.where((tau == 0) & (bases.small > 0), np.inf, np.maximum(-1.0 / bases.log_a, 1.0))
    peak[tau == 0] = np.inf
    peak[peaked] = kernel.real_peak(kernel.at(bases, peaked))
    prone = kernel.log_tail_miss(bases, n) >= np.log(delta)
    return np.select([prone, n <= peak], ["miss-prone", "inactive"], "covered").reshape(shape)[()]
