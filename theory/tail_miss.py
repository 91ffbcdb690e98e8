"""Lemma 3.1: how often an update is active and yet misses a rare correct mode, as a function of the group size.

One group of N independent rollouts is *active* (event A_N) if some are correct and some are wrong. A *tail miss* (event
B_tau) is an active group without a rollout in the rare-correct region of probability tau. With mu the success rate,

    Pr(A_N) = 1 - mu^N - (1 - mu)^N,        Pr(B_tau) = (1 - tau)^N - (mu - tau)^N - (1 - mu)^N        (Lemma 3.1).

Written so, the formula loses its digits to cancellation wherever the result is small. It is therefore evaluated as

    Pr(B_tau) = a^N h(N),    h(N) = 1 - u^N - w^N,    a = 1 - tau,  u = (mu - tau) / a,  w = (1 - mu) / a,

'no rollout is rare' times 'active, given that none is rare'. Because u + w = 1,

    h(N) = u (1 - u^(N-1)) + w (1 - w^(N-1)),

a sum of non-negative terms that `expm1` gives without loss, once the logarithm of the larger ratio is taken as log1p of
minus the smaller one. What remains is the conditioning of exp(-N lambda), lambda = -ln(1 - tau): the relative error is
at most 4 eps (1 + N lambda), for real N >= 1 and wherever the result and mu - tau are normal doubles.

h is strictly concave in N, hence Pr(B_tau) strictly log-concave: it has one peak, and {N: Pr(B_tau) > level} is an
interval. `peak_group_size` and `coverage_group_size` rest on that. Note that mu enters through u alone and u <-> w
changes nothing: the curve is the same for mu and for 1 + tau - mu.
"""

import numpy as np
from numpy.typing import ArrayLike

from fgrpo.theory import _tail_miss_kernel as kernel
from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray


def active_probability(success_rate: ArrayLike, group_size: ArrayLike) -> FloatArray:
    """Probability that a group is active: at least one rollout correct and at least one wrong.

    Pr(A_N) = 1 - mu^N - (1 - mu)^N, without cancellation. It rises with N from 0 at N = 1 over 2 mu (1 - mu) at N = 2
    to 1; it is 0 for mu = 0 and mu = 1, and 0 at N = 0 (no rollouts, no update).

    Args:
        success_rate: mu, probability that one rollout is correct, in [0, 1].
        group_size: N, rollouts per prompt: 0 or any real number >= 1.

    Returns:
        Probability in [0, 1], float64, broadcast over both arguments.

    Raises:
        ValueError: If an argument is out of range or not a number.

    Source: Section 3.1 (v1 and v2).
    """
    return tail_miss_probability(success_rate, 0.0, group_size)


def tail_miss_probability(
    success_rate: ArrayLike,
    rare_mass: ArrayLike,
    group_size: ArrayLike,
    *,
    failure_rate: ArrayLike | None = None,
    log: bool = False,
    complement: bool = False,
) -> FloatArray:
    """Probability that a group is active and has no rollout in the rare-correct region.

    Pr(B_tau) = (1 - tau)^N - (mu - tau)^N - (1 - mu)^N, evaluated without cancellation (see the module's text).

    Args:
        success_rate: mu, probability that one rollout is correct, in [0, 1].
        rare_mass: tau, probability of the rare-correct region, in [0, mu].
        group_size: N, rollouts per prompt: 0 or any real number >= 1.
        failure_rate: 1 - mu, where the caller knows it more exactly than float64 can tell from mu (mu next to 1).
        log: Return the natural logarithm (-inf where the probability is 0); it does not underflow.
        complement: Return 1 - Pr(B_tau), accurate also where Pr(B_tau) is next to 1.

    Returns:
        Probability in [0, 1] or its logarithm, float64, broadcast over all arguments.

    Raises:
        ValueError: If an argument is out of range or not a number, rare_mass exceeds success_rate, or failure_rate
            is not 1 - success_rate.

    Limiting cases: 0 at N = 0 and N = 1; the active probability at tau = 0; 0 at tau = mu, at mu = 0 and at mu = 1.

    Accuracy: relative error at most 4 eps (1 + N lambda), lambda = -ln(1 - tau), where the result and mu - tau are
    normal doubles.

    Source: Lemma 3.1 (v1 and v2); the factored form and its extension to real N: this project.
    """
    check.flag("log", log)
    check.flag("complement", complement)
    mu, tau = kernel.inputs(success_rate, rare_mass)
    n = np.maximum(check.group_size(group_size), 1.0)  # no rollouts are as inactive as one
    exact_failure = {} if failure_rate is None else {"failure_rate": check.failure_rate(mu, failure_rate)}
    check.broadcastable(success_rate=mu, rare_mass=tau, group_size=n, **exact_failure)
    return kernel.blockwise(_FORMS[log, complement], mu, tau, n, *exact_failure.values())[()]


