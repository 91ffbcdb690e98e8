"""The rollouts of a run as arrays, in groups: what both readers make and everything else measures.

Axes: _R rollouts, _G groups, _C correct rollouts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fgrpo.diagnosis.answers import NO_ANSWER
from fgrpo.theory._validation import FloatArray

LEFT_OUT = -1
"""Group of a rollout that belongs to no complete group."""

IntArray = NDArray[np.int64]

_SAME_WEIGHT = 1e-5  # what float32 and a mean over ranks may change


@dataclass(frozen=True)
class Note:
    """Something about the run that its reader should know.

    Attributes:
        code: Name of the kind of note, stable.
        count: How many files, groups or rollouts it concerns; 0 where it concerns the run.
        text: One sentence or two, with the way out where there is one.
    """

    code: str
    count: int
    text: str


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def file_notes(files: int, unreadable: Sequence[str], partial: int, empty: int) -> list[Note]:
    """What is to be said of the files of a run.

    Args:
        files: How many there are.
        unreadable: Names of those that cannot be read.
        partial: How many end within a row.
        empty: How many have no rows.
    """
    notes = []
    if unreadable:
        listed = ", ".join(unreadable[:3]) + (", ..." if len(unreadable) > 3 else "")
        text = (
            f"{len(unreadable)} of {counted(files, 'file')} cannot be read ({listed}), damaged or still being written: "
            "every number here is of the rest of the run only."
        )
        notes.append(Note("unreadable_files", len(unreadable), text))
    if partial:
        text = f"The last row of {counted(partial, 'file')} is incomplete and left out: more is still being written."
        notes.append(Note("partial_files", partial, text))
    if empty:
        notes.append(Note("empty_files", empty, f"{counted(empty, 'file')} without any row."))
    return notes


@dataclass(frozen=True)
class Layout:
    """How a run was read.

    Attributes:
        kind: 'trl' (completions_*.parquet) or 'rows' (JSONL, CSV or parquet with a row per rollout).
        files: Number of files that were read.
        rule: The grouping rule that was applied, in words.
        group_size: N as given or found; None where groups are as large as they come.
        success_column: Column that says which rollouts are right.
        success_threshold: A rollout is right if that column is above it, strictly.
        text_column: Column of completions or answers, or None.
    """

    kind: str
    files: int
    rule: str
    group_size: int | None
    success_column: str
    success_threshold: float
    text_column: str | None


@dataclass(frozen=True)
class Rows:
    """Rollouts in the order of their files, [R]; codes of prompts count from 0 in the order of their appearance.

    Attributes:
        prompts: Readable names of the prompts, by code.
        step_R: Training step as logged.
        prompt_R: Code of the prompt.
        reward_R: The success column; nan for a rollout without reward.
        boxed_R: Code of the last boxed answer.
        text_R: Code of the whole text.
        logged_rate_R: empirical_success_rate as the run logged it, or nan.
        logged_weight_R: focal_weight as the run logged it, or nan.
    """

    prompts: tuple[str, ...]
    step_R: IntArray
    prompt_R: IntArray
    reward_R: FloatArray
    boxed_R: IntArray
    text_R: IntArray
    logged_rate_R: FloatArray
    logged_weight_R: FloatArray


@dataclass(frozen=True)
class Rollouts:
    """A run in groups with at least one scored rollout, in the order of their steps.

    Attributes:
        layout: How it was read.
        notes: What was noted while reading.
        prompts: Readable names of the prompts, by code.
        step_G: Step.
        prompt_G: Code of the prompt.
        rows_G: Rollouts.
        scored_G: Rollouts with a reward, >= 1.
        correct_G: X, rollouts above the threshold.
        logged_rate_G: empirical_success_rate as logged, or nan.
        logged_weight_G: focal_weight as logged, or nan; nan also where it differs within the group.
        mixed_weight_G: Whether the logged weight differs within the group.
        answer_group_C: Group of each correct rollout.
        boxed_C: Code of its boxed answer.
        text_C: Code of its text.
        rewards: How often each reward value came, by value.
        truncated: Share of truncated rollouts by step, where the run tells.
    """

    layout: Layout
    notes: tuple[Note, ...]
    prompts: tuple[str, ...]
    step_G: IntArray
    prompt_G: IntArray
    rows_G: IntArray
    scored_G: IntArray
    correct_G: IntArray
    logged_rate_G: FloatArray
    logged_weight_G: FloatArray
    mixed_weight_G: NDArray[np.bool_]
    answer_group_C: IntArray
    boxed_C: IntArray
    text_C: IntArray
    rewards: Mapping[float, int]
    truncated: Mapping[int, float]

    @property
    def empirical_success_rate_G(self) -> FloatArray:
        """X over scored rollouts."""
        return self.correct_G / self.scored_G

    @property
    def active_G(self) -> NDArray[np.bool_]:
        """Some scored rollouts right, some wrong."""
        return (self.correct_G > 0) & (self.correct_G < self.scored_G)

    @classmethod
    def of(
        cls, rows: Rows, group_R: IntArray, layout: Layout, notes: list[Note], truncated: Mapping[int, float]
    ) -> Self:
        """Rollouts from rows and the group of each, numbered from 0; rows of `LEFT_OUT` and groups without reward go.

        Raises:
            ValueError: If no group with a reward is left.
        """
        scored_R = ~np.isnan(rows.reward_R)
        correct_R = rows.reward_R > layout.success_threshold  # nan is above nothing
        taken = group_R != LEFT_OUT
        group = group_R[taken]
        groups = int(group.max(initial=-1)) + 1
        rows_G, scored_G, correct_G = (
            np.bincount(group, part[taken], groups).astype(np.int64)
            for part in (np.ones(len(group_R)), scored_R, correct_R)
        )
        first_G = np.full(groups, len(group_R))
        np.minimum.at(first_G, group, np.flatnonzero(taken))
        known_G = scored_G > 0
        notes = [*notes, *_unscored(int((~scored_R & taken).sum()), int((~known_G).sum()))]
        if not known_G.any():
            raise ValueError(
                f"at least one group must have a reward, got {groups} groups without any in "
                f"{layout.success_column!r}: name the column of the reward with --success-column"
            )
        order = np.argsort(rows.step_R[first_G[known_G]], kind="stable")
        kept = np.flatnonzero(known_G)[order]
        first = first_G[kept]
        place = np.full(groups, LEFT_OUT)
        place[kept] = np.arange(len(kept))
        answered = taken & correct_R
        weight = rows.logged_weight_R[taken]
        lowest, highest = np.full(groups, np.inf), np.full(groups, -np.inf)
        np.minimum.at(lowest, group, np.nan_to_num(weight, nan=np.inf))
        np.maximum.at(highest, group, np.nan_to_num(weight, nan=-np.inf))
        mixed = (highest - lowest)[kept] > _SAME_WEIGHT
        values, copies = np.unique(rows.reward_R[scored_R], return_counts=True)
        return cls(
            layout=layout,
            notes=tuple(notes),
            prompts=rows.prompts,
            step_G=rows.step_R[first],
            prompt_G=rows.prompt_R[first],
            rows_G=rows_G[kept],
            scored_G=scored_G[kept],
            correct_G=correct_G[kept],
            logged_rate_G=rows.logged_rate_R[first],
            logged_weight_G=np.where(mixed, np.nan, rows.logged_weight_R[first]),
            mixed_weight_G=mixed,
            answer_group_C=place[group_R[answered]],
            boxed_C=rows.boxed_R[answered],
            text_C=rows.text_R[answered],
            rewards=dict(zip(values.tolist(), copies.tolist(), strict=True)),
            truncated=dict(truncated),
        )

    @property
    def has_text(self) -> bool:
        """Whether any correct rollout has text."""
        return bool((self.text_C != NO_ANSWER).any())


def _unscored(rollouts: int, groups: int) -> list[Note]:
    notes = []
    if rollouts:
        text = f"{counted(rollouts, 'rollout')} without a reward: counted neither as right nor as wrong."
        notes.append(Note("unscored_rollouts", rollouts, text))
    if groups:
        text = f"{counted(groups, 'group')} without any reward: left out."
        notes.append(Note("unscored_groups", groups, text))
    return notes
