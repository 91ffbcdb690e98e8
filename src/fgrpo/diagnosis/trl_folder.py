"""Reader of runs of TRL's trainers with log_completions: completions_*.parquet, a table per logging step.

TRL keeps the rows of the latest generation and writes them at each logging step. So with logging_steps above the
steps of a generation some generations are never written; with generations that serve several steps the same one is
written again and again (such repeats count once); and a table written at an evaluation holds rows of the evaluation
(left out where the run's trainer_state.json tells).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fgrpo.diagnosis import columns
from fgrpo.diagnosis.answers import boxed_code, identity, readable, text_code
from fgrpo.diagnosis.blocks import TRL_RULE, consecutive_blocks
from fgrpo.diagnosis.columns import ADVANTAGE_COLUMN, RATE_COLUMN, WEIGHT_COLUMN, Reading
from fgrpo.diagnosis.rollouts import LEFT_OUT, IntArray, Layout, Note, Rollouts, Rows, counted, file_notes
from fgrpo.llm.records import literal
from fgrpo.theory._validation import FloatArray

TABLES = "completions_*.parquet"
_NOT_REWARDS = ("step", "prompt", "completion", ADVANTAGE_COLUMN, RATE_COLUMN, WEIGHT_COLUMN)
_ADVANTAGE_TOLERANCE = 1e-3


@dataclass(frozen=True)
class TrainerState:
    """What the newest trainer_state.json of a run tells; all empty where there is none."""

    evaluated: frozenset[int] = frozenset()
    rewards: frozenset[str] = frozenset()
    truncated: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Path) -> "TrainerState":
        """The state of a run folder: steps with an evaluation, names of reward functions, truncated shares."""
        newest: list[dict[str, Any]] = []
        for file in (run / "trainer_state.json", *run.glob("checkpoint-*/trainer_state.json")):
            try:
                history = json.loads(file.read_text(encoding="utf-8"))["log_history"]
            except (OSError, ValueError, KeyError, TypeError):
                continue  # there, it would only sharpen the reading
            if isinstance(history, list) and len(history) > len(newest):
                newest = [entry for entry in history if isinstance(entry, dict) and isinstance(entry.get("step"), int)]
        names = (re.fullmatch(r"rewards/(.+)/mean", key) for entry in newest for key in entry)
        clipped = ((entry["step"], entry.get("completions/clipped_ratio")) for entry in newest)
        return cls(
            frozenset(entry["step"] for entry in newest if any(key.startswith("eval_") for key in entry)),
            frozenset(name.group(1) for name in names if name),
            {step: float(share) for step, share in clipped if isinstance(share, int | float)},
        )


@dataclass
class _Generation:
    """The rows of one logged step of one file."""

    place: str
    step: int
    prompt: IntArray
    reward: FloatArray
    boxed: IntArray
    text: IntArray
    rate: FloatArray
    weight: FloatArray
    advantage: FloatArray

    def digest(self) -> bytes:
        """Equal for equal rows, whatever the step."""
        parts = (self.prompt, self.text, self.reward, self.advantage)
        return blake2b(b"".join(part.tobytes() for part in parts)).digest()


def is_trl_table(file: Path) -> bool:
    """Whether a parquet file is one of TRL's tables of completions, by its name or its columns."""
    if file.match(TABLES):
        return True
    try:
        return {"step", "prompt", "completion", ADVANTAGE_COLUMN} <= set(pq.read_schema(file).names)
    except (pa.ArrowException, OSError):
        return False


def read_trl(files: Sequence[Path], run: Path, reading: Reading) -> Rollouts:
    """Rollouts of a run from its tables of completions.

    Args:
        files: The tables.
        run: The run's folder, where checkpoints with a trainer_state.json may lie.
        reading: What the user says about columns and groups.

    Raises:
        ValueError: If no table can be read, a column is missing or ambiguous, or rows cannot be grouped.

    Source: this project.
    """
    state = TrainerState.of(run)
    reader = _Tables(reading, state)
    for file in sorted(files, key=_number):
        reader.read(file)
    generations, notes = _train_generations(reader.generations, state)
    if not generations:
        raise ValueError(
            f"at least one table of completions must be usable, got {counted(len(files), 'table')} that cannot be read "
            f"({len(reader.unreadable)}), have no rows ({reader.empty}) or were written at an evaluation "
            f"({sum(note.count for note in notes)}): wait for the next logging step, or log completions at steps "
            "without an evaluation"
        )
    notes = [*file_notes(len(files), reader.unreadable, 0, reader.empty), *notes]
    rows = reader.rows(generations)
    chunk_R = np.repeat(np.arange(len(generations)), [len(one.prompt) for one in generations])
    grouping = consecutive_blocks(rows.prompt_R, chunk_R, reading.group_size, [one.place for one in generations])
    notes += grouping.notes
    advantage_R = np.concatenate([one.advantage for one in generations])
    notes += _advantages_that_do_not_fit(grouping.group_R, rows.reward_R, advantage_R, reader.only_reward)
    found = "given" if reading.group_size else "found"
    layout = Layout(
        kind="trl",
        files=len(files) - len(reader.unreadable) - reader.empty,
        rule=f"{TRL_RULE} (N = {grouping.group_size}, {found})",
        group_size=grouping.group_size,
        success_column=reader.success,
        success_threshold=reading.success_threshold,
        text_column="completion",
    )
    steps = {one.step for one in generations}
    truncated = {step: share for step, share in state.truncated.items() if step in steps}
    return Rollouts.of(rows, grouping.group_R, layout, notes, truncated)


