"""How much of an update's weight falls on tail-miss groups: expectations of focal and advantage weights.

Given that none of N rollouts is rare, the number W of wrong ones is binomial with chance w = (1 - mu) / (1 - tau), and
the group is a tail miss iff 0 < W < N. With 1 - X/N = W/N, a = 1 - tau, u = 1 - w and a whole exponent k > 0,

    E[(W/N)^k 1_B]               = a^N   sum_{j=1..k} S(k, j) N^(j) / N^k  (w^j - w^N),
    E[(W/N)^gamma X/N 1_B]       = a^N u sum_{j=1..k} S(k, j) (N-1)^(j) / N^k  w^j,      k = gamma + 1,

with Stirling numbers S(k, j) of the second kind and falling factorials N^(j). For whole N all terms are non-negative:
no digits are lost. Other exponents take the sum over W, cut to the part of the binomial law that float64 can see.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from fgrpo.theory import _tail_miss_kernel as kernel
from fgrpo.theory import _urn
from fgrpo.theory import _validation as check
from fgrpo.theory._binomial import moment_coefficients
from fgrpo.theory._validation import FloatArray

_LARGEST_STIRLING_ORDER = 64  # S(k, j) and the products with it stay far from overflow
_MOST_TERMS = 1e7  # of the sum over wrong rollouts: a second


def focal_tail_miss(
    success_rate: ArrayLike, rare_mass: ArrayLike, group_size: ArrayLike, gamma: ArrayLike
) -> FloatArray:
    """Expected focal weight on tail-miss groups, E[(1 - X/N)^gamma 1_B] with X/N the sampled success rate.

    gamma = 0 gives `tail_miss_probability`; gamma = 1 gives c (a^(N-1) - c^(N-1)) and gamma = 2 gives
    c^2 a^(N-2) (1 - 1/N) + c a^(N-1) / N - c^N, with a = 1 - tau, c = 1 - mu (evaluated without cancellation). It falls
    with gamma, and is at least N^-gamma Pr(B_tau).

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu].
        group_size: N, rollouts per prompt: 0 or any real number >= 1 if gamma is 0 or 1, else a whole number
            (up to about 10^12 if gamma is not whole or above 64).
        gamma: Focal exponent, >= 0.

    Returns:
        Value in [0, 1], float64, broadcast over all arguments. 0 wherever no group can be a tail miss (N = 0, N = 1,
        tau = mu, mu = 0, mu = 1).

    Raises:
        ValueError: If an argument is out of range or not a number, rare_mass exceeds success_rate, or group_size is not
            whole where it must be.

    Cost and accuracy: whole gamma up to 64: O(gamma), relative error of a few (gamma + 1) eps (1 + N lambda),
    lambda = -ln(1 - tau). Other gamma: O(sqrt(N) + gamma) per point, relative error below 1e-11 (1 + N lambda) up to
    N = 1e6.

    Source: this project (proof `focal_tail_miss`).
    """
    return _by_exponent(success_rate, rare_mass, group_size, gamma, 0, _focal_stirling, _focal_sum)


def advantage_weighted_tail_miss(
    success_rate: ArrayLike, rare_mass: ArrayLike, group_size: ArrayLike, *, gamma: ArrayLike = 0.0
) -> FloatArray:
    """Expected update strength of tail-miss groups, E[m (1 - m) g 1_B] with m = X/N and g = (1 - m)^gamma.

    m (1 - m) is the variance of the group's rewards in units of (R_c - R_w)^2, and the factor by which a
    mean-centred update (no division by the standard deviation) moves mass between correct and wrong. gamma = 0 gives
    (1 - 1/N) b c a^(N-2), with its peak at N = (1 + sqrt(1 + 4 / lambda)) / 2; gamma = 1 gives
    (N - 1) / N^2 b c a^(N-3) ((N - 2) c + a); a, b, c = 1 - tau, mu - tau, 1 - mu, lambda = -ln(1 - tau).

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu]; 0 gives the update strength of all groups.
        group_size: N, rollouts per prompt: 0 or any real number >= 1 if gamma is 0, else a whole number
            (up to about 10^12 if gamma is not whole or above 63).
        gamma: Focal exponent, >= 0.

    Returns:
        Value in [0, 1/4], float64, broadcast over all arguments. 0 wherever no group can be a tail miss.

    Raises:
        ValueError: If an argument is out of range or not a number, rare_mass exceeds success_rate, or group_size is not
            whole where it must be.

    Cost and accuracy: as `focal_tail_miss` with gamma + 1.

    Source: this project (proof `advantage_weighted_tail_miss`).
    """
    return _by_exponent(success_rate, rare_mass, group_size, gamma, 1, _advantage_stirling, _advantage_sum)


def tail_miss_update_share(success_rate: ArrayLike, rare_mass: ArrayLike, group_size: ArrayLike) -> FloatArray:
    """Share of the expected update strength (X/N) (1 - X/N) that comes from tail-miss groups.

    (1 - tau/mu) (1 - tau)^(N-2): it falls with N from the first, without a peak. Unweighted groups (gamma = 0).

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu].
        group_size: N, rollouts per prompt: 0 or any real number >= 1.

    Returns:
        Share in [0, 1], float64, broadcast over all arguments; 1 at tau = 0. nan where no group has any strength: N
        below 2, mu = 0, mu = 1.

    Raises:
        ValueError: If an argument is out of range or not a number, or rare_mass exceeds success_rate.

    Source: this project (proof `advantage_weighted_tail_miss`).
    """
    n = check.group_size(group_size)
    mu, tau = kernel.inputs(success_rate, rare_mass, group_size=n)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (mu - tau) / mu * np.exp((n - 2.0) * np.log1p(-tau))
    return np.where((n >= 2.0) & (mu > 0.0) & (mu < 1.0), share, np.nan)[()]


def focal_tail_miss_peak(success_rate: ArrayLike, rare_mass: ArrayLike, *, integer: bool = True) -> FloatArray:
    """Group size at which the focal-weighted tail miss is largest, for gamma = 1.

    Over real N it is 1 + 1 / LM(-ln c, -ln a) with the logarithmic mean LM(x, y) = (x - y) / ln(x / y), a = 1 - tau and
    c = 1 - mu; over whole numbers 1 + ceil(ln(mu / tau) / ln(a / c)), the smaller one of two equal maxima.

    Args:
        success_rate: mu in [0, 1].
        rare_mass: tau in [0, mu].
        integer: Peak over whole group sizes (default) or over real N >= 1.

    Returns:
        Group sizes as float64, broadcast over both arguments. inf at tau = 0 < mu < 1, nan where no N has a tail miss
        (tau = mu, mu = 0, mu = 1).

    Raises:
        ValueError: If an argument is out of range or not a number, or rare_mass exceeds success_rate.

    Source: this project (proof `focal_tail_miss`).
    """
    check.flag("integer", integer)
    mu, tau = kernel.inputs(success_rate, rare_mass)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_a_over_c = -_shares(mu, tau)[2]
        if integer:
            # a few eps below the quotient, so that rounding does not lift an exact tie to the larger maximum
            peak = 1.0 + np.ceil(_log_one_plus_ratio(mu - tau, tau) / log_a_over_c * (1.0 - 1e-15))
        else:
            # ln a - ln c over ln(ln c / ln a), with ln c = ln a - ln(a / c)
            peak = 1.0 + _log_one_plus_ratio(log_a_over_c, -np.log1p(-tau)) / log_a_over_c
    peak = np.where(tau == 0.0, np.inf, peak)
    return np.where((tau < mu) & (mu < 1.0), peak, np.nan)[()]


def _log_one_plus_ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    """ln(1 + x / y), also where x / y is no double."""
    ratio = x / y
    return np.where(np.isinf(ratio), np.log(x) - np.log(y), np.log1p(ratio))


def _shares(mu: FloatArray, tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The shares u = b / a and w = c / a, and ln w from the smaller of the two; 0, 1, 0 where every rollout is rare."""
    a, b, c = kernel.rare_free_parts(mu, tau)
    with np.errstate(divide="ignore", invalid="ignore"):
        u, w = np.where(a > 0.0, b / a, 0.0), np.where(a > 0.0, c / a, 1.0)
        return u, w, np.where(w < u, np.log(w), np.log1p(-u))


