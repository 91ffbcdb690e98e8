"""The problems that a model is evaluated on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from fgrpo.llm.data import is_prompt, math_prompt
from fgrpo.llm.records import Row, cut, read_records

ID_COLUMNS = ("prompt_id", "problem_id", "id")
"""Names of the column that identifies a problem, the first one present; without one, problems are numbered from 1."""

_PASSED_ANYWAY = ("prompt", "prompts", "completions", "completion_ids")  # to the reward, and not from the file

Prompt = str | list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem.

    Attributes:
        id: Its identifier, under which it is counted.
        prompt: A text, or a list of chat messages.
        columns: The other columns of its row, for the reward; None where the row has no cell.
    """

    id: str
    prompt: Prompt
    columns: Mapping[str, Any]


def read_problems(path: str | PathLike[str], *, chat: bool) -> list[Problem]:
    """Problems from a CSV, JSONL, JSON or parquet file.

    Args:
        path: The file. Column `prompt` (text or chat messages), or `problem` (a text that gets the paper's system
            prompt); beside it what the reward needs, such as `answer`, and one of `ID_COLUMNS`.
        chat: Whether a `problem` becomes a chat; else the system prompt stands before its text.

    Returns:
        The problems in the file's order.

    Raises:
        ValueError: One line: the file is missing, damaged or empty; there is no column of prompts; a prompt is neither
            text nor chat; an identifier is missing or repeated.

    Source: this project; system prompt: App. L (v2).
    """
    rows, found = read_records(path, "data")
    try:
        if not rows:
            raise ValueError("content must have at least one row, got none: write one row per problem")
        source = next((name for name in ("prompt", "problem") if name in found), None)
        if source is None:
            listed = ", ".join(map(repr, found))
            raise ValueError(f"prompt must be a column, got {listed}: name it prompt, or problem for mathematics")
        names = [name for name in found if name not in _PASSED_ANYWAY]
        problems = []
        for number, row in enumerate(rows, 1):
            prompt = _prompt(row.get(source), number)
            if source == "problem" and isinstance(prompt, str):
                prompt = math_prompt(prompt, "chat" if chat else "text")
            columns = {name: row.get(name) for name in names}
            problems.append(Problem(_identifier(row, found, number), prompt, columns))
        _refuse_repeated([problem.id for problem in problems])
    except ValueError as error:
        raise ValueError(f"{str(path)!r}: {error}") from None
    return problems


def _prompt(value: Any, number: int) -> Prompt:
    if is_prompt(value):
        return value  # type: ignore[no-any-return]
    raise ValueError(
        f"prompt in row {number} must be a text or a list of messages with role and content, got {cut(repr(value))}: "
        "write one of the two"
    )


def _identifier(row: Row, found: Sequence[str], number: int) -> str:
    name = next((name for name in ID_COLUMNS if name in found), None)
    value = number if name is None else row.get(name)
    if value is None or value == "" or value != value:
        raise ValueError(
            f"{name} in row {number} must identify the problem, got {value!r}: name it, or drop the column"
        )
    return str(value)


def _refuse_repeated(ids: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for number, name in enumerate(ids, 1):
        if name in first:
            raise ValueError(
                f"the id in row {number} must be new, got {cut(repr(name))} of row {first[name]}: rename it"
            )
        first[name] = number
