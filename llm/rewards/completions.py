r"""What a reward reads: the text of a completion, its last \boxed{}, and the columns of the data."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

RewardFunction = Callable[..., Sequence[float | None]]
"""What TRL calls as f(prompts=..., completions=..., **columns): for each completion a reward, or None for no say."""

_BOX = re.compile(r"\\boxed\s*\{")
_BRACE = re.compile(r"\\.|[{}]", flags=re.DOTALL)  # a backslash takes the next character along: \{ opens nothing


def completion_text(completion: Any) -> str:
    """The text that a completion answers with.

    Args:
        completion: A text, or a list of chat messages, mappings with `role` and `content`; a content may be a list of
            parts, of which those with a `text` count.

    Returns:
        The text; of messages that of the assistant's last one (a tool's output is no answer), "" if there is none.

    Raises:
        ValueError: If it is neither.

    Source: this project, for TRL's standard and conversational formats.
    """
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, Sequence) or not all(isinstance(message, Mapping) for message in completion):
        raise ValueError(
            f"completion must be a text or a list of chat messages, got {type(completion).__name__}: "
            "pass what TRL passes to reward functions"
        )
    answers = [message.get("content") for message in completion if message.get("role", "assistant") == "assistant"]
    content = answers[-1] if answers else None
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(str(part.get("text") or "") for part in content)


def last_box(text: str) -> str | None:
    r"""The content of the \boxed{} that opens last, braces within it paired; in linear time.

    Args:
        text: Any text; \{ and \} are characters of the answer, not braces.

    Returns:
        The content, untrimmed. None if there is no box, or if the one that opens last never closes: the completion was
        cut, and what it meant to answer is not known.

    Source: this project.
    """
    begin = max((box.end() for box in _BOX.finditer(text)), default=len(text))
    depth = 1
    for brace in _BRACE.finditer(text, begin):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0:
            return text[begin : brace.start()]
    return None


def column(columns: Mapping[str, Any], name: str, completions: Sequence[Any], reader: str) -> Sequence[Any]:
    """A column of the data, one entry per completion.

    Raises:
        ValueError: If it is missing or has another length.
    """
    if name not in columns:
        listed = ", ".join(sorted(columns)) or "none"
        raise ValueError(f"{reader} needs the column {name!r}, got {listed}: name the answer's column in the data")
    values = columns[name]
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) != len(completions):
        got = len(values) if isinstance(values, Sequence) and not isinstance(values, str) else type(values).__name__
        raise ValueError(
            f"column {name!r} must have one entry per completion, got {got} for {len(completions)}: pass a list"
        )
    return values
