from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.action_classes import ActionClasses
from fgrpo.theory.expected_mass import (
    expected_batch_baseline,
    expected_correct_mass_change,
    expected_logit_update,
    expected_moments,
    expected_unsampled_correct_mass_change,
    logit_gain_threshold,
)
from fgrpo.theory.mass_dynamics import correct_mass_change, unsampled_correct_mass_change
from fgrpo.theory.tail_miss import tail_miss_probability
from fgrpo.theory.updates import CENTRED, SURROGATES, sampled_moments
from reference.expected_mass import active_sampled_mass, correct_change, drawn_and_active, unsampled_change
from reference.group_updates import batch_baseline, expectation, logit_step, mass_changes
from reference.worlds import IN_SCOPE, arrays, few, reward_arguments, worlds, written

START = ActionClasses.appendix_j()


def classes_of(world):
    return ActionClasses.from_policy(*arrays(world))


@pytest.mark.parametrize("surrogate", SURROGATES)
@few
@given(world=worlds(), group_size=st.integers(1, 4), active=st.booleans())
def test_mass_changes_are_the_mean_over_all_groups(surrogate, world, group_size, active):
    keywords = {"surrogate": surrogate, "active": active, **reward_arguments(world)}
    exact = [
        float(expectation(world, group_size, lambda d, w=which: mass_changes(world, d, surrogate)[w], active=active))
        for which in (0, 1)
    ]
    correct = expected_correct_mass_change(classes_of(world), group_size, **keywords)
    unsampled = expected_unsampled_correct_mass_change(classes_of(world), group_size, **keywords)
    assert correct == pytest.approx(exact[0], rel=1e-13, abs=1e-15)
    assert unsampled.total == pytest.approx(exact[1], rel=1e-13, abs=1e-15)


@few
@given(world=worlds(), group_size=st.integers(1, 4), active=st.booleans())
def test_moments_are_the_mean_over_all_groups(world, group_size, active):
    got = expected_moments(classes_of(world), group_size, active=active)
    wanted = [
        sum(
            p**power * expectation(world, group_size, lambda d, a=a, h=hit: Fraction((a in d) == h), active=active)
            for a, p in enumerate(world.policy)
            if world.correct[a] == label
        )
        for power in (1, 2)
        for hit in (True, False)
        for label in (True, False)
    ]
    np.testing.assert_allclose(got, [float(w) for w in wanted], rtol=1e-13, atol=1e-16)
    baseline = expectation(world, group_size, lambda d: batch_baseline(world, d), active=active)
    got_baseline = expected_batch_baseline(classes_of(world), group_size, active=active, **reward_arguments(world))
    assert got_baseline == pytest.approx(float(baseline), abs=1e-15)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("active", [False, True])
def test_logit_updates_are_the_mean_over_all_groups(surrogate, active):
    world, _ = written("1/8 cu, 1/4 cu, 1/2 wu, 1/8 wu", 1, Fraction(-1, 2))
    classes = ActionClasses(np.ones(4), *arrays(world))
    for group_size in (1, 2, 3, 4):
        got = expected_logit_update(classes, group_size, surrogate=surrogate, active=active, reward_wrong=-0.5)
        wanted = [
            float(expectation(world, group_size, lambda d, a=a: logit_step(world, d, surrogate)[a], active=active))
            for a in range(4)
        ]
        np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-16)


@few
@given(world=worlds(rewards=IN_SCOPE), group_size=st.integers(1, 3))
def test_drift_and_coupling_are_the_means_of_theirs(world, group_size):
    def drift(draws):
        square = sum(p * p for a, p in enumerate(world.policy) if world.correct[a] and a not in draws)
        return -batch_baseline(world, draws) * square / group_size

    got = expected_unsampled_correct_mass_change(classes_of(world), group_size, **reward_arguments(world))
    assert got.drift == pytest.approx(float(expectation(world, group_size, drift)), abs=1e-15)


