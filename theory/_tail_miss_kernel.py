"""Evaluation and inversion of Lemma 3.1 on checked float64 arrays; `tail_miss` says the mathematics."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import elementwise

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray

SMALLEST_DOUBLE = 5e-324
LOG_LARGEST_DOUBLE = 709.78
BLOCK = 8192  # doubles: the dozen temporaries of one block stay in the second-level cache


class Bases(NamedTuple):
    """What Pr(B_tau) is made of: ln a, the smaller of u and w, and the logarithms of both."""

    log_a: FloatArray
    small: FloatArray
    log_small: FloatArray
    log_large: FloatArray


def inputs(success_rate: ArrayLike, rare_mass: ArrayLike, **others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Checked mu and tau, which must broadcast with the `others`."""
    mu = check.probability("success_rate", success_rate)
    tau = check.rare_mass(mu, rare_mass)
    check.broadcastable(success_rate=mu, rare_mass=tau, **others)
    return mu, tau


def blockwise(function: Callable[..., FloatArray], *arrays: FloatArray) -> FloatArray:
    """`function` over the broadcast arrays, a cache-sized block at a time (in one go, memory traffic dominates)."""
    result = np.empty(np.broadcast_shapes(*(array.shape for array in arrays)))
    access: list[list[Literal["readonly", "writeonly"]]] = [["readonly"] for _ in arrays]
    access.append(["writeonly"])
    with np.nditer(
        [*arrays, result],
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=access,
        order="C",
        buffersize=BLOCK,
    ) as blocks:
        for *parts, out in blocks:
            out[...] = function(*parts)
    return result


def rare_free_parts(mu: FloatArray, tau: FloatArray, nu: FloatArray | None = None) -> tuple[FloatArray, ...]:
    """The parts a = 1 - tau, b = mu - tau and c = 1 - mu, each as exact as the inputs allow."""
    a = 1.0 - tau
    if nu is None:
        return a, mu - tau, 1.0 - mu
    # mu - tau is exact only as far as mu is; above 1/2 the failure rate carries the digits. There, b is small only for
    # tau next to or above 1/2: 1 - tau, or else both differences from 1/2, are then exact
    b = np.where(tau < 0.5, (0.5 - tau) + (0.5 - nu), a - nu)
    return a, np.where(mu > 0.5, np.maximum(b, 0.0), mu - tau), nu


def bases(mu: FloatArray, tau: FloatArray, nu: FloatArray | None = None) -> Bases:
    """The ratios u and w, sorted, and the logarithms from which all else follows."""
    a, b, c = rare_free_parts(mu, tau, nu)
    # a = 0: every rollout is rare, so b = c = 0, and small = 0 makes h vanish
    small = np.minimum(np.minimum(b, c) / np.maximum(a, SMALLEST_DOUBLE), 0.5)
    with np.errstate(divide="ignore"):
        # the floor keeps 0 * log 0 at its limit 0
        return Bases(np.log1p(-tau), small, np.log(np.maximum(small, SMALLEST_DOUBLE)), np.log1p(-small))


@np.errstate(over="ignore")  # a power whose exponent is -inf is 0
def activity(bases: Bases, n: FloatArray) -> FloatArray:
    """h(N) = Pr(active, given that no rollout is rare) for N >= 1."""
    m = n - 1.0
    return -(bases.small * np.expm1(m * bases.log_small) + (1.0 - bases.small) * np.expm1(m * bases.log_large))


@np.errstate(over="ignore")
def tail_miss(bases: Bases, n: FloatArray) -> FloatArray:
    """Pr(B_tau) for N >= 1."""
    return np.exp(n * bases.log_a) * activity(bases, n)


def probability(mu: FloatArray, tau: FloatArray, n: FloatArray, *nu: FloatArray) -> FloatArray:
    """Pr(B_tau) for N >= 1 from the parameters themselves."""
    return tail_miss(bases(mu, tau, *nu), n)


@np.errstate(over="ignore")
def log_tail_miss(bases: Bases, n: FloatArray) -> FloatArray:
    """Logarithm of Pr(B_tau) for N >= 1; -inf where the probability is 0."""
    h = activity(bases, n)
    log_no_rare = n * bases.log_a
    # the second form is for where the first is next to 0; elsewhere it may round to more than 1
    rest = np.minimum(no_tail_miss(bases, n), 1.0)
    with np.errstate(divide="ignore"):
        return np.where(np.exp(log_no_rare) * h < 0.5, log_no_rare + np.log(h), np.log1p(-rest))


@np.errstate(over="ignore")
def no_tail_miss(bases: Bases, n: FloatArray) -> FloatArray:
    """1 - Pr(B_tau) as a sum of positives: some rollout is rare, or all are correct and none rare, or all are wrong."""
    log_no_rare = n * bases.log_a
    homogeneous = np.exp(log_no_rare + n * bases.log_small) + np.exp(log_no_rare + n * bases.log_large)
    return homogeneous - np.expm1(log_no_rare)


