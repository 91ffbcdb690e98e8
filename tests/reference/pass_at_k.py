"""Pass@k by its definition, in exact arithmetic."""

from fractions import Fraction
from itertools import combinations
from math import comb


def share_of_subsets(samples: int, correct: int, k: int) -> Fraction:
    """Share of the k-subsets that hold a correct sample, by listing them; the first samples are the correct ones."""
    subsets = list(combinations(range(samples), k))
    return Fraction(sum(min(subset) < correct for subset in subsets), len(subsets))


def pass_at_k(samples: int, correct: int, k: int) -> Fraction:
    return 1 - Fraction(comb(samples - correct, k), comb(samples, k))


def binomial(samples: int, success_rate: Fraction) -> list[Fraction]:
    return [comb(samples, c) * success_rate**c * (1 - success_rate) ** (samples - c) for c in range(samples + 1)]


def mean_and_variance(samples: int, success_rate: Fraction, k: int) -> tuple[Fraction, Fraction]:
    """Of the estimate, over the binomial law of the number of correct samples."""
    law = binomial(samples, success_rate)
    values = [pass_at_k(samples, c, k) for c in range(samples + 1)]
    mean = sum((p * v for p, v in zip(law, values, strict=True)), Fraction(0))
    return mean, sum((p * (v - mean) ** 2 for p, v in zip(law, values, strict=True)), Fraction(0))


def variance_estimate(samples: int, correct: int, k: int) -> Fraction:
    """Square of the estimated failure rate minus the unbiased estimate of its square, the failure rate of 2k tries."""
    return (1 - pass_at_k(samples, correct, k)) ** 2 - (1 - pass_at_k(samples, correct, 2 * k))
