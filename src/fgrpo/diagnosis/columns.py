"""Which column of a file is what, and numbers out of cells; faults name the column, the row and the nearest name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite, nan
from typing import Any

from fgrpo.llm.records import cut, literal

RATE_COLUMN = "empirical_success_rate"
WEIGHT_COLUMN = "focal_weight"
ADVANTAGE_COLUMN = "advantage"

_NO_REWARD = ("", "none", "null", "nan")
_FLAGS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Reading:
    """What the user says about the columns and groups of a run; None leaves it to the reader.

    Attributes:
        success_threshold: A rollout is right if the success column is above it, strictly.
        success_column: Column of the reward that says which rollouts are right.
        id_column: Column that names the prompt.
        step_column: Column of the training step.
        group_column: Column that tells the groups of one prompt apart.
        group_size: N, rollouts per prompt.
    """

    success_threshold: float = 0.5
    success_column: str | None = None
    id_column: str | None = None
    step_column: str | None = None
    group_column: str | None = None
    group_size: int | None = None


def named(option: str, name: str, found: Sequence[str]) -> str:
    """The column that an option names.

    Raises:
        ValueError: If there is none of this name.
    """
    if name not in found:
        raise ValueError(f"{option} must name a column, got {literal(name)}: {_offer([name], found)}")
    return name


def first_of(role: str, names: Sequence[str], option: str, found: Sequence[str]) -> str:
    """The first of some names that is a column.

    Raises:
        ValueError: If none is.
    """
    for name in names:
        if name in found:
            return name
    raise ValueError(
        f"{role} must be a column ({' or '.join(names)}), got none of these: {_offer(names, found)}, with {option}"
    )


def one_success_column(candidates: Sequence[str], found: Sequence[str], where: str) -> str:
    """The one column that can say which rollouts are right.

    Raises:
        ValueError: If several could, or none: a sum of rewards, or a reward for format, says nothing of success.
    """
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise ValueError(f"{where} must have a column of rewards, got none: {_offer(['reward'], found)}")
    listed = ", ".join(map(literal, candidates))
    raise ValueError(
        f"the reward that says which rollouts are right must be one column, got {listed}: name it with "
        f"--success-column {candidates[0]}"
    )


def _offer(wanted: Iterable[str], found: Sequence[str]) -> str:
    near = [match for name in wanted for match in get_close_matches(name, found, n=1, cutoff=0.6)]
    if near:
        return f"did you mean {near[0]!r}? Name the right one"
    listed = ", ".join(map(literal, found[:8])) + (", ..." if len(found) > 8 else "")
    return f"name one of {listed}"


def reward(value: Any, place: str) -> float:
    """A reward out of a cell: a number, a truth value, or nan where there is none.

    Raises:
        ValueError: If it is something else, or infinite.
    """
    if value is None:
        return nan
    if isinstance(value, str):
        text = value.strip().lower()
        if text in _NO_REWARD:
            return nan
        value = _FLAGS.get(text, text)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("inf")
    if not isfinite(number) and number == number:
        raise ValueError(
            f"the reward in {place} must be a finite number, got {cut(repr(value))}: write it as a number, or leave "
            "it empty where there is none"
        )
    return number


def optional_number(value: Any) -> float:
    """A number out of a cell, nan for anything else: for columns that may be there."""
    try:
        return reward(value, "")
    except ValueError:
        return nan


def step(value: Any, place: str) -> int:
    """A training step out of a cell.

    Raises:
        ValueError: If it is no whole number.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = nan
    if isinstance(value, bool) or not (abs(number) < 2**53 and number.is_integer()):
        raise ValueError(f"the step in {place} must be a whole number, got {cut(repr(value))}: write training steps")
    return int(number)


def identifier(value: Any, place: str) -> Any:
    """A prompt's identifier or text out of a cell, as it is.

    Raises:
        ValueError: If there is none.
    """
    if value is None or value == "" or value == [] or value != value:  # nan alone differs from itself
        raise ValueError(
            f"the prompt in {place} must be there, got {cut(repr(value))}: give every rollout the id of its prompt"
        )
    return value
