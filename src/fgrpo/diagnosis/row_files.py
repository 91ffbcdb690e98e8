"""Reader of plain files from any framework: JSONL, CSV or parquet with a row per rollout."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fgrpo.diagnosis import columns
from fgrpo.diagnosis.answers import NO_ANSWER, boxed_code, identity, readable, text_code
from fgrpo.diagnosis.blocks import ROW_RULE, ROW_RULE_COLUMN, ROW_RULE_SIZE, equal_keys
from fgrpo.diagnosis.columns import RATE_COLUMN, WEIGHT_COLUMN, Reading
from fgrpo.diagnosis.elsewhere import refuse_other_tables
from fgrpo.diagnosis.rollouts import IntArray, Layout, Note, Rollouts, Rows, counted, file_notes
from fgrpo.llm.records import Row, csv_rows, json_object, literal
from fgrpo.theory._validation import FloatArray

SUFFIXES = (".jsonl", ".csv", ".parquet")

ID_NAMES = ("prompt_id", "problem_id", "question_id", "id", "prompt", "problem", "question", "input")
STEP_NAMES = ("step", "global_step", "training_step", "iteration")
SUCCESS_NAMES = ("reward", "score", "success", "correct", "is_correct")
TEXT_NAMES = ("completion", "response", "output", "answer")
GROUP_NAMES = ("group_id", "group", "uid")
TRUNCATED_NAMES = ("truncated", "is_truncated")
_PROMPT_TEXTS = ("prompt", "problem", "question", "input")
_BATCH = 4096


@dataclass(frozen=True)
class _Columns:
    """The file's name of each column; None for one that it does not have."""

    prompt: str
    step: str
    success: str
    text: str | None
    group: str | None
    truncated: str | None
    prompt_text: str | None

    @classmethod
    def of(cls, found: Sequence[str], reading: Reading) -> "_Columns":
        def chosen(option: str, name: str | None, role: str, names: Sequence[str]) -> str:
            if name is not None:
                return columns.named(option, name, found)
            return columns.first_of(role, names, option, found)

        def maybe(names: Sequence[str]) -> str | None:
            return next((name for name in names if name in found), None)

        if twice := [name for name in found if found.count(name) > 1]:
            raise ValueError(f"columns must have different names, got {literal(twice[0])} twice: rename or drop one")
        candidates = [name for name in SUCCESS_NAMES if name in found]
        success = (
            columns.named("--success-column", reading.success_column, found)
            if reading.success_column is not None
            else columns.one_success_column(candidates, found, "the file")
        )
        group = maybe(GROUP_NAMES)
        if reading.group_column is not None:
            group = columns.named("--group-column", reading.group_column, found)
        prompt = chosen("--id-column", reading.id_column, "the prompt", ID_NAMES)
        return cls(
            prompt=prompt,
            step=chosen("--step-column", reading.step_column, "the step", STEP_NAMES),
            success=success,
            text=next((name for name in TEXT_NAMES if name in found and name != prompt), None),
            group=group,
            truncated=maybe(TRUNCATED_NAMES),
            prompt_text=next((name for name in _PROMPT_TEXTS if name in found and name != prompt), None),
        )


