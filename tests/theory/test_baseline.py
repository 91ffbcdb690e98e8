import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.action_classes import ActionClasses
from fgrpo.theory.baseline import (
    batch_baseline,
    batch_baseline_increment,
    batch_baseline_is_monotone,
    conditional_batch_baseline,
    conditional_sampled_mass,
)
from fgrpo.theory.expected_mass import expected_batch_baseline
from reference import group_updates
from reference.worlds import IN_SCOPE, arrays, counts, few, reward_arguments, worlds, worlds_with_draws, written

ANY = ActionClasses([2, 1], [0.25, 0.5], np.array([True, False]))


def classes_of(world):
    return ActionClasses.from_policy(*arrays(world))


@given(case=worlds_with_draws())
def test_batch_baseline_by_its_definition(case):
    world, draws = case
    got = batch_baseline(*arrays(world), counts(world, draws), **reward_arguments(world))
    assert got == pytest.approx(float(group_updates.batch_baseline(world, draws)), abs=1e-15)


@few
@given(world=worlds(), group_size=st.integers(1, 4))
def test_conditional_means_are_those_of_the_enumerated_law(world, group_size):
    k = np.arange(group_size + 1)
    got = conditional_batch_baseline(classes_of(world), group_size, k, **reward_arguments(world))
    laws = [group_updates.baseline_law(world, group_size, int(successes)) for successes in k]
    wanted = [float(sum(v * w for v, w in law.items())) if law else np.nan for law in laws]
    np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-15)


@few
@given(world=worlds(smallest=1), group_size=st.integers(1, 4))
def test_sampled_mass_is_monotone_whatever_the_rewards(world, group_size):
    mass = conditional_sampled_mass(classes_of(world), group_size, np.arange(group_size + 1))
    if any(world.correct) and not all(world.correct):
        assert np.all(np.diff(mass.correct) >= 0)
        assert np.all(np.diff(mass.wrong) <= 0)
        assert mass.correct[0] == mass.wrong[-1] == 0
        increment = batch_baseline_increment(classes_of(world), group_size, np.arange(group_size))
        np.testing.assert_allclose(np.diff(mass.correct - mass.wrong), increment, rtol=1e-12, atol=1e-15)


@few
@given(world=worlds(rewards=IN_SCOPE), group_size=st.integers(1, 4))
def test_in_scope_the_law_rises_stochastically(world, group_size):
    assert batch_baseline_is_monotone(**reward_arguments(world))
    laws = [group_updates.baseline_law(world, group_size, k) for k in range(group_size + 1)]
    laws = [law for law in laws if law]
    for low, high in itertools.pairwise(laws):
        for level in {*low, *high}:
            at_least = [sum(w for v, w in law.items() if v >= level) for law in (low, high)]
            assert at_least[0] <= at_least[1]
    increment = batch_baseline_increment(
        classes_of(world), group_size, np.arange(group_size), **reward_arguments(world)
    )
    assert np.all((increment >= 0) | np.isnan(increment))


@pytest.mark.parametrize(
    ("text", "r_c", "r_w", "values"),
    [
        ("1/2 cu, 1/4 wu, 1/4 wu", 1, Fraction(1, 2), ["7/32", "11/16", "5/8", "1/2"]),
        ("1/2 wu, 1/4 cu, 1/4 cu", Fraction(-1, 4), -1, ["-1/2", "-9/16", "-19/32", "-7/64"]),
    ],
)
def test_counterexamples_out_of_scope(text, r_c, r_w, values):
    world, _ = written(text, r_c, r_w)
    exact = [sum(v * w for v, w in group_updates.baseline_law(world, 3, k).items()) for k in range(4)]
    assert exact == [Fraction(v) for v in values]
    got = conditional_batch_baseline(classes_of(world), 3, range(4), **reward_arguments(world))
    np.testing.assert_allclose(got, [float(v) for v in exact], rtol=1e-14)
    assert not batch_baseline_is_monotone(**reward_arguments(world))
    assert np.any(batch_baseline_increment(classes_of(world), 3, range(3), **reward_arguments(world)) < 0)


