"""Pass@k from counts: the unbiased estimate, its variance, and intervals.

Of n samples of a problem, c are correct. The share of the k-subsets that hold at least one correct sample,

    pass@k = 1 - C(n - c, k) / C(n, k),

is an unbiased estimate of 1 - (1 - mu)^k, the probability that k fresh samples succeed. The ratio is a product,

    C(n - c, k) / C(n, k) = prod_{i < s} (1 - l / (n - i)),    s = min(c, k),  l = max(c, k),

symmetric in c and k. Its logarithm is a sum of log1p's of one sign, so 1 minus it is one expm1 that loses no digits.
(The product itself, subtracted from 1, does where pass@k is small; binomials overflow.)

As the statistic is a U-statistic of the kernel 'all k wrong', its variance has closed forms too. With J the overlap of
two random k-subsets, hypergeometric, and q = 1 - mu,

    Var = E[q^(2k - J)] - q^(2k) = sum_j Pr(J = j) q^(2k - j) (1 - q^j),

and C(n - c, 2k) / C(n, 2k) estimates the q^(2k) without bias as soon as n >= 2k.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fgrpo.theory import _urn
from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.intervals import student_half_width

_MOST_SAMPLES = 1e6  # measured up to here
_UNDERFLOWS = -750.0  # exp of it is 0 in float64
_BLOCK = 2**16  # terms of a sum held in memory at a time

IntervalMethod = Literal["within_problems", "over_problems", "single_problem"]


class PassAtKInterval(NamedTuple):
    """A pass@k estimate and its confidence limits, each in [0, 1] and of the shape of k."""

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray


def _counts(samples: ArrayLike, correct: ArrayLike, k: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    n = check.whole("samples", samples, 1, "pass the number of samples drawn for the problem")
    c = check.whole("correct", correct, 0, "pass the number of correct samples")
    size = check.whole("k", k, 1, "pass@k asks for at least one try")
    check.broadcastable(samples=n, correct=c, k=size)
    check.at_most("correct", c, "samples", n, "pass the counts of one problem together")
    check.at_most("k", size, "samples", n, "draw more samples per problem, or ask for a smaller k")
    return n, c, size


def _log_product(
    factors: FloatArray, vanishes: NDArray[np.bool_], loss: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Logarithm of prod_{i < factors} (1 - loss(i)); -inf where it vanishes, below -750 where it underflows."""
    total = np.where(vanishes, -np.inf, 0.0)
    most = int(np.max(factors, initial=0))
    block = max(1, _BLOCK // max(1, total.size))
    for start in range(0, most, block):
        i = np.arange(start, min(start + block, most), dtype=np.float64).reshape(-1, *[1] * total.ndim)
        live = (i < factors) & (total > _UNDERFLOWS)
        if not np.any(live):
            break
        with np.errstate(divide="ignore"):  # entries that have run out of factors
            total = total + np.sum(np.log1p(-np.where(live, loss(i), 0.0)), axis=0)
    return total


def _log_all_wrong(n: FloatArray, c: FloatArray, k: FloatArray) -> FloatArray:
    """Logarithm of C(n - c, k) / C(n, k), the probability that k of the n samples are all wrong."""
    n, c, k = np.broadcast_arrays(n, c, k)
    larger = np.maximum(c, k)
    return _log_product(np.minimum(c, k), c + k > n, lambda i: larger / (n - i))


def pass_at_k(samples: ArrayLike, correct: ArrayLike, k: ArrayLike) -> FloatArray:
    """Unbiased estimate of the probability that at least one of k samples is correct.

    1 - C(n - c, k) / C(n, k): the share of the k-subsets of the n samples with a correct one.

    Args:
        samples: n, samples drawn for the problem, a whole number >= 1.
        correct: c, how many of them are correct, a whole number in [0, n].
        k: Tries, a whole number in [1, n].

    Returns:
        Estimate in [0, 1], float64, broadcast over all arguments. c/n at k = 1; 0 at c = 0; 1 as soon as n - c < k. At
        k = n it is the indicator of c >= 1: still unbiased, and as noisy as one trial.

    Raises:
        ValueError: If a count is not whole or out of range; also for k > n at c = 0, where no estimate exists.

    Accuracy: relative error at most 5e-16 for n up to 100,000 (measured).

    Source: [chen2021codex], Appendix L.4 (v2); the product of log1p terms: this project.
    """
    n, c, size = _counts(samples, correct, k)
    return (0.0 - np.expm1(_log_all_wrong(n, c, size)))[()]


def pass_at_k_variance(success_rate: ArrayLike, samples: ArrayLike, k: ArrayLike) -> FloatArray:
    """Exact variance of `pass_at_k` for one problem with a known success rate.

    Assumes n independent samples, each correct with probability mu. A sum of non-negative terms (see the module's
    text).

    Args:
        success_rate: mu, probability that one sample is correct, in [0, 1].
        samples: n, samples drawn, a whole number in [1, 10^6].
        k: Tries, a whole number in [1, n].

    Returns:
        Variance in [0, 1/4], float64, broadcast over all arguments. mu (1 - mu) / n at k = 1; (1 - mu)^k (1 - (1 -
        mu)^k) at k = n; 0 at mu = 0 and mu = 1.

    Raises:
        ValueError: If an argument is out of range, or a count is not whole.

    Cost and accuracy: O(k) per element, and memory for some k numbers (30 ms at n = 10^6, k = n/2); relative error at
    most 1e-13 (measured), where the result is a normal double.

    Source: this project, as the variance of a U-statistic [hoeffding1948ustatistics].
    """
    mu = check.probability("success_rate", success_rate)
    n = check.whole("samples", samples, 1, "pass the number of samples drawn for the problem")
    size = check.whole("k", k, 1, "pass@k asks for at least one try")
    check.broadcastable(success_rate=mu, samples=n, k=size)
    check.at_most("k", size, "samples", n, "draw more samples per problem, or ask for a smaller k")

    check.limited("samples", n, _MOST_SAMPLES, "the cost is O(n)")
    mu, n, size = np.broadcast_arrays(mu, n, size)
    with np.errstate(divide="ignore"):
        log_q = np.log1p(-mu)
    variance = np.empty(mu.shape)
    for drawn, tries in dict.fromkeys(zip(n.flat, size.flat, strict=True)):
        here = (n == drawn) & (size == tries)
        variance[here] = _variance(log_q[here], drawn, tries)
    return variance[()]


def _variance(log_q: FloatArray, n: float, k: float) -> FloatArray:
    """The sum over the overlaps j >= 1 of two random k-subsets, for each ln(1 - mu), shape [M]."""
    overlap, law = _urn.count_law(k, n - k, -1.0, k, 0.0, k)
    overlap, law = overlap[overlap > 0.0], law[overlap > 0.0]
    variance = np.empty_like(log_q)
    rows = max(1, _BLOCK // overlap.size)
    for start in range(0, log_q.size, rows):
        block = log_q[start : start + rows, np.newaxis]
        covariance = np.exp((2.0 * k - overlap) * block) * (0.0 - np.expm1(overlap * block))
        variance[start : start + rows] = np.sum(law * covariance, axis=-1)
    return variance


def estimate_pass_at_k_variance(samples: ArrayLike, correct: ArrayLike, k: ArrayLike) -> FloatArray:
    """Unbiased estimate of the variance of `pass_at_k` from the same counts.

    (C(n - c, k) / C(n, k))^2 - C(n - c, 2k) / C(n, 2k), never negative, evaluated as a product without cancellation. It
    assumes independent samples and nothing about the success rate. For one problem it is noisy, and 0 at c = 0 and
    whenever c is so large that pass@k = 1, although the variance is not: use it in sums over problems.

    Args:
        samples: n, samples drawn for the problem, a whole number >= 2.
        correct: c, how many of them are correct, a whole number in [0, n].
        k: Tries, a whole number in [1, n/2].

    Returns:
        Estimate >= 0, float64, broadcast over all arguments; c (n - c) / (n^2 (n - 1)) at k = 1.

    Raises:
        ValueError: If a count is not whole or out of range, or 2k > n: a variance is a polynomial of degree 2k in the
            success rate, and n samples estimate no degree above n without bias.

    Accuracy: relative error at most 2e-14 for n up to 1,024 and results above 1e-20 (measured); 1e-12 for all normal
    doubles.

    Source: this project.
    """
    n, c, size = _counts(samples, correct, k)
    check.at_most("2 k", 2.0 * size, "samples", n, "draw more samples per problem, or ask for a smaller k")
    n, c, size = np.broadcast_arrays(n, c, size)
    larger = np.maximum(c, size)
    # C(n-c, 2k) / C(n, 2k) over (C(n-c, k) / C(n, k))^2
    log_ratio = _log_product(
        np.minimum(c, size), c + 2.0 * size > n, lambda i: larger * size / ((n - size - i) * (n - larger - i))
    )
    return (np.exp(2.0 * _log_all_wrong(n, c, size)) * (0.0 - np.expm1(log_ratio)))[()]


def pass_at_k_interval(
    samples: ArrayLike, correct: ArrayLike, k: ArrayLike, *, level: float = 0.95, method: IntervalMethod
) -> PassAtKInterval:
    """Confidence interval for the mean pass@k over problems, or for the pass@k of one problem.

    The methods answer different questions:

    - 'within_problems': the mean over *these* problems; only the samples are random. Normal interval with the sum of
      `estimate_pass_at_k_variance`, so it needs n >= 2k. Problems with c = 0 or pass@k = 1 add no width; it needs many
      of the others.
    - 'over_problems': the mean over a population of which these problems are a random sample; problems and samples are
      both random. Student's t interval of the per-problem estimates (at least 2 problems). Any k <= n, any mixture of
      n. As an interval for these problems alone it is too wide, not too narrow. Where all problems have one estimate,
      t has no width: there it is the Clopper-Pearson interval with problems as trials. At estimate 1 its lower limit
      is (tail probability)^(1/problems), which is rigorous: numbers in [0, 1] of mean m are all 1 with probability at
      most m^problems; likewise at 0. Between, it takes the variance over problems at its largest, m (1 - m).
    - 'single_problem': the pass@k of one problem; exact. The Clopper-Pearson interval of mu, put through 1 - (1 -
      mu)^k, which is increasing: coverage is at least the level for every mu, n and k. At k near n the unbiased
      estimate, 0 or 1, can lie outside it.

    Args:
        samples: n per problem: shape (problems,), or one number for all.
        correct: c per problem: shape (problems,), or one number.
        k: Tries, a whole number in [1, n], or an array of them.
        level: Confidence, in (0, 1).
        method: One of the three above.

    Returns:
        Estimate and limits in [0, 1], each of the shape of k. Limits are for each k by itself, not for the whole curve.

    Raises:
        ValueError: If a count is not whole or out of range, the level is not one number, the method is unknown, or the
            counts do not suffice for it.

    Source: this project; the limits of a single success rate: [clopper1934limits].
    """
    check.one_of("method", method, ("within_problems", "over_problems", "single_problem"))
    confidence = check.scalar("level", check.open_probability("level", level))
    tail = (1.0 - confidence) / 2.0
    size = check.whole("k", k, 1, "pass@k asks for at least one try")
    n, c = check.problem_counts(samples, correct=correct)
    size_column = size[..., np.newaxis]  # against the problems on the last axis
    problems = n.size

    values = pass_at_k(n, c, size_column)
    estimate = np.mean(values, axis=-1)
    if method == "single_problem":
        if problems != 1:
            raise ValueError(f"single_problem needs the counts of one problem, got {problems}: call it for each")
        lower, upper = _clopper_pearson(n[0], c[0], tail)
        with np.errstate(divide="ignore"):
            limits = [-np.expm1(size * np.log1p(-mu)) for mu in (lower, upper)]
        return PassAtKInterval(estimate[()], 0.0 + limits[0], limits[1])
    if method == "within_problems":
        variance = np.sum(estimate_pass_at_k_variance(n, c, size_column), axis=-1) / problems**2
        half_width = -special.ndtri(tail) * np.sqrt(variance)
    else:
        if problems < 2:
            raise ValueError(
                f"over_problems needs at least 2 problems, got {problems}: take single_problem for the samples of one"
            )
        standard_error = np.std(values, axis=-1, ddof=1) / np.sqrt(problems)
        half_width = student_half_width(standard_error, problems - 1, confidence)
    lower, upper = estimate - half_width, estimate + half_width
    if method == "over_problems":
        alike = np.ptp(values, axis=-1) == 0.0
        as_trials = _clopper_pearson(problems, problems * estimate, tail)
        lower, upper = np.where(alike, as_trials[0], lower), np.where(alike, as_trials[1], upper)
    return PassAtKInterval(estimate[()], np.maximum(lower, 0.0)[()], np.minimum(upper, 1.0)[()])


def _clopper_pearson(n: float, c: ArrayLike, tail: float) -> tuple[FloatArray, FloatArray]:
    """Exact limits of a success rate, at most `tail` beyond either; the beta quantiles leave c = 0 and c = n out."""
    correct = np.asarray(c, dtype=np.float64)
    lower = np.where(correct > 0, special.betaincinv(correct, n - correct + 1.0, tail), 0.0)
    upper = np.where(correct < n, special.betainccinv(correct + 1.0, n - correct, tail), 1.0)
    return lower, upper
