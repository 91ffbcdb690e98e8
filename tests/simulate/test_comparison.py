"""Matched progress: the KL to the start against dense policies, levels by hand, arms whose answer is known."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.simulate import PolicyClass, PolicyConfig, RunConfig, run_sweep, simulate
from fgrpo.simulate.comparison import (
    BASELINE,
    CONSTANT_SCALE,
    FOCAL,
    LOW_LEARNING_RATE,
    Arm,
    against,
    at_level,
    compare_arms,
    comparison_arms,
    comparison_text,
    start_kl,
)
from fgrpo.simulate.policy import initial_logits, softmax

SMALL = PolicyConfig(actions=60, correct=20)


# the KL to the start


@pytest.mark.parametrize(
    "policy",
    [
        SMALL,
        PolicyConfig(actions=50, correct=30, anchor_logit=-2.0, correct_logit=1.5, wrong_logit=1.0),
        PolicyConfig(actions=9, correct=1),
        PolicyConfig(classes=(PolicyClass(5, 2.0, True), PolicyClass(30, -1.0, False), PolicyClass(4, -1.0, False))),
        PolicyConfig(classes=(PolicyClass(1, 2.0, True), PolicyClass(6, 1.0, True), PolicyClass(30, -1.0, False))),
    ],
)
def test_kl_from_the_records_is_that_of_the_dense_policies(policy: PolicyConfig) -> None:
    config = RunConfig(16, steps=60, record_every=20, policy=policy, seed=3)
    run = simulate(config, engine="reference", snapshots=config.recorded_steps)
    start = softmax(initial_logits(policy))
    dense = [float(np.sum(p * np.log(p / start))) for p in run.snapshots]
    got = start_kl(policy, run.entropy, run.correct_mass, run.anchor_mass)
    np.testing.assert_allclose(got, dense, rtol=1e-10, atol=1e-13)
    assert got[-1] > 1e-3  # something to see
    # the other direction is another number
    other_direction = float(np.sum(start * np.log(start / run.snapshots[-1])))
    assert got[-1] != pytest.approx(other_direction, rel=1e-3)


def test_kl_is_zero_at_the_start_and_never_negative() -> None:
    run = simulate(RunConfig(2, steps=1, policy=PolicyConfig()), engine="sparse")
    kl = start_kl(PolicyConfig(), run.entropy, run.correct_mass, run.anchor_mass)
    assert 0.0 <= kl[0] < 1e-12


@pytest.mark.parametrize(
    "classes",
    [
        ((1, 5.0, True), (3, 3.0, True), (3, 2.0, True), (9, 0.0, False)),
        ((2, 5.0, True), (3, 3.0, True), (9, 0.0, False)),
        ((4, 3.0, True), (9, 0.0, False), (1, 1.0, False)),
    ],
)
def test_start_that_the_records_cannot_tell_apart_is_refused(classes: tuple[tuple[int, float, bool], ...]) -> None:
    policy = PolicyConfig(classes=tuple(PolicyClass(*one) for one in classes))
    half = np.array([0.5])
    with pytest.raises(ValueError, match="the KL to the start needs a start with one logit for the wrong actions"):
        start_kl(policy, half, half, half / 2)


# levels


def test_level_is_read_where_it_is_first_reached() -> None:
    progress, outcome = np.array([0.0, 2.0, 1.0, 4.0]), np.array([1.0, 0.5, 0.6, 0.0])
    assert at_level(progress, outcome, -1.0) == 1.0
    assert at_level(progress, outcome, 0.0) == 1.0
    assert at_level(progress, outcome, 1.0) == 0.75  # and not .6 on the way back
    assert at_level(progress, outcome, 2.0) == 0.5
    assert at_level(progress, outcome, 3.0) == pytest.approx(0.2)
    assert at_level(progress, outcome, 4.0) == 0.0
    assert math.isnan(at_level(progress, outcome, 4.1))


@given(st.lists(st.tuples(st.floats(1e-3, 10), st.floats(-5, 5)), min_size=2, max_size=9), st.floats(0, 1))
def test_of_progress_that_only_grows_it_is_plain_interpolation(steps: list[tuple[float, float]], part: float) -> None:
    progress, outcome = np.cumsum([one for one, _ in steps]), np.array([two for _, two in steps])
    level = float(progress[0] + part * (progress[-1] - progress[0]) * (1 - 1e-12))
    assert at_level(progress, outcome, level) == pytest.approx(np.interp(level, progress, outcome), abs=1e-9)


# arms


def test_arms_are_baseline_weights_and_controls_of_the_same_step_size() -> None:
    arms = comparison_arms(
        group_sizes=(2, 4),
        gammas=(0.5, 1),
        seeds=range(3),
        success_estimates=("empirical", "population"),
        learning_rate=0.1,
        steps=7,
    )
    assert [arm.label for arm in arms] == [
        "baseline",
        *("focal 0.5", "focal 0.5, population rate", "focal 1", "focal 1, population rate"),
        *("low learning rate 0.5", "low learning rate 1", "constant scale 1"),
    ]
    for arm in arms:
        first = arm.runs[0]
        assert {(run.group_size, run.seed) for run in arm.runs} == {(n, seed) for n in (2, 4) for seed in range(3)}
        assert len({replace(run, group_size=2, seed=0) for run in arm.runs}) == 1
        assert first.gamma == (arm.gamma if arm.kind == FOCAL else 0)
        assert first.success_estimate == arm.success_estimate
        assert (first.weight == "constant") == (arm.kind == CONSTANT_SCALE)
        expected = {0.5: 0.0679061, 1.0: 0.05}[arm.gamma] if arm.kind == LOW_LEARNING_RATE else 0.1
        assert first.update.learning_rate == pytest.approx(expected, rel=1e-6)
    assert arms[-1].runs[0].weight_scale == pytest.approx(0.5)
    assert len({run.run_id for arm in arms for run in arm.runs}) == sum(len(arm.runs) for arm in arms)


@pytest.mark.parametrize("gammas", [(), (0.0, 1.0), (-1.0,), (math.nan,)])
def test_arms_without_a_weight_are_refused(gammas: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="gamma must be at least one focal exponent above 0"):
        comparison_arms(group_sizes=(2,), gammas=gammas)


def line(run: RunConfig, speed: float, kept: float) -> pd.DataFrame:
    """Q_pos grows by `speed` of what is missing; M_ret falls on a line in Q_pos, from 1 to `kept` at Q_pos 1."""
    step = np.array(run.recorded_steps)
    done = speed * step / run.steps + 0.001 * run.seed
    return pd.DataFrame(
        {
            "run_id": run.run_id,
            "step": step,
            "correct_mass": 0.6 + 0.4 * done,
            "retained_mass": 1 - (1 - kept) * done,
            "correct_entropy": 5 * (1 - done),
            "entropy": 4.0 - done,
            "anchor_mass": 0.1,
        }
    )


def known_arms(fast: float, slow: float, kept: float) -> tuple[pd.DataFrame, list[Arm]]:
    """The baseline goes `fast` to .2, the focal arm goes `slow` to `kept`; no controls."""
    baseline, focal, *_ = comparison_arms(group_sizes=(8,), gammas=(1.0,), seeds=range(4), steps=100, policy=SMALL)
    rows = [line(run, fast, 0.2) for run in baseline.runs] + [line(run, slow, kept) for run in focal.runs]
    return pd.concat(rows), [baseline, focal]


def select(table: pd.DataFrame, progress: str, level: float, kind: str, outcome: str = "retained_mass") -> pd.Series:
    chosen = (table["progress"] == progress) & np.isclose(table["level"], level) & (table["kind"] == kind)
    [(_, row)] = table[chosen & (table["outcome"] == outcome)].iterrows()
    return row


def test_an_arm_that_is_only_slower_gains_at_equal_cost_and_not_at_equal_progress() -> None:
    table = compare_arms(*known_arms(fast=0.9, slow=0.45, kept=0.2), levels={"correct_mass": (0.7, 0.75, 0.9)})
    at_equal_cost = select(table, "rollouts", 800, FOCAL)
    assert at_equal_cost["gain"] == pytest.approx(0.8 * 0.45)
    assert at_equal_cost["gain_low"] > 0.3
    matched = select(table, "correct_mass", 0.7, FOCAL)
    assert matched["gain"] == pytest.approx(0.0, abs=1e-12)
    assert matched["mean"] == pytest.approx(0.8)
    assert matched["step"] == pytest.approx(100 * (0.25 - 0.0015) / 0.45)
    never = select(table, "correct_mass", 0.9, FOCAL)
    assert (never["reached"], never["seeds"]) == (0, 4)
    assert np.isnan([never["mean"], never["gain"], never["step"]]).all()
    assert select(table, "correct_mass", 0.9, BASELINE)["reached"] == 4
    assert math.isnan(select(table, "correct_mass", 0.9, BASELINE)["gain"])


def test_an_arm_that_really_keeps_more_gains_at_equal_progress() -> None:
    results, arms = known_arms(fast=0.9, slow=0.45, kept=0.6)
    table = compare_arms(results, arms, levels={"correct_mass": (0.7,)})
    assert select(table, "correct_mass", 0.7, FOCAL)["gain"] == pytest.approx(0.25 * 0.4)
    assert select(table, "correct_mass", 0.7, FOCAL, "correct_entropy")["gain"] == pytest.approx(0.0, abs=1e-12)
    # the order of rows means nothing
    shuffled = compare_arms(results.sample(frac=1, random_state=0), arms, levels={"correct_mass": (0.7,)})
    pd.testing.assert_frame_equal(shuffled, table)


def test_arms_can_be_compared_to_another_than_the_baseline() -> None:
    results, arms = known_arms(fast=0.9, slow=0.45, kept=0.6)
    turned = against(arms, "focal 1")
    assert turned == arms[::-1]
    table = compare_arms(results, turned, levels={"correct_mass": (0.7,)})
    assert select(table, "correct_mass", 0.7, BASELINE)["gain"] == pytest.approx(-0.25 * 0.4)
    assert math.isnan(select(table, "correct_mass", 0.7, FOCAL)["gain"])
    with pytest.raises(ValueError, match="against must be one of 'baseline', 'focal 1', got 'focal 2': did you mean"):
        against(arms, "focal 2")


def test_level_that_some_seeds_reach_has_no_mean() -> None:
    table = compare_arms(*known_arms(fast=0.9, slow=0.45, kept=0.2), levels={"correct_mass": (0.6 + 0.4 * 0.4515,)})
    row = select(table, "correct_mass", 0.6 + 0.4 * 0.4515, FOCAL)
    assert row["reached"] == 2
    assert np.isnan(row["mean"])


def test_missing_run_is_named() -> None:
    results, arms = known_arms(0.9, 0.45, 0.2)
    with pytest.raises(ValueError, match=r"results must hold all runs of the arms, got none of \{.*\"seed\":3"):
        compare_arms(results[results["run_id"] != arms[1].runs[3].run_id], arms)


def test_text_has_a_line_per_arm_and_marks_what_differs() -> None:
    text = comparison_text(compare_arms(*known_arms(0.9, 0.45, 0.2), levels={"correct_mass": (0.7, 0.9, 0.999)}))
    assert "N = 8: M_ret (retained_mass) at matched rollouts" in text
    block = text.split("\n\n")[1].splitlines()
    assert block[0] == "N = 8: M_ret (retained_mass) at matched Q_pos (correct_mass)"
    assert block[1].split() == ["0.7", "0.9"]  # nobody reaches .999
    assert block[2].split() == ["baseline", "0.800", "0.400"]
    assert block[3].split(maxsplit=2)[:2] == ["focal", "1"]
    assert "0.800 (+0.000±" in block[3]
    assert block[3].endswith("reached 0/4")
    assert "*" not in block[3]
    assert block[-1] == "reached by no seed of any arm: correct_mass 0.999"
    assert ")*" in text.split("\n\n")[0]
    assert "difference to baseline" in text.split("\n\n")[-1]
    assert "*: that interval excludes 0" in text.split("\n\n")[-1]


def test_levels_that_nobody_reaches_are_named_without_a_table() -> None:
    text = comparison_text(compare_arms(*known_arms(0.9, 0.45, 0.2), levels={"start_kl": (50, 60)}))
    assert text.split("\n\n")[1].splitlines() == [
        "N = 8: M_ret (retained_mass) at matched KL to the start (start_kl, nats)",
        "reached by no seed of any arm: start_kl 50, 60",
    ]


def test_a_difference_of_nothing_has_no_minus_sign() -> None:
    table = compare_arms(*known_arms(0.9, 0.45, 0.2))
    text = comparison_text(table.assign(gain=-0.0004, gain_low=-0.001, gain_high=0.001))
    assert "(+0.000±0.001)" in text
    assert "-0.000" not in text


def test_constant_scale_is_nothing_to_adam_and_a_smaller_step_to_sgd(tmp_path) -> None:
    """By law: the 95 % interval of a null difference misses 0 with probability .05 over seeds; they are fixed."""
    gains = {}
    for optimizer, rate in (("adam", 0.05), ("sgd", 2.0)):
        arms = comparison_arms(
            group_sizes=(8,), gammas=(2.0,), steps=60, policy=SMALL, optimizer=optimizer, learning_rate=rate
        )
        results = run_sweep([run for arm in arms for run in arm.runs], tmp_path, engine="sparse", workers=1)
        gains[optimizer] = select(compare_arms(results, arms), "rollouts", 240, CONSTANT_SCALE)
    assert gains["adam"]["gain_low"] < 0 < gains["adam"]["gain_high"]
    assert gains["sgd"]["gain_low"] > 0
