"""Prompts over a run, small enough to be worked out by hand; the strict threshold; which answers are told apart."""

import json
from pathlib import Path
from typing import Any

import pytest

from fgrpo.diagnosis.columns import Reading
from fgrpo.diagnosis.diagnose import diagnose
from fgrpo.diagnosis.model import Diagnosis
from fgrpo.diagnosis.text import diagnosis_text
from reference.diagnosis import regime, share_interval

N, RHO = 4, 0.25


def judge(folder: Path, groups: list[tuple[str, int, str, list[str]]], **options: Any) -> Diagnosis:
    """Groups as (prompt, step, marks, texts): a mark is the reward 0, 1 or 5 (a half)."""
    path = folder / "run.jsonl"
    rewards = {"0": 0.0, "1": 1.0, "5": 0.5}
    path.write_text(
        "".join(
            json.dumps({"id": prompt, "step": step, "reward": rewards[mark], "completion": text}) + "\n"
            for prompt, step, marks, texts in groups
            for mark, text in zip(marks, texts, strict=True)
        )
    )
    return diagnose(path, rare_fractions=[RHO], windows=3, **options)


def test_histories_by_hand(tmp_path: Path) -> None:
    texts = ["a", "b", "b", "c"]
    found = judge(
        tmp_path,
        [
            ("hard", 0, "1000", texts),
            ("hard", 2, "0000", texts),
            ("easy", 0, "1110", texts),
            ("easy", 1, "1111", texts),
            ("rest", 1, "0110", texts),
        ],
    )
    names = [one.prompt for one in found.prompts]
    # (3/4)^1 / 2 groups, (3/4)^3 / 2, (3/4)^2
    assert {one.prompt: one.tail_miss[0] for one in found.prompts} == pytest.approx(
        {"hard": 0.375, "easy": 0.2109375, "rest": 0.5625}
    )
    assert names == ["rest", "hard", "easy"]
    rest, hard, easy = found.prompts
    assert [(one.groups, one.rollouts, one.correct) for one in (hard, easy, rest)] == [(2, 8, 1), (2, 8, 7), (1, 4, 2)]
    assert [one.distinct_correct for one in (hard, easy, rest)] == [1, 3, 1]
    windows = [[(part.window, part.correct, part.rollouts) for part in one.windows] for one in (hard, easy, rest)]
    assert windows == [[(0, 1, 4), (2, 0, 4)], [(0, 3, 4), (1, 4, 4)], [(1, 2, 4)]]
    limits = hard.windows[0].success_rate
    assert (limits.estimate, limits.lower, limits.upper) == pytest.approx(share_interval(1, 4))
    # of the last window that saw them, at (X + 1) / (n + 2)
    rates = {"hard": 1 / 6, "easy": 5 / 6, "rest": 3 / 6}
    expected = {name: regime(rate, RHO * rate, N, 0.5) for name, rate in rates.items()}
    assert {one.prompt: one.regimes[0] for one in found.prompts} == expected
    assert {"inactive", "covered"} <= set(expected.values())


def test_a_reward_at_the_threshold_is_not_right(tmp_path: Path) -> None:
    groups = [("a", 0, "5551", ["t"] * 4), ("a", 1, "0151", ["t"] * 4)]
    assert judge(tmp_path, groups).run.success_rate.estimate == (1 / 4 + 2 / 4) / 2
    below = judge(tmp_path, groups, reading=Reading(success_threshold=0.49))
    assert below.run.success_rate.estimate == (4 / 4 + 3 / 4) / 2


@pytest.mark.parametrize(
    ("texts", "answer", "kind", "distinct"),
    [
        ([r"x \boxed{1}", r"y \boxed{ 1 }", "z", "w"], "auto", "boxed", 1),  # half of the right ones have a box
        ([r"x \boxed{1}", "y", "z", "w"], "auto", "text", 4),
        ([r"x \boxed{1}", "y", "z", "w"], "boxed", "boxed", 1),
        ([r"x \boxed{1}", r"y \boxed{1}", r"z \boxed{2}", r"x \boxed{1}"], "text", "text", 3),
    ],
)
def test_which_answers_are_told_apart(tmp_path: Path, texts: list[str], answer: str, kind: str, distinct: int) -> None:
    found = judge(tmp_path, [("a", 0, "1111", texts), ("b", 0, "1000", texts)], answer=answer)
    assert found.answer == kind
    assert {one.prompt: one.distinct_correct for one in found.prompts}["a"] == distinct
    text = diagnosis_text(found)
    assert (r"by their last \boxed{}" in text) == (kind == "boxed")
    assert ("--answer text tells solutions apart" in text) == (kind == "boxed" and distinct == 1)
