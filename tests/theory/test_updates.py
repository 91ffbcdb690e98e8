import numpy as np
import pytest
import torch
from hypothesis import given

from fgrpo.theory.updates import CENTRED, SURROGATES, logit_update, sampled_moments
from reference.group_updates import batch_baseline, logit_step
from reference.worlds import arrays, counts, reward_arguments, worlds_with_draws

P = np.array([0.1, 0.2, 0.3, 0.4])
CORRECT = np.array([True, False, True, False])
DRAWN = np.array([2, 0, 1, 3])


@pytest.mark.parametrize("surrogate", SURROGATES)
@given(case=worlds_with_draws())
def test_logit_update_is_the_gradient_of_the_surrogate(surrogate, case):
    world, draws = case
    p, correct = arrays(world)
    step = logit_update(p, correct, counts(world, draws), surrogate=surrogate, **reward_arguments(world))
    np.testing.assert_allclose(step, [float(z) for z in logit_step(world, draws, surrogate)], rtol=1e-13, atol=4e-16)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_logit_update_agrees_with_autograd(surrogate):
    rng = np.random.default_rng(3)
    logits = rng.normal(size=9)
    correct = rng.random(9) < 0.5
    p = np.exp(logits) / np.exp(logits).sum()
    draws = rng.choice(9, size=12, p=p)
    assert 0 < correct[draws].sum() < 12
    z = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    policy = torch.softmax(z, 0)
    rewards = torch.tensor(np.where(correct, 1.0, -0.5))[draws]
    chosen = policy[draws]
    ratio = chosen / chosen.detach()
    centred = rewards - rewards.mean()
    distinct = np.unique(draws)
    loss = {
        "linear_distinct": (torch.tensor(np.where(correct, 1.0, -0.5))[distinct] * policy[distinct]).sum() / 12,
        "linear_counts": (rewards * chosen).mean(),
        "linear": (centred * chosen).mean(),
        "ratio_raw": (rewards * ratio).mean(),
        "importance_ratio": (centred * ratio).mean(),
    }[surrogate]
    loss.backward()
    step = logit_update(
        p, correct, np.bincount(draws, minlength=9), surrogate=surrogate, learning_rate=0.7, reward_wrong=-0.5
    )
    np.testing.assert_allclose(step, 0.7 * z.grad.numpy(), rtol=1e-12, atol=1e-16)


def test_equation_7_for_distinct_samples_and_not_for_repeated_ones():
    sampled = np.array([True, True, False, True])
    s_r = sampled_moments(P, CORRECT, sampled).batch_baseline()
    reward = np.where(CORRECT, 1.0, -1.0) * sampled
    np.testing.assert_allclose(logit_update(P, CORRECT, sampled), P * (reward - s_r) / 3, rtol=1e-14)
    np.testing.assert_allclose(
        logit_update(P, CORRECT, sampled, surrogate="linear_counts"), logit_update(P, CORRECT, sampled), rtol=1e-14
    )
    apart = logit_update(P, CORRECT, DRAWN, surrogate="linear_counts") - logit_update(P, CORRECT, DRAWN)
    assert np.abs(apart).max() > 1e-3


def test_unsampled_logits_stand_still_under_the_ratio_surrogate_only():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(1000))
    correct = rng.random(1000) < 0.3
    drawn = rng.multinomial(64, p)
    for surrogate in SURROGATES:
        outside = logit_update(p, correct, drawn, surrogate=surrogate)[drawn == 0]
        assert np.all(outside == 0) == (surrogate == "importance_ratio")


@pytest.mark.parametrize("drawn", [[3, 0, 2, 0], [0, 4, 0, 3]])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_homogeneous_groups_move_raw_surrogates_only(drawn, surrogate):
    step = logit_update(P, CORRECT, drawn, surrogate=surrogate)
    assert np.all(step == 0) == (surrogate in CENTRED)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_no_rollouts_no_update(surrogate):
    assert np.all(logit_update(P, CORRECT, np.zeros(4), surrogate=surrogate) == 0)


