from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given

from fgrpo.theory.finite_step import first_order_mass_change
from fgrpo.theory.mass_dynamics import (
    centred_mass_change,
    correct_mass_change,
    correct_rise_margin,
    unsampled_correct_mass_change,
    unsampled_decline_margin,
)
from fgrpo.theory.updates import CENTRED, SURROGATES, logit_update, sampled_moments
from reference.group_updates import batch_baseline, is_active, logit_step, mass_changes, through_softmax
from reference.worlds import IN_SCOPE, arrays, counts, reward_arguments, worlds_with_draws, written

ROUNDING = 4e-16


def inputs(world, draws):
    return (*arrays(world), counts(world, draws))


@given(case=worlds_with_draws())
def test_raw_reward_changes_are_the_jacobian_applied_twice(case):
    world, draws = case
    correct, unsampled, _ = mass_changes(world, draws, "linear_distinct")
    rewards = reward_arguments(world)
    assert correct_mass_change(*inputs(world, draws), **rewards).total == pytest.approx(float(correct), abs=ROUNDING)
    got = unsampled_correct_mass_change(*inputs(world, draws), **rewards)
    assert got.total == pytest.approx(float(unsampled), abs=ROUNDING)
    m = sampled_moments(*inputs(world, draws))
    drift = -float(batch_baseline(world, draws)) * m.unsampled_correct_collision / len(draws)
    assert got.drift == pytest.approx(drift, abs=ROUNDING)


@pytest.mark.parametrize("surrogate", CENTRED)
@given(case=worlds_with_draws())
def test_centred_changes_are_the_jacobian_applied_twice(surrogate, case):
    world, draws = case
    correct, unsampled, _ = mass_changes(world, draws, surrogate)
    got = centred_mass_change(*inputs(world, draws), surrogate=surrogate, **reward_arguments(world))
    assert got.correct == pytest.approx(float(correct), abs=4 * ROUNDING)
    assert got.unsampled_correct == pytest.approx(float(unsampled), abs=4 * ROUNDING)
    if not is_active(world, draws):
        assert got == (0, 0)


@pytest.mark.parametrize("surrogate", SURROGATES)
@given(case=worlds_with_draws())
def test_first_order_change_of_any_surrogate(surrogate, case):
    world, draws = case
    p, correct, drawn = inputs(world, draws)
    step = logit_update(p, correct, drawn, surrogate=surrogate, **reward_arguments(world))
    wanted = mass_changes(world, draws, surrogate)
    for subset, value in zip((correct, correct & (drawn == 0), correct & (drawn > 0)), wanted, strict=True):
        assert first_order_mass_change(p, step, subset) == pytest.approx(float(value), abs=4 * ROUNDING)


@pytest.mark.parametrize("surrogate", ["linear_distinct", *CENTRED])
@given(case=worlds_with_draws())
def test_margins_are_the_change_without_its_positive_factor(surrogate, case):
    world, draws = case
    correct, unsampled, _ = mass_changes(world, draws, surrogate)
    rewards = reward_arguments(world)
    rise = correct_rise_margin(*inputs(world, draws), surrogate=surrogate, **rewards)
    decline = unsampled_decline_margin(*inputs(world, draws), surrogate=surrogate, **rewards)
    centred = surrogate in CENTRED
    factor = rewards["reward_correct"] - rewards["reward_wrong"] if centred else 1 / len(draws)
    for margin, exact in ((rise, correct), (decline, -unsampled)):
        assert factor * margin == pytest.approx(float(exact), abs=4 * ROUNDING)
        assert abs(margin) < 1e-14 if exact == 0 else np.sign(margin) == np.sign(float(exact))


@given(case=worlds_with_draws())
def test_grpo_raises_the_correct_mass_in_every_active_group(case):
    world, draws = case
    assume(is_active(world, draws))
    got = centred_mass_change(*inputs(world, draws), **reward_arguments(world))
    assert got.correct > 0
    # falls iff there is unsampled-correct mass and drawn correct actions are the more probable ones on average
    right = [world.policy[j] for j in draws if world.correct[j]]
    wrong = [world.policy[j] for j in draws if not world.correct[j]]
    unsampled = sum(p for i, p in enumerate(world.policy) if world.correct[i] and i not in draws)
    gap = sum(right) / len(right) - sum(wrong) / len(wrong)
    if gap != 0:  # in floats equal means may differ by rounding
        assert (got.unsampled_correct < 0) == (unsampled > 0 and gap > 0)


@given(case=worlds_with_draws(rewards=IN_SCOPE))
def test_sampled_correct_mass_never_falls_with_a_non_negative_baseline(case):
    world, draws = case
    assume(batch_baseline(world, draws) >= 0)
    assert mass_changes(world, draws, "linear_distinct")[2] >= 0
    rewards = reward_arguments(world)
    total = correct_mass_change(*inputs(world, draws), **rewards).total
    assert total - unsampled_correct_mass_change(*inputs(world, draws), **rewards).total >= -ROUNDING


@given(case=worlds_with_draws(rewards=IN_SCOPE))
def test_first_two_terms_are_non_negative_in_scope(case):
    world, draws = case
    terms = correct_mass_change(*inputs(world, draws), **reward_arguments(world))
    assert terms.sampled_correct >= 0
    assert terms.sampled_wrong >= 0
    assert world.reward_wrong <= batch_baseline(world, draws) <= world.reward_correct


