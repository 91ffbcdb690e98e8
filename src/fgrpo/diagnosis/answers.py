r"""What a rollout answered: its text, the last \boxed{} in it, and a code by which answers are told apart."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from fgrpo.llm.rewards.completions import last_box

NO_ANSWER = -1
r"""Code of a rollout without text, or without a \boxed{}."""

_SAME = ((r"\left", ""), (r"\right", ""), (r"\!", ""), (r"\,", ""), (r"\ ", ""), (r"\dfrac", r"\frac"))


def normal(answer: str) -> str:
    r"""An answer without what changes its look alone: white space, $, a closing full stop, \left, \right, \dfrac.

    It knows no algebra: 1/2 and 0.5 are two answers.

    Source: this project.
    """
    for written, meant in _SAME:
        answer = answer.replace(written, meant)
    return "".join(answer.split()).replace("$", "").removesuffix(".")


def boxed_code(text: str) -> int:
    r"""Code of the normalised last \boxed{}; `NO_ANSWER` without one."""
    answer = last_box(text)
    return NO_ANSWER if answer is None else code(normal(answer))


def text_code(text: str) -> int:
    """Code of the whole text, white space at its ends left out."""
    return code(text.strip())


def code(text: str) -> int:
    """A number of 63 bits for a text: equal texts have equal ones, and two of a billion texts share one by 1 in 18."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1


def readable(value: Any, role: str) -> str:
    """The text of a prompt or completion: itself, or of a chat list the messages of a role, one after another.

    A chat without such a message gives the text of all its messages.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list):
        return "" if value is None else str(value)
    messages = [message for message in value if isinstance(message, Mapping)]
    chosen = [message for message in messages if message.get("role") == role] or messages
    return "\n".join(_content(message.get("content")) for message in chosen)


def _content(content: Any) -> str:
    if isinstance(content, list):  # parts: text, images
        return " ".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping)).strip()
    return "" if content is None else str(content)


def identity(value: Any) -> str:
    """A text that is the same for equal prompts, whether text or chat lists: fields without a value do not count."""
    return value if isinstance(value, str) else json.dumps(_filled(value), sort_keys=True, default=str)


def _filled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_filled(item) for item in value]
    return value
