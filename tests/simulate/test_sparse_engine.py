"""Runs of the sparse engine: their law is that of the reference engine; their bits are the same everywhere."""

import dataclasses
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import scipy.stats

from fgrpo.simulate import RunConfig
from fgrpo.simulate.engine_reference import simulate
from fgrpo.simulate.sparse import engine, measures, rows, simulate_sparse
from fgrpo.simulate.trajectory import MEASURES
from reference.sparse_runs import in_use, single_actions, small

POLICY_MEASURES = MEASURES[:8]


def assert_same(first, second):
    for one in dataclasses.fields(first):
        if one.name not in ("config", "engine"):
            np.testing.assert_array_equal(getattr(first, one.name), getattr(second, one.name), err_msg=one.name)


def test_the_trajectory_is_that_of_the_reference_engine_in_form():
    config = small(group_size=32, steps=25)
    ours, theirs = simulate_sparse(config), simulate(config)
    assert ours.engine == "sparse"
    assert ours.config == config
    assert measures.MEASURES == MEASURES
    np.testing.assert_array_equal(ours.step, theirs.step)
    for name in MEASURES:
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
        # the start is no matter of chance, and where a measure is undefined both say so
        np.testing.assert_allclose(mine[0], other[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(other))
    frame = ours.to_frame()
    assert set(frame["engine"]) == {"sparse"}
    assert list(frame.columns) == list(theirs.to_frame().columns)


# --- the law of runs ---

# Each comparison has three Kolmogorov-Smirnov tests at 1e-5: with 14 of them 4e-4 over seeds; these seeds are fixed.
KS_LEVEL = 1e-5
KS_MEASURES = ("correct_mass", "retained_mass", "entropy")


def finals(simulator, seeds, **changes):
    changes = {"steps": 80, "record_every": 80, "learning_rate": 0.05, **changes}
    last = [simulator(small(seed=seed, **changes)) for seed in seeds]
    return {name: np.array([getattr(one, name)[-1] for one in last]) for name in KS_MEASURES}


def smallest_p_value(ours, theirs):
    return min(scipy.stats.ks_2samp(ours[name], theirs[name]).pvalue for name in KS_MEASURES)


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
@pytest.mark.parametrize("group_size", [2, 16, 256])
def test_runs_follow_the_law_of_the_reference_engine(preset, gamma, group_size):
    changes = {"preset": preset, "gamma": gamma, "group_size": group_size}
    ours, theirs = finals(simulate_sparse, range(600), **changes), finals(simulate, range(5000, 5120), **changes)
    assert smallest_p_value(ours, theirs) > KS_LEVEL
    if group_size == 16:
        # a learning rate that is a little off is noticed
        off = finals(simulate_sparse, range(600), **changes, learning_rate=0.056)
        assert smallest_p_value(off, theirs) < KS_LEVEL


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
def test_rows_of_single_actions_follow_the_same_law(preset):
    def dense(config):
        recorded, measured, _ = engine.run(config, single_actions(config.policy))
        columns = {name: measured[:, index] for index, name in enumerate(MEASURES)}
        return engine.Trajectory(config=config, engine="dense", step=recorded, **columns)

    changes = {"preset": preset, "group_size": 32, "gamma": 0.5}
    ours = finals(simulate_sparse, range(600), **changes)
    assert smallest_p_value(ours, finals(dense, range(2000, 2400), **changes)) > KS_LEVEL


def test_the_default_reading_collapses_where_it_should():
    retained = {
        (group_size, gamma): simulate_sparse(RunConfig(group_size, gamma=gamma)).retained_mass[-1]
        for group_size in (2, 512, 8192)
        for gamma in (0.0, 1.0)
    }
    assert 0.98 <= retained[2, 0.0] <= 1.0
    assert 0.028 <= retained[512, 0.0] <= 0.042 < 0.1 < retained[512, 1.0]
    assert 0.036 <= retained[8192, 0.0] <= 0.05 < 0.1 < retained[8192, 1.0]


# --- the same bits everywhere ---


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
def test_a_longer_run_repeats_a_shorter_one_and_records_change_nothing(preset):
    short, long = (simulate_sparse(small(preset, steps=steps_)) for steps_ in (30, 200))
    often = simulate_sparse(small(preset, steps=30, record_every=1))
    for name in ("step", *MEASURES):
        np.testing.assert_array_equal(getattr(long, name)[:4], getattr(short, name), err_msg=name)
    for name in POLICY_MEASURES:
        np.testing.assert_array_equal(getattr(often, name)[::10], getattr(short, name), err_msg=name)


def test_a_run_in_parts_has_the_same_bits(monkeypatch):
    config = small(group_size=300, steps=95)
    whole = simulate_sparse(config)
    monkeypatch.setattr(engine, "WORK_AT_ONCE", 1)
    assert_same(simulate_sparse(config), whole)


def test_other_processes_and_company_give_the_same_bits():
    configs = [small(group_size=group_size, seed=seed, steps=200) for group_size in (2, 500) for seed in (0, 1)]
    here = [simulate_sparse(config) for config in configs]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        there = list(pool.map(simulate_sparse, reversed(configs)))
    for one, other in zip(here, reversed(there), strict=True):
        assert_same(one, other)
    assert len({run.correct_mass[-1] for run in here}) == 4


# --- sizes ---


def test_rows_follow_what_was_drawn():
    config = RunConfig(2, steps=300)
    _, _, progress = engine.run(config, rows.start_of(config.policy))
    assert in_use(progress.extent).size <= 2 * 300 + 3
    assert progress.rows.values.nbytes < 10**6


@pytest.mark.parametrize(("actions", "group_size", "steps_"), [(10_000_000, 1000, 30), (1_000_000, 1_000_000, 3)])
def test_large_sizes_run(actions, group_size, steps_):
    trajectory = simulate_sparse(
        RunConfig.preset("figure_matching", group_size=group_size, actions=actions, steps=steps_)
    )
    assert trajectory.active_share[-1] == 1.0
    assert trajectory.entropy[0] == pytest.approx(simulation_entropy(actions), rel=1e-12)
    assert 0.9 < trajectory.retained_mass[-1] <= 1.0


def simulation_entropy(actions):
    """Of the start, class by class."""
    weights = np.exp([5.0, 3.0, 0.0])
    p = weights / (weights @ [1, 9999, actions - 10_000])
    return -(np.array([1, 9999, actions - 10_000]) * p * np.log(p)).sum()