@st.composite
def class_tables(draw):
    """Up to six classes, their sizes and probabilities over many orders of magnitude."""
    size = draw(st.integers(1, 6))
    count = np.array(draw(st.lists(st.integers(1, 10_000), min_size=size, max_size=size)))
    weight = 10.0 ** np.array(draw(st.lists(st.floats(-6, 0), min_size=size, max_size=size)))
    correct = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    return ActionClasses(count, weight / np.sum(count * weight), correct)


@given(classes=class_tables(), rewards=st.sampled_from(IN_SCOPE))
def test_correct_mass_rises_in_expectation_and_less_with_more_rollouts(classes, rewards):
    n = np.unique(np.round(np.geomspace(1, 1e6, 40)))
    change = expected_correct_mass_change(classes, n, reward_correct=float(rewards[0]), reward_wrong=float(rewards[1]))
    scale = change[0] + 1e-300
    assert np.all(change >= -1e-12 * scale - 1e-18)
    assert np.all(np.diff(change) <= 1e-12 * scale + 1e-18)


@few
@given(world=worlds(rewards=IN_SCOPE))
def test_the_same_holds_exactly(world):
    changes = [expectation(world, n, lambda d: mass_changes(world, d, "linear_distinct")[0]) for n in (1, 2, 3, 4)]
    assert changes == sorted(changes, reverse=True)
    assert changes[-1] >= 0


def test_out_of_scope_rewards_can_lower_the_expected_correct_mass():
    lowered = 0
    rng = np.random.default_rng(4)
    for _ in range(50):
        classes = ActionClasses.from_policy(rng.dirichlet(np.ones(4)), np.array([True, True, False, False]))
        lowered += expected_correct_mass_change(classes, 2, reward_correct=-0.5, reward_wrong=-2) < 0
        lowered += expected_correct_mass_change(classes, 2, reward_correct=1, reward_wrong=0.9) < 0
    assert lowered > 0


@given(classes=class_tables(), n=st.integers(1, 10**6))
def test_grpo_closed_forms(classes, n):
    p, q, q_neg = classes.probability, classes.correct_mass, classes.wrong_mass
    m_pos, m_neg = classes.correct_collision, classes.wrong_collision
    keywords = {"surrogate": "importance_ratio", "reward_correct": 1.5, "reward_wrong": -0.5}
    factor = 2 * (n - 1) / n
    rise = expected_correct_mass_change(classes, n, **keywords)
    assert rise == pytest.approx(factor * (q_neg**2 * m_pos + q**2 * m_neg), rel=1e-12)
    assert rise >= 0
    fall = expected_unsampled_correct_mass_change(classes, n, **keywords)
    weight = classes.count * p * (1 - p) ** max(n - 2, 0)
    summand = weight * (q_neg * (m_pos - p * p) - (q - p) * m_neg)
    size = np.sum(weight[classes.correct]) * (q_neg * m_pos + q * m_neg)
    if p.max() < 1:  # the closed form has 0^(N-2) there
        assert fall.total == pytest.approx(
            -factor * np.sum(summand[classes.correct]), rel=1e-9, abs=1e-11 * size + 1e-300
        )
    assert fall.drift == 0


@pytest.mark.parametrize("surrogate", CENTRED)
def test_centred_surrogates_live_in_active_groups_alone(surrogate):
    for function in (expected_correct_mass_change, expected_unsampled_correct_mass_change, expected_logit_update):
        np.testing.assert_array_equal(
            function(START, [2, 8], surrogate=surrogate), function(START, [2, 8], surrogate=surrogate, active=True)
        )


def test_mean_field_of_centred_surrogates_knows_n_through_one_factor():
    n = np.array([2, 8, 512, 131_072])
    for surrogate in CENTRED:
        step = expected_logit_update(START, n, surrogate=surrogate)
        np.testing.assert_allclose(step, 2 * step[:1] * ((n - 1) / n)[:, None], rtol=1e-14)