def _number(file: Path) -> tuple[int, str]:
    digits = re.findall(r"\d+", file.stem)
    return (int(digits[-1]) if digits else -1, file.name)


class _Tables:
    """Reads one table after the other and keeps codes and numbers only, not the texts."""

    def __init__(self, reading: Reading, state: TrainerState) -> None:
        self.reading, self.state = reading, state
        self.generations: list[_Generation] = []
        self.unreadable: list[str] = []
        self.empty = 0
        self.success = ""
        self.only_reward = True
        self._codes: dict[str, int] = {}
        self._names: list[str] = []
        self._texts: dict[int, str] = {}  # of each id, the prompt that it names

    def read(self, file: Path) -> None:
        try:
            schema = pq.read_schema(file)
            found = [name for name in schema.names if not name.startswith("__index_level_")]
            if file.stat().st_size and pq.read_metadata(file).num_rows == 0:
                self.empty += 1
                return
            wanted = self._wanted(schema, found, file)
            table = pq.read_table(file, columns=[name for name in wanted if name in found])
        except (pa.ArrowException, OSError):
            self.unreadable.append(file.name)
            return
        step_R = self._steps(table, file)
        edges = [0, *(np.flatnonzero(np.diff(step_R)) + 1).tolist(), len(step_R)]
        for begin, end in pairwise(edges):
            part = table.slice(begin, end - begin)
            self.generations.append(self._generation(part, int(step_R[begin]), file.name))

    def _wanted(self, schema: pa.Schema, found: list[str], file: Path) -> list[str]:
        try:
            prompt = self.reading.id_column or "prompt"
            columns.named("--id-column" if self.reading.id_column else "the prompt", prompt, found)
            columns.named("the completion", "completion", found)
            if not self.success:
                self._choose_success(schema, found)
            columns.named("--success-column", self.success, found)
        except ValueError as error:
            raise ValueError(f"{file.name}: {error}") from None
        named = ("step", "prompt", prompt, "completion", self.success, RATE_COLUMN, WEIGHT_COLUMN, ADVANTAGE_COLUMN)
        return list(dict.fromkeys(named))

    def _choose_success(self, schema: pa.Schema, found: list[str]) -> None:
        numeric = [
            name
            for name in found
            if name not in (*_NOT_REWARDS, self.reading.id_column)
            and (
                pa.types.is_floating(kind := schema.field(name).type)
                or pa.types.is_integer(kind)
                or pa.types.is_boolean(kind)
            )
        ]
        rewards = [name for name in numeric if name in self.state.rewards] or numeric
        if (named := self.reading.success_column) is None:
            self.success = columns.one_success_column(rewards, found, "the table of completions")
        else:
            self.success = columns.named("--success-column", named, found)
            if named not in numeric:
                raise ValueError(
                    f"--success-column must name numbers, got {literal(named)} of type {schema.field(named).type}: "
                    f"name one of {', '.join(map(literal, numeric))}"
                )
        self.only_reward = rewards == [self.success]

    def _steps(self, table: pa.Table, file: Path) -> IntArray:
        if "step" not in table.column_names:
            return np.full(len(table), _number(file)[0], np.int64)
        values = table["step"].to_pylist()
        return np.array([columns.step(value, f"{file.name}, row {i}") for i, value in enumerate(values, 1)], np.int64)

    def _generation(self, part: pa.Table, step: int, place: str) -> _Generation:
        answers = [readable(value, "assistant") for value in part["completion"].to_pylist()]
        return _Generation(
            place=place,
            step=step,
            prompt=self._prompts(part, place),
            reward=_floats(part, self.success),
            boxed=np.array([boxed_code(text) for text in answers], np.int64),
            text=np.array([text_code(text) for text in answers], np.int64),
            rate=_floats(part, RATE_COLUMN),
            weight=_floats(part, WEIGHT_COLUMN),
            advantage=_floats(part, ADVANTAGE_COLUMN),
        )

    def _prompts(self, part: pa.Table, place: str) -> IntArray:
        column = self.reading.id_column or "prompt"
        values = part[column].to_pylist()
        texts = part["prompt"].to_pylist() if "prompt" in part.column_names else values
        codes = np.empty(len(values), np.int64)
        for row, (value, text) in enumerate(zip(values, texts, strict=True)):
            key = identity(columns.identifier(value, f"{place}, row {row + 1}"))
            code = self._codes.setdefault(key, len(self._names))
            if code == len(self._names):
                self._names.append(readable(value, "user"))
            if column != "prompt":
                named = identity(text)
                if self._texts.setdefault(code, named) != named:
                    raise ValueError(
                        f"an id must name one prompt, got two prompts for {literal(key)} of {column!r} ({place}, row "
                        f"{row + 1}): name another column with --id-column"
                    )
            codes[row] = code
        return codes

    def rows(self, generations: list[_Generation]) -> Rows:
        """The rows of some generations, one after another."""
        return Rows(
            prompts=tuple(self._names),
            step_R=np.repeat([one.step for one in generations], [len(one.prompt) for one in generations]),
            prompt_R=np.concatenate([one.prompt for one in generations]),
            reward_R=np.concatenate([one.reward for one in generations]),
            boxed_R=np.concatenate([one.boxed for one in generations]),
            text_R=np.concatenate([one.text for one in generations]),
            logged_rate_R=np.concatenate([one.rate for one in generations]),
            logged_weight_R=np.concatenate([one.weight for one in generations]),
        )


