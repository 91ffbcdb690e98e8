"""Which answers of a prompt are common, rare and hidden, in the layout in which the exact evaluation has them.

A correct answer is known by its first two digits, as the third one then follows from the sum. So the correct answers of
a prompt are entries of an array over the 100 pairs of digits (suffix _A), of which some have none.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fgrpo.llm.tiny_world.pretraining import COMMON_SHARES, base_distribution
from fgrpo.llm.tiny_world.task import SUMS
from fgrpo.llm.tiny_world.tree import DIGITS, PAIRS
from fgrpo.theory._validation import FloatArray

_HIDDEN_SHARE = 4  # one in so many of the rare answers
_HIDDEN = 1  # stream of random numbers, beside that of the base distribution


def third_digits() -> NDArray[np.int64]:
    """The digit that makes each pair of digits correct, [16, 100]; -1 where there is none."""
    pair_sums = np.add.outer(np.arange(DIGITS), np.arange(DIGITS)).reshape(-1)
    third_PA = np.array(SUMS)[:, np.newaxis] - pair_sums
    return np.where((third_PA >= 0) & (third_PA < DIGITS), third_PA, -1)


@dataclass(frozen=True)
class AnswerModes:
    """The correct answers of the 16 prompts by kind, boolean arrays [16, 100] over the first two digits.

    Attributes:
        success_rate_P: Success rate of each prompt in the base distribution, which the base model approaches.
        common_PA: The three answers with most of the correct mass of the base distribution.
        rare_PA: All other correct answers.
        hidden_PA: A random quarter of the rare answers: all that the verifier of the held-out prompts accepts. Its
            success rate is rare mass by construction.
    """

    success_rate_P: FloatArray
    common_PA: NDArray[np.bool_]
    rare_PA: NDArray[np.bool_]
    hidden_PA: NDArray[np.bool_]

    @property
    def correct_PA(self) -> NDArray[np.bool_]:
        """All correct answers."""
        return self.common_PA | self.rare_PA

    @property
    def easy_P(self) -> NDArray[np.bool_]:
        """The half of the prompts with the highest success rates in the base distribution."""
        return self.success_rate_P.argsort(kind="stable").argsort() >= len(SUMS) // 2


def answer_modes(seed: int = 0) -> AnswerModes:
    """The modes of the world of a seed.

    Args:
        seed: Seed of the base distribution; the hidden answers have their own stream of it.
    """
    third_PA = third_digits()
    correct_PA = third_PA >= 0
    base_PA = np.take_along_axis(
        base_distribution(seed).reshape(len(SUMS), PAIRS, DIGITS), np.maximum(third_PA, 0)[..., np.newaxis], axis=2
    )[..., 0]
    base_PA = np.where(correct_PA, base_PA, 0.0)
    common_PA = base_PA.argsort(axis=1, kind="stable").argsort(axis=1) >= PAIRS - len(COMMON_SHARES)
    rare_PA = correct_PA & ~common_PA
    generator = np.random.default_rng([seed, _HIDDEN])
    hidden_PA = np.zeros_like(rare_PA)
    for row, rare_A in zip(hidden_PA, rare_PA, strict=True):
        rare = generator.permutation(np.flatnonzero(rare_A))
        row[rare[: max(1, len(rare) // _HIDDEN_SHARE)]] = True
    return AnswerModes(base_PA.sum(axis=1), common_PA, rare_PA, hidden_PA)
