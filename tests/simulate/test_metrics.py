import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.simulate import PolicyClass, PolicyConfig, RunConfig
from fgrpo.simulate.metrics import (
    GROUP_AVERAGES,
    GROUP_MEASURES,
    PolicyMeasures,
    entropy,
    group_metrics,
    group_statistics,
    mass_change,
    policy_metrics,
)
from fgrpo.simulate.policy import softmax
from fgrpo.simulate.updates import weighted_group
from fgrpo.theory import retention
from fgrpo.theory.finite_step import exact_mass_change
from reference import simulation

logits_9 = st.lists(st.floats(-6, 6), min_size=9, max_size=9)


@given(logits=logits_9, start=logits_9, correct=st.integers(1, 8))
def test_measures_equal_their_definitions(logits, start, correct):
    # equal logits are the one place where rounding could decide `share_improved`
    actual = policy_metrics(np.array(logits), np.array(start), correct)
    expected = simulation.policy_metrics(logits, start, correct)
    assert list(actual) == list(expected)
    close = softmax(np.array(logits))[:correct] - softmax(np.array(start))[:correct]
    for name, value in expected.items():
        if name != "share_improved" or np.abs(close).min() > 1e-12:
            assert actual[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


@given(logits=logits_9, start=logits_9, correct=st.integers(1, 8))
def test_measures_of_retention_are_those_of_theory(logits, start, correct):
    actual = policy_metrics(np.array(logits), np.array(start), correct)
    before, after, of_correct = softmax(np.array(start)), softmax(np.array(logits)), np.arange(9) < correct
    for name in ("retained_mass", "correct_overlap"):
        assert actual[name] == pytest.approx(getattr(retention, name)(before, after, correct=of_correct), abs=1e-14)
    assert actual["correct_entropy"] == pytest.approx(retention.correct_entropy(after, correct=of_correct), abs=1e-13)


def test_the_start_retains_everything_exactly():
    logits = np.array([5.0, 3.0, 3.0, 0.0, 0.0])
    start = policy_metrics(logits, logits, 3)
    assert (start["retained_mass"], start["correct_overlap"], start["share_improved"], start["worst_drop"]) == (
        1,
        1,
        0,
        0,
    )


def test_a_collapsed_policy_has_finite_measures():
    start = np.zeros(4)
    collapsed = policy_metrics(np.array([2000.0, 0.0, 0.0, 0.0]), start, 2)
    assert collapsed == {
        "correct_mass": 1.0,
        "retained_mass": 0.5,
        "entropy": 0.0,
        "correct_entropy": 0.0,
        "correct_overlap": 0.5,
        "share_improved": 0.5,
        "worst_drop": 0.25,
        "anchor_mass": 1.0,
    }
    all_wrong = policy_metrics(np.array([0.0, 0.0, 2000.0, 0.0]), start, 2)
    assert (all_wrong["correct_mass"], all_wrong["retained_mass"], all_wrong["correct_overlap"]) == (0.0, 0.0, 1.0)
    assert all_wrong["correct_entropy"] == pytest.approx(math.log(2))


def test_worst_drop_is_negative_where_all_gain():
    gained = policy_metrics(np.array([1.0, 1.0, 0.0]), np.zeros(3), 2)
    assert gained["worst_drop"] < 0
    assert gained["share_improved"] == 1.0


def test_entropy_of_equal_logits():
    assert entropy(np.full(128_000, 7.0)) == pytest.approx(math.log(128_000), rel=1e-14)


POLICY = PolicyConfig(classes=(PolicyClass(2, 0.0, True), PolicyClass(3, 0.0, True), PolicyClass(4, 0.0, False)))


def measured(logits, counts, step):
    """The measures of a group of the nine actions, five of them correct, the last three of those the leaves."""
    counts = np.array(counts)
    config = RunConfig(int(counts.sum()), policy=POLICY)
    draws = int(counts[:5].sum())
    group = weighted_group(config, counts, config.group_size, draws / config.group_size, 1.0)
    return group_metrics(group, 0 < draws < config.group_size, POLICY.leaves, softmax(np.array(logits)), np.array(step))


@given(logits=logits_9, step=logits_9, counts=st.lists(st.integers(0, 3), min_size=9, max_size=9).filter(any))
def test_measures_of_a_group_equal_their_definitions(logits, step, counts):
    before, after = softmax(np.array(logits)), softmax(np.array(logits) + np.array(step))
    expected = simulation.group_metrics(before, after, counts, 5, range(2, 5))
    actual = measured(logits, counts, step)
    assert tuple(actual) == tuple(expected) == GROUP_MEASURES
    for name, value in expected.items():
        assert actual[name] == pytest.approx(value, rel=1e-10, abs=1e-14), name


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e3])
def test_the_change_of_mass_is_that_of_theory_at_every_size_of_step(scale):
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, step, inside = rng.dirichlet(np.ones(9)), scale * rng.normal(size=9), rng.random(5) < 0.5
        expected = exact_mass_change(p, step, np.append(inside, [False] * 4))
        assert mass_change(p, step.copy(), inside) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("far", [1.0, 700.0, 5000.0])