def _floats(table: pa.Table, name: str) -> FloatArray:
    """A column of numbers as float64, nan where it has none or is not there."""
    if name not in table.column_names:
        return np.full(len(table), np.nan)
    return np.array([columns.optional_number(value) for value in table[name].to_pylist()], np.float64)


def _train_generations(generations: list[_Generation], state: TrainerState) -> tuple[list[_Generation], list[Note]]:
    """Each generation of training once: without tables of evaluations, and without repeats of the one before."""
    kept: list[_Generation] = []
    evaluations = repeats = 0
    before, before_is_kept = b"", False
    for one in generations:
        digest = one.digest()
        again = digest == before
        if one.step in state.evaluated or (again and not before_is_kept):
            evaluations += 1
            before_is_kept = False
        elif again:
            repeats += 1
        else:
            kept.append(one)
            before_is_kept = True
        before = digest
    notes = []
    if repeats:
        text = f"{counted(repeats, 'table')} of a generation that served several steps: it counts once."
        notes.append(Note("repeated_generations", repeats, text))
    if evaluations:
        text = f"{counted(evaluations, 'table')} with rows of an evaluation, at which it was written: left out."
        notes.append(Note("evaluation_tables", evaluations, text))
    return kept, notes


def _advantages_that_do_not_fit(
    group_R: IntArray, reward_R: FloatArray, advantage_R: FloatArray, only_reward: bool
) -> list[Note]:
    """Groups whose logged advantages do not sum to 0, or differ between rollouts of equal reward."""
    known = (group_R != LEFT_OUT) & ~np.isnan(advantage_R)
    if not known.any():
        return []
    group, reward, advantage = group_R[known], reward_R[known], advantage_R[known]
    groups = int(group.max()) + 1
    size = np.bincount(group, np.abs(advantage), groups)
    wrong = np.abs(np.bincount(group, advantage, groups)) > _ADVANTAGE_TOLERANCE * np.maximum(size, 1.0)
    if only_reward:
        order = np.lexsort((advantage, reward, group))
        group, reward, advantage = group[order], reward[order], advantage[order]
        alike = (group[1:] == group[:-1]) & (reward[1:] == reward[:-1])
        differ = alike & (np.abs(advantage[1:] - advantage[:-1]) > _ADVANTAGE_TOLERANCE)
        wrong[group[1:][differ]] = True
    if not (count := int(wrong.sum())):
        return []
    return [
        Note(
            "advantages_do_not_fit",
            count,
            f"In {count} of {groups} groups the logged advantages do not sum to 0, or differ at equal reward. Either "
            "the group size is not the run's (pass it with --group-size), evaluations are mixed in, or advantages are "
            "not centred by group.",
        )
    ]
