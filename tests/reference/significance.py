"""The subsampling law by listing every subset, and Holm's adjustment as the closed test that it abbreviates."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

from reference.pass_at_k import pass_at_k

Law = dict[Fraction, Fraction]


def score_law(samples: int, correct: int, k: int, subsample: int) -> Law:
    """Pass@k of a random subset of one problem's samples, from all subsets."""
    subsets = combinations([1] * correct + [0] * (samples - correct), subsample)
    counts = Counter(pass_at_k(subsample, sum(subset), k) for subset in subsets)
    return {score: Fraction(count, comb(samples, subsample)) for score, count in counts.items()}


def subsampling_law(
    correct_a: Sequence[int], correct_b: Sequence[int], samples: Sequence[int], k: int, subsample: int
) -> Law:
    """The mean difference of pass@k over problems."""
    law: Law = {Fraction(0): Fraction(1)}
    for n, a, b in zip(samples, correct_a, correct_b, strict=True):
        for part, sign in ((score_law(n, a, k, subsample), 1), (score_law(n, b, k, subsample), -1)):
            summed: Law = {}
            for x, p in law.items():
                for y, q in part.items():
                    z = x + Fraction(sign * y, len(samples))
                    summed[z] = summed.get(z, Fraction(0)) + p * q
            law = summed
    return law


def p_value(law: Law) -> Fraction:
    tails = sum(p for x, p in law.items() if x <= 0), sum(p for x, p in law.items() if x >= 0)
    return min(Fraction(1), 2 * Fraction(min(tails)))


def central_interval(law: Law, tail: Fraction) -> tuple[Fraction, Fraction]:
    """The points of the law with more than `tail` at or beyond them, on either side."""
    lower = min(x for x in law if sum(p for y, p in law.items() if y <= x) > tail)
    upper = max(x for x in law if sum(p for y, p in law.items() if y >= x) > tail)
    return lower, upper


def holm(p_values: Sequence[Fraction]) -> list[Fraction]:
    """Largest Bonferroni p-value over all intersections that a hypothesis takes part in."""
    family = range(len(p_values))
    subsets = [s for size in range(1, len(p_values) + 1) for s in combinations(family, size)]
    return [max(min(Fraction(1), len(s) * min(p_values[j] for j in s)) for s in subsets if i in s) for i in family]
