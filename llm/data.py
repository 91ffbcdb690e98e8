"""Training data: rows from a hub or a file, and DeepScaleR prepared as the paper did it."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fgrpo.llm.records import SUFFIXES, Row, read_records
from fgrpo.theory import _validation as check

if TYPE_CHECKING:
    from datasets import Dataset

SYSTEM_PROMPT = r"Please reason step by step, and put your final answer within \boxed{}."
"""The paper's system prompt (App. L)."""

DEEPSCALER = "agentica-org/DeepScaleR-Preview-Dataset"
"""The hub's name of DeepScaleR, the paper's training data."""

MOST_PROMPT_TOKENS = 1024
"""The paper's limit (App. L)."""

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True, slots=True)
class PreparationCounts:
    """How many rows each step of `prepare_math` took, in order: read = incomplete + too_long + conflicting + kept.

    Attributes:
        read: Rows of the source.
        incomplete: Removed: without a problem or without an answer.
        too_long: Removed: the prompt has more tokens than the limit.
        conflicting: Removed: the problem also stands there with another answer; all of its rows go.
        kept: Rows that stay.
        repeated: Of those kept, rows whose problem and answer an earlier row has; they stay, as the paper says nothing
            of removing them.
    """

    read: int
    incomplete: int
    too_long: int
    conflicting: int
    kept: int
    repeated: int

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in asdict(self).items())


@dataclass(frozen=True, slots=True)
class PreparedData:
    """A data set for `FocalGRPOTrainer` with the columns prompt and answer, and how it came about."""

    dataset: "Dataset"
    counts: PreparationCounts


def read_rows(source: str | PathLike[str], columns: Sequence[str], *, split: str = "train") -> list[Row]:
    """Rows of a data set on the hub or in a local file, in its order.

    Args:
        source: A file (.csv, .jsonl, .json, .parquet) or a data set's name on the hub, OWNER/NAME. What exists as a
            file, or ends like one, is a file.
        columns: The columns that the caller needs; others are left out.
        split: Of a data set on the hub; a file has no splits.

    Returns:
        A mapping with `columns` for each row; a missing cell is None.

    Raises:
        ValueError: One line: the file is missing, damaged or of another kind; the hub has no such name or split, or
            cannot be reached; there are no rows; a column is missing.

    Source: this project.
    """
    file = Path(source)
    if isinstance(source, PathLike) or file.suffix.lower() in SUFFIXES or file.is_file():
        rows, found = read_records(file, "data", only=columns)
    else:
        rows, found = _rows_on_hub(source, columns, split)
    name = str(source)
    if not rows:
        raise ValueError(f"data must have at least one row, got none in {name!r}: check the file or the split")
    missing = [column for column in columns if column not in found]
    if missing:
        listed = ", ".join(map(repr, found))
        raise ValueError(f"data must have the column {missing[0]!r}, got {listed} in {name!r}: name the column to use")
    return [{column: row.get(column) for column in columns} for row in rows]


def _rows_on_hub(name: str, columns: Sequence[str], split: str) -> tuple[list[Row], list[str]]:
    if not _HUB_NAME.fullmatch(name):
        raise ValueError(f"data must be a file or a hub name OWNER/NAME, got {check.shown(name)}: check the path")
    dataset = load_from_hub(name, split=split)
    present = [column for column in columns if column in dataset.column_names]
    return list(dataset.select_columns(present)) if present else [{}] * len(dataset), dataset.column_names


def load_from_hub(source: str, **options: Any) -> Any:
    """What the hub, or its cache, has under a name.

    Args:
        source: OWNER/NAME.
        **options: Of `datasets.load_dataset`.

    Returns:
        What `datasets.load_dataset` returns.

    Raises:
        ValueError: One line, whatever is wrong with name, split, data or network.

    Source: this project.
    """
    import datasets

    try:
        return datasets.load_dataset(source, **options)
    # what a missing network or name raises is of many kinds, some of them the HTTP client's own
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        split = f", split {options['split']!r}," if "split" in options else ""
        raise ValueError(
            f"data {source!r}{split} must load from the hub, got {type(error).__name__} ({reason}): "
            f"check the name and the network, or pass a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file"
        ) from None