def test_an_action_without_probability_changes_no_mass_however_far_it_moves(far):
    """As in theory; without the mask the far action would be the origin of the step, and the change 0 / 0."""
    p, inside = np.array([0.5, 0.3, 0.2, 0.0]), np.array([True, False])
    for sign in (1.0, -1.0):
        step = np.array([0.1, -0.2, 0.3, sign * far])
        expected = exact_mass_change(p, step, np.array([True, False, False, False]))
        assert expected == pytest.approx(exact_mass_change(p[:3], step[:3], np.array([True, False, False])), rel=1e-14)
        assert mass_change(p, step.copy(), inside) == pytest.approx(expected, rel=1e-12)
        as_tensors = (torch.from_numpy(one) for one in (p, step.copy(), inside))
        assert float(mass_change(*as_tensors, torch)) == pytest.approx(expected, rel=1e-12)


def test_the_entropy_is_the_same_where_the_probabilities_are_given():
    rng = np.random.default_rng(5)
    for scale in (0.0, 1.0, 30.0, 2000.0):
        logits = scale * rng.normal(size=50)
        given = PolicyMeasures(np.zeros(50), 10)(logits, softmax(logits))
        for name, value in PolicyMeasures(np.zeros(50), 10)(logits).items():
            np.testing.assert_allclose(given[name], value, rtol=1e-12, atol=1e-14, err_msg=name)


def test_a_tiny_change_of_mass_keeps_its_digits():
    """To first order sum_S p (dz - m): the difference of the two masses would have lost all digits."""
    p, step, inside = np.full(4, 0.25), np.array([3e-17, 0.0, 1e-17, 0.0]), np.array([True, True, False])
    assert mass_change(p, step, inside) == pytest.approx(0.25 * 3e-17 - 0.5 * 1e-17, rel=1e-12)


def test_a_mass_of_all_but_nothing_is_measured_without_errors():
    """Sums of probabilities that rounding puts above 1 are taken for 1; probability 0 is missed almost surely."""
    logits = [800.0, 0.0, 0.0, 0.0, 0.0, -800.0, -800.0, -800.0, -800.0]
    of_group = measured(logits, [7, 0, 0, 0, 0, 1, 0, 0, 0], np.zeros(9))
    assert (of_group["leaf_tail_miss"], of_group["unsampled_correct_mass_change"]) == (1.0, 0.0)
    assert of_group["leaf_tail_miss_probability"] == 0.0  # the group was active with probability 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        logits = np.append(rng.normal(size=5), np.full(4, -40.0))
        assert 0.0 <= measured(logits, [1] * 9, np.zeros(9))["leaf_tail_miss_probability"] < 1e-13


def test_group_statistics_are_means_the_weight_over_active_groups():
    active, weight, distinct = np.array([[1.0, 0, 1, 0], [0] * 4]), np.array([[0.25, 1, 0.75, 0]] * 2), np.arange(8.0)
    for means in (
        group_statistics(active, weight, distinct.reshape(2, 4)),
        group_statistics(*map(torch.from_numpy, (active, weight, distinct.reshape(2, 4)))),
    ):
        assert tuple(means) == GROUP_AVERAGES
        assert list(means["active_share"]) == [0.5, 0.0]
        assert list(means["distinct_correct"]) == [1.5, 5.5]
        assert means["mean_weight"][0] == 0.5
        assert math.isnan(means["mean_weight"][1])