def test_logit_gain_threshold():
    assert logit_gain_threshold(START) == pytest.approx(3.79e-5, abs=5e-8)
    policy = np.array([0.02, 0.1, 0.38, 0.1, 0.1, 0.1, 0.1, 0.1])
    correct = np.arange(8) < 3
    classes = ActionClasses.from_policy(policy, correct)
    step = expected_logit_update(classes, 7, surrogate="linear")
    gains = step[classes.correct] > 0
    assert 0 < gains.sum() < 3
    np.testing.assert_array_equal(gains, classes.probability[classes.correct] > logit_gain_threshold(classes))
    assert np.isnan(logit_gain_threshold(ActionClasses([2], [0.5], np.array([True]))))


# per unit of learning rate, N = 2, 8, 512, 8192, 131072, rewards 1 and -1
SIZES = [2, 8, 512, 8192, 131_072]


def test_numbers_at_the_appendix_j_start():
    every = expected_unsampled_correct_mass_change(START, SIZES).total
    np.testing.assert_allclose(every, [-2.18e-9, -2.17e-9, -2.07e-9, -9.9e-10, -6.3e-14], rtol=5e-3)
    assert np.all(np.diff(every) > 0)
    active = expected_unsampled_correct_mass_change(START, [2, 4, 8, 16, 32], active=True).total
    np.testing.assert_allclose(active, [-0.80e-9, -1.63e-9, -2.09e-9, -2.17e-9, -2.17e-9], rtol=7e-3)
    np.testing.assert_allclose(
        expected_correct_mass_change(START, [2, 8192, 131_072]), [4.206e-10, 3.14e-10, 6.0e-11], rtol=6e-3
    )


def test_an_inverted_u_appears_only_in_active_groups():
    n = 2.0 ** np.arange(1, 18)
    every = -expected_unsampled_correct_mass_change(START, n).total
    active = -expected_unsampled_correct_mass_change(START, n, active=True).total
    assert np.argmax(every) == 0
    assert 0 < np.argmax(active) < n.size - 1


def test_grpo_decline_peaks_near_one_over_the_square_root_of_the_rare_mass():
    classes = ActionClasses.from_logits([10_000, 118_000], [3.0, 0.0], np.array([True, False]))
    lam = -np.log1p(-classes.probability[0])
    n = np.arange(2, 600)
    decline = -expected_unsampled_correct_mass_change(classes, n, surrogate="importance_ratio").total
    assert abs(n[np.argmax(decline)] - (1 + np.sqrt(1 + 4 / lam)) / 2) <= 1


def test_the_mean_of_the_distinct_sum_is_no_unbiased_surrogate():
    world, _ = written("1/2 cu, 1/8 cu, 1/4 wu, 1/8 wu", 1, 0)
    n = np.array([1, 2, 3, 5])
    mean = expected_batch_baseline(classes_of(world), n, reward_wrong=0) / n
    np.testing.assert_allclose(mean, [0.266, 0.202, 0.160, 0.109], atol=5e-4)
    assert np.all(mean < 0.625)


def test_active_exclusion_is_lemma_3_1():
    rate, tau = 0.4, 0.1
    classes = ActionClasses([1, 1, 1], [tau, rate - tau, 1 - rate], np.array([True, True, False]))
    one = ActionClasses([1, 1], [rate, 1 - rate], np.array([True, False]))
    n = np.array([2, 5, 40])
    missed = tail_miss_probability(rate, [[tau], [rate - tau]], n)
    got = expected_moments(classes, n, active=True).unsampled_correct_mass
    np.testing.assert_allclose(got, tau * missed[0] + (rate - tau) * missed[1], rtol=1e-13)
    assert np.all(expected_moments(one, n, active=True).unsampled_correct_mass == 0)


def exact_probabilities(classes):
    """The float probabilities divided by their exact sum, so that 1 - p is exact too."""
    total = mpmath.fsum(m * mpmath.mpf(q) for m, q in zip(classes.count, classes.probability, strict=True))
    return [mpmath.mpf(q) / total for q in classes.probability]


