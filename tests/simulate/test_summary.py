"""Summaries of a sweep: the collapse zone by literal loops, its stretches on the grid, and what is refused."""

import math
from collections.abc import Mapping

import pandas as pd
import pytest

from fgrpo.simulate import PolicyConfig, collapse_zone
from fgrpo.simulate.summary import (
    block_words,
    contiguous_blocks,
    final_rows,
    seed_summary,
    split_by_length,
    start_policy,
    sweep_steps,
    zone_of,
)
from reference.simulated_results import config_columns

GRID = (2, 8, 128, 8192)
KEPT = dict.fromkeys(GRID, 0.9)
COLLAPSED = dict.fromkeys(GRID, 0.1)


def sweep(final: Mapping[int, float] = KEPT, *, steps: int = 1000, seeds: int = 3) -> pd.DataFrame:
    """Runs that start at 1, drop to 0 half-way and end, at gamma 0, at the given retained masses; at gamma 1 at 0."""
    return pd.DataFrame(
        [
            {
                **config_columns(),
                "group_size": size,
                "gamma": gamma,
                "seed": seed,
                "steps": steps,
                "record_every": steps // 2,
                "step": step,
                "correct_mass": 0.63,
                "retained_mass": {0: 1.0, steps // 2: 0.0, steps: end * (1 - gamma)}[step],
            }
            for size, end in final.items()
            for gamma in (0.0, 1.0)
            for seed in range(seeds)
            for step in (0, steps // 2, steps)
        ]
    )


# the zone


@pytest.mark.parametrize(
    ("final", "zone"),
    [
        (KEPT, ()),
        ({**KEPT, 8: 0.5, 8192: 0.5}, ()),  # 1/2 itself is not below 1/2
        ({**KEPT, 128: math.nextafter(0.5, 0)}, (128,)),
        ({**KEPT, 2: 0.1, 8192: 0.1}, (2, 8192)),  # no others between them
        (COLLAPSED, GRID),
    ],
)
def test_zone_is_all_group_sizes_below_one_half(final: dict[int, float], zone: tuple[int, ...]) -> None:
    assert collapse_zone(sweep(final)) == zone
    assert collapse_zone(sweep(final).sample(frac=1, random_state=0)) == zone
    assert all(type(size) is int for size in collapse_zone(sweep(final)))


def test_zone_is_of_the_mean_over_seeds_not_of_single_seeds() -> None:
    results = sweep()
    one = (results["seed"] == 0) & (results["step"] == 1000)
    results.loc[one & (results["group_size"] == 128), "retained_mass"] = 0.0
    assert collapse_zone(results) == ()  # mean .6 although one seed collapsed
    results.loc[one & (results["group_size"] == 8), "retained_mass"] = -0.4
    assert collapse_zone(results) == (8,)  # mean .467 although two seeds did not


def test_zone_is_of_the_sweep_not_of_longer_or_shorter_runs() -> None:
    results = sweep({**KEPT, 128: 0.1})
    longer = sweep({2: 0.1, 8: 0.1}, steps=4000)
    trial = sweep({2: 0.1}, steps=100)
    assert collapse_zone(pd.concat([longer, results, trial])) == (128,)


def test_sweep_is_the_length_that_covers_most_group_sizes_the_shorter_on_a_tie() -> None:
    assert sweep_steps(pd.concat([sweep({2: 0.1}, steps=100), sweep()])) == 1000
    assert sweep_steps(pd.concat([sweep(COLLAPSED, steps=4000), sweep()])) == 1000
    assert sweep_steps(pd.concat([sweep(steps=4000), sweep({2: 0.1})])) == 4000


def test_zone_of_a_summary_is_that_of_its_runs() -> None:
    results = sweep({**KEPT, 8: 0.2, 128: 0.2})
    assert zone_of(seed_summary(final_rows(results))) == collapse_zone(results) == (8, 128)
    assert zone_of(seed_summary(final_rows(results), ["correct_mass"])) == ()


# its stretches on the grid


@pytest.mark.parametrize(
    ("chosen", "blocks", "words"),
    [
        ((), [], ""),
        ((8,), [(8, 8)], "8"),
        ((8, 128), [(8, 128)], "8 to 128"),
        ((2, 8192), [(2, 2), (8192, 8192)], "2, 8192"),
        ((2, 128, 8192), [(2, 2), (128, 8192)], "2, 128 to 8192"),
        (GRID, [(2, 8192)], "2 to 8192"),
    ],
)
def test_blocks_are_the_stretches_of_neighbours(
    chosen: tuple[int, ...], blocks: list[tuple[int, int]], words: str
) -> None:
    assert contiguous_blocks(chosen, GRID) == blocks
    assert block_words(chosen, GRID) == words


# over seeds


def test_statistics_are_the_literal_ones() -> None:
    results = sweep({2: 0.5, 8: 0.25})
    results["retained_mass"] += results["seed"] / 8
    summary = seed_summary(results)
    assert len(summary) == 2 * 2 * 2 * 3
    for row in summary.itertuples():
        values = [
            getattr(one, row.metric)
            for one in results.itertuples()
            if (one.group_size, one.gamma, one.step) == (row.group_size, row.gamma, row.step)
        ]
        assert row.mean == pytest.approx(sum(values) / 3, rel=1e-15)
        assert (row.smallest, row.largest, row.seeds) == (min(values), max(values), 3)


def test_longer_runs_are_the_longest_ones() -> None:
    results = pd.concat([sweep({2: 0.9}, steps=steps) for steps in (500, 2000, 4000)] + [sweep()])
    first, longer = split_by_length(results)
    assert set(first["steps"]) == {1000}
    assert set(longer["steps"]) == {4000}
    assert split_by_length(sweep())[1].empty


@pytest.mark.parametrize("policy", [PolicyConfig(), PolicyConfig(actions=50, correct=5, anchor_logit=1.5)])
def test_start_is_read_back(policy: PolicyConfig) -> None:
    changes = {name: getattr(policy, name) for name in ("actions", "correct", "anchor_logit")}
    assert start_policy(sweep().assign(**changes)) == policy


# what is refused


@pytest.mark.parametrize("column", config_columns())
def test_every_column_of_the_configuration_is_needed_and_must_be_one(column: str) -> None:
    results = sweep()
    with pytest.raises(ValueError, match=f"got none named {column}: pass what fgrpo.simulate.load_results"):
        collapse_zone(results.drop(columns=column))
    value = results[column].iloc[0]
    other = sweep().assign(**{column: f"not {value}" if isinstance(value, str) else value + 1})
    with pytest.raises(ValueError, match=f"must share one {column}, got .*: select the rows of one of them"):
        collapse_zone(pd.concat([results, other]))


@pytest.mark.parametrize("column", ["group_size", "gamma", "seed", "steps", "step", "correct_mass", "retained_mass"])
def test_every_column_that_is_summarised_is_needed(column: str) -> None:
    with pytest.raises(ValueError, match=f"got none named {column}: "):
        collapse_zone(sweep().drop(columns=column))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda r: r[r["gamma"] == 1], "must include runs with gamma 0, got none: run the sweep"),
        (lambda r: r[:0], "must include runs with gamma 0, got none"),
        (lambda r: pd.concat([r, r[:3]]), "each group_size, gamma, seed, steps and step once"),
        (
            lambda r: r[(r["seed"] != 1) | (r["group_size"] != 8) | (r["step"] != 1000)],
            r"group_size 8, gamma 0, seed 1\) without step 1000: finish the sweep",
        ),
    ],
)
def test_unfit_results_are_refused_in_one_line(spoil, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        collapse_zone(spoil(sweep()))
    assert "\n" not in str(caught.value)
