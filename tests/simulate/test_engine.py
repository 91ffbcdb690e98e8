import dataclasses

import numpy as np
import pandas as pd
import pytest

from fgrpo.simulate import RunConfig, engine_reference, simulate
from fgrpo.simulate.policy import initial_logits, initial_masses
from reference import simulation

SMALL = {"actions": 1280, "correct": 100}
METRICS = [
    *("correct_mass", "retained_mass", "entropy", "correct_entropy", "correct_overlap", "share_improved"),
    *("worst_drop", "anchor_mass", "active_share", "mean_weight", "distinct_correct"),
]


def small(preset="figure_matching", **changes):
    return RunConfig.preset(preset, **{"group_size": 8, "steps": 40, **SMALL, **changes})


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
def test_follows_the_literal_method_step_by_step(preset):
    """Three steps with the sampler's own draws, gradient by autograd, Adam and measures written out."""
    config = small(preset, group_size=6, gamma=0.7, steps=3, record_every=1, actions=12, correct=4)
    update, correct = config.update, config.policy.correct
    rng = np.random.Generator(np.random.PCG64(config.stream_key))
    logits = start = initial_logits(config.policy)
    m, v = np.zeros(12), np.zeros(12)
    trajectory = simulate(config)
    for step in (1, 2, 3):
        counts = engine_reference.sample_counts(np.exp(logits) / np.exp(logits).sum(), config.group_size, rng)
        weight = (1 - counts[:correct].sum() / config.group_size) ** config.gamma
        rewards = [1.0] * correct + [-1.0] * 8
        gradient = simulation.surrogate_gradient(
            logits, counts, rewards, weight, ratio=update.surrogate == "importance_ratio"
        )
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        adam = m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        logits = logits * (1 - update.learning_rate * update.weight_decay) + update.learning_rate * adam
        for name, value in simulation.policy_metrics(logits.tolist(), start.tolist(), correct).items():
            if name not in ("share_improved", "worst_drop"):
                assert getattr(trajectory, name)[step] == pytest.approx(value, rel=1e-7), name
        assert trajectory.distinct_correct[step] == np.count_nonzero(counts[:correct])
        assert trajectory.active_share[step] == float(0 < counts[:correct].sum() < config.group_size)
        if trajectory.active_share[step]:
            assert trajectory.mean_weight[step] == pytest.approx(weight)


@pytest.mark.parametrize(
    ("steps", "record_every", "recorded"),
    [(40, 10, [0, 10, 20, 30, 40]), (25, 10, [0, 10, 20, 25]), (3, 10, [0, 3]), (1, 1, [0, 1]), (2, 1, [0, 1, 2])],
)
def test_step_0_and_the_last_step_are_recorded(steps, record_every, recorded):
    trajectory = simulate(small(steps=steps, record_every=record_every))
    assert trajectory.step.tolist() == recorded
    assert all(getattr(trajectory, name).shape == (len(recorded),) for name in METRICS)