# probability, correct/wrong, sampled/unsampled; rewards; N/eta times dQ_pos and dQ_u,pos (None: another test has it)
EXAMPLES = {
    "classic, rewards 1 and 0": ("1/3 ws, 1/3 cu, 1/3 cs", 1, 0, "1/27", "-1/27"),
    "classic, rewards 1 and -1": ("1/4 ws, 1/4 cu, 1/2 cs", 1, -1, "13/128", "-5/128"),
    "correct mass falls, S_R > 0": ("1/5 ws, 1/5 cs, 3/5 cu", 1, 0, "-1/625", None),
    "correct mass falls at Q = 7/8, S_R > 0": ("1/8 ws, 3/4 cu, 1/8 cs", 1, 0, "-11/2048", None),
    "unsampled-correct gains, S_R > 0, rewards 1 and 0": ("1/5 cu, 1/5 cs, 3/5 ws", 1, 0, None, "1/625"),
    "unsampled-correct gains, S_R > 0, rewards 1 and -1": ("1/8 cu, 1/8 cs, 3/8 ws, 3/8 cs", 1, -1, None, "1/1024"),
    "unsampled-correct loses, S_R < 0": ("1/8 ws, 1/8 cu, 3/8 ws, 3/8 cs", 1, -1, None, "-1/1024"),
}


@pytest.mark.parametrize(("text", "r_c", "r_w", "correct", "unsampled"), EXAMPLES.values(), ids=EXAMPLES)
def test_literal_examples(text, r_c, r_w, correct, unsampled):
    world, draws = written(text, r_c, r_w)
    exact = [len(draws) * change for change in mass_changes(world, draws, "linear_distinct")]
    rewards = reward_arguments(world)
    got = (
        len(draws) * correct_mass_change(*inputs(world, draws), **rewards).total,
        len(draws) * unsampled_correct_mass_change(*inputs(world, draws), **rewards).total,
    )
    for value, reference, wanted in zip(got, exact, (correct, unsampled), strict=False):
        if wanted is not None:
            assert reference == Fraction(wanted)
            assert value == pytest.approx(float(Fraction(wanted)), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "coupling"), [("1/4 ws, 1/4 cs, 1/2 cu", Fraction(1, 64)), ("1/2 cu, 1/3 cs, 1/6 ws", Fraction(1, 108))]
)
def test_the_coupling_may_add_mass_in_a_reward_positive_group(text, coupling):
    world, draws = written(text, 1, 0)
    assert batch_baseline(world, draws) > 0
    got = unsampled_correct_mass_change(*inputs(world, draws), reward_wrong=0, learning_rate=len(draws))
    assert got.coupling == pytest.approx(float(coupling), rel=1e-12)
    assert got.drift < 0


@pytest.mark.parametrize(
    ("text", "action", "change"),
    [("1/4 ws, 1/8 cu, 1/8 cs, 1/2 cs", 2, Fraction(-1, 2048)), ("1/8 ws, 3/4 cu, 1/8 cs", 0, Fraction(11, 2048))],
)
def test_single_sampled_actions_may_move_against_their_reward(text, action, change):
    world, draws = written(text, 1, 0)
    assert len(draws) * through_softmax(world.policy, logit_step(world, draws, "linear_distinct"))[action] == change
    p, correct, drawn = inputs(world, draws)
    step = logit_update(p, correct, drawn, reward_wrong=0, learning_rate=len(draws))
    assert first_order_mass_change(p, step, np.arange(p.size) == action) == pytest.approx(float(change), rel=1e-12)


def test_out_of_scope_rewards_break_the_bounds_on_the_baseline():
    world, draws = written("1/7 ws, 1/7 cs, 5/7 cu", 1, Fraction(1, 5))
    assert batch_baseline(world, draws) == Fraction(6, 35) < world.reward_wrong
    assert correct_mass_change(*inputs(world, draws), reward_wrong=0.2).sampled_wrong < 0
    world, draws = written("1/2 cs, 1/2 wu", Fraction(-1, 2), -2)
    assert batch_baseline(world, draws) > world.reward_correct
    assert correct_mass_change(*inputs(world, draws), reward_correct=-0.5, reward_wrong=-2).sampled_correct < 0


def test_spread_correct_answers_against_one_concentrated_wrong_one():
    p = np.append(np.full(1000, 0.00098), 0.02)
    correct = np.arange(1001) < 1000
    drawn = np.r_[np.arange(31), 1000]
    group = (p, correct, np.bincount(drawn, minlength=1001))
    assert sampled_moments(*group).batch_baseline() == pytest.approx(0.01038, rel=1e-12)
    assert correct_mass_change(*group, learning_rate=32).total > 0
    assert unsampled_correct_mass_change(*group, learning_rate=32).total == pytest.approx(3.6e-4, abs=5e-6)


def test_shapes_and_scalars():
    rng = np.random.default_rng(2)
    p, correct = rng.dirichlet(np.ones(5), size=3), np.array([True, True, False, False, True])
    drawn = rng.integers(0, 2, size=(4, 1, 5))
    eta = np.linspace(0, 1, 3)
    terms = correct_mass_change(p, correct, drawn, learning_rate=eta)
    assert terms.unsampled.shape == (4, 3)
    assert np.all(terms.total[:, 0] == 0)
    one = correct_mass_change(p[1], correct, drawn[2, 0], learning_rate=eta[1])
    assert isinstance(one.total, float)
    assert one.total == terms.total[2, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: centred_mass_change([0.5, 0.5], [True, False], [1, 1], surrogate="linear_counts"), "must be one of"),
        (lambda: correct_rise_margin([0.5, 0.5], [True, False], [1, 1], surrogate="ratio_raw"), "must be one of"),
        (lambda: unsampled_decline_margin([0.5, 0.5], [True, False], [1, 1], reward_wrong=2), "must be above"),
        (lambda: correct_mass_change([0.5, 0.4], [True, False], [1, 1]), "sum of policy"),
        (lambda: unsampled_correct_mass_change([0.5, 0.5], [True, False], [1, 1, 0]), "sampled must have"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
