import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch

from fgrpo.simulate import PolicyClass, PolicyConfig, RunConfig, engine_reference, updates
from fgrpo.simulate.config import PRESETS
from fgrpo.simulate.engine_reference import simulate
from fgrpo.simulate.metrics import GROUP_MEASURES
from fgrpo.simulate.policy import initial_logits, initial_masses, softmax
from fgrpo.theory import tail_miss_probability
from fgrpo.theory.mass_dynamics import unsampled_correct_mass_change
from reference import simulation

SMALL = {"actions": 1280, "correct": 100}
METRICS = [
    *("correct_mass", "retained_mass", "entropy", "correct_entropy", "correct_overlap", "share_improved"),
    *("worst_drop", "anchor_mass", "active_share", "mean_weight", "distinct_correct", *GROUP_MEASURES),
]


# fields of a run that one weight or one success estimate has for itself
OF_A_RULE = ("weight_", "prior_", "ema_")


def small(preset="figure_matching", **changes):
    return RunConfig.preset(preset, **{"group_size": 8, "steps": 40, **SMALL, **changes})


def literal_weight(config, estimate):
    weights = {
        "focal": (1 - estimate) ** config.gamma,
        "constant": config.weight_scale,
        "hard_upweight": 1 + config.weight_alpha * (1 - estimate),
        "step": 1.0 if estimate <= config.weight_threshold else config.weight_low,
    }
    return weights[config.weight]


def test_the_compared_runs_use_every_rule():
    used = [
        small(rule if rule in PRESETS else "figure_matching", **simulation.RULES[rule]) for rule in simulation.RULES
    ]
    assert {run.weight for run in used} == set(updates.WEIGHTS)
    assert {run.success_estimate for run in used} == set(updates.SUCCESS_ESTIMATES)
    assert {run.update.surrogate for run in used} == set(updates.SURROGATES)
    assert {run.update.optimizer for run in used} == set(updates.OPTIMIZERS)
    assert {run.update.advantage_scale for run in used} == set(updates.ADVANTAGE_SCALES)


@pytest.mark.parametrize("rule", simulation.RULES)
def test_follows_the_literal_method_step_by_step(rule):
    """Four steps with the sampler's own draws; gradient by autograd, optimizers of torch, measures written out."""
    preset = rule if rule in PRESETS else "figure_matching"
    config = small(preset, group_size=6, steps=4, record_every=1, actions=12, correct=4, **simulation.RULES[rule])
    update, correct = config.update, config.policy.correct
    rng = np.random.Generator(np.random.PCG64(config.stream_key))
    start = initial_logits(config.policy)
    parameter = torch.tensor(start, requires_grad=True)
    optimizer, average = simulation.literal_optimizer(parameter, update), None
    trajectory = simulate(config)
    rewards = [update.reward_correct] * correct + [update.reward_wrong] * 8
    for step in (1, 2, 3, 4):
        logits = parameter.detach().numpy().copy()
        p = np.exp(logits) / np.exp(logits).sum()
        counts = engine_reference.sample_counts(p, config.group_size, rng)
        rate = counts[:correct].sum() / 6
        average = rate if average is None else 0.8 * average + 0.2 * rate
        shrunk = (6 * rate + config.prior_correct) / (6 + config.prior_correct + 1)
        estimates = {"empirical": rate, "population": p[:correct].sum(), "shrunk": shrunk, "ema": average}
        weight = literal_weight(config, estimates[config.success_estimate])
        eps = update.scale_eps if update.advantage_scale == "std" else None
        parameter.grad = torch.tensor(
            simulation.surrogate_gradient(logits, counts, rewards, weight, surrogate=update.surrogate, scale_eps=eps)
        )
        if not 0 < rate < 1 and update.surrogate != "linear_distinct":
            parameter.grad.zero_()  # not rounding noise, which steps along the sign would magnify
        if update.optimizer == "signsgd":
            parameter.grad[torch.tensor(counts) == 0] = 0.0
        with torch.no_grad():
            parameter *= 1 - update.learning_rate * update.weight_decay
        optimizer.step()
        new_logits = parameter.detach().numpy()
        expected = simulation.policy_metrics(new_logits.tolist(), start.tolist(), correct)
        new_p = np.exp(new_logits) / np.exp(new_logits).sum()
        expected |= simulation.group_metrics(p, new_p, counts, correct, range(1, correct))
        for name, value in expected.items():
            if name not in ("share_improved", "worst_drop"):
                assert getattr(trajectory, name)[step] == pytest.approx(value, rel=1e-7, abs=1e-13), name
        assert trajectory.distinct_correct[step] == np.count_nonzero(counts[:correct])
        assert trajectory.active_share[step] == float(0 < rate < 1)
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
    for name in ("active_share", "mean_weight", "distinct_correct", *GROUP_MEASURES):
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
def test_a_homogeneous_first_group_leaves_the_logits_exactly_unchanged(preset, wrong_logit):
    # with wrong logits this far off, every group is all-correct or all-wrong
    config = small(preset, steps=3, wrong_logit=wrong_logit, weight_decay=0.0)
    trajectory = simulate(config, snapshots=(0, 1, 2, 3))
    assert trajectory.active_share[-1] == 0.0
    assert np.isnan(trajectory.mean_weight[-1])
    for snapshot in trajectory.snapshots:
        np.testing.assert_array_equal(snapshot, softmax(initial_logits(config.policy)))


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
    flat |= {"scale_eps": 1e-4, "classes": "", "leaf_class": 1}
    flat |= {one.name: one.default for one in dataclasses.fields(RunConfig) if one.name.startswith(OF_A_RULE)}
    flat |= {"engine": "reference", "device": "cpu", "start": "policy"}
    for name, value in flat.items():
        assert frame[name].tolist() == [value] * 5, name
    assert {"fgrpo_version", "numpy_version"} <= set(frame.columns)
    assert set(frame.columns) == {"run_id", "reading", "fgrpo_version", "numpy_version", "step", *flat, *METRICS}
    for name in ("step", *METRICS):
        pd.testing.assert_series_equal(frame[name], pd.Series(getattr(trajectory, name), name=name))


