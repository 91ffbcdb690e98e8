"""Policies with sampled groups on which sentences are tried: written-out ones, and many random ones."""

from fractions import Fraction
from typing import NamedTuple, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from fgrpo.theory._validation import FloatArray
from fgrpo.theory.action_classes import ActionClasses

PAPER_REWARDS = ((1.0, 0.0), (1.0, -1.0))
"""(R_c, R_w) of Section 2.1: 'typically' 1, and 0 or -1."""
SCOPE = "R_c >= 0 >= R_w"
CASES = 20_000


class Groups(NamedTuple):
    """Policies with the groups drawn from them, each of shape [..., A]."""

    policy: FloatArray
    correct: NDArray[np.bool_]
    counts: NDArray[np.int64]

    @property
    def group_size(self) -> NDArray[np.int64]:
        """N, which as a learning rate takes the factor eta/N out of Eq 7 (v1; Eq 5 in v2)."""
        return np.asarray(self.counts.sum(axis=-1))

    @property
    def unsampled(self) -> NDArray[np.bool_]:
        """Actions that were not drawn."""
        return np.equal(self.counts, 0)

    @property
    def correct_mass(self) -> FloatArray:
        """Q_pos."""
        return np.asarray(np.sum(self.policy, axis=-1, where=self.correct))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Whether the group has correct and wrong rollouts."""
        right = np.sum(self.counts, axis=-1, where=self.correct)
        some_but_not_all: NDArray[np.bool_] = (right > 0) & (right < self.group_size)
        return some_but_not_all

    def where(self, rows: NDArray[np.bool_]) -> Self:
        """The chosen groups."""
        return self._replace(policy=self.policy[rows], correct=self.correct[rows], counts=self.counts[rows])


def written(text: str) -> Groups:
    """One group from '1/4 ws, 1/2 cs, 1/4 cu': probability, c(orrect) or w(rong), s(ampled once) or u(nsampled)."""
    entries = [entry.split() for entry in text.split(",")]
    labels = [label for _, label in entries]
    return Groups(
        np.array([float(Fraction(p)) for p, _ in entries]),
        np.array([label[0] == "c" for label in labels]),
        np.array([int(label[1] == "s") for label in labels]),
    )


def random_groups(cases: int = CASES, *, seed: int = 0, actions: int = 6) -> Groups:
    """Seeded random policies, each with at least one correct and one wrong action, and a group of 2 to 8 from each."""
    rng = np.random.default_rng(seed)
    # both even and uneven policies; none so uneven that a probability underflows
    policy = rng.gamma(rng.choice([0.5, 1.0, 4.0], size=(cases, 1)), size=(cases, actions)) + 1e-6
    policy /= policy.sum(axis=1, keepdims=True)
    correct = rng.random((cases, actions)) < rng.uniform(0.2, 0.8, size=(cases, 1))
    correct[:, 0], correct[:, 1] = True, False
    return Groups(policy, correct, rng.multinomial(rng.integers(2, 9, size=cases), policy))


def random_policies(cases: int = 150, *, seed: int = 1) -> list[ActionClasses]:
    """Seeded random policies of six actions."""
    groups = random_groups(cases, seed=seed)
    return [ActionClasses.from_policy(p, flags) for p, flags in zip(groups.policy, groups.correct, strict=True)]


class RewardArguments(TypedDict):
    """Keyword arguments of the theory's functions."""

    reward_correct: FloatArray
    reward_wrong: FloatArray


class Rewards(NamedTuple):
    """R_c and R_w per case."""

    correct: FloatArray
    wrong: FloatArray

    @property
    def arguments(self) -> RewardArguments:
        """As keyword arguments of the theory's functions."""
        return RewardArguments(reward_correct=self.correct, reward_wrong=self.wrong)


def rewards_in_scope(cases: int = CASES, *, seed: int = 2) -> Rewards:
    """Random rewards with R_c >= 0 >= R_w, edges included."""
    rng = np.random.default_rng(seed)
    right, wrong = rng.uniform(0, 2, cases), rng.uniform(-2, 0, cases)
    right[::7], wrong[1::7] = 0.0, 0.0
    return Rewards(right, wrong)


def rewards_below_zero(cases: int = CASES, *, seed: int = 3) -> Rewards:
    """Random rewards with R_w < R_c < 0: allowed by 'R_c > R_w, R_w <= 0', though not by R_c >= 0."""
    rng = np.random.default_rng(seed)
    right = -rng.uniform(0.05, 1, cases)
    return Rewards(right, right - rng.uniform(0.1, 2, cases))


def rewards_above_zero(cases: int = CASES, *, seed: int = 4) -> Rewards:
    """Random rewards with R_c > R_w > 0."""
    rng = np.random.default_rng(seed)
    wrong = rng.uniform(0.05, 1, cases)
    return Rewards(wrong + rng.uniform(0.1, 2, cases), wrong)
