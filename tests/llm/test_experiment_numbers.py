"""Numbers and words of the experiment's report, from tables that are made up: both outcomes of every rule."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from fgrpo.experiment_report import numbers_json, report_text
from fgrpo.experiment_verdicts import (
    Statement,
    primary_statement,
    remaining_share,
    sharpening,
    statements,
    tail_miss_agreement,
)
from fgrpo.llm.experiment.arms import ARMS, CORE, Arm, select_arms
from fgrpo.llm.experiment.groups_table import critical_z, martingale_z, tail_misses, unsampled_changes, weight_spread
from fgrpo.llm.experiment.intervals import METRICS, SeedMean, change, paired_differences, t_interval, values_where
from fgrpo.llm.experiment.numbers import experiment_numbers
from fgrpo.llm.experiment.protocol import EVALUATION, GROUP, Protocol
from fgrpo.theory.intervals import Interval, mean_interval

PROTOCOL = Protocol(seeds=3, steps=40)
RATES = (0.2, 0.5)


def made_up(retained: dict[str, float], *, pass_at_1: float = 0.95, miss: float = 0.5) -> pd.DataFrame:
    """Runs whose M_ret falls in a straight line to a value per arm, a little lower with each seed."""
    rows: list[dict[str, object]] = []
    for arm, end in retained.items():
        size = ARMS[arm].group_size
        for seed in range(3):
            for step in range(0, 41, 10):
                share = step / 40
                for number, rate in enumerate(RATES):
                    kept = 1 + share * (end - 1) - 0.001 * seed * share
                    values = dict.fromkeys(METRICS, 0.0) | {
                        "correct_mass": rate + share * (pass_at_1 - rate),
                        "retained_mass": kept,
                        "effective_number": 5 * kept,
                        "held_out_pass_at_256": kept - 0.1,
                        "kl": share,
                    }
                    rows.append(
                        {"table": EVALUATION, "arm": arm, "seed": seed, "step": step, "rollouts": step * 8 * size}
                        | {"prompt": f"a{number + 6:02d}:", "base_success_rate": rate, **values}
                    )
            for step in range(30):
                rows.append(
                    {"table": GROUP, "arm": arm, "seed": seed, "step": step, "prompt": "a07:", "group_size": size}
                    | {"base_success_rate": 0.5, "success_rate": 0.5, "rare_mass": 0.1, "focal_weight": 0.5}
                    | {"is_tail_miss": step % 2 == 0, "tail_miss_probability": miss}
                    | {"correct_mass_change": 0.01, "unsampled_mass_change": -0.01 if step % 3 else 0.01}
                )
    return pd.DataFrame(rows)


ENDS = dict.fromkeys(CORE, 0.5)
BASELINE_ALONE = {"grpo_n8": 0.5}


def test_interval_over_seeds_leaves_out_those_without_a_value() -> None:
    found = t_interval([1.0, 2.0, 3.0, np.nan], 0.95)
    assert (found.interval, found.seeds) == (mean_interval([1.0, 2.0, 3.0]), 3)
    assert list(found.columns()) == ["mean", "lower", "upper", "seeds"]
    assert t_interval([], 0.95).seeds == 0


def test_values_on_a_curve() -> None:
    course = {"step": [0, 10, 20, 30], "correct_mass": [0.5, 0.8, 0.7, 0.9], "retained_mass": [1.0, 0.6, 0.5, 0.1]}
    curve = pd.DataFrame({**dict.fromkeys(METRICS, [0.0] * 4), **course})

    def value_at(on: str, level: float) -> float:
        return float(values_where(curve, on, level)[METRICS.index("retained_mass")])

    assert value_at("step", 15) == pytest.approx(0.55)
    assert value_at("correct_mass", 0.65) == pytest.approx(0.8)  # the first crossing
    assert value_at("correct_mass", 0.85) == pytest.approx(0.2)
    assert value_at("correct_mass", 0.4) == 1.0
    assert math.isnan(value_at("correct_mass", 0.95))


def test_pairs_leave_out_seeds_that_do_not_arrive() -> None:
    rows = [
        dict.fromkeys(METRICS, 0.0)
        | {"arm": arm, "seed": seed, "step": step, "correct_mass": mass, "retained_mass": kept}
        for arm, seed, last, kept_last in (("p", 0, 0.9, 0.7), ("p", 1, 0.9, 0.8), ("q", 0, 0.9, 0.6), ("q", 1, 0.7, 0))
        for step, mass, kept in ((0, 0.5, 1.0), (10, last, kept_last))
    ]
    table = pd.DataFrame(rows)
    at_end = paired_differences(table, ("p", "q"), "step", 10, 0.95)["retained_mass"]
    assert (at_end.interval.mean, at_end.seeds) == (pytest.approx(0.45), 2)
    matched = paired_differences(table, ("p", "q"), "correct_mass", 0.9, 0.95)["retained_mass"]
    assert (matched.interval.mean, matched.seeds) == (pytest.approx(0.1), 1)
    assert change(table, "q", "retained_mass", 0.95).interval.mean == pytest.approx(-0.7)


def test_martingale_z_is_standard_normal_though_probabilities_follow_the_outcomes() -> None:
    """2,000 sequences whose probability moves with what was drawn: variance 1 and mean 0 within 4 s.e. (6e-5 each)."""
    generator = np.random.default_rng(1)
    p, observed, expected = np.full(2000, 0.3), [], []
    for _ in range(200):
        drawn = generator.random(2000) < p
        observed.append(drawn)
        expected.append(p)
        p = np.clip(p + np.where(drawn, 0.02, -0.01), 0.05, 0.95)
    columns = [(pd.Series(o), pd.Series(q)) for o, q in zip(np.array(observed).T, np.array(expected).T, strict=True)]
    z = np.array([martingale_z(*column) for column in columns])
    assert abs(z.mean()) < 4 / math.sqrt(2000)
    assert abs(z.var() - 1) < 4 * math.sqrt(2 / 2000)
    bound = critical_z(0.01, 3)
    assert bound == pytest.approx(2.935, abs=1e-3)
    assert np.mean(np.abs(z) > bound) < 0.012
    frozen = np.array([martingale_z(o, pd.Series(np.full(200, 0.3))) for o, _ in columns])
    assert np.mean(np.abs(frozen) > bound) > 0.3  # the start's probability is a wrong target
    assert martingale_z(pd.Series([True]), pd.Series([1.0])) == 0.0


def test_group_tables_by_hand() -> None:
    groups = made_up(ENDS).query("table == 'group'")
    row = tail_misses(groups).set_index("arm").loc["grpo_n8"]
    assert (row["groups"], row["observed"], row["expected"], row["z"]) == (90, 0.5, 0.5, 0.0)
    assert row["standard_error"] == pytest.approx(math.sqrt(0.25 / 90))
    miss = 0.9**8 - 0.4**8 - 0.5**8
    assert row["z_frozen"] == pytest.approx((45 - 90 * miss) / math.sqrt(90 * miss * (1 - miss)))
    unsampled = unsampled_changes(groups, 0.95).set_index("arm").loc["grpo_n8"]
    assert unsampled["share_fell"] == pytest.approx(2 / 3)
    assert unsampled["unsampled_mass_change"] == pytest.approx(-0.01 / 3)
    weights = weight_spread(groups)
    assert set(weights["arm"]) == {"focal_g05_n8", "focal_g1_n8"}
    first = weights[weights["arm"] == "focal_g1_n8"].iloc[0]
    assert (first["first_step"], first["last_step"], first["groups"]) == (0, 9, 30)
    assert first["sampling_variance"] == pytest.approx(0.25 / 8)
    assert first["variance"] == first["drift_variance"] == 0


@pytest.mark.parametrize(("focal", "verdict"), [(0.6, "shown"), (0.4, "the opposite is shown"), (0.5, "not shown")])
def test_primary_verdict_follows_the_difference(focal: float, verdict: str) -> None:
    runs = made_up({**ENDS, "focal_g1_n8": focal})
    noise = runs["seed"].map({0: 0.0, 1: 0.01, 2: -0.01}) * (runs["arm"] == "focal_g1_n8")
    runs["retained_mass"] += noise
    numbers = experiment_numbers(runs, PROTOCOL)
    primary = primary_statement(numbers)
    assert primary is not None
    assert primary.verdict == verdict
    assert primary.found.interval.mean == pytest.approx(focal - 0.5)
    text = report_text(numbers, PROTOCOL)
    assert f"after equal updates: {verdict}**" in text
    assert f"Seed by seed: {focal - 0.5:+.3f}, {focal - 0.49:+.3f}, {focal - 0.51:+.3f}." in text
    assert ("would have been told from 0" in primary.words) == (verdict == "not shown")
    content = json.loads(numbers_json(numbers, PROTOCOL))
    assert content["primary"]["verdict"] == verdict
    share = remaining_share(numbers, 0.8)
    if verdict == "shown":  # straight lines of the same speed: at the same pass@1 the same part of the way
        assert share == pytest.approx((0.8 - 0.35) / (0.95 - 0.35), rel=0.05)
        gains = next(row for row in content["who_gains"] if row["arm"] == "focal_g1_n8")
        assert gains["retained_mass_mean"] == pytest.approx(0.1)
    elif verdict == "the opposite is shown":
        assert share is None


def test_sharpening_needs_all_four() -> None:
    assert sharpening(experiment_numbers(made_up(BASELINE_ALONE), PROTOCOL)) == "shown"
    assert sharpening(experiment_numbers(made_up({"grpo_n8": 1.1}), PROTOCOL)) == "the opposite is shown"
    falls = made_up(BASELINE_ALONE, pass_at_1=0.1)
    assert sharpening(experiment_numbers(falls, PROTOCOL)) == "the opposite is shown"
    one = made_up(BASELINE_ALONE).query("seed == 0")
    assert sharpening(experiment_numbers(one, PROTOCOL)) == "undetermined"
    uncertain = made_up(BASELINE_ALONE)
    uncertain["effective_number"] += uncertain["step"] * (uncertain["seed"] - 1) * 0.5
    assert sharpening(experiment_numbers(uncertain, PROTOCOL)) == "not shown"


def test_tail_miss_verdict() -> None:
    fits = experiment_numbers(made_up(BASELINE_ALONE, miss=0.5), PROTOCOL)
    assert tail_miss_agreement(fits, PROTOCOL)[0] == "agree"
    off = experiment_numbers(made_up(BASELINE_ALONE, miss=0.3), PROTOCOL)
    assert tail_miss_agreement(off, PROTOCOL)[0] == "disagree"
    assert ": disagree**" in report_text(off, PROTOCOL)


def test_statements_cover_controls_and_matched_places() -> None:
    keys = {one.key: one for one in statements(experiment_numbers(made_up(ENDS), PROTOCOL), PROTOCOL)}
    assert {"dose", "low_lr", "primary_beyond_low_lr", "n2_step", "n32_rollouts"} <= set(keys)
    assert {f"focal_g1_n8_at_{on}" for on in ("correct_mass_0.8", "kl_1")} <= set(keys)
    assert Statement("k", "s", SeedMean(Interval(1.0, 0.5, 1.5), 3), -1).verdict == "the opposite is shown"
    none = Statement("k", "s", SeedMean(Interval(math.nan, math.nan, math.nan), 0), 1)
    assert (none.verdict, none.words) == ("undetermined", "no seed gets there")


def test_report_of_the_baseline_alone() -> None:
    text = report_text(experiment_numbers(made_up(BASELINE_ALONE), PROTOCOL), PROTOCOL)
    for words in ("primary comparison did not run", "Only the baseline ran", "No arm with a focal weight ran"):
        assert words in text


def test_arms() -> None:
    assert [arm.name for arm in select_arms("core")] == list(CORE)
    assert len(select_arms("all")) == len(ARMS)
    assert [arm.name for arm in select_arms("focal_dapo")] == ["grpo_n8", "dapo", "focal_dapo"]
    with pytest.raises(
        ValueError, match=r"^--arms, if neither core nor all, must be one of .*, got 'grpo_n9': did you mean"
    ):
        select_arms("grpo_n9")
    rates, easy = np.array([0.25, 0.75]), np.array([False, True])
    weights = {name: ARMS[name].weights(rates, easy).tolist() for name in ARMS}
    assert weights["grpo_n8"] == [1, 1]
    assert weights["focal_g1_n8"] == [0.75, 0.25]
    assert weights["focal_g2_n32"] == [0.5625, 0.0625]
    assert weights["focal_easiest_half"] == [1, 0.25]
    assert weights["constant_scale"] == [0.5, 0.5]
    assert weights["hard_upweight"] == [1.75, 1.25]
    assert weights["step"] == [1, 0]
    assert all(ARMS[arm.baseline].group_size == arm.group_size for arm in ARMS.values() if arm.weight == "focal"
               and arm.baseline is not None)  # fmt: skip
    assert Arm("other", "words", "grpo_n2").training_settings()["name"] == "other"
    assert "label" not in Arm("other", "words").training_settings()


def test_protocol_refuses_and_lists_its_steps() -> None:
    assert Protocol(steps=25).evaluated_steps() == [0, 10, 20, 25]
    assert "seeds" not in Protocol().training_settings()
    with pytest.raises(ValueError, match="seeds must be"):
        Protocol(seeds=0)
    with pytest.raises(ValueError, match="steps must be"):
        Protocol(steps=0)
