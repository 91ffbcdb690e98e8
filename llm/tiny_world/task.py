"""The task of the tiny world: the prompt `aSS:` asks for three digits whose sum is SS, and nothing more.

For the 16 sums 06 to 21 there are 28 to 75 correct completions of 1,000, so success, its rare modes and every
probability can be enumerated.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from fgrpo.llm.tiny_world.tokenizer import EOS, VOCABULARY

SUMS = range(6, 22)
FAMILIES = ("a", "x")
"""Letters that prompts begin with: `a` is trained on; `x` is held out, with the same sums."""
MAX_COMPLETION_LENGTH = 4
"""Tokens of a completion: three digits and the end."""

_PROMPT = re.compile(r"[a-z](\d\d):")
_COMPLETION = re.compile(r"[0-9]{3}")


def prompts(family: str = "a") -> list[str]:
    """The 16 prompts of a family, in the order of their sums: `a06:` to `a21:`."""
    return [f"{family}{total:02d}:" for total in SUMS]


def rows(family: str = "a") -> list[dict[str, Any]]:
    """The data set, a row per prompt with columns `prompt` and `answer` (the sum); `Dataset.from_list` takes it."""
    return [{"prompt": prompt, "answer": total} for prompt, total in zip(prompts(family), SUMS, strict=True)]


def asked_sum(prompt: str) -> int:
    """The sum that a prompt asks for.

    Raises:
        ValueError: If it is no prompt of the tiny world.
    """
    match = _PROMPT.fullmatch(prompt)
    if match is None:
        raise ValueError(f"a prompt must be a letter, two digits and a colon, got {prompt!r}: pass one such as 'a06:'")
    return int(match.group(1))


def correct_completions(total: int) -> Iterator[str]:
    """Every correct completion of a prompt with this sum, in the order of the digits, without the end token."""
    return ("".join(map(str, digits)) for digits in product(range(10), repeat=3) if sum(digits) == total)


def is_correct(total: int, completion: str) -> bool:
    """Whether a completion is exactly three digits with this sum."""
    return _COMPLETION.fullmatch(completion) is not None and sum(map(int, completion)) == total


def digit_sum_reward(
    prompts: Sequence[str],
    completions: Sequence[str],
    completion_ids: Sequence[Sequence[int]] | None = None,
    **_: Any,
) -> list[float]:
    """Reward 1 for three digits with the right sum and then the end, 0 for all else; a reward function as TRL calls it.

    Args:
        prompts: Prompts, one per completion.
        completions: Completions as text, without special tokens.
        completion_ids: Their tokens, with which a completion that did not end, or that hides a special token, is
            wrong; None judges the text alone.

    Returns:
        A reward per completion, 0.0 or 1.0.

    Raises:
        ValueError: If a prompt is none of the tiny world.
    """
    rewards = [float(is_correct(asked_sum(p), c)) for p, c in zip(prompts, completions, strict=True)]
    if completion_ids is not None:
        for i, ids in enumerate(completion_ids):
            if len(ids) != MAX_COMPLETION_LENGTH or ids[-1] != VOCABULARY[EOS]:
                rewards[i] = 0.0
    return rewards
