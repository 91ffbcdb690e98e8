"""Verdicts on logged weights, and each warning: there when it should be, and only then."""

import json
import random
from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from fgrpo.diagnosis.columns import Reading
from fgrpo.diagnosis.diagnose import diagnose
from fgrpo.diagnosis.model import Diagnosis
from fgrpo.diagnosis.text import diagnosis_text


def judge(folder: Path, rows: list[dict[str, Any]], **options: Any) -> Diagnosis:
    path = folder / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return diagnose(path, **options)


def run(
    rates: Callable[[int], float], *, n: int = 8, steps: int = 12, weight: Callable[[float, int], float] | None = None
) -> list[dict[str, Any]]:
    """4 prompts a step at a success rate that depends on the step; the weight of success rate and step."""
    generator = random.Random(2)
    rows = []
    for step in range(steps):
        for prompt in range(4):
            rewards = [float(generator.random() < rates(step)) for _ in range(n)]
            extra = {} if weight is None else {"focal_weight": weight(sum(rewards) / n, step)}
            rows += [{"id": prompt, "step": step, "reward": reward} | extra for reward in rewards]
    return rows


@pytest.mark.parametrize(
    ("weight", "verdict", "gamma"),
    [
        (lambda rate, step: (1 - rate) ** 1.5, "focal", 1.5),
        (lambda rate, step: round((1 - rate) ** 0.5, 4), "focal", 0.5),
        (lambda rate, step: (1 + step / 10) * (1 - rate) ** 1.5, "focal, renormalised", 1.5),
        (lambda rate, step: 1.0, "no weight", 0.0),
        (lambda rate, step: 0.4, "constant", None),
        (lambda rate, step: 1 + 2 * (1 - rate), "not focal", None),
        (lambda rate, step: 1 / (1 - rate + 0.1), "not focal", None),
        (lambda rate, step: -1.0, "not focal", None),
        (lambda rate, step: float(rate < 0.5), "not focal", None),
    ],
)
def test_verdicts(tmp_path: Path, weight: Callable[[float, int], float], verdict: str, gamma: float | None) -> None:
    found = judge(tmp_path, run(lambda step: 0.5, weight=weight))
    weights = found.logged_weights
    assert weights is not None
    assert weights.verdict == verdict
    if gamma is not None:
        assert weights.gamma == pytest.approx(gamma, abs=1e-3)
    assert weights.success_rate_from == "recomputed"
    assert ("weights_not_focal" in codes(found)) == (verdict in ("not focal", "constant"))
    assert "Logged weights: " in diagnosis_text(found)


def test_two_rollouts_tell_no_focal_weight_from_a_constant(tmp_path: Path) -> None:
    weights = judge(tmp_path, run(lambda step: 0.5, n=2, weight=lambda rate, step: (1 - rate) ** 2)).logged_weights
    assert weights is not None
    assert (weights.verdict, weights.gamma) == ("cannot tell", pytest.approx(2.0))
    never = judge(tmp_path, run(lambda step: 0.0, weight=lambda rate, step: 1.0)).logged_weights
    assert never is not None
    assert (never.verdict, never.groups) == ("cannot tell", 0)


def test_weights_that_differ_within_a_group_are_not_focal(tmp_path: Path) -> None:
    rows = run(lambda step: 0.5, weight=lambda rate, step: 1 - rate)
    rows[0]["focal_weight"] += 0.1
    weights = judge(tmp_path, rows).logged_weights
    assert weights is not None
    assert weights.verdict == "not focal"


def test_a_success_rate_that_the_run_judged_otherwise(tmp_path: Path) -> None:
    rows = run(lambda step: 0.5, weight=lambda rate, step: rate**2)
    for row in rows:  # the run counts what is here wrong: its rates are 1 - X/N
        row["empirical_success_rate"] = 1 - row["focal_weight"] ** 0.5
    found = judge(tmp_path, rows)
    weights = found.logged_weights
    assert weights is not None
    assert (weights.verdict, weights.success_rate_from) == ("focal", "logged")
    assert weights.gamma == pytest.approx(2.0)
    assert "other_success" in codes(found)


