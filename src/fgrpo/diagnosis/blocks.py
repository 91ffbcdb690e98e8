"""Which rollouts form a group: blocks of consecutive rows in TRL's tables, equal keys in plain rows."""

from dataclasses import dataclass
from math import gcd

import numpy as np

from fgrpo.diagnosis.rollouts import LEFT_OUT, IntArray, Note, counted

TRL_RULE = (
    "a generation logs the rows of one prompt as consecutive blocks of N; within one logged step consecutive rows with "
    "an equal prompt (text, or chat list message by message) are cut into such blocks, so the same prompt twice in a "
    "step gives two groups"
)
ROW_RULE = "rollouts of the same prompt and step form a group, wherever they stand in the file"
ROW_RULE_SIZE = ROW_RULE + "; every N of them, in the file's order, form one"
ROW_RULE_COLUMN = "rollouts of the same prompt, step and group column form a group, wherever they stand in the file"


@dataclass(frozen=True)
class Grouping:
    """Group of each rollout, numbered from 0 (`LEFT_OUT`: of none), N if there is one, and what was noted."""

    group_R: IntArray
    group_size: int | None
    notes: tuple[Note, ...]


def consecutive_blocks(prompt_R: IntArray, chunk_R: IntArray, group_size: int | None, places: list[str]) -> Grouping:
    """Groups of the rows of TRL's tables.

    Without `group_size` N is the largest number of which every run of equal prompts is a multiple. A run at the edge
    of a chunk that is no multiple of N has lost rows: what is left of its group at that edge is left out.

    Args:
        prompt_R: Code of the prompt of each row.
        chunk_R: Number of the generation that a row belongs to, rising from 0.
        group_size: N, or None.
        places: Name of each chunk, for messages.

    Raises:
        ValueError: If `group_size` is 1, a run inside a chunk is no multiple of N, or no N above 1 fits.

    Source: this project.
    """
    if group_size == 1:
        raise ValueError(
            "group_size must be at least 2 in a run of TRL, got 1: pass its num_generations, or leave --group-size out"
        )
    starts = np.flatnonzero(np.diff(prompt_R, prepend=-1) | np.diff(chunk_R, prepend=-1))
    lengths = np.diff(starts, append=len(prompt_R))
    chunk = chunk_R[starts]
    opens, closes = np.diff(chunk, prepend=-1) > 0, np.diff(chunk, append=chunk[-1] + 1) > 0
    inside = ~opens & ~closes
    first_row = starts - np.searchsorted(chunk_R, chunk)  # within its chunk

    def rows(run: int) -> str:
        last = first_row[run] + lengths[run]
        return f"{places[chunk[run]]}, rows {first_row[run] + 1} to {last}"

    n = group_size
    if n is None:
        n = gcd(*lengths.tolist())
        if n == 1 and inside.any():
            n = gcd(*lengths[inside].tolist())
        if n == 1:
            single = int(np.argmin(lengths))
            raise ValueError(
                f"rows of one prompt must stand in blocks of one size N >= 2, got a run of {lengths[single]} "
                f"({rows(single)}) that fits no such size: pass N with --group-size, or name the column that tells "
                "prompts apart with --id-column"
            )
    wrong = np.flatnonzero((lengths % n > 0) & inside)
    if len(wrong):
        raise ValueError(
            f"rows of one prompt must stand in blocks of N = {n}, got a run of {lengths[wrong[0]]} "
            f"({rows(int(wrong[0]))}): pass the right N with --group-size, or name the column that tells prompts apart "
            "with --id-column"
        )
    rest = lengths % n
    lost_front = np.where(opens, rest, 0)
    whole = lengths - rest
    place = np.arange(len(prompt_R)) - np.repeat(starts + lost_front, lengths)
    complete = (place >= 0) & (place < np.repeat(whole, lengths))
    before = np.concatenate(([0], np.cumsum(whole // n)))[:-1]
    group = np.where(complete, np.repeat(before, lengths) + place // n, LEFT_OUT)
    if not whole.any():
        raise ValueError(
            f"at least one block of N = {n} rows must be there, got none in {len(prompt_R)} rows: pass the right N "
            "with --group-size"
        )
    notes = []
    if cut := int((rest > 0).sum()):
        notes.append(
            Note(
                "incomplete_groups",
                cut,
                f"{counted(cut, 'group')} of fewer than N = {n} rollouts at the edge of a logging step: left out. Rows "
                "of one group span logging steps.",
            )
        )
    return Grouping(group.astype(np.int64), n, tuple(notes))


def equal_keys(key_R: IntArray, step_R: IntArray, group_size: int | None, *, named_groups: bool) -> Grouping:
    """Groups of plain rows: those of equal key (prompt and group column) and step.

    Args:
        key_R: Code of prompt and group column of each row.
        step_R: Step of each row.
        group_size: N: every N rows form a group, and groups of fewer are left out. None takes groups as they come.
        named_groups: Whether the file has a group column, so that a larger group is no accident.

    Raises:
        ValueError: If without `group_size` a group has a multiple of the usual number of rows (the same prompt twice
            in a step, which nothing parts), or with it no group is complete.

    Source: this project.
    """
    _, visit_R, rows_V = np.unique(np.stack((step_R, key_R)), axis=1, return_inverse=True, return_counts=True)
    visit_R = visit_R.reshape(-1)
    usual = int(np.argmax(np.bincount(rows_V))) if group_size is None else group_size
    if group_size is None and not named_groups and usual > 1:
        twice = np.flatnonzero((rows_V > usual) & (rows_V % usual == 0))
        if len(twice):
            row = int(np.argmax(visit_R == twice[0]))
            raise ValueError(
                f"a prompt must come once in a step, or its groups be told apart, got {rows_V[twice[0]]} rollouts of "
                f"the prompt in row {row + 1} at step {step_R[row]} where {usual} are usual: pass N with --group-size, "
                "or name the column that tells groups apart with --group-column"
            )
    order = np.argsort(visit_R, kind="stable")
    begin_V = np.cumsum(rows_V) - rows_V
    place_R = np.empty(len(key_R), np.int64)
    place_R[order] = np.arange(len(key_R)) - np.repeat(begin_V, rows_V)
    split = _spanning(key_R, step_R, visit_R, rows_V, usual)
    notes = [_spans(split, left_out=group_size is not None)] if split else []
    if group_size is None:
        return Grouping(visit_R.astype(np.int64), None, tuple(notes))
    whole_V = rows_V // group_size
    if not whole_V.any():
        raise ValueError(
            f"at least one group must have N = {group_size} rollouts, got {rows_V.max()} at most for one prompt in a "
            "step: pass the right N with --group-size"
        )
    before_V = np.cumsum(whole_V) - whole_V
    complete = place_R < (whole_V * group_size)[visit_R]
    group = np.where(complete, before_V[visit_R] + place_R // group_size, LEFT_OUT)
    if cut := int((rows_V % group_size > 0).sum()):
        text = f"{counted(cut, 'group')} of fewer than N = {group_size} rollouts: left out."
        notes.insert(0, Note("incomplete_groups", cut, text))
    return Grouping(group.astype(np.int64), group_size, tuple(notes))


def _spanning(key_R: IntArray, step_R: IntArray, visit_R: IntArray, rows_V: IntArray, n: int) -> int:
    """Pairs of parts that a prompt has in two neighbouring logged steps and that together make a group of n."""
    steps = np.unique(step_R)
    first_R = np.unique(visit_R, return_index=True)[1]
    key_V, time_V, part_V = key_R[first_R], np.searchsorted(steps, step_R[first_R]), rows_V % n
    order = np.lexsort((time_V, key_V))
    key, time, part = key_V[order], time_V[order], part_V[order]
    follows = (key[1:] == key[:-1]) & (time[1:] == time[:-1] + 1)
    return int((follows & (part[1:] > 0) & (part[:-1] > 0) & (part[1:] + part[:-1] == n)).sum())


def _spans(pairs: int, *, left_out: bool) -> Note:
    kept = "Both parts are left out" if left_out else "Each part counts as a group"
    return Note(
        "groups_span_steps",
        pairs,
        f"In {counted(pairs, 'place')} a prompt has part of a group in one logged step and the rest in the next: "
        f"groups seem to span logging steps. {kept}; give all rollouts of a group the step of their generation.",
    )