def tail_miss_estimate(correct: ArrayLike, group_size: ArrayLike, rare_fraction: ArrayLike) -> FloatArray:
    """Unbiased estimate of Pr(B_tau) from a group's counts, for an assumed rare fraction rho = tau / mu.

    (1 - rho)^X if the group is active (0 < X < N), else 0: given X, each correct rollout is rare with probability rho,
    whatever mu. Its expectation over X ~ Bin(N, mu) is Lemma 3.1, and its mean over groups is unbiased for the mean of
    Pr(B_tau) over their prompts. Lemma 3.1 at X/N in place of mu is not: it is not linear in mu.

    Args:
        correct: X, correct rollouts, whole numbers in [0, N].
        group_size: N, rollouts of the group (those that could be scored), whole numbers >= 1.
        rare_fraction: rho in [0, 1].

    Returns:
        Estimate in [0, 1], float64, broadcast over all arguments.

    Raises:
        ValueError: If an argument is out of range or not a number.

    Limiting cases: at rho = 0 whether the group is active; 0 at rho = 1 and at N = 1.

    Source: this project, on Lemma 3.1 (v1 and v2).
    """
    x = check.whole("correct", correct, 0, "pass the number of correct rollouts")
    n = check.whole("group_size", group_size, 1, "pass the number of rollouts")
    rho = check.probability("rare_fraction", rare_fraction)
    check.broadcastable(correct=x, group_size=n, rare_fraction=rho)
    check.at_most("correct", x, "group_size", n, "pass the counts of one group together")
    return np.where((x > 0) & (x < n), np.power(1.0 - rho, x), 0.0)[()]


def _log_probability(mu: FloatArray, tau: FloatArray, n: FloatArray, *nu: FloatArray) -> FloatArray:
    return kernel.log_tail_miss(kernel.bases(mu, tau, *nu), n)


def _complement(mu: FloatArray, tau: FloatArray, n: FloatArray, *nu: FloatArray) -> FloatArray:
    bases = kernel.bases(mu, tau, *nu)
    probability = kernel.tail_miss(bases, n)
    return np.where(probability < 0.5, 1.0 - probability, kernel.no_tail_miss(bases, n))


def _log_complement(mu: FloatArray, tau: FloatArray, n: FloatArray, *nu: FloatArray) -> FloatArray:
    bases = kernel.bases(mu, tau, *nu)
    probability = kernel.tail_miss(bases, n)
    with np.errstate(divide="ignore"):
        return np.where(probability < 0.5, np.log1p(-probability), np.log(kernel.no_tail_miss(bases, n)))


_FORMS = {
    (False, False): kernel.probability,
    (True, False): _log_probability,
    (False, True): _complement,
    (True, True): _log_complement,
}


def peak_group_size(success_rate: ArrayLike, rare_mass: ArrayLike, *, integer: bool = True) -> FloatArray:
    """Group size at which the tail-miss probability is largest.

    The real maximiser N* is the one root of h'(N) / h(N) = lambda, and N* <= 1 + 1 / lambda. The integer peak is one of
    its two neighbours (at least 2, and 2 exactly if rare_mass >= 1/3); of two equal maxima (N = 2 and 3 at
    rare_mass = 1/3) it is the smaller.

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu].
        integer: Peak over whole group sizes (default) or over real N >= 1.

    Returns:
        Group sizes as float64 (whole numbers if `integer`), broadcast over both arguments. Degenerate edges: inf at
        tau = 0 < mu < 1 (the active probability only rises), nan where no N has a tail miss (tau = mu, mu = 0, mu = 1).

    Raises:
        ValueError: If an argument is out of range or not a number, or rare_mass exceeds success_rate.

    Source: this project (proofs `log_concavity` and `integer_peak`); the paper states the peak for its curves,
    Section 3.1.
    """
    check.flag("integer", integer)
    mu, tau = kernel.inputs(success_rate, rare_mass)
    shape, tau, bases, peaked, _ = kernel.interior(mu, tau)
    result = np.where((tau == 0) & (bases.small > 0), np.inf, np.nan)
    inside = kernel.at(bases, peaked)
    peak = kernel.real_peak(inside)
    result[peaked] = kernel.integer_peak(inside, tau[peaked], peak) if integer else peak
    return result.reshape(shape)[()]


def coverage_group_size(
    success_rate: ArrayLike, rare_mass: ArrayLike, level: ArrayLike, *, integer: bool = True
) -> FloatArray:
    """Smallest group size from which on the tail-miss probability stays at or below `level`.

    The upper end of {N: Pr(B_tau) > level}, which is an interval; at most ln(level) / ln(1 - tau), and equal to it to
    rounding once homogeneous groups are negligible.

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu].
        level: Tolerated tail-miss probability, in (0, 1).
        integer: Over whole group sizes (default) or over real N >= 1.

    Returns:
        Group sizes as float64 (whole numbers if `integer`), broadcast over all arguments: 1 where no group size exceeds
        the level (so where no N has a tail miss at all), inf at tau = 0 < mu < 1 (nothing covers a region of no mass).

    Raises:
        ValueError: If an argument is out of range or not a number, or rare_mass exceeds success_rate.

    Source: this project (proof `log_concavity`).
    """
    check.flag("integer", integer)
    delta = check.open_probability("level", level)
    mu, tau = kernel.inputs(success_rate, rare_mass, level=delta)
    shape, tau, bases, peaked, (delta,) = kernel.interior(mu, tau, delta)
    result = np.where((tau == 0) & (bases.small > 0), np.inf, 1.0)

    inside = kernel.at(bases, peaked)
    peak = kernel.real_peak(inside)
    if integer:
        peak = kernel.integer_peak(inside, tau[peaked], peak)
    exceeds = kernel.log_tail_miss(inside, peak) > np.log(delta[peaked])
    risky = np.flatnonzero(peaked)[exceeds]
    bases, log_level = kernel.at(inside, exceeds), np.log(delta[risky])
    n = kernel.falling_crossing(bases, log_level, peak[exceeds])
    if integer:
        n = np.maximum(np.ceil(n), peak[exceeds] + 1.0)
        # the root is known to rounding only: the whole number below it may be the first that keeps the level
        n = np.where(kernel.log_tail_miss(bases, n - 1.0) <= log_level, n - 1.0, n)
    result[risky] = n
    return result.reshape(shape)[()]
