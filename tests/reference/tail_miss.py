"""Lemma 3.1 and its relatives taken literally: every outcome of a group enumerated, or the formula with many digits."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product
from math import comb, factorial
from typing import Any

import mpmath as mp

RARE, CORRECT, WRONG = range(3)
Counts = tuple[int, int, int]


def digits_for(*small: float) -> int:
    """Digits that leave at least 60 after differences of numbers next to 1 that are as small as their product."""
    return 60 + 2 * int(sum(max(0.0, -mp.log10(mp.mpf(value))) for value in small if value > 0))


def tail_miss(mu: Any, tau: Any, n: Any, nu: Any = None) -> Any:
    """The three powers of the lemma as they stand, in mpf; exact inputs, the caller sets the precision."""
    mu, tau, n = mp.mpf(mu), mp.mpf(tau), mp.mpf(n)
    if nu is not None:
        mu = 1 - mp.mpf(nu)
    return (1 - tau) ** n - (mu - tau) ** n - (1 - mu) ** n


def mean_over_sequences(mu: Fraction, tau: Fraction, n: int, value: Callable[[Counts], Any]) -> Any:
    """E[value(counts)] over all 3^n sequences of independent rollouts, counts = (rare, other correct, wrong)."""
    mass = (tau, mu - tau, 1 - mu)
    total: Any = Fraction(0)
    for sequence in product((RARE, CORRECT, WRONG), repeat=n):
        probability = Fraction(1)
        for kind in sequence:
            probability *= mass[kind]
        total += probability * value((sequence.count(RARE), sequence.count(CORRECT), sequence.count(WRONG)))
    return total


def is_tail_miss(counts: Counts) -> bool:
    """Active, and nothing rare: by the definition of the two events."""
    rare, correct, wrong = counts
    active = rare + correct > 0 and wrong > 0
    return active and rare == 0


def all_counts(n: int) -> Iterable[Counts]:
    """The count vectors of n rollouts."""
    return ((rare, correct, n - rare - correct) for rare in range(n + 1) for correct in range(n - rare + 1))


def multinomial(counts: Counts) -> int:
    """Sequences with these counts."""
    ways = factorial(sum(counts))
    for count in counts:
        ways //= factorial(count)
    return ways


def rising(x: Any, n: int) -> Any:
    """Rising factorial x (x + 1) ... (x + n - 1)."""
    result = x * 0 + 1
    for i in range(n):
        result *= x + i
    return result


def focal(counts: Counts, gamma: int) -> Fraction:
    """(1 - X/N)^gamma, the sampled weight."""
    return Fraction(counts[WRONG], sum(counts)) ** gamma


def mean_on_tail_misses(
    probability: Callable[[Counts], Fraction], n: int, weight: Callable[[Counts], Fraction] = lambda counts: Fraction(1)
) -> Fraction:
    """E[weight 1_B] of an exchangeable group of any law."""
    if n == 0:
        return Fraction(0)
    return sum((probability(c) * weight(c) for c in all_counts(n) if is_tail_miss(c)), start=Fraction(0))


def independent(mu: Fraction, tau: Fraction) -> Callable[[Counts], Fraction]:
    """Multinomial law of the counts."""
    return lambda c: multinomial(c) * tau ** c[RARE] * (mu - tau) ** c[CORRECT] * (1 - mu) ** c[WRONG]


def dirichlet_multinomial(rare: Fraction, correct: Fraction, wrong: Fraction) -> Callable[[Counts], Fraction]:
    """Counts of correlated rollouts with these concentrations."""

    def law(c: Counts) -> Fraction:
        top = rising(rare, c[RARE]) * rising(correct, c[CORRECT]) * rising(wrong, c[WRONG])
        return multinomial(c) * top / rising(rare + correct + wrong, sum(c))

    return law


def hypergeometric(pool: int, correct: int, rare: int) -> Callable[[Counts], Fraction]:
    """Counts of a group drawn without replacement."""

    def law(c: Counts) -> Fraction:
        ways = comb(rare, c[RARE]) * comb(correct - rare, c[CORRECT]) * comb(pool - correct, c[WRONG])
        return Fraction(ways, comb(pool, sum(c)))

    return law


def modes_missed(mu: Fraction, masses: list[Fraction], n: int) -> list[Fraction]:
    """Pr(active and exactly m modes missed) for m = 0, 1, ..., over all sequences of (modes, other correct, wrong)."""
    modes = len(masses)
    mass = [*masses, mu - sum(masses), 1 - mu]
    law = [Fraction(0)] * (modes + 1)
    for sequence in product(range(modes + 2), repeat=n):
        wrong = sequence.count(modes + 1)
        if 0 < wrong < n:
            probability = Fraction(1)
            for kind in sequence:
                probability *= mass[kind]
            law[sum(m not in sequence for m in range(modes))] += probability
    return law


def real_peak(mu: float, tau: float, guess: float) -> Any:
    """Root of the derivative of the lemma's formula in N, with 50 digits beyond the cancellation."""
    a, b, c = 1 - mp.mpf(tau), mp.mpf(mu) - mp.mpf(tau), 1 - mp.mpf(mu)

    def slope(log_m: Any) -> Any:
        n = 1 + mp.exp(log_m)
        return mp.log(a) - (b / a) ** n * mp.log(b) - (c / a) ** n * mp.log(c)

    return 1 + mp.exp(mp.findroot(slope, mp.log(mp.mpf(guess) - 1) + mp.mpf("1e-3"), tol=mp.mpf(10) ** (5 - mp.mp.dps)))
