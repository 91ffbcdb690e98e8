r"""Rewards without mathematics: equal texts, and any scorer cut at a least score."""

import inspect
import math
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from fgrpo.llm.rewards.completions import RewardFunction, column, completion_text, last_box
from fgrpo.theory import _validation as check


def exact_match(prompts: Sequence[Any] | None, completions: Sequence[Any], **columns: Any) -> list[float | None]:
    r"""Reward 1 for a completion whose answer is the text in the column `answer`, else 0.

    The answer is the content of the last \boxed{}, or the whole completion if it has none. Both texts are normalised:
    Unicode NFKC, no white space at the ends, one space for any white space within. Case counts.

    Args:
        prompts: Not used; TRL passes them.
        completions: Texts or lists of chat messages.
        **columns: The data's columns, among them `answer`: texts or numbers, None where there is none.

    Returns:
        1.0 or 0.0 for each completion; None where the answer is None or empty.

    Raises:
        ValueError: If the column is missing or of another length.

    Source: this project.
    """
    rewards: list[float | None] = []
    for completion, answer in zip(completions, column(columns, "answer", completions, "exact_match"), strict=True):
        gold = "" if answer is None else _normal(str(answer))
        text = completion_text(completion)
        boxed = last_box(text)
        rewards.append(float(_normal(text if boxed is None else boxed) == gold) if gold else None)
    return rewards


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split())


class _Thresholded:
    """See `thresholded`; a class, so that it can be pickled."""

    def __init__(
        self, scorer: Callable[..., Any], least_score: float, columns: tuple[str, ...] | None, wrong: float, name: str
    ) -> None:
        self.scorer = scorer
        self.least_score = least_score
        self.columns = columns
        self.reward_wrong = wrong
        self.__name__ = name

    def __call__(self, prompts: Sequence[Any] | None, completions: Sequence[Any], **columns: Any) -> list[float | None]:
        if self.columns is None:
            scores = self.scorer(prompts=prompts, completions=completions, **columns)
            if len(scores) != len(completions):
                raise ValueError(
                    f"{self.__name__} must score each of {len(completions)} completions, got {len(scores)} scores: "
                    "return one per completion, None where there is none"
                )
        else:
            cells = [column(columns, name, completions, self.__name__) for name in self.columns]
            scores = [self.scorer(completion_text(text), *row) for text, *row in zip(completions, *cells, strict=True)]
        return [self._success(score) for score in scores]

    def _success(self, score: Any) -> float | None:
        if score is None or math.isnan(score):
            return None
        return 1.0 if score >= self.least_score else self.reward_wrong


def thresholded(
    scorer: Callable[..., Any],
    least_score: float,
    *,
    columns: Sequence[str] | None = None,
    reward_wrong: float = 0.0,
    name: str | None = None,
) -> RewardFunction:
    """Turn a scorer into a success of 0 or 1: right where the score is at least `least_score`.

    Args:
        scorer: A reward function in TRL's convention, or with `columns` a function of one completion's text and of the
            named columns' entries for it that returns its score. Not asynchronous.
        least_score: The least score of a success, finite. Scorers that give partial credit to wrong answers need the
            score of a full solution: reasoning-gym's need 1.0.
        columns: For a function of one completion: the data's columns that it takes, in its order; may be empty.
        reward_wrong: Reward below it, 0 or -1.
        name: `__name__`, after which TRL names its columns; the scorer's own by default.

    Returns:
        A reward function that gives 1.0, `reward_wrong`, or None where the score is None or NaN. It can be pickled if
        the scorer can.

    Raises:
        ValueError: If an argument is out of range; when called, if a column is missing or scores are.

    Source: this project.
    """
    limit = check.scalar("least_score", check.finite("least_score", least_score, "pass the least score of a success"))
    if reward_wrong not in (0.0, -1.0):
        raise ValueError(f"reward_wrong must be 0 or -1, got {check.shown(reward_wrong)}: a success has 1")
    if not callable(scorer):
        raise ValueError(f"scorer must be a function, got {check.shown(scorer)}: pass it without calling it")
    if inspect.iscoroutinefunction(scorer) or inspect.iscoroutinefunction(type(scorer).__call__):
        raise ValueError(f"scorer must be synchronous, got {check.shown(scorer)}: wrap it in a function that waits")
    given = str(name or getattr(scorer, "__name__", type(scorer).__name__))
    return _Thresholded(scorer, limit, None if columns is None else tuple(columns), float(reward_wrong), given)
