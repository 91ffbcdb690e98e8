"""Prompts that advice is about: one whose success rate is given, or those of a count file, known by their counts only.

Both offer the same quantities, as arrays with an entry per distinct prompt, [P]. Counts leave the success rate open:
with a uniform prior it follows Beta(X + 1, n - X + 1) after X correct of n samples. Probabilities and weights are
means over that law; X/n in place of mu would bias them. The law's own mean, the shrunk rate (X + 1) / (n + 2), is
`success_rate`.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.difficulty import beta_tail_miss_rare_fraction
from fgrpo.theory.focal_moments import expected_focal_weight
from fgrpo.theory.success_estimates import posterior_focal_weight, shrunk_success_rate
from fgrpo.theory.tail_miss import tail_miss_probability
from fgrpo.theory.weighted_tail_miss import focal_tail_miss
from fgrpo.theory.weights import focal_weight


@dataclass(frozen=True)
class KnownPrompt:
    """One prompt with a given success rate and an assumed rare mass, each of shape [1].

    Source: this project.
    """

    success_rate: FloatArray
    rare_mass: FloatArray

    @classmethod
    def of(cls, success_rate: float | None, rare_mass: float | None, rare_fraction: float | None) -> Self:
        """The prompt, from its rare mass or, if that is None, from its rare fraction.

        Raises:
            ValueError: If a number is not a probability, or the rare mass exceeds the success rate.
        """
        mu = check.probability("success_rate", np.asarray(success_rate))
        if rare_mass is None:
            tau = np.asarray(mu * check.probability("rare_fraction", np.asarray(rare_fraction)))
        else:
            tau = check.rare_mass(mu, rare_mass)
        if mu.ndim or tau.ndim:
            raise ValueError(
                f"success_rate and its rare part must be single numbers, got shapes {mu.shape} and {tau.shape}: "
                "call once per prompt, or pass counts"
            )
        return cls(mu.reshape(1), tau.reshape(1))

    def mean(self, values: FloatArray) -> float:
        """Mean of a quantity over all prompts: its one value."""
        return float(values[0])

    def tail_miss(self, n: float) -> FloatArray:
        """Pr(B_tau) in a group of n."""
        return tail_miss_probability(self.success_rate, self.rare_mass, n)

    def active(self, n: float, gamma: float = 0.0) -> FloatArray:
        """E[(1 - X/N)^gamma 1_A] in a group of n; Pr(A_N) at gamma = 0."""
        return focal_tail_miss(self.success_rate, 0.0, n, gamma)

    def mean_weight(self, n: float, gamma: float) -> FloatArray:
        """E[(1 - X/N)^gamma] in a group of n."""
        return expected_focal_weight(self.success_rate, n, gamma)

    def true_weight(self, gamma: float) -> FloatArray:
        """(1 - mu)^gamma."""
        return np.asarray(focal_weight(self.success_rate, gamma))


@dataclass(frozen=True)
class CountedPrompts:
    """The prompts of a count file, those with equal counts taken together.

    Attributes:
        samples: n of each kind of prompt, [P].
        correct: X of each kind, [P].
        copies: How many prompts are of the kind, [P].
        kind: Which kind each row of the file is of.
        rare_fraction: rho = tau / mu, assumed for all prompts.

    Source: this project.
    """

    samples: FloatArray
    correct: FloatArray
    copies: NDArray[np.intp]
    kind: NDArray[np.intp]
    rare_fraction: float

    @classmethod
    def of(cls, counts: pd.DataFrame, rare_fraction: float | None) -> Self:
        """The prompts of a table with the columns prompt, samples and correct.

        Raises:
            ValueError: If a column is missing, a count out of range, or the rare fraction no probability.
        """
        for name in ("prompt", "samples", "correct"):
            if name not in counts.columns:
                raise ValueError(
                    f"counts must have the column {name!r}, got {list(counts.columns)}: use fgrpo.counts.read_counts"
                )
        rho = float(check.probability("rare_fraction", np.asarray(rare_fraction)))
        pairs = np.stack(check.problem_counts(counts["samples"].to_numpy(), correct=counts["correct"].to_numpy()))
        distinct, kind, copies = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
        return cls(distinct[0], distinct[1], copies, kind, rho)

    @property
    def success_rate(self) -> FloatArray:
        """Shrunk success rates, (X + 1) / (n + 2)."""
        return shrunk_success_rate(self.correct / self.samples, self.samples)

    @property
    def rare_mass(self) -> FloatArray:
        """Rare masses at the shrunk success rates."""
        return self.rare_fraction * self.success_rate

    def mean(self, values: FloatArray) -> float:
        """Mean of a quantity over all prompts."""
        return float(np.average(values, weights=self.copies))

    def tail_miss(self, n: float) -> FloatArray:
        """Pr(B_tau) in a group of n."""
        return self._tail_miss(self.rare_fraction, n, 0.0)

    def active(self, n: float, gamma: float = 0.0) -> FloatArray:
        """E[(1 - X/N)^gamma 1_A] in a group of n; Pr(A_N) at gamma = 0."""
        return self._tail_miss(0.0, n, gamma)

    def _tail_miss(self, rare_fraction: float, n: float, gamma: float) -> FloatArray:
        wrong = self.samples - self.correct
        return beta_tail_miss_rare_fraction(self.correct + 1.0, wrong + 1.0, rare_fraction, n, gamma=gamma)

    def all_wrong(self, n: float) -> FloatArray:
        """Pr(X = 0) in a group of n: the mean of (1 - mu)^n."""
        return self.true_weight(n)

    def all_right(self, n: float) -> FloatArray:
        """Pr(X = N) in a group of n: the mean of mu^n."""
        return posterior_focal_weight((self.samples - self.correct) / self.samples, self.samples, n)

    def mean_weight(self, n: float, gamma: float) -> FloatArray:
        """E[(1 - X/N)^gamma] in a group of n: weight 1 on all-wrong groups, 0^gamma on all-right ones."""
        return self.active(n, gamma) + self.all_wrong(n) + (self.all_right(n) if gamma == 0.0 else 0.0)

    def true_weight(self, gamma: float) -> FloatArray:
        """(1 - mu)^gamma."""
        return posterior_focal_weight(self.correct / self.samples, self.samples, gamma)