@given(case=worlds_with_draws())
def test_moments_by_their_definition(case):
    world, draws = case
    p, correct = arrays(world)
    m = sampled_moments(p, correct, counts(world, draws))
    wanted = [
        float(sum(world.policy[i] ** power for i in range(len(p)) if correct[i] == label and (i in draws) == hit))
        for power in (1, 2)
        for hit in (True, False)
        for label in (True, False)
    ]
    np.testing.assert_allclose(m, wanted, rtol=1e-14, atol=1e-16)
    assert m.batch_baseline(**reward_arguments(world)) == pytest.approx(float(batch_baseline(world, draws)), abs=1e-15)


def test_leading_axes_broadcast():
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.ones(4), size=(3, 1))
    drawn = rng.integers(0, 3, size=(5, 4))
    eta, low = np.linspace(0.1, 1, 3)[:, None], np.linspace(-1, 0, 5)
    many = logit_update(p, CORRECT, drawn, learning_rate=eta, reward_wrong=low)
    assert many.shape == (3, 5, 4)
    one = logit_update(p[2, 0], CORRECT, drawn[1], learning_rate=eta[2, 0], reward_wrong=low[1])
    np.testing.assert_array_equal(many[2, 1], one)
    assert sampled_moments(p, CORRECT, drawn).sampled_wrong_mass.shape == (3, 5)


INVALID = {
    "not normalised": ((P * (1 + 1e-8), CORRECT, DRAWN), {}, "sum of policy must be 1 within 1e-9"),
    "negative": (([-0.5, 1.5], [True, False], [1, 0]), {}, "policy must be between 0 and 1"),
    "nan": (([np.nan, 1.0], [True, False], [1, 0]), {}, "policy must be between 0 and 1"),
    "no action": ((np.empty(0), np.empty(0, bool), np.empty(0)), {}, "at least one action"),
    "scalar policy": ((1.0, [True], [1]), {}, "at least one action"),
    "text": ((["a", "b"], [True, False], [1, 0]), {}, "policy must be a real number"),
    "flags as numbers": ((P, [1, 0, 1, 0], DRAWN), {}, "correct must be a boolean array"),
    "scalar flag": ((P, True, DRAWN), {}, "correct must be a boolean array"),
    "ragged flags": ((P, [[True], [True, False]], DRAWN), {}, "correct must be a boolean array, got a ragged one"),
    "flags too short": ((P, CORRECT[:3], DRAWN), {}, "correct must have the policy's 4 actions"),
    "one flag for all": ((P, CORRECT[:1], DRAWN), {}, "correct must have the policy's 4 actions"),
    "sample too long": ((P, CORRECT, [1, 0, 0, 0, 0]), {}, "sampled must have the policy's 4 actions"),
    "leading axes": ((np.tile(P, (2, 1)), CORRECT, np.ones((3, 4))), {}, "must broadcast"),
    "half a draw": ((P, CORRECT, [0.5, 0, 0, 1]), {}, "sampled must be a whole number of at least 0, got 0.5"),
    "minus one draw": ((P, CORRECT, [-1, 0, 0, 1]), {}, "sampled must be a whole number of at least 0, got -1"),
    "impossible draw": (([0.0, 1.0], [True, False], [1, 1]), {}, "must not hold an action of probability 0"),
    "equal rewards": (
        (P, CORRECT, DRAWN),
        {"reward_wrong": 1.0},
        "reward_correct must be above reward_wrong, got 1 <=",
    ),
    "rewards swapped": ((P, CORRECT, DRAWN), {"reward_correct": -2.0}, "reward_correct must be above reward_wrong"),
    "infinite reward": ((P, CORRECT, DRAWN), {"reward_correct": np.inf}, "reward_correct must be finite"),
    "negative rate": ((P, CORRECT, DRAWN), {"learning_rate": -1.0}, "learning_rate must be finite and at least 0"),
    "unknown surrogate": ((P, CORRECT, DRAWN), {"surrogate": "liner"}, "did you mean 'linear'"),
}


@pytest.mark.parametrize(("arguments", "keywords", "message"), INVALID.values(), ids=INVALID)
def test_bad_input_is_refused_in_one_line(arguments, keywords, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")) as caught:
        logit_update(*arguments, **keywords)
    assert "\n" not in str(caught.value)
