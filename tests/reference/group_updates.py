"""One update of a softmax policy by its definition, in Fractions, and expectations by enumeration of all groups.

Nothing is simplified: a surrogate is differentiated through the full softmax Jacobian dp_i/dz_j = p_i (1[i=j] - p_j),
the logits move by that gradient, and the masses by the Jacobian again.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

Vector = list[Fraction]


class World(NamedTuple):
    policy: Sequence[Fraction]
    correct: Sequence[bool]
    reward_correct: Fraction = Fraction(1)
    reward_wrong: Fraction = Fraction(-1)

    def reward(self, action: int) -> Fraction:
        return self.reward_correct if self.correct[action] else self.reward_wrong


def surrogate_slopes(world: World, draws: Sequence[int], surrogate: str) -> Vector:
    """d surrogate / d p_j at p = p_old, draw by draw."""
    n = len(draws)
    mean = sum(world.reward(j) for j in draws) / Fraction(n)
    slopes = [Fraction(0)] * len(world.policy)
    if surrogate == "linear_distinct":
        for j in set(draws):
            slopes[j] += world.reward(j) / n
    for j in draws:
        if surrogate == "linear_counts":
            slopes[j] += world.reward(j) / n
        elif surrogate == "linear":
            slopes[j] += (world.reward(j) - mean) / n
        elif surrogate == "ratio_raw":
            slopes[j] += world.reward(j) / world.policy[j] / n
        elif surrogate == "importance_ratio":
            slopes[j] += (world.reward(j) - mean) / world.policy[j] / n
    return slopes


def through_softmax(policy: Sequence[Fraction], vector: Sequence[Fraction]) -> Vector:
    """The (symmetric) softmax Jacobian applied to a vector."""
    size = range(len(policy))
    return [sum((policy[i] * ((i == j) - policy[j]) * vector[j] for j in size), Fraction(0)) for i in size]


def logit_step(world: World, draws: Sequence[int], surrogate: str) -> Vector:
    return through_softmax(world.policy, surrogate_slopes(world, draws, surrogate))


def mass_changes(world: World, draws: Sequence[int], surrogate: str) -> tuple[Fraction, Fraction, Fraction]:
    """First-order changes of the correct, unsampled-correct and sampled-correct mass, learning rate 1."""
    change = through_softmax(world.policy, logit_step(world, draws, surrogate))
    correct = sum((c for c, flag in zip(change, world.correct, strict=True) if flag), Fraction(0))
    unsampled = sum((c for i, c in enumerate(change) if world.correct[i] and i not in draws), Fraction(0))
    return correct, unsampled, correct - unsampled


def batch_baseline(world: World, draws: Sequence[int]) -> Fraction:
    return sum((world.reward(j) * world.policy[j] for j in set(draws)), Fraction(0))


def groups(world: World, group_size: int) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
    """All groups with their probabilities: multisets, weighted by how many orders give them."""
    for draws in itertools.combinations_with_replacement(range(len(world.policy)), group_size):
        weight, left = Fraction(1), group_size
        for action, times in Counter(draws).items():
            for t in range(times):  # multinomial coefficient, one draw at a time
                weight *= world.policy[action] * Fraction(left, t + 1)
                left -= 1
        if weight > 0:
            yield weight, draws


def successes(world: World, draws: Sequence[int]) -> int:
    return sum(world.correct[j] for j in draws)


def is_active(world: World, draws: Sequence[int]) -> bool:
    return 0 < successes(world, draws) < len(draws)


def expectation(
    world: World, group_size: int, value: Callable[[tuple[int, ...]], Fraction], *, active: bool = False
) -> Fraction:
    return sum(
        (w * value(draws) for w, draws in groups(world, group_size) if not active or is_active(world, draws)),
        Fraction(0),
    )


def baseline_law(world: World, group_size: int, k: int) -> dict[Fraction, Fraction]:
    """Exact law of S_R given X = k; empty if X = k is impossible."""
    law: dict[Fraction, Fraction] = {}
    for weight, draws in groups(world, group_size):
        if successes(world, draws) == k:
            value = batch_baseline(world, draws)
            law[value] = law.get(value, Fraction(0)) + weight
    total = sum(law.values(), Fraction(0))
    return {value: weight / total for value, weight in law.items()}
