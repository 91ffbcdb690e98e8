"""The utility of the success rate whose gradient a weighted group-relative update follows in expectation.

Setting: on-policy, no clipping, sequence-level weights. The update of a group is (1/N) sum_j a(X/N) (r_j - mean r) grad
log pi(y_j) with a(m) = g(m), or g(m) / (std + epsilon), and g any weight of the empirical success rate. Then, for every
policy,

    E[update] = F'(mu) grad mu,      F'(mu) = E[w(X)] / (mu (1 - mu)),      w(X) = a(m) m (1 - m),  m = X/N,

in units of the reward gap R_c - R_w (multiply by it, except where a standard deviation without epsilon divides it out).
So a weight changes the length of the expected step of a prompt, never its direction: what it moves within a prompt
comes from noise and step size, what it moves across prompts from the curvature of F.

As X (N - X) C(N, X) = N (N - 1) C(N - 2, X - 1), the quotient is itself an average, over N - 2 rollouts, without
division:

    F'(mu) = (N - 1)/N  E[a((J + 1)/N)],   J ~ Binomial(N - 2, mu),
    F(mu) = 1/N  E[a(1/N) + ... + a(J/N)],  J ~ Binomial(N - 1, mu)      (Bernstein polynomials integrate to such),

exact for every finite N, the ends mu = 0 and mu = 1 included. For N -> inf F'(mu) tends to a(mu).
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaln

from fgrpo.theory import _validation as check
from fgrpo.theory._binomial import Term, binomial_mean, flat
from fgrpo.theory._validation import FloatArray

Normalisation = Literal["none", "std"]

_LARGEST_TABLE = 1e7  # weights of all groups with X = 1..N-1 that are held at a time


def utility_slope(
    success_rate: ArrayLike,
    group_size: ArrayLike,
    weight: Callable[[FloatArray], Any],
    *,
    normalisation: Normalisation = "none",
    ddof: Literal[0, 1] = 0,
    epsilon: float = 0.0,
) -> FloatArray:
    """Slope F'(mu) of the utility that the weighted update follows: E[update] = F'(mu) grad mu (see the module's text).

    Args:
        success_rate: mu, probability that one rollout is correct, in [0, 1].
        group_size: N, rollouts per prompt, whole numbers in [2, 10^9].
        weight: Function of an array of empirical success rates in (0, 1), for example
            `functools.partial(focal_weight, gamma=1)`, `constant_weight` or `functools.partial(pass_at_k_weight, k=4)`.
        normalisation: 'none' for advantages r - mean, 'std' for (r - mean) / (std + epsilon).
        ddof: With 'std': 0 for the population standard deviation, 1 for the sample one.
        epsilon: With 'std': constant added to the standard deviation, in units of the reward gap, >= 0.

    Returns:
        F'(mu) in units of the reward gap, float64, broadcast over success_rate and group_size.

    Raises:
        ValueError: If an argument is out of range or not a number, or an option is unknown.

    Limiting cases: at N = 2 the constant a(1/2) / 2; a((N-1)/N) (N-1)/N at mu = 1, a(1/N) (N-1)/N at mu = 0; a(mu) for
    N -> inf. Constant weight, no std: (N - 1)/N, so F is (N - 1)/N pass@1. Weight 1 / m, no std: sum of (1 - mu)^(k-1)
    over k = 1..N-1, maximum likelihood (log mu) cut off at N - 1.

    Accuracy: relative error below 1e-13 (N to 1e6), up to the weight's own. Cost: at most min(N, 38 sqrt(N))
    evaluations of the weight per element.

    Source: this project (proof `utility_gradient`).
    """
    scale = _scale(weight, normalisation, ddof, epsilon)
    shape, (mu, n) = _inputs(success_rate, group_size)
    mean = binomial_mean(lambda counts, i: scale((counts + 1.0) / n[i], n[i]), mu, n - 2.0)
    return ((n - 1.0) / n * mean).reshape(shape)[()]


def utility(
    success_rate: ArrayLike,
    group_size: ArrayLike,
    weight: Callable[[FloatArray], Any],
    *,
    normalisation: Normalisation = "none",
    ddof: Literal[0, 1] = 0,
    epsilon: float = 0.0,
) -> FloatArray:
    """Utility F(mu), F(0) = 0, that the weighted update climbs in expectation: the exact integral of `utility_slope`.

    Args:
        success_rate: mu, probability that one rollout is correct, in [0, 1].
        group_size: N, rollouts per prompt, whole numbers in [2, 10^7].
        weight: Function of an array of empirical success rates in (0, 1).
        normalisation: 'none' for advantages r - mean, 'std' for (r - mean) / (std + epsilon).
        ddof: With 'std': 0 for the population standard deviation, 1 for the sample one.
        epsilon: With 'std': constant added to the standard deviation, in units of the reward gap, >= 0.

    Returns:
        F(mu) in units of the reward gap, float64, broadcast over success_rate and group_size. Concave, convex or
        neither as the weighted size a(m) falls, rises or does neither.

    Raises:
        ValueError: If an argument is out of range or not a number, or an option is unknown.

    Limiting cases: 0 at mu = 0; without std: constant weight (N-1)/N pass@1; focal weight with gamma = 1
    (N-1)/N^2 ((N-2) pass@2 / 2 + pass@1) exactly; unbiased pass@k weight: pass@k; `focal_utility` for N -> inf.

    Accuracy: relative error below 1e-13 (N to 1e6). Cost: N evaluations of the weight per distinct group size.

    Source: this project (proof `utility_gradient`).
    """
    scale = _scale(weight, normalisation, ddof, epsilon)
    shape, (mu, n) = _inputs(success_rate, group_size)
    check.limited("group_size", n, _LARGEST_TABLE, "the cost is O(N); focal_utility is the limit for N -> inf")
    result = np.empty_like(mu)
    for size in np.unique(n):
        at = n == size
        sizes = n[at]
        heights = np.broadcast_to(scale(np.arange(1.0, size) / size, size), (int(size) - 1,))
        area = np.concatenate([[0.0], np.cumsum(heights)]) / size
        result[at] = binomial_mean(_entries(area), mu[at], sizes - 1.0)
    return result.reshape(shape)[()]


def focal_utility_slope(
    success_rate: ArrayLike, gamma: ArrayLike, *, normalisation: Normalisation = "none"
) -> FloatArray:
    """Slope of the focal weight's utility for N -> inf: (1 - mu)^gamma, divided by sqrt(mu (1 - mu)) with 'std'.

    Args:
        success_rate: mu in [0, 1].
        gamma: Focal exponent, >= 0.
        normalisation: 'none', or 'std' (population standard deviation, epsilon = 0).

    Returns:
        F'(mu), float64, broadcast over both arguments; with 'std' mu^(-1/2) (1 - mu)^(gamma - 1/2), so inf at mu = 0,
        and at mu = 1 inf, 1 or 0 as gamma is below, at or above 1/2.

    Raises:
        ValueError: If an argument is out of range or not a number, or normalisation is unknown.

    Source: this project (proof `utility_gradient`).
    """
    mu, exponent = _limit_inputs(success_rate, gamma)
    if not _uses_std(normalisation):
        return ((1.0 - mu) ** exponent)[()]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (mu**-0.5 * (1.0 - mu) ** (exponent - 0.5))[()]


def focal_utility(success_rate: ArrayLike, gamma: ArrayLike, *, normalisation: Normalisation = "none") -> FloatArray:
    """Utility of the focal weight for N -> inf, F(0) = 0.

    Without std (1 - (1 - mu)^(gamma + 1)) / (gamma + 1), which is pass@(gamma + 1) / (gamma + 1): gamma = 1 trains
    pass@2. With the population std B(mu; 1/2, gamma + 1/2), the incomplete beta function: 2 arcsin sqrt(mu) for gamma =
    0, 2 sqrt(mu) for gamma = 1/2, sqrt(mu (1 - mu)) + arcsin sqrt(mu) for gamma = 1.

    Args:
        success_rate: mu in [0, 1].
        gamma: Focal exponent, >= 0.
        normalisation: 'none', or 'std' (population standard deviation, epsilon = 0).

    Returns:
        F(mu) >= 0, float64, broadcast over both arguments; 0 at mu = 0; at mu = 1 it is 1 / (gamma + 1), or
        B(1/2, gamma + 1/2) with 'std'.

    Raises:
        ValueError: If an argument is out of range or not a number, or normalisation is unknown.

    Accuracy: relative error below 2e-14 (mu from 1e-300 to 1, gamma to 50, against mpmath).

    Source: this project (proof `utility_gradient`).
    """
    mu, exponent = _limit_inputs(success_rate, gamma)
    if _uses_std(normalisation):
        b = exponent + 0.5
        whole: FloatArray = np.exp(betaln(0.5, b))
        return (whole * betainc(0.5, b, mu))[()]
    with np.errstate(divide="ignore"):
        return (-np.expm1((exponent + 1.0) * np.log1p(-mu)) / (exponent + 1.0))[()]


def _inputs(success_rate: ArrayLike, group_size: ArrayLike) -> tuple[tuple[int, ...], list[FloatArray]]:
    mu, n = check.probability("success_rate", success_rate), check.integer_group_size(group_size, minimum=2)
    return flat(success_rate=mu, group_size=n)


def _limit_inputs(success_rate: ArrayLike, gamma: ArrayLike) -> tuple[FloatArray, FloatArray]:
    mu, exponent = check.probability("success_rate", success_rate), check.gamma(gamma)
    check.broadcastable(success_rate=mu, gamma=exponent)
    return mu, exponent


def _entries(table: FloatArray) -> Term:
    return lambda counts, i: table[counts.astype(np.intp)]


def _uses_std(normalisation: str) -> bool:
    return check.one_of("normalisation", normalisation, ("none", "std")) == "std"


def _scale(
    weight: Callable[[FloatArray], Any], normalisation: str, ddof: int, epsilon: float
) -> Callable[[FloatArray, Any], Any]:
    """a(m): what multiplies r - mean r in a group of n rollouts with success rate m."""
    lost = check.ddof(ddof)
    eps = check.non_negative("epsilon", epsilon, "epsilon = 0 leaves the standard deviation as it is")
    added = check.scalar("epsilon", eps)
    if not _uses_std(normalisation):
        return lambda m, n: weight(m)
    return lambda m, n: weight(m) / (np.sqrt(m * (1.0 - m) * n / (n - lost)) + added)
