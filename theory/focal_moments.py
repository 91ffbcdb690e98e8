"""The focal weight of a finite group: it is computed from X/N, not from the success rate, so it scatters and is biased.

X ~ Binomial(N, mu) rollouts are correct and Y = N - X wrong; the weight is (Y/N)^gamma. Its mean is (1 - mu)^gamma for
gamma = 0 and gamma = 1 only; by Jensen's inequality it lies above for gamma > 1 and below for 0 < gamma < 1.
For whole gamma the mean is a polynomial in 1 - mu, through the factorial moments E[Y (Y-1) ... (Y-j+1)] = N^(j) (1 -
mu)^j:

    E[(Y/N)^gamma] = N^-gamma sum_j S(gamma, j) N^(j) (1 - mu)^j,      S: Stirling numbers of the second kind,

a sum of non-negative terms. For other gamma the average over X is carried out.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fgrpo.theory import _validation as check
from fgrpo.theory._binomial import Term, binomial_mean, flat, moment_coefficients
from fgrpo.theory._validation import FloatArray

# beyond it the sum over X is as good, and the rounding errors of q^gamma add up
_LARGEST_POLYNOMIAL_GAMMA = 20


class Moments(NamedTuple):
    """Mean and variance, float64 arrays of one shape."""

    mean: FloatArray
    variance: FloatArray


def moments_of(
    term: Term, shape: tuple[int, ...], success_rate: FloatArray, group_size: FloatArray, *, given_active: bool
) -> Moments:
    """Mean and variance of term(X, i) as in `binomial_mean`; two passes, so that a small variance keeps its digits."""
    mean = binomial_mean(term, success_rate, group_size, given_active=given_active)
    variance = binomial_mean(
        lambda counts, i: (term(counts, i) - mean[i]) ** 2, success_rate, group_size, given_active=given_active
    )
    return Moments(mean.reshape(shape)[()], variance.reshape(shape)[()])


def weight_moments(
    success_rate: ArrayLike,
    group_size: ArrayLike,
    weight: Callable[[FloatArray], Any],
    *,
    given_active: bool = False,
) -> Moments:
    """Mean and variance of any weight of the empirical success rate.

    Args:
        success_rate: mu, probability that one rollout is correct, in [0, 1].
        group_size: N, rollouts per prompt, whole numbers in [1, 10^9].
        weight: Function of an array of empirical success rates X/N, for example `functools.partial(focal_weight,
            gamma=1)` or `functools.partial(hard_upweight, alpha=1)`.
        given_active: Condition on an active group (0 < X < N).

    Returns:
        `Moments(mean, variance)`, each broadcast over success_rate and group_size; nan with `given_active` where no
        group can be active (N = 1, mu = 0, mu = 1).

    Raises:
        ValueError: If an argument is out of range or not a number.

    Cost: at most min(N + 1, 38 sqrt(N)) evaluations of the weight per element.

    Source: this project.
    """
    mu, n = check.probability("success_rate", success_rate), check.integer_group_size(group_size)
    shape, (mu, n) = flat(success_rate=mu, group_size=n)
    return moments_of(lambda counts, i: weight(counts / n[i]), shape, mu, n, given_active=given_active)


def expected_focal_weight(
    success_rate: ArrayLike, group_size: ArrayLike, gamma: ArrayLike, *, given_active: bool = False
) -> FloatArray:
    """Expected focal weight E[(1 - X/N)^gamma] of a group.

    Args:
        success_rate: mu, probability that one rollout is correct, in [0, 1].
        group_size: N, rollouts per prompt, whole numbers in [1, 10^9].
        gamma: Focal exponent, >= 0.
        given_active: Condition on an active group (0 < X < N), the only ones that the weight acts on.

    Returns:
        Mean weight in [0, 1], float64, broadcast over all arguments; nan with `given_active` where no group can be
        active (N = 1, mu = 0, mu = 1).

    Raises:
        ValueError: If an argument is out of range or not a number.

    Limiting cases: 1 at gamma = 0; 1 - mu at gamma = 1; (1 - mu)^2 + mu (1 - mu) / N at gamma = 2; (1 - mu)^gamma for
    N -> inf. At N = 1 it is 1 - mu for every gamma > 0. Given an active group it is at least N^-gamma and tends to that
    for mu -> 1, to (1 - 1/N)^gamma for mu -> 0, and it is 2^-gamma at N = 2.

    Accuracy: relative error below 2e-15 for whole gamma <= 20, else below 1e-14 (N to 1e6, against mpmath), as long as
    the result is above 1e-290. Cost: O(gamma) for those, else at most min(N + 1, 38 sqrt(N)) terms per element.

    Source: Section 4.1 (v1 and v2) defines the weight; its moments: this project (proof `focal_weight_moments`).
    """
    check.flag("given_active", given_active)
    shape, (mu, n, exponent) = _inputs(success_rate, group_size, gamma)
    if given_active:
        return _mean(mu, n, exponent, given_active=True).reshape(shape)[()]
    polynomial = (exponent == np.floor(exponent)) & (exponent <= _LARGEST_POLYNOMIAL_GAMMA)
    result = np.empty_like(mu)
    result[~polynomial] = _mean(mu[~polynomial], n[~polynomial], exponent[~polynomial])
    for power in np.unique(exponent[polynomial]):
        at = polynomial & (exponent == power)
        result[at] = _whole_moment(1.0 - mu[at], n[at], int(power))
    return result.reshape(shape)[()]


def focal_weight_variance(
    success_rate: ArrayLike, group_size: ArrayLike, gamma: ArrayLike, *, given_active: bool = False
) -> FloatArray:
    """Variance of the focal weight (1 - X/N)^gamma of a group.

    Args:
        success_rate: mu, probability that one rollout is correct, in [0, 1].
        group_size: N, rollouts per prompt, whole numbers in [1, 10^9].
        gamma: Focal exponent, >= 0.
        given_active: Condition on an active group (0 < X < N).

    Returns:
        Variance in [0, 1/4], float64, broadcast over all arguments; nan with `given_active` where no group can be
        active.

    Raises:
        ValueError: If an argument is out of range or not a number.

    Limiting cases: 0 at gamma = 0, mu = 0 and mu = 1; mu (1 - mu) / N at gamma = 1; to first order in 1/N
    gamma^2 (1 - mu)^(2 gamma - 2) mu (1 - mu) / N. Given an active group of N = 2 it is 0: the weight is the constant
    2^-gamma.

    Accuracy: relative error below 1e-11 (N to 1e6, mu and 1 - mu from 1e-9, against mpmath).

    Source: this project.
    """
    shape, (mu, n, exponent) = _inputs(success_rate, group_size, gamma)
    return moments_of(_focal(n, exponent), shape, mu, n, given_active=given_active).variance


def focal_weight_standard_deviation(
    success_rate: ArrayLike, group_size: ArrayLike, gamma: ArrayLike, *, given_active: bool = False
) -> FloatArray:
    """Standard deviation of the focal weight of a group: the square root of `focal_weight_variance`, same arguments.

    At N = 8 and gamma = 1 it is .177 for mu = .5 and .106 for mu = .9.

    Raises:
        ValueError: If an argument is out of range or not a number.

    Source: this project.
    """
    return np.sqrt(focal_weight_variance(success_rate, group_size, gamma, given_active=given_active))


def focal_weight_bias(success_rate: ArrayLike, group_size: ArrayLike, gamma: ArrayLike) -> FloatArray:
    """Bias of the focal weight as an estimate of that of the true success rate: E[(1 - X/N)^gamma] - (1 - mu)^gamma.

    The tangent of x^gamma at 1 - mu averages to nothing, so the bias is the mean of what x^gamma differs from it: terms
    of one sign (Jensen), without the cancellation of the difference.

    Args:
        success_rate: mu, probability that one rollout is correct, in [0, 1].
        group_size: N, rollouts per prompt, whole numbers in [1, 10^9].
        gamma: Focal exponent, >= 0.

    Returns:
        Bias in [-1, 1], float64, broadcast over all arguments: >= 0 for gamma >= 1, <= 0 for 0 <= gamma <= 1.

    Raises:
        ValueError: If an argument is out of range or not a number.

    Limiting cases: exactly 0 at gamma = 0, gamma = 1, mu = 0 and mu = 1; mu (1 - mu) / N at gamma = 2; to first order
    in 1/N gamma (gamma - 1) / 2 (1 - mu)^(gamma - 2) mu (1 - mu) / N, which is useless once N (1 - mu) is not large (at
    mu = .99, N = 8, gamma = 1/2 it says -.155, the bias is -.072).

    Accuracy: relative error below 1e-11 (N to 1e6, mu and 1 - mu from 1e-9, against mpmath); next to gamma = 1, where
    the bias vanishes, it grows as 1 / |gamma - 1|.

    Source: this project.
    """
    shape, (mu, n, exponent) = _inputs(success_rate, group_size, gamma)
    q = 1.0 - mu
    curved = (q > 0) & (mu > 0) & (exponent != 0) & (exponent != 1)
    result = np.zeros_like(mu)
    mu, n, exponent, q = (part[curved] for part in (mu, n, exponent, q))

    def above_tangent(counts: FloatArray, i: NDArray[np.intp]) -> FloatArray:
        wrong, centre, power = (n[i] - counts) / n[i], q[i], exponent[i]
        step = (wrong - centre) / centre
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            near: FloatArray = centre**power * (np.expm1(power * np.log1p(step)) - power * step)
            far: FloatArray = wrong**power - centre**power * (1.0 + power * step)
        return np.where(step < 1.0, near, far)

    result[curved] = binomial_mean(above_tangent, mu, n)
    return result.reshape(shape)[()]


def _inputs(
    success_rate: ArrayLike, group_size: ArrayLike, gamma: ArrayLike
) -> tuple[tuple[int, ...], list[FloatArray]]:
    return flat(
        success_rate=check.probability("success_rate", success_rate),
        group_size=check.integer_group_size(group_size),
        gamma=check.gamma(gamma),
    )


def _focal(n: FloatArray, exponent: FloatArray) -> Term:
    # from the wrong rollouts: 1 - X/N would lose digits next to X = N
    return lambda counts, i: ((n[i] - counts) / n[i]) ** exponent[i]


def _mean(mu: FloatArray, n: FloatArray, exponent: FloatArray, *, given_active: bool = False) -> FloatArray:
    return binomial_mean(_focal(n, exponent), mu, n, given_active=given_active)


def _whole_moment(q: FloatArray, n: FloatArray, power: int) -> FloatArray:
    if power == 0:
        return np.ones_like(q)
    return sum((c * q**j for j, c in enumerate(moment_coefficients(power, n), start=1)), start=np.zeros_like(q))