def codes(found: Diagnosis) -> set[str]:
    return {note.code for note in found.warnings}


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        (run(lambda step: 0.5), {}, set()),
        (run(lambda step: 0.02), {}, {"zero_variance_groups"}),
        (run(lambda step: min(0.3 + step / 15, 1.0)), {}, {"success_near_one"}),
        (run(lambda step: 0.95), {}, {"zero_variance_groups"}),  # high, but not rising
        (run(lambda step: 0.5, n=2), {}, {"group_too_small", "zero_variance_groups"}),
        (run(lambda step: 0.5, n=3), {}, {"group_too_small"}),
        (run(lambda step: 0.5, n=1), {}, {"group_too_small"}),  # no advice about groups that are not the run's
        (run(lambda step: 0.5), {"reading": Reading(group_size=1)}, {"group_too_small"}),
        (run(lambda step: 0.5), {"reading": Reading(success_threshold=1.0)}, {"threshold_outside_rewards"}),
        (run(lambda step: 0.5), {"reading": Reading(success_threshold=-0.1)}, {"threshold_outside_rewards"}),
        (run(lambda step: 0.5), {"reading": Reading(success_threshold=0.0)}, set()),
        (run(lambda step: 0.0), {}, {"zero_variance_groups"}),  # no reward is above .5, but that is the run's doing
        (run(lambda step: 0.5)[:-1], {}, {"group_size_varies"}),
        (
            [row | {"reward": row["reward"] / 2 + row["id"] / 8} for row in run(lambda step: 0.5)],
            {},
            {"reward_not_binary"},
        ),
        ([row | {"reward": 2 * row["reward"] - 1} for row in run(lambda step: 0.5)], {}, set()),
    ],
)
def test_warnings(tmp_path: Path, rows: list[dict[str, Any]], options: dict[str, Any], expected: set[str]) -> None:
    found = judge(tmp_path, rows, **options)
    assert codes(found) == expected
    text = diagnosis_text(found)
    assert ("Warnings: none" in text) == (not expected)
    assert all(f"WARNING {code}: " in text for code in expected)


def test_trends(tmp_path: Path) -> None:
    # 5 windows of 12 steps with 48 groups each: a false 'rising' or 'falling' comes with probability .05
    rising = judge(tmp_path, run(lambda step: 0.2 + step / 100, steps=60), windows=5)
    assert {trend.quantity: trend.direction for trend in rising.trends}["success_rate"] == "rising"
    level = judge(tmp_path, run(lambda step: 0.5, steps=60), windows=5)
    assert {trend.quantity: trend.direction for trend in level.trends}["success_rate"] == "not clear"
    assert judge(tmp_path, run(lambda step: 0.5, steps=1)).trends == ()


def test_a_run_without_an_active_group(tmp_path: Path) -> None:
    found = judge(tmp_path, run(lambda step: 1.0))
    assert found.run.active_share.estimate == 0.0
    assert all(isnan(row.mean_weight_given_active) for row in found.what_if)
    assert found.to_dict()["what_if"][0]["strength"][0]["matched_scale"] is None
    assert "100.0% all right" in " ".join(diagnosis_text(found).split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rare_fractions": [1.5]}, "rare_fraction must be between 0 and 1, got 1.5"),
        ({"gammas": [-1.0]}, "gamma must be finite and at least 0, got -1"),
        ({"level": 0.0}, "level must be strictly between 0 and 1"),
        ({"windows": 0}, "windows must be a whole number of at least 1"),
        ({"answer": "box"}, "answer must be one of auto, boxed, text, got 'box'"),
        ({"reading": Reading(success_threshold=float("nan"))}, "success_threshold must be finite"),
        ({"reading": Reading(group_size=0)}, "group_size must be a whole number of at least 1"),
    ],
)
def test_arguments(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        judge(tmp_path, run(lambda step: 0.5), **options)


def test_no_rare_fraction_and_no_gamma(tmp_path: Path) -> None:
    found = judge(tmp_path, run(lambda step: 0.5), rare_fractions=[], gammas=[])
    assert found.run.tail_miss == ()
    assert [row.gamma for row in found.what_if] == [0.0]
    assert "Tail misses" not in diagnosis_text(found)
