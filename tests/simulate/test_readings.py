"""Readings of the update: what they are, and the rules by which the paper's sentences are judged, at their bounds."""

import math
from collections.abc import Mapping

import pandas as pd
import pytest

from fgrpo.simulate import RunConfig
from fgrpo.simulate.config import PRESETS
from fgrpo.simulate.readings import READINGS, readings_sweep, readings_table, readings_text

SIZES = (2, 512, 131072)
START = 0.63
# final retained mass, lowest retained mass on the way, final correct mass
KEPT, COLLAPSED = (0.99, 0.99, 0.9), (0.02, 0.02, 0.99)
Outcome = tuple[float, float, float]


def test_readings_are_the_presets_and_others_all_different() -> None:
    assert {**READINGS, **PRESETS} == READINGS
    assert len(set(READINGS.values())) == len(READINGS)
    plan = readings_sweep(group_sizes=SIZES, seeds=range(2), steps=5)
    assert list(plan) == list(READINGS)
    for name, runs in plan.items():
        assert [(run.group_size, run.seed) for run in runs] == [(n, seed) for n in SIZES for seed in range(2)]
        assert {run.update for run in runs} == {READINGS[name]}
        assert {(run.gamma, run.steps) for run in runs} == {(0.0, 5)}


def test_unknown_reading_is_named_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"reading must be one of .*, got 'ratio, Adamw': did you mean 'ratio, AdamW'"):
        readings_sweep(["ratio, Adamw"])


def plan_of(sizes: tuple[int, ...] = SIZES) -> dict[str, list[RunConfig]]:
    return readings_sweep(["figure_matching"], group_sizes=sizes, seeds=range(2), steps=20)


def made_up(outcomes: Mapping[int, Outcome]) -> pd.DataFrame:
    """Three records a run; seeds lie .001 above and below the given numbers."""
    rows = []
    for run in plan_of(tuple(outcomes))["figure_matching"]:
        final, lowest, correct = (value + (0.001 if run.seed else -0.001) for value in outcomes[run.group_size])
        for step, retained, mass in ((0, 1.0, START), (10, lowest, START), (20, final, correct)):
            rows.append(
                {
                    **{name: getattr(run, name) for name in ("run_id", "group_size", "gamma", "seed", "steps")},
                    "step": step,
                    "retained_mass": retained,
                    "correct_mass": mass,
                    "entropy": 3.0,
                }
            )
    return pd.DataFrame(rows)


def verdicts(outcomes: Mapping[int, Outcome]) -> str:
    table = readings_table(made_up(outcomes), plan_of(tuple(outcomes)))
    judged = table[["S1", "S2", "S3", "S4"]]
    assert (judged == judged.iloc[0]).all(axis=None)
    return "".join("y" if judged[name].iloc[0] else "n" for name in judged)


def above(value: float) -> float:
    return value + 1e-9


def below(value: float) -> float:
    return value - 1e-9


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((KEPT, COLLAPSED, KEPT), "yyyn"),
        (((0.94, 0.94, 0.9), COLLAPSED, KEPT), "yyyy"),
        ((KEPT, COLLAPSED, COLLAPSED), "ynnn"),
        ((COLLAPSED, COLLAPSED, KEPT), "ynyy"),
        ((KEPT, KEPT, KEPT), "ynyn"),
        # S1: each size, above the start
        (((0.99, 0.99, below(START)), COLLAPSED, KEPT), "nyyn"),
        (((0.99, 0.99, above(START)), COLLAPSED, KEPT), "yyyn"),
        # S2: .9 at both ends, 1/2 between
        (((below(0.9), 0.8, 0.9), COLLAPSED, KEPT), "ynyy"),
        (((above(0.9), 0.8, 0.9), COLLAPSED, KEPT), "yyyy"),
        (((0.8, 0.8, 0.9), COLLAPSED, (below(0.9), 0.8, 0.9)), "ynnn"),
        ((KEPT, (above(0.5), 0.5, 0.9), KEPT), "ynyn"),
        ((KEPT, (below(0.5), 0.5, 0.9), KEPT), "yyyn"),
        # S3, S4: .95 at every record, and not only at the last
        ((KEPT, COLLAPSED, (0.99, below(0.95), 0.9)), "yynn"),
        (((0.99, below(0.95), 0.9), COLLAPSED, (0.99, above(0.95), 0.9)), "yyyy"),
    ],
)
def test_sentences_are_judged_by_their_rules(outcomes: tuple[Outcome, Outcome, Outcome], expected: str) -> None:
    assert verdicts(dict(zip(SIZES, outcomes, strict=True))) == expected


def test_table_has_means_and_intervals() -> None:
    table = readings_table(made_up(dict(zip(SIZES, (KEPT, COLLAPSED, KEPT), strict=True))), plan_of())
    assert list(table["group_size"]) == list(SIZES)
    row = table.iloc[1]
    assert row["retained_mass"] == pytest.approx(0.02)
    # two values .002 apart: s.e. .001, 12.706 of them
    assert row["retained_high"] - row["retained_low"] == pytest.approx(2 * 12.7062 * 0.001, rel=1e-5)
    assert row["correct_mass"] == pytest.approx(0.99)
    assert row["seeds"] == 2
    text = readings_text(table).splitlines()
    assert text[2].split()[1:] == ["0.990±0.013", "0.9000", "0.020±0.013", "0.9900", "0.990±0.013", "0.9000", *"yyyn"]
    assert not math.isnan(table["lowest_retained_mass"].max())


def test_bad_tables_are_refused() -> None:
    results = made_up(dict(zip(SIZES, (KEPT, COLLAPSED, KEPT), strict=True)))
    with pytest.raises(ValueError, match="results must hold all 6 runs of the reading 'figure_matching', got 5"):
        readings_table(results[results["run_id"] != results["run_id"].iloc[0]], plan_of())
    with pytest.raises(ValueError, match="the sentences speak of small, middle and large N, got 2 of them"):
        readings_sweep(group_sizes=(2, 2, 512))
    of_two_sizes = [run for run in plan_of()["figure_matching"] if run.group_size <= 512]
    with pytest.raises(ValueError, match="the sentences speak of small, middle and large N, got 2 of them"):
        readings_table(results, {"two": of_two_sizes})
    with pytest.raises(ValueError, match="an interval needs at least 2 seeds, got 1"):
        readings_sweep(group_sizes=SIZES, seeds=(0,))