def test_classes_in_the_frame():
    classes = (PolicyClass(2, 1.0, True), PolicyClass(30, 0.0, False))
    frame = simulate(RunConfig(8, steps=1, policy=PolicyConfig(classes=classes))).to_frame()
    assert [PolicyClass(**one) for one in json.loads(frame["classes"].iloc[0])] == list(classes)
    assert (frame["actions"].iloc[0], frame["leaf_class"].iloc[0]) == (32, 0)


def test_the_start_written_as_classes_is_the_same_run():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunConfig, "stream_key", 77)
        three = small()
        as_classes = dataclasses.replace(three, policy=PolicyConfig(classes=three.policy.action_classes))
        one, other = simulate(three), simulate(as_classes)
    for name in METRICS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_any_start_by_its_logits():
    config = small()
    start = np.random.default_rng(0).normal(size=1280)
    trajectory = simulate(config, logits=start, snapshots=(0,))
    assert trajectory.start == "logits"
    np.testing.assert_allclose(trajectory.snapshots[0], np.exp(start) / np.exp(start).sum(), rtol=1e-12)
    assert trajectory.correct_mass[0] == pytest.approx(trajectory.snapshots[0, :100].sum())
    same = simulate(config, logits=initial_logits(config.policy))
    np.testing.assert_array_equal(same.retained_mass, simulate(config).retained_mass)
    for logits, message in ((start[:5], r"shape \(1280,\), got \(5,\)"), (start * np.inf, "finite")):
        with pytest.raises(ValueError, match=message):
            simulate(config, logits=logits)


def test_snapshots_are_the_policies_after_the_steps_asked_for():
    config = small(record_every=1, steps=9)
    trajectory = simulate(config, snapshots=(9, 0, 3))
    assert trajectory.snapshots.shape == (3, 1280)
    np.testing.assert_allclose(trajectory.snapshots.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(trajectory.snapshots[:, :100].sum(axis=1), trajectory.correct_mass[[9, 0, 3]])
    assert simulate(config).snapshots is None
    assert "snapshots" not in trajectory.to_frame().columns
    for bad in (-1, 10, 1.5):
        with pytest.raises(ValueError, match="a snapshot must be a whole number between 0 and 9"):
            simulate(config, snapshots=(bad,))


def martingale_z(trajectories, expected):
    """Sum of observed minus expected tail misses over all steps and runs, in its standard errors over runs."""
    sums = np.array([np.sum(one.leaf_tail_miss[1:] - expected(one)) for one in trajectories])
    return sums.mean() / (sums.std(ddof=1) / np.sqrt(len(sums)))


@pytest.mark.parametrize("rule", ["figure_matching", "raw rewards"])
def test_lemma_3_1_holds_along_the_path_and_wrong_forms_do_not(rule):
    """Observed minus expected is a martingale: z is N(0, 1), so a right simulator fails with probability 6e-5."""
    config = small(group_size=4, steps=20, record_every=1, actions=64, correct=20, **simulation.RULES[rule])
    trajectories = [simulate(dataclasses.replace(config, seed=seed), snapshots=range(20)) for seed in range(150)]
    assert abs(martingale_z(trajectories, lambda one: one.leaf_tail_miss_probability[1:])) < 4

    def two_rollouts_more(one):
        mu = one.correct_mass[:-1, None]
        return tail_miss_probability(mu, one.snapshots[:, 1:20], 6).mean(axis=1)

    def all_correct_groups_count(one):
        return np.mean((1 - one.snapshots[:, 1:20]) ** 4, axis=1) - (1 - one.correct_mass[:-1]) ** 4

    assert abs(martingale_z(trajectories, two_rollouts_more)) > 6
    assert abs(martingale_z(trajectories, all_correct_groups_count)) > 6


def test_proposition_3_2_is_read_off():
    """Under Eq 7 and plain ascent the recorded change is Proposition 3.2's, to first order in the learning rate."""
    config = small(
        group_size=8,
        steps=5,
        record_every=1,
        actions=64,
        correct=20,
        surrogate="linear_distinct",
        optimizer="sgd",
        learning_rate=1e-6,
    )
    trajectory = simulate(config, snapshots=range(6))
    rng = np.random.Generator(np.random.PCG64(config.stream_key))
    for step in range(1, 6):
        p = trajectory.snapshots[step - 1]
        counts = engine_reference.sample_counts(p, 8, rng)
        change = unsampled_correct_mass_change(p, np.arange(64) < 20, counts, learning_rate=1e-6).total
        assert trajectory.unsampled_correct_mass_change[step] == pytest.approx(change, rel=1e-5)