@dataclass
class _Table:
    """Numbers of the rows read so far."""

    step: list[int] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    key: list[int] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    boxed: list[int] = field(default_factory=list)
    text: list[int] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    truncated: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)
    keys: dict[tuple[int, str], int] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)

    def add(self, row: Row, named: _Columns, place: str) -> None:
        value = columns.identifier(row.get(named.prompt), place)
        key = identity(value) if isinstance(value, str | list | dict) else str(value)
        prompt = self.codes.setdefault(key, len(self.codes))
        if prompt == len(self.names):
            self.names.append(readable(value, "user"))
        if named.prompt_text is not None and (text := row.get(named.prompt_text)) is not None:
            content = identity(text)
            if self.texts.setdefault(prompt, content) != content:
                raise ValueError(
                    f"an id must name one prompt, got two of {named.prompt_text!r} for {literal(key)} of "
                    f"{named.prompt!r} ({place}): name another column with --id-column"
                )
        group = "" if named.group is None else str(row.get(named.group))
        answer = None if named.text is None else row.get(named.text)
        written = None if answer is None else readable(answer, "assistant")
        self.step.append(columns.step(row.get(named.step), place))
        self.prompt.append(prompt)
        self.key.append(self.keys.setdefault((prompt, group), len(self.keys)))
        self.reward.append(columns.reward(row.get(named.success), place))
        self.boxed.append(NO_ANSWER if written is None else boxed_code(written))
        self.text.append(NO_ANSWER if written is None else text_code(written))
        self.rate.append(columns.optional_number(row.get(RATE_COLUMN)))
        self.weight.append(columns.optional_number(row.get(WEIGHT_COLUMN)))
        self.truncated.append(columns.optional_number(None if named.truncated is None else row.get(named.truncated)))

    def rows(self) -> Rows:
        return Rows(
            prompts=tuple(self.names),
            step_R=np.array(self.step, np.int64),
            prompt_R=np.array(self.prompt, np.int64),
            reward_R=np.array(self.reward, np.float64),
            boxed_R=np.array(self.boxed, np.int64),
            text_R=np.array(self.text, np.int64),
            logged_rate_R=np.array(self.rate, np.float64),
            logged_weight_R=np.array(self.weight, np.float64),
        )


def read_rows(files: Sequence[Path], reading: Reading) -> Rollouts:
    """Rollouts of a run from plain files of one kind, read one after the other in the order of their numbers.

    Args:
        files: JSONL, CSV or parquet files, all of one suffix.
        reading: What the user says about columns and groups.

    Raises:
        ValueError: If a file or a cell is damaged, a column missing or ambiguous, or rows cannot be grouped.

    Source: this project.
    """
    files = sorted(files, key=_natural)
    table, named, notes = _read_all(files, reading)
    rows = table.rows()
    if named.text == "answer" and _is_the_reference(rows, reading.success_threshold):
        none = np.full_like(rows.text_R, NO_ANSWER)
        rows, named = replace(rows, boxed_R=none, text_R=none), replace(named, text=None)
        text = (
            "Column 'answer' is the same for right and wrong rollouts of each prompt: taken for the reference answer."
        )
        notes.append(Note("answer_is_reference", 0, text))
    grouping = equal_keys(
        np.array(table.key, np.int64), rows.step_R, reading.group_size, named_groups=named.group is not None
    )
    rule = ROW_RULE if named.group is None else ROW_RULE_COLUMN.replace("group column", f"{named.group!r}")
    layout = Layout(
        kind="rows",
        files=len(files) - sum(note.count for note in notes if note.code in ("unreadable_files", "empty_files")),
        rule=ROW_RULE_SIZE.replace("N of", f"{reading.group_size} of") if reading.group_size else rule,
        group_size=grouping.group_size,
        success_column=named.success,
        success_threshold=reading.success_threshold,
        text_column=named.text,
    )
    truncated = _share_by_step(rows.step_R, np.array(table.truncated, np.float64))
    return Rollouts.of(rows, grouping.group_R, layout, [*notes, *grouping.notes], truncated)


def _read_all(files: Sequence[Path], reading: Reading) -> tuple[_Table, _Columns, list[Note]]:
    """The rows of all files, the columns that the first with rows has, and what was noted of the files."""
    table, unreadable, partial, empty = _Table(), [], 0, 0
    named: _Columns | None = None
    for file in files:
        try:
            found, rows, cut = _open(file)
            partial += cut
            empty += not found
            if found:
                if named is None:
                    if reading.step_column is None:
                        refuse_other_tables(found)
                    named = _Columns.of(found, reading)
                for number, row in enumerate(rows, 1):
                    table.add(row, named, f"row {number}")
        except (pa.ArrowException, OSError) as error:
            unreadable.append(f"{file.name} ({literal(str(error))})")
        except (ValueError, RecursionError) as error:
            raise _fault(file, error) from None
    if named is None or not table.step:
        what = files[0].name if len(files) == 1 else counted(len(files), "file")
        if unreadable:
            raise ValueError(
                f"at least one rollout must be readable, got none in {what}; unreadable: {', '.join(unreadable)}: "
                "damaged or still being written, so wait, or write it again"
            )
        raise ValueError(f"at least one rollout must be there, got none in {what}: write a row per rollout")
    return table, named, file_notes(len(files), unreadable, partial, empty)


