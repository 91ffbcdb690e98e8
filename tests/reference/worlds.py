"""Hypothesis strategies for small policies with rational probabilities, and their float arrays."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from reference.group_updates import World

# R_w <= 0 <= R_c, its edges included, and pairs outside it
IN_SCOPE = [(1, 0), (1, -1), (0, -1), (2, Fraction(-1, 2))]
OUT_OF_SCOPE = [(1, Fraction(1, 2)), (Fraction(-1, 4), -1)]

# an example that enumerates all groups costs as much as dozens of others
few = settings(max_examples=max(25, settings.default.max_examples // 100))


@st.composite
def worlds(draw: st.DrawFn, rewards: Sequence[tuple] = (*IN_SCOPE, *OUT_OF_SCOPE), smallest: int = 0) -> World:
    """Two to five actions, of probability 0 too unless `smallest` forbids it; one label may be missing."""
    size = draw(st.integers(2, 5))
    weights = draw(st.lists(st.integers(smallest, 12), min_size=size, max_size=size).filter(any))
    correct = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    r_c, r_w = draw(st.sampled_from(list(rewards)))
    return World([Fraction(w, sum(weights)) for w in weights], correct, Fraction(r_c), Fraction(r_w))


@st.composite
def worlds_with_draws(draw: st.DrawFn, rewards: Sequence[tuple] = (*IN_SCOPE, *OUT_OF_SCOPE)) -> tuple[World, tuple]:
    world = draw(worlds(rewards))
    possible = [i for i, p in enumerate(world.policy) if p > 0]
    return world, tuple(draw(st.lists(st.sampled_from(possible), min_size=1, max_size=6)))


def arrays(world: World) -> tuple[np.ndarray, np.ndarray]:
    return np.array([float(p) for p in world.policy]), np.array(world.correct)


def counts(world: World, draws: Sequence[int]) -> np.ndarray:
    return np.bincount(draws, minlength=len(world.policy))


def reward_arguments(world: World) -> dict[str, float]:
    return {"reward_correct": float(world.reward_correct), "reward_wrong": float(world.reward_wrong)}


def written(text: str, reward_correct: object, reward_wrong: object) -> tuple[World, tuple[int, ...]]:
    """World and group from '1/4 ws, 1/2 cs, 1/4 cu': probability, correct or wrong, sampled or not."""
    entries = [entry.split() for entry in text.split(",")]
    policy = [Fraction(p) for p, _ in entries]
    labels = [label for _, label in entries]
    world = World(policy, [label[0] == "c" for label in labels], Fraction(reward_correct), Fraction(reward_wrong))
    return world, tuple(i for i, label in enumerate(labels) if label[1] == "s")
