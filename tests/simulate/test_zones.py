"""The zone by setting and number of updates, by literal loops."""

import numpy as np
import pandas as pd
import pytest

from fgrpo.simulate.intervals import mean_interval
from fgrpo.simulate.zones import varied_settings, zone_table, zone_text
from reference.simulated_results import config_columns

RATES, SIZES, SEEDS = (0.01, 0.1), (2, 8, 32), 3


def kept(rate: float, size: int, step: int, seed: int) -> float:
    """Falls with rate, size and step; below 1/2 where their product is large."""
    return float(np.exp(-rate * size * step / 1000)) + 0.002 * seed


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                **config_columns(),
                "learning_rate": rate,
                "group_size": size,
                "gamma": 0.0,
                "seed": seed,
                "steps": 2000,
                "record_every": 1000,
                "step": step,
                "retained_mass": kept(rate, size, step, seed),
                "correct_mass": 0.63 + step / 10_000,
            }
            for rate in RATES
            for size in SIZES
            for seed in range(SEEDS)
            for step in (0, 1000, 2000)
        ]
    )


def test_table_is_the_mean_over_seeds_at_each_setting(results: pd.DataFrame) -> None:
    assert varied_settings(results) == ["learning_rate"]
    table = zone_table(results.sample(frac=1, random_state=0), (2000, 1000))
    expected = [(rate, step, size) for rate in RATES for step in (1000, 2000) for size in SIZES]
    assert list(table[["learning_rate", "step", "group_size"]].itertuples(index=False, name=None)) == expected
    for row, (rate, step, size) in zip(table.itertuples(), expected, strict=True):
        of_seeds = [kept(rate, size, step, seed) for seed in range(SEEDS)]
        interval = mean_interval(of_seeds)
        assert (row.retained_mass, row.retained_low, row.retained_high) == pytest.approx(tuple(interval))
        assert (row.smallest_retained_mass, row.largest_retained_mass) == (min(of_seeds), max(of_seeds))
        assert row.in_zone == (np.mean(of_seeds) < 0.5)
        assert row.correct_mass == pytest.approx(0.63 + step / 10_000)
        assert row.seeds == SEEDS
        below = [
            min((at for at in (1000, 2000) if at <= step and kept(rate, size, at, seed) < 0.5), default=np.inf)
            for seed in range(SEEDS)
        ]
        np.testing.assert_equal(row.collapse_step, np.median(below) if np.median(below) < np.inf else np.nan)
    assert set(table["collapse_step"].dropna()) == {1000.0}
    assert table["in_zone"].any()
    assert not table["in_zone"].all()


def test_run_that_repeats_a_longer_one_counts_once(results: pd.DataFrame) -> None:
    shorter = results[results["step"] <= 1000].assign(steps=1000)
    pd.testing.assert_frame_equal(zone_table(pd.concat([results, shorter]), (1000,)), zone_table(results, (1000,)))


def test_text_names_the_zone_and_what_is_uncertain(results: pd.DataFrame) -> None:
    text = zone_text(zone_table(results, (1000, 2000)))
    assert [block.splitlines()[0] for block in text.split("\n\n")] == [
        "learning rate 0.01, T 1000: zone N = none",
        "learning rate 0.01, T 2000: zone N = none",
        "learning rate 0.1, T 1000: zone N = 8 to 32",
        "learning rate 0.1, T 2000: zone N = 8 to 32",
    ]
    near = results.copy()
    chosen = (near["group_size"] == 2) & (near["seed"] == 0)
    near.loc[chosen, "retained_mass"] = 0.0
    assert "learning rate 0.01, T 1000: zone N = none, uncertain N = 2" in zone_text(zone_table(near, (1000,)))


def test_collapse_step_is_the_median_of_the_seeds(results: pd.DataFrame) -> None:
    made = results[(results["learning_rate"] == 0.01) & (results["group_size"] == 2)].assign(retained_mass=0.9)
    made.loc[(made["seed"] == 0) & (made["step"] >= 1000), "retained_mass"] = 0.1
    assert np.isnan(zone_table(made, (2000,))["collapse_step"].iloc[0])  # one of three
    made.loc[(made["seed"] == 2) & (made["step"] == 2000), "retained_mass"] = 0.1
    table = zone_table(made, (1000, 2000))
    np.testing.assert_equal(table["collapse_step"].to_numpy(), [np.nan, 2000.0])
    assert zone_text(table).splitlines()[-1].endswith("collapsed at 2000")


def test_one_setting_needs_no_name(results: pd.DataFrame) -> None:
    one = results[results["learning_rate"] == 0.1]
    assert zone_text(zone_table(one, (1000,))).startswith("T 1000: zone N = 8 to 32\n  N =       2  M_ret 0.8")


def test_steps_must_be_recorded(results: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="steps must be recorded ones, got 1500: pass multiples of 1000 up to 2000"):
        zone_table(results, (1000, 1500))
    with pytest.raises(ValueError, match="steps must be at least one number of updates, got none"):
        zone_table(results, ())
    with pytest.raises(ValueError, match="an interval needs at least 2 seeds, got 1"):
        zone_table(results[results["seed"] == 0], (1000,))