def _by_exponent(
    success_rate: ArrayLike,
    rare_mass: ArrayLike,
    group_size: ArrayLike,
    gamma: ArrayLike,
    shift: int,
    closed_form: Callable[[FloatArray, FloatArray, FloatArray, int], FloatArray],
    by_sum: Callable[[float, float, float, float], float],
) -> FloatArray:
    """Closed form for whole exponents, the sum over W for the others; the closed form has order gamma + `shift`."""
    exponent, real_n = check.gamma(gamma), check.group_size(group_size)
    mu, tau = kernel.inputs(success_rate, rare_mass, group_size=real_n, gamma=exponent)
    mu, tau, n, exponent = (part.copy() for part in np.broadcast_arrays(mu, tau, real_n, exponent))
    real_will_do = (exponent == 0.0) | (exponent + shift == 1.0)
    check.integer_group_size(n[~real_will_do], minimum=0)
    n = np.maximum(n, 1.0)
    result = np.empty(n.shape)
    closed = (exponent == np.floor(exponent)) & (exponent <= _LARGEST_STIRLING_ORDER - shift)
    for value in np.unique(exponent[closed]):
        here = closed & (exponent == value)
        result[here] = closed_form(mu[here], tau[here], n[here], int(value))
    rest = (part[~closed] for part in (mu, tau, n, exponent))
    result[~closed] = [by_sum(*point) for point in zip(*rest, strict=True)]
    return result[()]


