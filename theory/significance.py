"""Is model A better than model B on these problems? The paper's paired m-out-of-n subsampling test, and its level.

For each problem both models have n samples. One iteration draws m < n of them without replacement, for either model and
every problem, and evaluates the mean difference D* of pass@k; the law of D*, given the data, is the subsampling
distribution. Its mean is the difference D of the full samples. The variants differ in what they make of its spread:

    raw                 the quantiles of D*, as the paper describes its test;
    rescaled            D - sqrt(m/n) (quantiles of D* - D): subsampling after [politis1999subsampling], for m/n -> 0;
    finite_population   D - sqrt(m/(n-m)) (quantiles of D* - D): allows for draws from a finite set of n samples.

For pass@1 and independent samples, D has variance sigma^2 / n given the problems, and D* - D has sigma^2 (1/m - 1/n).
With r = m/n the raw interval is therefore sqrt((1-r)/r) times as wide as it should be, the rescaled one sqrt(1-r)
times, and the finite-population one right. At the paper's r = 1/4 a nominal level of .05 becomes .0007, .0896 and
.0500.
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.pass_estimates import pass_at_k

Variant = Literal["raw", "rescaled", "finite_population"]

MOST_SAMPLES = 10**7
"""Most samples of a problem: the score of each possible count of correct ones is tabulated."""
MOST_ITERATIONS = 10**7
"""Most draws of the subsampling distribution: each takes some dozen bytes, and some microseconds for each problem."""
_ROUNDING = 1e-12  # smaller differences, of pass@k or of probabilities, are sums of equal terms in another order


@dataclass(frozen=True)
class PairedTest:
    """Result of a paired subsampling test.

    Attributes:
        estimate: Mean over problems of pass@k of A minus pass@k of B, in [-1, 1].
        lower: Lower limit of the interval for it.
        upper: Upper limit.
        p_value: Two-sided; at most 1 - level exactly where the interval excludes 0.
        level: Confidence level of the interval.
        variant: Which interval: 'raw', 'rescaled' or 'finite_population'.
    """

    estimate: float
    lower: float
    upper: float
    p_value: float
    level: float
    variant: Variant

    @property
    def reject(self) -> bool:
        """Whether the interval excludes 0."""
        return self.lower > 0.0 or self.upper < 0.0


@dataclass(frozen=True)
class _Setting:
    """Checked inputs: counts per problem, the full-sample differences of pass@k, and the factor of their deviations."""

    n: FloatArray
    a: FloatArray
    b: FloatArray
    k: int
    m: int
    differences: FloatArray
    factor: FloatArray
    level: float
    variant: Variant

    def limits_from(self, deviation: FloatArray) -> FloatArray:
        """What the quantiles are taken of: the raw draws, or the estimate minus the rescaled deviations."""
        estimate = np.mean(self.differences)
        return estimate + deviation if self.variant == "raw" else estimate - deviation


def _setting(
    samples: ArrayLike,
    correct_a: ArrayLike,
    correct_b: ArrayLike,
    k: int,
    subsample: int,
    variant: Variant,
    level: float,
) -> _Setting:
    check.one_of("variant", variant, ("raw", "rescaled", "finite_population"))
    confidence = check.scalar("level", check.open_probability("level", level))
    n, a, b = check.problem_counts(samples, correct_a=correct_a, correct_b=correct_b)
    check.limited("samples", n, MOST_SAMPLES, "so many tell any two models apart without a test")
    drawn = check.whole("subsample", subsample, 1, "pass the samples per problem that one iteration draws")
    m = check.scalar("subsample", drawn)
    if np.any(m >= n):
        raise ValueError(f"subsample must be below samples, got {m:g} >= {np.min(n):g}: take a quarter of them")
    tries = check.whole("k", k, 1, "pass@k asks for at least one try")
    check.scalar("k", tries)
    check.at_most("k", tries, "subsample", drawn, "draw more samples per iteration, or ask for a smaller k")
    factor = {"raw": np.ones_like(n), "rescaled": np.sqrt(m / n), "finite_population": np.sqrt(m / (n - m))}[variant]
    differences = pass_at_k(n, a, k) - pass_at_k(n, b, k)
    return _Setting(n, a, b, int(k), int(m), differences, factor, confidence, variant)


def _conclude(setting: _Setting, values: FloatArray, weights: FloatArray, prior: float) -> PairedTest:
    """Interval and p-value from the points of a law; `prior` counts the data as one more draw in each tail."""
    values = np.where(np.abs(values) < _ROUNDING, 0.0, values)
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    total = np.sum(weights) + prior
    below = (prior + np.concatenate([[0.0], np.cumsum(weights)])) / total  # [i]: mass of the i lowest
    above = (prior + np.concatenate([[0.0], np.cumsum(weights[::-1])])) / total  # [i]: mass of the i highest
    tail = (1.0 - setting.level) / 2.0 + _ROUNDING  # a p-value of 1 - level rejects, whichever way 1 - level rounds
    at_most_zero = below[np.searchsorted(values, 0.0, side="right")]
    at_least_zero = above[values.size - np.searchsorted(values, 0.0, side="left")]
    return PairedTest(
        estimate=float(np.mean(setting.differences)),
        lower=float(values[np.argmax(below[1:] > tail)]),
        upper=float(values[::-1][np.argmax(above[1:] > tail)]),
        p_value=float(min(1.0, 2.0 * min(at_most_zero, at_least_zero))),
        level=setting.level,
        variant=setting.variant,
    )


def paired_subsampling_test(
    samples: ArrayLike,
    correct_a: ArrayLike,
    correct_b: ArrayLike,
    k: int,
    *,
    subsample: int = 256,
    variant: Variant = "raw",
    iterations: int = 50_000,
    level: float = 0.95,
    rng: np.random.Generator,
) -> PairedTest:
    """Test whether two models have the same mean pass@k over the given problems, by paired m-out-of-n subsampling.

    Only how many of m drawn samples are correct matters, and that number is hypergeometric; so counts are drawn, not
    samples. Pairing means the same problems; the draws of the two models are independent.

    It speaks of these problems, not of a population of them, and assumes that samples are independent within a problem.
    Of several comparisons, correct the p-values (`holm_adjust`).

    Level, for n = 1024, m = 256 and nominal .05 under the null hypothesis of equal success rates on every problem:

    | variant | pass@1, theory | pass@256, 30 problems | pass@256, 8 problems |
    |---|---|---|---|
    | raw | .0007 | 0 | 0 |
    | rescaled | .0896 | .044 to .052 | .06 to .17 |
    | finite_population | .0500 | .015 to .030 | .04 to .14 |

    (pass@256 measured, over three spreads of the success rates, 1,000 repetitions each.) So 'finite_population' has the
    level that it states at small k. At k = m the score of a problem is a coin toss, no rescaling is right, and where
    few problems are undecided the rescaled variants reject too often. The paper's reading is very conservative
    throughout.

    Args:
        samples: n per problem, at most 10^7, the same for both models: one number or shape (problems,).
        correct_a: Correct samples of model A, shape (problems,) of whole numbers.
        correct_b: Correct samples of model B on the same problems in the same order.
        k: Tries, a whole number in [1, subsample].
        subsample: m, samples drawn per problem and iteration, a whole number in [1, n - 1].
        variant: 'raw' (the paper), 'rescaled' or 'finite_population'; the factors hold per problem if n differs.
        iterations: Draws of the subsampling distribution, at least 2 / (1 - level) - 1 and at most 10^7.
        level: Confidence level, in (0, 1).
        rng: Source of the draws.

    Returns:
        Estimate, interval, p-value and decision. The p-value counts the data as one more draw and is never 0.

    Raises:
        ValueError: If a count is not whole or out of range, or an option is out of range.

    Source: Appendix Q (v2) for 'raw', [politis1999subsampling] for 'rescaled'; 'finite_population', and the levels of
    all three: this project.
    """
    setting = _setting(samples, correct_a, correct_b, k, subsample, variant, level)
    fewest = ceil(2.0 / (1.0 - setting.level) - 1.0 - 1e-9)
    draws = int(check.scalar("iterations", check.whole("iterations", iterations, fewest, "the tails need draws")))
    check.limited("iterations", np.asarray(draws), MOST_ITERATIONS, "the p-value is exact to 4 digits by then")
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy Generator, got {check.shown(rng)}: pass numpy.random.default_rng(seed)")
    m = setting.m
    score = pass_at_k(m, np.arange(m + 1), setting.k)
    deviation = np.zeros(draws)
    for n, a, b, difference, factor in zip(
        setting.n.astype(int),
        setting.a.astype(int),
        setting.b.astype(int),
        setting.differences,
        setting.factor,
        strict=True,
    ):
        drawn = score[rng.hypergeometric(a, n - a, m, draws)] - score[rng.hypergeometric(b, n - b, m, draws)]
        deviation += factor * (drawn - difference)
    return _conclude(setting, setting.limits_from(deviation / setting.n.size), np.ones(draws), prior=1.0)


def exact_paired_subsampling_test(
    samples: ArrayLike,
    correct_a: ArrayLike,
    correct_b: ArrayLike,
    k: int,
    *,
    subsample: int = 256,
    variant: Variant = "raw",
    level: float = 0.95,
) -> PairedTest:
    """The limit of `paired_subsampling_test` for infinitely many iterations, where the law can be written down.

    At k = m a drawn problem scores 1 with probability 1 - C(n - c, m) / C(n, m) and 0 otherwise; at k = 1 it scores a
    hypergeometric count over m. The scores sit on a lattice, and the law of their sum is a convolution (at k = m, a
    difference of two Poisson-binomials). Time grows with problems^2, and at k = 1 with subsample^2 too: half a second
    for 100 problems at m = 256.

    Args:
        samples: n <= 10^7 per problem, the same for both models: one number, or shape (problems,) for variant 'raw'.
        correct_a: Correct samples of model A, shape (problems,) of whole numbers.
        correct_b: Correct samples of model B on the same problems in the same order.
        k: Tries: 1 or `subsample`.
        subsample: m, a whole number in [1, n - 1].
        variant: 'raw' (the paper), 'rescaled' or 'finite_population'.
        level: Confidence level, in (0, 1).

    Returns:
        Estimate, interval, p-value and decision; no randomness.

    Raises:
        ValueError: If a count is not whole or out of range, k is neither 1 nor subsample, or a rescaling variant is
            asked for with samples that differ between problems (no lattice then).

    Source: this project; the test is Appendix Q (v2).
    """
    setting = _setting(samples, correct_a, correct_b, k, subsample, variant, level)
    if setting.k not in (1, setting.m):
        raise ValueError(f"k must be 1 or subsample = {setting.m}, got {k}: use paired_subsampling_test for other k")
    if np.ptp(setting.factor) > 0:
        fewest, most = np.min(setting.n), np.max(setting.n)
        raise ValueError(
            f"samples must be the same for all problems with {variant}, got {fewest:g} to {most:g}: "
            "use paired_subsampling_test, or variant raw"
        )
    law, lowest = np.ones(1), 0
    for gain, loss in zip(_score_laws(setting, setting.a), _score_laws(setting, setting.b), strict=True):
        law = np.convolve(np.convolve(law, gain.masses), loss.masses[::-1])
        lowest += gain.lowest - (loss.lowest + loss.masses.size - 1)
    unit = 1 if setting.k == setting.m else setting.m
    drawn = (lowest + np.arange(law.size)) / (unit * setting.n.size)
    deviation = setting.factor[0] * (drawn - np.mean(setting.differences))
    return _conclude(setting, setting.limits_from(deviation), law, prior=0.0)


class _ScoreLaw(NamedTuple):
    """Probabilities of one model's score on one problem, at consecutive lattice points from the lowest on."""

    masses: FloatArray
    lowest: int


