"""The tail miss beyond one prompt with independent rollouts and right-or-wrong rewards.

Prompts of different difficulty (a Beta law of the success rate), rollouts that are correlated within a group, rollouts
drawn without replacement from a pool, and rewards of several levels. In each model the group is exchangeable, so that

    E[(1 - X/N)^gamma 1_B] = sum_{0 < x < N} (1 - x/N)^gamma Pr(no rare rollout, x correct and N - x wrong ones),

and in each the probability is a product over Polya-urn draws (`_urn`). For gamma = 0 and 1 the sum has a closed form,
which is evaluated as a sum of non-negative terms: with C and W the correct (not rare) and wrong masses and d the added
one,

    Pr(active, given no rare) = C/(C+W) (1 - prod_{i=1..N-1} (C + i d)/(C + W + i d)) + the same with C and W exchanged,

whose second summand is E[1 - X/N; active, given no rare]. The products are sums of log1p's of one sign: no log-gamma
values are subtracted. Costs are O(N) per point; N = 1e6 takes some tens of milliseconds, N = 1e7, the largest that is
taken, seconds.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from fgrpo.theory import _tail_miss_kernel as kernel
from fgrpo.theory import _urn
from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray

LARGEST_GROUP = 1e7
"""Largest N; a product over so many draws takes seconds."""


def beta_tail_miss_rare_fraction(
    alpha: ArrayLike, beta: ArrayLike, rare_fraction: ArrayLike, group_size: ArrayLike, *, gamma: ArrayLike = 0.0
) -> FloatArray:
    """Tail-miss probability averaged over prompts with success rate mu ~ Beta(alpha, beta) and tau = rare_fraction mu.

    With rho the rare fraction, (x)_N the rising factorial and gamma = 0 it is
    2F1(-N, alpha; alpha + beta; rho) - (1 - rho)^N (alpha)_N / (alpha + beta)_N - (beta)_N / (alpha + beta)_N.

    Args:
        alpha: First shape of the Beta law, > 0. The mean success rate is alpha / (alpha + beta).
        beta: Second shape of the Beta law, > 0. Large shapes mean prompts of equal difficulty.
        rare_fraction: rho = tau / mu in [0, 1], the same for all prompts.
        group_size: N, rollouts per prompt, a whole number in [0, 10^7].
        gamma: Focal exponent, >= 0: the expectation of (1 - X/N)^gamma on tail-miss groups.

    Returns:
        Value in [0, 1], float64, broadcast over all arguments; relative error measured below 1e-12 up to N = 1e4. 0 at
        N = 0, N = 1 and rho = 1; the averaged active probability at rho = 0.

    Raises:
        ValueError: If an argument is out of range or not a number.

    Source: this project (Lemma 3.1 integrated over the Beta law).
    """
    shape_a = check.positive("alpha", alpha, "pass the first shape of a Beta law")
    shape_b = check.positive("beta", beta, "pass the second shape of a Beta law")
    rho = check.probability("rare_fraction", rare_fraction)
    n, exponent = _whole_group(group_size), check.gamma(gamma)
    check.broadcastable(alpha=shape_a, beta=shape_b, rare_fraction=rho, group_size=n, gamma=exponent)
    return _each(_beta_rare_fraction, shape_a, shape_b, rho, n, exponent)


def beta_tail_miss_rare_mass(
    alpha: ArrayLike, beta: ArrayLike, rare_mass: ArrayLike, group_size: ArrayLike, *, gamma: ArrayLike = 0.0
) -> FloatArray:
    """Tail-miss probability averaged over prompts of equal rare mass, whose other rollouts succeed at Beta rates.

    tau is fixed, and u = (mu - tau) / (1 - tau), the success rate outside the rare region, follows Beta(alpha, beta).
    For gamma = 0 it is (1 - tau)^N (1 - ((alpha)_N + (beta)_N) / (alpha + beta)_N).

    Args:
        alpha: First shape of the Beta law of u, > 0.
        beta: Second shape of the Beta law of u, > 0.
        rare_mass: tau in [0, 1], the same for all prompts.
        group_size: N, rollouts per prompt, a whole number in [0, 10^7].
        gamma: Focal exponent, >= 0: the expectation of (1 - X/N)^gamma on tail-miss groups.

    Returns:
        Value in [0, 1], float64, broadcast over all arguments; relative error measured below 1e-12 (1 + N lambda) up to
        N = 1e4, lambda = -ln(1 - tau). 0 at N = 0, N = 1 and tau = 1.

    Raises:
        ValueError: If an argument is out of range or not a number.

    Source: this project (Lemma 3.1 integrated over the Beta law).
    """
    shape_a = check.positive("alpha", alpha, "pass the first shape of a Beta law")
    shape_b = check.positive("beta", beta, "pass the second shape of a Beta law")
    tau = check.probability("rare_mass", rare_mass)
    n, exponent = _whole_group(group_size), check.gamma(gamma)
    check.broadcastable(alpha=shape_a, beta=shape_b, rare_mass=tau, group_size=n, gamma=exponent)
    with np.errstate(divide="ignore"):
        no_rare: FloatArray = np.exp(np.maximum(n, 1.0) * np.log1p(-tau))
    activity = _each(_urn.tail_miss, np.asarray(0.0), shape_a, shape_b, np.asarray(1.0), n, exponent)
    return (no_rare * activity)[()]


def correlated_tail_miss(
    success_rate: ArrayLike,
    rare_mass: ArrayLike,
    group_size: ArrayLike,
    correlation: ArrayLike,
    *,
    gamma: ArrayLike = 0.0,
) -> FloatArray:
    """Tail-miss probability of a group whose rollouts are correlated: Dirichlet-multinomial counts.

    Each group has its own probabilities of rare, other correct and wrong rollouts, from a Dirichlet law with means tau,
    mu - tau and 1 - mu and concentration s = (1 - r) / r; r is then the correlation, between two rollouts of a group,
    of the indicators 'is rare', 'is correct' and so on. With a_c = s (mu - tau) and a_w = s (1 - mu) it is, for gamma
    = 0, ((a_c + a_w)_N - (a_c)_N - (a_w)_N) / (s)_N.

    Args:
        success_rate: mu in [0, 1], mean over groups.
        rare_mass: tau in [0, mu], mean over groups.
        group_size: N, rollouts per prompt, a whole number in [0, 10^7].
        correlation: r in [0, 1]. 0 gives independent rollouts (`focal_tail_miss`), 1 equal ones: value 0.
        gamma: Focal exponent, >= 0: the expectation of (1 - X/N)^gamma on tail-miss groups.

    Returns:
        Value in [0, 1], float64, broadcast over all arguments; relative error measured below 1e-12 (1 + N lambda) up to
        N = 1e4. 0 wherever no group can be a tail miss.

    Raises:
        ValueError: If an argument is out of range or not a number, or rare_mass exceeds success_rate.

    Source: this project (Lemma 3.1 integrated over the Dirichlet law).
    """
    added = check.probability("correlation", correlation)
    n, exponent = _whole_group(group_size), check.gamma(gamma)
    mu, tau = kernel.inputs(success_rate, rare_mass, group_size=n, correlation=added, gamma=exponent)
    free = 1.0 - added
    masses = free * tau, free * (mu - tau), free * (1.0 - mu)
    return _each(_urn.tail_miss, *masses, added, n, exponent)


def tail_miss_without_replacement(
    pool_size: ArrayLike, correct: ArrayLike, rare: ArrayLike, group_size: ArrayLike, *, gamma: ArrayLike = 0.0
) -> FloatArray:
    """Tail-miss probability of a group drawn without replacement from a pool of rollouts: hypergeometric counts.

    (C(M - R, N) - C(K - R, N) - C(M - K, N)) / C(M, N) for gamma = 0, with M the pool, K its correct and R its rare
    members.

    Args:
        pool_size: M, rollouts in the pool, a whole number >= 0.
        correct: K, correct ones among them, a whole number <= M.
        rare: R, rare-correct ones among them, a whole number <= K.
        group_size: N, rollouts drawn for the group, a whole number <= M and <= 10^7.
        gamma: Focal exponent, >= 0: the expectation of (1 - X/N)^gamma on tail-miss groups.

    Returns:
        Value in [0, 1], float64, broadcast over all arguments; relative error measured below 1e-12 up to M = 1e4. 0
        wherever no group can be a tail miss, so for N > M - R.

    Raises:
        ValueError: If an argument is not a whole number or out of range.

    Source: this project (Lemma 3.1 without replacement).
    """
    pool = check.whole("pool_size", pool_size, 0, "pass the number of rollouts in the pool")
    right = check.whole("correct", correct, 0, "pass the number of correct rollouts in the pool")
    found = check.whole("rare", rare, 0, "pass the number of rare-correct rollouts in the pool")
    n, exponent = _whole_group(group_size), check.gamma(gamma)
    check.at_most("correct", right, "pool_size", pool, "correct rollouts are a part of the pool")
    check.at_most("rare", found, "correct", right, "rare-correct rollouts are a part of the correct ones")
    check.at_most("group_size", n, "pool_size", pool, "each rollout of the pool is drawn at most once")
    check.broadcastable(pool_size=pool, correct=right, rare=found, group_size=n, gamma=exponent)
    return _each(_urn.tail_miss, found, right - found, pool - right, np.asarray(-1.0), n, exponent)


def graded_tail_miss_probability(level_masses: ArrayLike, rare_mass: ArrayLike, group_size: ArrayLike) -> FloatArray:
    """Tail-miss probability when rewards have several levels: no rare rollout, and not all rewards equal.

    A group then has a signal iff two of its rewards differ. With q_l the probability of reward level l outside the rare
    region it is (1 - tau)^N - sum_l q_l^N: Lemma 3.1 at two levels, (1 - tau)^N at N >= 2 for continuous rewards (all
    q_l -> 0).

    Args:
        level_masses: q_l >= 0, along the last axis, [..., levels]; with rare_mass they sum to 1 within 1e-9 (and are
            scaled to do so).
        rare_mass: tau in [0, 1], shape [...].
        group_size: N, rollouts per prompt, shape [...]: 0 or any real number >= 1.

    Returns:
        Probability in [0, 1], float64, of the broadcast shape [...]; relative accuracy as `tail_miss_probability`. 0 at
        N = 0, N = 1, tau = 1 and for a single level.

    Raises:
        ValueError: If an argument is out of range or not a number, or the probabilities do not sum to 1.

    Source: this project (Lemma 3.1 with more levels).
    """
    q = check.probability("level_masses", level_masses)
    tau = check.probability("rare_mass", rare_mass)
    if q.ndim == 0 or q.shape[-1] == 0:
        raise ValueError(
            f"level_masses must have at least one level on its last axis, got shape {q.shape}: pass q [..., L]"
        )
    n = np.maximum(check.group_size(group_size), 1.0)
    check.broadcastable(**{"each of level_masses": q[..., 0], "rare_mass": tau, "group_size": n})
    q, tau_column = np.broadcast_arrays(q, tau[..., np.newaxis])
    tau = tau_column[..., 0]
    check.distribution("level_masses with rare_mass", np.concatenate((q, tau_column[..., :1]), axis=-1))
    total = np.sum(q, axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        v = np.where(total > 0.0, np.sort(q, axis=-1) / total, 0.0)
        # the largest share through the sum of the others, which carries its distance from 1
        others = np.sum(v[..., :-1], axis=-1, keepdims=True)
        log_v = np.concatenate((np.log(np.maximum(v[..., :-1], kernel.SMALLEST_DOUBLE)), np.log1p(-others)), axis=-1)
        no_rare = np.exp(n * np.log1p(-tau))
    active = np.sum(-v * np.expm1((n - 1.0)[..., np.newaxis] * log_v), axis=-1)
    result: FloatArray = no_rare * active
    return result[()]


def _whole_group(group_size: ArrayLike) -> FloatArray:
    n = check.integer_group_size(group_size, minimum=0)
    check.limited("group_size", n, LARGEST_GROUP, "the cost is O(N); tail_miss_probability takes any N")
    return n


def _each(model: Callable[..., float], *arguments: FloatArray) -> FloatArray:
    """`model` at every point of the broadcast arguments."""
    points = np.broadcast(*arguments)
    return np.array([model(*point) for point in points], dtype=np.float64).reshape(points.shape)[()]


def _beta_rare_fraction(alpha: float, beta: float, rho: float, n: float, gamma: float) -> float:
    if n < 2.0 or rho == 1.0:
        return 0.0
    x, p = _urn.count_law(alpha, beta, 1.0, n, 0.0, n)
    active = (x > 0.0) & (x < n)
    x, p = x[active], p[active]
    return float(np.sum(((n - x) / n) ** gamma * np.exp(x * np.log1p(-rho)) * p))