def interior(
    mu: FloatArray, tau: FloatArray, *more: FloatArray
) -> tuple[tuple[int, ...], FloatArray, Bases, NDArray[np.bool_], list[FloatArray]]:
    """Flattened inputs, and where the curve has a peak: tau > 0 and something left to miss."""
    mu, tau, *rest = np.broadcast_arrays(mu, tau, *more)
    flat = bases(mu.ravel(), tau.ravel())
    return mu.shape, tau.ravel(), flat, (tau.ravel() > 0) & (flat.small > 0), [part.ravel() for part in rest]


def at(bases: Bases, where: NDArray[np.bool_]) -> Bases:
    """The selected elements."""
    return Bases(*(part[where] for part in bases))


def real_peak(bases: Bases) -> FloatArray:
    """Root N* > 1 of h'(N) / h(N) = lambda, solved for ln(N - 1)."""
    log_lambda = np.log(-bases.log_a)

    def slope(log_m: FloatArray, log_lambda: FloatArray, *parts: FloatArray) -> FloatArray:
        b = Bases(*parts)
        n = 1.0 + np.exp(log_m)
        log_h_prime = np.logaddexp(n * b.log_small + np.log(-b.log_small), n * b.log_large + np.log(-b.log_large))
        return log_h_prime - np.log(activity(b, n)) - log_lambda

    # h concave with h(1) = 0 gives N* - 1 <= 1 / lambda; while N - 1 <= 1 / -ln(small), h' is above h'(1) / e and
    # h below (N - 1) h'(1), so the slope is positive up to 1 / (e lambda)
    upper = -log_lambda
    lower = np.minimum(-np.log(-bases.log_small), upper - 1.0)
    bracket = lower - 1e-9, np.minimum(upper + 1e-9, LOG_LARGEST_DOUBLE)
    with np.errstate(over="ignore"):
        root = elementwise.find_root(slope, bracket, args=(log_lambda, *bases))
    return np.where(root.success, 1.0 + np.exp(root.x), np.inf)


def integer_peak(bases: Bases, tau: FloatArray, peak: FloatArray) -> FloatArray:
    """The better of the two whole numbers beside the real peak, the smaller one on a tie."""
    n = np.maximum(np.floor(peak), 2.0)
    # Pr at N + 1 exceeds Pr at N iff a (u^N w + w^N u) > tau h(N): no difference of nearly equal numbers
    large = 1.0 - bases.small
    gain = np.exp(n * bases.log_small) * large + np.exp(n * bases.log_large) * bases.small
    rises = (tau < 1 / 3) & ((1.0 - tau) * gain > tau * activity(bases, n))
    return np.where(rises, n + 1.0, n)


def level_crossing(bases: Bases, log_level: FloatArray, one_side: FloatArray, other_side: FloatArray) -> FloatArray:
    """Real N at which ln Pr(B_tau) = `log_level`, between two bounds on ln(N - 1); inf if N is no double."""

    def excess(log_m: FloatArray, log_level: FloatArray, *parts: FloatArray) -> FloatArray:
        return log_tail_miss(Bases(*parts), 1.0 + np.exp(log_m)) - log_level

    ends = np.minimum(one_side, LOG_LARGEST_DOUBLE), np.minimum(other_side, LOG_LARGEST_DOUBLE)
    with np.errstate(over="ignore"):
        root = elementwise.find_root(excess, ends, args=(log_level, *bases))
    return np.where(root.success, 1.0 + np.exp(root.x), np.inf)


def falling_crossing(bases: Bases, log_level: FloatArray, peak: FloatArray) -> FloatArray:
    """Real N beyond the peak at which the probability has come down to the level."""
    # (1 - tau)^N = level bounds it from above
    upper = np.log(-log_level) - np.log(-bases.log_a)
    start = np.log(peak - 1.0)
    crossing = level_crossing(bases, log_level, start, upper + 1e-9)
    # the level may equal the maximum to rounding
    return np.where(log_tail_miss(bases, 1.0 + np.exp(start)) <= log_level, peak, crossing)


def rising_crossing(bases: Bases, log_level: FloatArray, peak: FloatArray) -> FloatArray:
    """Real N before the peak (which may be inf) at which the probability has come up to the level."""
    # h is concave with h(1) = 0, h'(1) <= ln 2, so Pr <= (N - 1) ln 2; and Pr >= 1 - 2 large^N where no mass is rare
    lower = log_level - np.log(np.log(2.0))
    always = np.log(-np.log(-np.expm1(log_level) / 2.0)) - np.log(-bases.log_large)
    upper = np.where(np.isinf(peak), always + 1e-9, np.log(peak - 1.0))
    # 1 below, as N - 1 is rounded where it is small; and the level may equal the maximum to rounding
    return np.minimum(level_crossing(bases, log_level, lower - 1.0, upper), peak)