def _score_laws(setting: _Setting, correct: FloatArray) -> list[_ScoreLaw]:
    m = setting.m
    if setting.k == m:
        return [_ScoreLaw(np.array([1.0 - solved, solved]), 0) for solved in pass_at_k(setting.n, correct, m)]
    return [_hypergeometric(n, c, m) for n, c in zip(setting.n, correct, strict=True)]


def _hypergeometric(n: float, c: float, m: int) -> _ScoreLaw:
    """Law of the number of correct among m of n samples, from the ratios of neighbouring probabilities."""
    least, most = max(0.0, m - (n - c)), min(float(m), c)
    x = np.arange(least, most)
    log_ratio = np.log((c - x) * (m - x) / ((x + 1.0) * (n - c - m + x + 1.0)))
    log_mass = np.concatenate([[0.0], np.cumsum(log_ratio)])
    masses = np.exp(log_mass - np.max(log_mass))
    return _ScoreLaw(masses / np.sum(masses), int(least))


def holm_adjust(p_values: ArrayLike) -> FloatArray:
    """Holm's step-down adjustment of p-values: reject where the adjusted one is at most the family-wise level.

    The i-th smallest of K p-values becomes the largest (K - j + 1) p_(j) over j <= i, at most 1. The family-wise error
    rate holds under any dependence between the tests.

    Args:
        p_values: The p-values of one family of tests, in [0, 1], any shape.

    Returns:
        Adjusted p-values in [0, 1], float64, shape of the input; never below the input.

    Raises:
        ValueError: If a p-value is out of range or not a number.

    Source: [holm1979stepdown]; the paper reports its tests without a correction.
    """
    p = check.probability("p_values", p_values)
    order = np.argsort(p, axis=None)
    stepped = np.maximum.accumulate(p.ravel()[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted.reshape(p.shape)[()]