def random_tables(rng, repeats):
    for _ in range(repeats):
        count = np.floor(10 ** rng.uniform(0, 5, size=4))
        share = 10 ** rng.uniform(-16, 0, size=4)
        yield ActionClasses(count, share / share.sum() / count, np.array([True, True, False, False]))


def test_sampled_mass_of_active_groups_keeps_its_digits():
    rng = np.random.default_rng(21)
    worst = 0
    for classes in random_tables(rng, 400):
        n = int(10 ** rng.uniform(0, 7)) + 1
        got = expected_moments(classes, n, active=True).sampled_correct_mass
        with mpmath.workdps(120):
            p = exact_probabilities(classes)
            exact = active_sampled_mass([int(m) for m in classes.count], p, classes.correct, n)
            error = float(abs(got - exact) / exact)
        worst = max(worst, error)
    assert worst <= 8 * 2.0**-52


def test_mass_changes_keep_their_digits():
    rng = np.random.default_rng(22)
    worst = np.zeros(2)
    for classes in random_tables(rng, 150):
        n = int(10 ** rng.uniform(0, 6)) + 1
        rise = expected_correct_mass_change(classes, n)
        fall = expected_unsampled_correct_mass_change(classes, n)
        with mpmath.workdps(120):
            table = ([int(m) for m in classes.count], exact_probabilities(classes), classes.correct, n)
            rewards = (mpmath.mpf(1), mpmath.mpf(-1))
            rise_error = float(abs(rise - correct_change(*table, rewards)))
            fall_error = float(abs(fall.total - unsampled_change(*table, rewards)))
        errors = rise_error / rise, fall_error / max(abs(fall.drift) + abs(fall.coupling), 1e-300)
        worst = np.maximum(worst, errors)
    assert np.all(worst < [1e-10, 5e-14])


def test_drawn_and_active_reference_is_the_enumerated_probability():
    world, _ = written("1/8 cu, 1/4 cu, 1/2 wu, 1/8 wu", 1, 0)
    for n in (1, 2, 3, 4):
        exact = expectation(world, n, lambda d: Fraction(0 in d), active=True)
        assert float(drawn_and_active(mpmath.mpf(1) / 8, mpmath.mpf(5) / 8, n)) == pytest.approx(
            float(exact), abs=1e-15
        )