def _fault(file: Path, error: ValueError | RecursionError) -> ValueError:
    """The error of a file in one line that names it."""
    if isinstance(error, UnicodeDecodeError):
        return ValueError(f"{file.name} must be UTF-8 text, got other bytes: convert its encoding")
    if isinstance(error, RecursionError):
        return ValueError(f"{file.name} must hold flat rows, got JSON nested too deeply: write one object per rollout")
    return ValueError(f"{file.name}: {error}")


def _natural(file: Path) -> list[tuple[int, str]]:
    """Order of names in which 10 follows 9."""
    parts: list[str] = re.findall(r"\d+|\D+", file.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _open(file: Path) -> tuple[list[str], Iterator[Row], int]:
    """Names of a file's columns, its rows, and whether a last row that is still being written was left out."""
    if file.suffix.lower() == ".parquet":
        parquet = pq.ParquetFile(file)
        names = [name for name in parquet.schema_arrow.names if not name.startswith("__index_level_")]
        return (names if parquet.metadata.num_rows else []), _parquet_rows(parquet, names), 0
    lines = _lines(file)
    partial = _ends_within_a_row(file)
    if file.suffix.lower() == ".csv":
        header, rows = csv_rows(_all_but_last(lines) if partial else lines)
        first = next(rows, None)
        return (header if first is not None else []), chain([first] if first is not None else [], rows), int(partial)
    objects = _objects(_all_but_last(lines) if partial else lines)
    first = next(objects, None)
    return (
        (list(first) if first is not None else []),
        chain([first] if first is not None else [], objects),
        int(partial),
    )


def _lines(file: Path) -> Iterator[str]:
    with file.open(newline="", encoding="utf-8-sig") as stream:
        yield from stream


def _objects(lines: Iterator[str]) -> Iterator[Row]:
    return (json_object(text, f"line {number}", "rollout") for number, text in enumerate(lines, 1) if text.strip())


def _all_but_last(lines: Iterator[str]) -> Iterator[str]:
    before = next(lines, None)
    for line in lines:
        if before is not None:
            yield before
        before = line


def _ends_within_a_row(file: Path) -> bool:
    """Whether the last line has no end and is no whole row: more of it is to come."""
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - 1, 0))
        if stream.read() in (b"", b"\n", b"\r"):
            return False
    first = last = ""
    for line in _lines(file):
        first, last = first or line, line
    if first is last:
        return False
    try:
        if file.suffix.lower() == ".csv":
            _, rows = csv_rows([first, last])
            return len(list(rows)) != 1
        json_object(last, "the last line", "rollout")
    except ValueError:
        return True
    return False


def _parquet_rows(parquet: pq.ParquetFile, names: list[str]) -> Iterator[Row]:
    for batch in parquet.iter_batches(batch_size=_BATCH, columns=names):
        rows: list[dict[str, Any]] = batch.to_pylist()
        yield from rows


def _is_the_reference(rows: Rows, threshold: float) -> bool:
    """Whether the text never differs between rollouts of a prompt although some are right and some wrong."""
    prompts = len(rows.prompts)
    lowest, highest = np.full(prompts, np.iinfo(np.int64).max), np.full(prompts, NO_ANSWER)
    np.minimum.at(lowest, rows.prompt_R, rows.text_R)
    np.maximum.at(highest, rows.prompt_R, rows.text_R)
    right = np.bincount(rows.prompt_R, rows.reward_R > threshold, prompts)
    mixed = (right > 0) & (right < np.bincount(rows.prompt_R, minlength=prompts))
    return bool(mixed.any() and (lowest == highest).all())


def _share_by_step(step_R: IntArray, truncated_R: FloatArray) -> dict[int, float]:
    """Share of truncated rollouts among those of which it is known, by step."""
    known = ~np.isnan(truncated_R)
    steps, place = np.unique(step_R[known], return_inverse=True)
    shares = np.bincount(place, truncated_R[known], len(steps)) / np.maximum(np.bincount(place, None, len(steps)), 1)
    return dict(zip(steps.tolist(), shares.tolist(), strict=True))