def prepare_math(
    source: str | PathLike[str] = DEEPSCALER,
    *,
    tokenizer: Any = None,
    max_prompt_tokens: int | None = MOST_PROMPT_TOKENS,
    prompt_format: Literal["chat", "text"] = "chat",
    system_prompt: str | None = SYSTEM_PROMPT,
    problem_column: str = "problem",
    answer_column: str = "answer",
    split: str = "train",
) -> PreparedData:
    """Prepare problems with verifiable answers as the paper prepared DeepScaleR.

    In this order: rows without a problem or an answer go; prompts of more than `max_prompt_tokens` tokens go; problems
    that stand there with different answers go, all of their rows. Problems and answers are compared as texts, white
    space aside, so 1/2 and 0.5 are different answers. What is left keeps the source's order.

    Args:
        source: File or hub name, as for `read_rows`.
        tokenizer: The model's, for counting: called on a text it gives `input_ids`; a chat goes through its chat
            template. None only without a limit.
        max_prompt_tokens: Most tokens of a prompt, system prompt and chat template included; None: no limit.
        prompt_format: `chat`: the prompt is a list of messages; `text`: system prompt, an empty line, the problem.
        system_prompt: Instruction before the problem; None: none.
        problem_column: The source's column of problems.
        answer_column: The source's column of reference answers.
        split: Of a data set on the hub.

    Returns:
        The data set, columns prompt and answer (a text), and the counts of each step.

    Raises:
        ValueError: As `read_rows`; nothing is left; no tokenizer for a limit, or one without a template for a chat.

    Source: App. L (v2): samples over 1024 tokens and duplicates with conflicting answers removed, 39,202 left. The
    paper does not say which tokens it counted, nor how it compared; the number cannot be checked without the hub.
    """
    if prompt_format not in ("chat", "text"):
        raise ValueError(f"prompt_format must be 'chat' or 'text', got {check.shown(prompt_format)}: choose one")
    if max_prompt_tokens is not None and tokenizer is None:
        raise ValueError(
            f"max_prompt_tokens = {max_prompt_tokens} needs a tokenizer, got none: "
            "pass the model's tokenizer, or max_prompt_tokens=None for no limit"
        )
    rows = read_rows(source, [problem_column, answer_column], split=split)
    complete = [
        (str(row[problem_column]).strip(), str(row[answer_column]).strip())
        for row in rows
        if not _blank(row[problem_column]) and not _blank(row[answer_column])
    ]
    samples = [(math_prompt(problem, prompt_format, system_prompt), problem, answer) for problem, answer in complete]
    if max_prompt_tokens is not None:
        samples = [sample for sample in samples if len(encode(tokenizer, sample[0])) <= max_prompt_tokens]
    short = len(samples)

    pairs = Counter((_words(problem), _words(answer)) for _, problem, answer in samples)
    answers = Counter(problem for problem, _ in pairs)
    samples = [sample for sample in samples if answers[_words(sample[1])] == 1]
    if not samples:
        raise ValueError(
            f"data must have rows left after its preparation, got none of {len(rows)} in {str(source)!r} "
            f"({len(complete)} with problem and answer, {short} of them within the limit): check the columns, or raise "
            "max_prompt_tokens"
        )

    import datasets

    counts = PreparationCounts(
        read=len(rows),
        incomplete=len(rows) - len(complete),
        too_long=len(complete) - short,
        conflicting=short - len(samples),
        kept=len(samples),
        repeated=len(samples) - sum(count == 1 for count in answers.values()),
    )
    columns = {"prompt": [prompt for prompt, _, _ in samples], "answer": [answer for _, _, answer in samples]}
    return PreparedData(datasets.Dataset.from_dict(columns), counts)


def _blank(cell: Any) -> bool:
    return cell is None or not str(cell).strip()


def _words(text: str) -> str:
    return " ".join(text.split())


def math_prompt(
    problem: str, prompt_format: Literal["chat", "text"] = "chat", system_prompt: str | None = SYSTEM_PROMPT
) -> str | list[dict[str, str]]:
    """The prompt of a problem: a list of messages, or system prompt, an empty line and the problem.

    Source: App. L (v2).
    """
    if prompt_format == "text":
        return problem if system_prompt is None else f"{system_prompt}\n\n{problem}"
    system = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
    return [*system, {"role": "user", "content": problem}]


def is_prompt(value: Any) -> bool:
    """Whether a cell is what TRL takes for a prompt: a text, or messages with role and content; neither empty."""
    if isinstance(value, list):
        return bool(value) and all(
            isinstance(message, dict) and {"role", "content"} <= message.keys() for message in value
        )
    return isinstance(value, str) and value != ""


def encode(tokenizer: Any, prompt: str | list[dict[str, str]]) -> list[int]:
    """A prompt as tokens: a chat through the model's template, with the start of the answer.

    Raises:
        ValueError: If it is a chat and the tokenizer has no template, or if no token comes out.
    """
    if isinstance(prompt, str):
        ids = tokenizer(prompt)["input_ids"]
    elif getattr(tokenizer, "chat_template", None) is None:
        raise ValueError(
            "a prompt of chat messages needs a tokenizer with a chat template, got one without: write prompts as text"
        )
    else:
        ids = tokenizer.apply_chat_template(prompt, tokenize=True, add_generation_prompt=True, return_dict=True)[
            "input_ids"
        ]
    if not ids:
        raise ValueError(f"a prompt must have tokens, got none for {check.shown(prompt)}: this tokenizer drops them")
    return [int(token) for token in ids]