def test_monte_carlo_of_the_whole_policy():
    # five z-scores below 4.5 each: false alarms in 3 of 100,000 seeds
    classes, n, groups = START, 2048, 150
    p = np.repeat(classes.probability, classes.count.astype(int))
    correct = np.repeat(classes.correct, classes.count.astype(int))
    cdf = np.cumsum(p)
    rng = np.random.default_rng(2026)
    rows = []
    for _ in range(groups):
        drawn = np.bincount(np.searchsorted(cdf, rng.random(n) * cdf[-1], side="right"), minlength=p.size)
        moments = sampled_moments(p, correct, drawn)
        change = unsampled_correct_mass_change(p, correct, drawn)
        rows.append(
            [
                moments.sampled_correct_mass,
                moments.unsampled_correct_collision,
                moments.batch_baseline(),
                correct_mass_change(p, correct, drawn).total,
                change.total,
            ]
        )
    moments = expected_moments(classes, n)
    target = np.array(
        [
            moments.sampled_correct_mass,
            moments.unsampled_correct_collision,
            expected_batch_baseline(classes, n),
            expected_correct_mass_change(classes, n),
            expected_unsampled_correct_mass_change(classes, n).total,
        ]
    )
    error = np.std(rows, axis=0, ddof=1) / np.sqrt(groups)
    assert np.all(np.abs(np.mean(rows, axis=0) - target) < 4.5 * error)
    # a target for one rollout in twenty less must be told apart
    wrong = expected_moments(classes, n - n // 20).sampled_correct_mass
    assert abs(np.mean(rows, axis=0)[0] - wrong) > 8 * error[0]
    wrong = expected_unsampled_correct_mass_change(classes, n, reward_wrong=0).total * n / (n - 1) ** 2
    assert abs(np.mean(rows, axis=0)[4] - wrong) > 8 * error[4]


def test_limits():
    moments = expected_moments(START, 10**9)
    assert moments.sampled_correct_mass == pytest.approx(START.correct_mass, rel=1e-14)
    assert moments.unsampled_correct_mass == 0
    for value in expected_moments(START, 1, active=True):
        assert value == 0
    sure = ActionClasses([1, 5], [1.0, 0.0], np.array([True, False]))
    assert expected_unsampled_correct_mass_change(sure, [1, 8]).total == pytest.approx([0, 0])
    assert expected_correct_mass_change(sure, 8) == 0
    assert np.all(np.array(expected_moments(sure, [1, 8], active=True)) == 0)
    nearly = ActionClasses([1, 1], [1 - 2**-40, 2**-40], np.array([True, False]))
    assert expected_moments(nearly, 3).unsampled_correct_mass == pytest.approx(2**-120 * (1 - 2**-40), rel=1e-12)


def test_defaults_are_the_documented_ones():
    rewards = {"reward_correct": 1.0, "reward_wrong": -1.0}
    update = {"surrogate": "linear_distinct", "learning_rate": 1.0, **rewards}
    for function, arguments in (
        (expected_moments, {}),
        (expected_batch_baseline, rewards),
        (expected_logit_update, update),
        (expected_correct_mass_change, update),
        (expected_unsampled_correct_mass_change, update),
    ):
        given = function(START, 8, active=False, **arguments)
        np.testing.assert_array_equal(function(START, 8), given)
        assert not np.array_equal(function(START, 8, active=True), given)


def test_shapes():
    n = np.array([[2], [8], [512]])
    keywords = {"reward_wrong": np.array([-1.0, 0.0]), "learning_rate": np.array([0.1, 0.2])}
    assert expected_correct_mass_change(START, n, **keywords).shape == (3, 2)
    assert expected_unsampled_correct_mass_change(START, n, **keywords).drift.shape == (3, 2)
    assert expected_logit_update(START, n, **keywords).shape == (3, 2, 3)
    for surrogate in SURROGATES:
        for active in (False, True):
            which = {"surrogate": surrogate, "active": active}
            many = expected_unsampled_correct_mass_change(START, n, **which, **keywords)
            one = expected_unsampled_correct_mass_change(START, 8, **which, reward_wrong=0.0, learning_rate=0.2)
            assert many.coupling.shape == many.drift.shape == (3, 2)
            assert many.total[1, 1] == pytest.approx(one.total, rel=1e-14)
            assert expected_correct_mass_change(START, n, **which).shape == (3, 1)
            assert expected_logit_update(START, n, **which).shape == (3, 1, 3)
    assert isinstance(expected_correct_mass_change(START, 2), float)
    assert isinstance(expected_unsampled_correct_mass_change(START, 2).total, float)


@pytest.mark.parametrize("function", [expected_correct_mass_change, expected_unsampled_correct_mass_change])
@pytest.mark.parametrize(
    ("group_size", "keywords", "message"),
    [
        (0, {}, "group_size must be a whole number of at least 1, got 0"),
        (2.5, {}, "group_size must be a whole number"),
        (np.inf, {}, "group_size must be a whole number"),
        ("8", {}, "group_size must be a real number"),
        (8, {"reward_wrong": 1}, "reward_correct must be above reward_wrong"),
        (8, {"learning_rate": np.nan}, "learning_rate must be finite"),
        (8, {"surrogate": "grpo"}, "surrogate must be one of"),
    ],
)
def test_bad_input_is_refused_in_one_line(function, group_size, keywords, message):
    with pytest.raises(ValueError, match=message) as caught:
        function(START, group_size, **keywords)
    assert "\n" not in str(caught.value)