def test_the_predicate_at_its_edges():
    rewards = np.array([[1, 0], [1, -1], [0, -1], [1, 1e-300], [-1e-300, -1], [2, 1]])
    np.testing.assert_array_equal(
        batch_baseline_is_monotone(reward_correct=rewards[:, 0], reward_wrong=rewards[:, 1]),
        [True, True, True, False, False, False],
    )


def test_across_prompts_the_success_rate_does_not_order_the_baseline():
    easy = ActionClasses([10**6, 1], [9e-7, 0.1], np.array([True, False]))
    hard = ActionClasses([1, 10**6], [0.3, 7e-7], np.array([True, False]))
    assert conditional_batch_baseline(easy, 8, 7) == pytest.approx(-0.09999, abs=1e-5)
    assert conditional_batch_baseline(hard, 8, 2) == pytest.approx(0.29999, abs=1e-5)


def test_the_mean_over_the_binomial_is_the_unconditional_one():
    start = ActionClasses.appendix_j()
    n = 64
    q = start.correct_mass
    k = np.arange(n + 1)
    weight = np.cumprod(np.r_[(1 - q) ** n, (n - k[:-1]) / (k[:-1] + 1) * q / (1 - q)])
    assert np.sum(weight * conditional_batch_baseline(start, n, k)) == pytest.approx(
        expected_batch_baseline(start, n), rel=1e-12
    )


def test_small_increments_do_not_cancel():
    start = ActionClasses.appendix_j()
    p, q = start.probability[:2], start.correct_mass
    # at a million rollouts neighbouring means agree to all digits; the increment is that of the correct actions alone
    wanted = np.sum(start.count[:2] * p * p / q * np.exp(500_000 * np.log1p(-p / q)))
    n, k = 10**6, 500_000
    wrong = start.probability[2]
    wanted += 118_000 * wrong**2 / (1 - q) * np.exp((n - k - 1) * np.log1p(-wrong / (1 - q)))
    assert batch_baseline_increment(start, n, k) == pytest.approx(wanted, rel=1e-11)
    assert wanted < 1e-6


def test_impossible_counts_give_nan():
    correct_only = ActionClasses([2], [0.5], np.array([True]))
    np.testing.assert_allclose(conditional_batch_baseline(correct_only, 2, [0, 1, 2]), [np.nan, np.nan, 0.75])
    wrong_only = ActionClasses([1, 1], [1.0, 0.0], np.array([False, True]))
    np.testing.assert_allclose(conditional_batch_baseline(wrong_only, 2, [0, 1, 2]), [-1, np.nan, np.nan])
    assert np.all(np.isnan(batch_baseline_increment(wrong_only, 2, [0, 1])))
    for classes, possible in ((correct_only, 2), (wrong_only, 0)):
        for mass in conditional_sampled_mass(classes, 2, [0, 1, 2]):
            np.testing.assert_array_equal(np.isfinite(mass), np.arange(3) == possible)


def test_shapes():
    k, n = np.arange(3)[:, None], np.array([2, 5])
    assert conditional_batch_baseline(ANY, n, k).shape == (3, 2)
    assert conditional_batch_baseline(ANY, 3, 1, reward_wrong=[-1, 0]).shape == (2,)
    assert isinstance(conditional_batch_baseline(ANY, 3, 1), float)
    assert isinstance(batch_baseline_increment(ANY, 3, 1), float)
    assert isinstance(conditional_sampled_mass(ANY, 3, 1).wrong, float)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conditional_batch_baseline(ANY, 3, 4), "successes must be at most group_size, got 4 > 3"),
        (lambda: conditional_batch_baseline(ANY, 3, 1.5), "successes must be a whole number"),
        (lambda: conditional_batch_baseline(ANY, 3, -1), "successes must be a whole number of at least 0, got -1"),
        (lambda: conditional_sampled_mass(ANY, 0, 0), "group_size must be a whole number of at least 1"),
        (lambda: batch_baseline_increment(ANY, 3, 3), "successes must be at most group_size - 1, got 3 > 2"),
        (lambda: batch_baseline_increment(ANY, 3, 1, reward_correct=-1), "reward_correct must be above"),
        (
            lambda: batch_baseline_is_monotone(reward_correct=0, reward_wrong=0),
            "reward_correct must be above reward_wrong, got 0 <= 0",
        ),
        (lambda: batch_baseline([0.5, 0.5], [True, False], [1]), "sampled must have the policy's 2 actions"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
