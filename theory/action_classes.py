"""A policy as classes of exchangeable actions, so that 128,000 actions cost as much as three."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray


def _differences(p: FloatArray, weight: FloatArray) -> FloatArray:
    """Sum over j of weight_j (p_k - p_j) for every k, by gaps of the sorted p: nearly equal ones lose no digits."""
    order = np.argsort(p)
    gap, weight = np.diff(p[order]), weight[order]
    below = np.cumsum(np.cumsum(weight[:-1]) * gap)
    above = np.cumsum(np.cumsum(weight[:0:-1]) * gap[::-1])[::-1]
    result = np.empty_like(p)
    result[order] = np.append(0.0, below) - np.append(above, 0.0)
    return result


@dataclass(frozen=True, eq=False)
class ActionClasses:
    """Classes of actions with equal probability and equal correctness.

    Anything array-like is accepted; the fields are stored as read-only arrays of shape [G], the probabilities divided
    by their total sum_g count_g probability_g, which must be 1 within 1e-9.

    Attributes:
        count: m_g, actions in the class, whole numbers >= 1.
        probability: p_g, probability of *one* action of the class, in [0, 1].
        correct: Whether the actions of the class are correct.

    Raises:
        ValueError: If a field is empty, not one-dimensional, of another length or out of range, or the probabilities do
            not sum to 1.
    """

    count: FloatArray
    probability: FloatArray
    correct: NDArray[np.bool_]

    def __post_init__(self) -> None:
        count = check.action_count(self.count)
        probability = check.probability("probability", self.probability)
        correct = check.mask("correct", self.correct)
        shapes = (count.shape, probability.shape, correct.shape)
        if not (shapes[0] == shapes[1] == shapes[2] and len(shapes[0]) == 1 and shapes[0][0] > 0):
            raise ValueError(
                "count, probability and correct must be one-dimensional, not empty and equally long, got shapes "
                f"{shapes[0]}, {shapes[1]}, {shapes[2]}: pass one entry per class"
            )
        total = float(np.sum(count * probability))
        if not abs(total - 1.0) <= 1e-9:
            raise ValueError(
                f"the sum of count * probability must be 1 within 1e-9, got {total:.17g}: normalise the probabilities "
                "(probability is that of one action, not of its class)"
            )
        for name, array in (("count", count), ("probability", probability / total), ("correct", correct.copy())):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_logits(cls, count: ArrayLike, logit: ArrayLike, correct: ArrayLike) -> Self:
        """Classes of a softmax policy.

        Args:
            count: Actions in each class, [G].
            logit: Logit of one action of the class, finite [G].
            correct: Whether the class is correct, boolean [G].

        Returns:
            The classes, probability proportional to exp(logit).

        Raises:
            ValueError: As the class does.
        """
        sizes = check.action_count(count)
        z = check.finite("logit", logit, "pass one logit per class")
        if sizes.shape != z.shape or z.ndim != 1 or z.size == 0:
            raise ValueError(
                "count and logit must be one-dimensional, not empty and equally long, got shapes "
                f"{sizes.shape} and {z.shape}: pass one entry per class"
            )
        weight = np.exp(z - z.max())
        return cls(sizes, weight / np.sum(sizes * weight), np.asarray(correct))

    @classmethod
    def from_policy(cls, policy: ArrayLike, correct: ArrayLike) -> Self:
        """Classes of a dense policy: actions of exactly equal probability and equal correctness share a class.

        Args:
            policy: Probabilities [A], summing to 1 within 1e-9.
            correct: Which actions are correct, boolean [A].

        Returns:
            The classes, wrong ones first, by rising probability.

        Raises:
            ValueError: If the policy is no distribution or the shapes differ.
        """
        p, flags = check.distribution("policy", policy), check.mask("correct", correct)
        if p.ndim != 1 or p.shape != flags.shape:
            raise ValueError(
                f"policy and correct must be one-dimensional and equally long, got shapes {p.shape} and {flags.shape}: "
                "pass one entry per action"
            )
        counts, probabilities = [], []
        for flag in (False, True):
            values, multiplicity = np.unique(p[flags == flag], return_counts=True)
            probabilities.append(values)
            counts.append(multiplicity)
        labels = np.repeat([False, True], [len(part) for part in counts])
        return cls(np.concatenate(counts).astype(np.float64), np.concatenate(probabilities), labels)

    @classmethod
    def appendix_j(
        cls,
        actions: int = 128_000,
        correct: int = 10_000,
        anchor_logit: float = 5.0,
        correct_logit: float = 3.0,
        wrong_logit: float = 0.0,
    ) -> Self:
        """The paper's simulated start: one correct anchor, the other correct actions, the wrong ones.

        Args:
            actions: Number of actions.
            correct: Number of correct ones, the anchor among them, at least 1 and below `actions`.
            anchor_logit: Logit of the anchor.
            correct_logit: Logit of the other correct actions.
            wrong_logit: Logit of the wrong actions.

        Returns:
            Classes in this order (no class for the other correct actions where there are none). By default correct mass
            .63008, anchor 4.6527e-4, any other correct action 6.2967e-5.

        Raises:
            ValueError: If a number of actions is not whole or out of range, or a logit is not finite.

        Source: Appendix J (v1 and v2).
        """
        total, right = (
            check.scalar(name, check.whole(name, value, 0, "pass a number of actions"))
            for name, value in (("actions", actions), ("correct", correct))
        )
        if not 1 <= right < total:
            raise ValueError(
                f"correct must be at least 1 and below actions, got {right:.0f} of {total:.0f}: "
                "one anchor and at least one wrong action are needed"
            )
        count = np.array([1.0, right - 1.0, total - right])
        logit = np.array([anchor_logit, correct_logit, wrong_logit])
        keep = count > 0
        return cls.from_logits(count[keep], logit[keep], np.array([True, True, False])[keep])

    def total(self, values: FloatArray, where: NDArray[np.bool_] | bool = True) -> FloatArray:
        """Sum over all actions of a quantity given per class, [..., G] -> [...]; `where` marks the classes to sum."""
        return np.asarray(np.sum(self.count * values, axis=-1, where=where))

    @cached_property
    def correct_mass(self) -> float:
        """Q_pos."""
        return float(self.total(self.probability, self.correct))

    @cached_property
    def wrong_mass(self) -> float:
        """Q_neg = 1 - Q_pos, summed by itself."""
        return float(self.total(self.probability, ~self.correct))

    @cached_property
    def complement(self) -> FloatArray:
        """1 - p of one action per class, [G]; next to p = 1 its digits are in the mass of the other actions."""
        result = np.where(self.probability < 0.5, 1.0 - self.probability, 0.0)
        for g in np.flatnonzero(self.probability >= 0.5):  # at most two
            result[g] = np.sum(self.without(g) * self.probability)
        return result

    @cached_property
    def deviation(self) -> FloatArray:
        """Difference p - M per class, [G]; M = sum p^2 is the mean probability of a drawn action."""
        return _differences(self.probability, self.count * self.probability)

    @cached_property
    def label_deviation(self) -> FloatArray:
        """Difference of p and the sum of p^2 over the action's own label, per class, [G]."""
        mass = self.count * self.probability
        right = _differences(self.probability, mass * self.correct) + self.wrong_mass * self.probability
        wrong = _differences(self.probability, mass * ~self.correct) + self.correct_mass * self.probability
        return np.where(self.correct, right, wrong)

    def without(self, g: int | np.integer[Any]) -> FloatArray:
        """Counts without one action of class g, [G]."""
        return np.asarray(self.count - (np.arange(self.count.size) == g))

    @cached_property
    def correct_collision(self) -> float:
        """M_P, the sum of p^2 over correct actions."""
        return float(self.total(self.probability**2, self.correct))

    @cached_property
    def wrong_collision(self) -> float:
        """M_N, the sum of p^2 over wrong actions."""
        return float(self.total(self.probability**2, ~self.correct))


def check_classes(value: Any) -> ActionClasses:
    """`value`, refused unless it is ActionClasses."""
    if not isinstance(value, ActionClasses):
        raise ValueError(
            f"classes must be ActionClasses, got {check.shown(value)}: pass for example ActionClasses.from_policy(...)"
        )
    return value