def test_step_0_is_the_start():
    config = small()
    trajectory = simulate(config)
    masses = initial_masses(config.policy)
    assert trajectory.correct_mass[0] == pytest.approx(masses["correct_mass"], rel=1e-13)
    assert trajectory.anchor_mass[0] == pytest.approx(masses["anchor_mass"], rel=1e-13)
    assert (trajectory.retained_mass[0], trajectory.correct_overlap[0]) == (1.0, 1.0)
    assert (trajectory.share_improved[0], trajectory.worst_drop[0]) == (0.0, 0.0)
    for name in ("active_share", "mean_weight", "distinct_correct"):
        assert np.isnan(getattr(trajectory, name)[0])
        assert np.isfinite(getattr(trajectory, name)[1:]).all()


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_a_longer_run_repeats_the_first_steps_of_a_shorter_one_bit_for_bit(gamma):
    short = simulate(small(gamma=gamma, steps=30))
    long = simulate(small(gamma=gamma, steps=70))
    for name in ("step", *METRICS):
        np.testing.assert_array_equal(getattr(long, name)[: len(short.step)], getattr(short, name), err_msg=name)
    often = simulate(small(gamma=gamma, steps=30, record_every=1))
    np.testing.assert_array_equal(often.retained_mass[::10], short.retained_mass)


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
@pytest.mark.parametrize("wrong_logit", [-60.0, 60.0])
def test_a_homogeneous_first_group_leaves_the_logits_exactly_unchanged(monkeypatch, preset, wrong_logit):
    # with wrong logits this far off, every group is all-correct or all-wrong
    seen = []
    measure = engine_reference.policy_metrics

    def spy(logits, *rest):
        seen.append(logits.copy())
        return measure(logits, *rest)

    monkeypatch.setattr(engine_reference, "policy_metrics", spy)
    config = small(preset, steps=3, wrong_logit=wrong_logit, weight_decay=0.0)
    trajectory = simulate(config)
    assert trajectory.active_share[-1] == 0.0
    assert np.isnan(trajectory.mean_weight[-1])
    assert len(seen) == 2
    for logits in seen:
        np.testing.assert_array_equal(logits, initial_logits(config.policy))


def test_group_size_1_is_never_active():
    trajectory = simulate(small(group_size=1))
    assert trajectory.active_share[1:].tolist() == [0.0] * 4
    assert trajectory.retained_mass.tolist() == [1.0] * 5


def test_seeds_and_gammas_have_streams_of_their_own():
    runs = [simulate(small(seed=seed, gamma=gamma)) for seed in (0, 1) for gamma in (0.0, 1.0)]
    assert len({run.distinct_correct[-1] + 1000 * run.correct_mass[-1] for run in runs}) == 4


def test_a_constant_weight_changes_nothing_but_the_weight():
    """At N = 2 each active group has success rate 1/2, a constant that Adam cancels (up to eps)."""
    zero, one = (
        dataclasses.replace(small(group_size=2, steps=200), gamma=gamma, update=small(eps=1e-30).update)
        for gamma in (0.0, 1.0)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunConfig, "stream_key", 77)
        plain, focal = simulate(zero), simulate(one)
    assert set(focal.mean_weight[1:]) <= {0.5}
    np.testing.assert_allclose(focal.correct_mass, plain.correct_mass, rtol=1e-12)
    assert plain.correct_mass[-1] > plain.correct_mass[0]


def test_the_frame_is_tidy():
    config = small("hu2025", gamma=0.5, seed=3, betas=(0.8, 0.99))
    trajectory = simulate(config)
    frame = trajectory.to_frame()
    assert len(frame) == 5
    assert (frame["run_id"] == config.run_id).all()
    assert (frame["reading"] == "custom").all()
    flat = {"group_size": 8, "gamma": 0.5, "seed": 3, "steps": 40, "record_every": 10, "weight": "focal"}
    flat |= {"success_estimate": "empirical", **SMALL, "anchor_logit": 5.0, "correct_logit": 3.0, "wrong_logit": 0.0}
    flat |= {"surrogate": "linear", "optimizer": "adam", "learning_rate": 1e-3, "beta1": 0.8, "beta2": 0.99}
    flat |= {"eps": 1e-8, "weight_decay": 0.01, "advantage_scale": "none", "reward_correct": 1.0, "reward_wrong": -1.0}
    flat |= {"engine": "reference"}
    for name, value in flat.items():
        assert frame[name].tolist() == [value] * 5, name
    assert {"fgrpo_version", "numpy_version"} <= set(frame.columns)
    assert set(frame.columns) == {"run_id", "reading", "fgrpo_version", "numpy_version", "step", *flat, *METRICS}
    for name in ("step", *METRICS):
        pd.testing.assert_series_equal(frame[name], pd.Series(getattr(trajectory, name), name=name))