def _focal_stirling(mu: FloatArray, tau: FloatArray, n: FloatArray, gamma: int) -> FloatArray:
    if gamma == 0:
        return kernel.tail_miss(kernel.bases(mu, tau), n)
    _, w, log_w = _shares(mu, tau)
    total = np.zeros_like(n)
    for j, coefficient in enumerate(moment_coefficients(gamma, n), start=1):
        below = (j < n) & (w > 0.0)  # beyond, N^(j) or w^j - w^N is 0
        total[below] += (coefficient * w**j)[below] * -np.expm1((n - j)[below] * log_w[below])
    return _no_rare(tau, n) * total


def _advantage_stirling(mu: FloatArray, tau: FloatArray, n: FloatArray, gamma: int) -> FloatArray:
    u, w, _ = _shares(mu, tau)
    terms = (coefficient * w**j for j, coefficient in enumerate(moment_coefficients(gamma + 1, n, 1), start=1))
    return _no_rare(tau, n) * u * sum(terms, start=np.zeros_like(n))


def _no_rare(tau: FloatArray, n: FloatArray) -> FloatArray:
    """(1 - tau)^N."""
    with np.errstate(divide="ignore"):
        return np.exp(n * np.log1p(-tau))


def _wrong_count_law(u: float, w: float, draws: float, gamma: float) -> tuple[FloatArray, FloatArray]:
    """Numbers W of wrong ones among independent draws and their probabilities, as far as E[W^gamma ...] can see them.

    By Bernstein's inequality [boucheron2013concentration] what is left out is below exp(-40) of the law, also under the
    weight W^gamma, which for a whole exponent moves the law up by at most gamma.
    """
    reach = 9.0 * np.sqrt(draws * u * w) + 60.0 + gamma
    low, high = max(0.0, np.floor(draws * u - reach)), min(draws, np.ceil(draws * u + reach))
    way_out = f"pass a smaller group_size or gamma, or a whole gamma of at most {_LARGEST_STIRLING_ORDER - 1}"
    check.limited("the terms of the sum over wrong rollouts", np.asarray(high - low), _MOST_TERMS, way_out)
    x, p = _urn.count_law(u, w, 0.0, draws, low, high)
    return draws - x, p


def _focal_sum(mu: float, tau: float, n: float, gamma: float) -> float:
    u, w, _ = (float(part) for part in _shares(np.asarray(mu), np.asarray(tau)))
    if n < 2.0 or u == 0.0 or w == 0.0:
        return 0.0
    wrong, p = _wrong_count_law(u, w, n, gamma)
    active = (wrong > 0.0) & (wrong < n)
    return float(np.exp(n * np.log1p(-tau)) * np.sum((wrong[active] / n) ** gamma * p[active]))


def _advantage_sum(mu: float, tau: float, n: float, gamma: float) -> float:
    u, w, _ = (float(part) for part in _shares(np.asarray(mu), np.asarray(tau)))
    if n < 2.0 or u == 0.0 or w == 0.0:
        return 0.0
    # the factor X turns N draws into u N times N - 1 draws
    wrong, p = _wrong_count_law(u, w, n - 1.0, gamma + 1.0)
    return float(np.exp(n * np.log1p(-tau)) * u * np.sum((wrong / n) ** (gamma + 1.0) * p))
