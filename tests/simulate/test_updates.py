import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.simulate import RunConfig, UpdateConfig
from fgrpo.simulate.policy import softmax
from fgrpo.simulate.updates import (
    ADVANTAGE_SCALES,
    SUCCESS_ESTIMATES,
    SURROGATES,
    WEIGHTS,
    Adam,
    Group,
    centred_advantages,
)
from fgrpo.theory.updates import logit_update
from reference.simulation import surrogate_gradient

ACTIONS, CORRECT = 7, 3


def gradient_of(surrogate, logits, counts, update, weight):
    counts = np.array(counts)
    group_size = int(counts.sum())
    advantages = centred_advantages(update, int(counts[:CORRECT].sum()) / group_size)
    group = Group(counts, CORRECT, group_size, tuple(weight * one for one in advantages))
    gradient = np.full(ACTIONS, np.nan)
    SURROGATES[surrogate](group, softmax(logits), gradient)
    return gradient


group_counts = st.lists(st.integers(0, 4), min_size=ACTIONS, max_size=ACTIONS).filter(any)


@pytest.mark.parametrize("surrogate", SURROGATES)
@given(
    logits=st.lists(st.floats(-4, 4), min_size=ACTIONS, max_size=ACTIONS),
    counts=group_counts,
    rewards=st.tuples(st.floats(-3, 3), st.floats(0.1, 5)),
    weight=st.floats(0, 1),
)
def test_gradient_is_that_of_the_literal_surrogate(surrogate, logits, counts, rewards, weight):
    reward_wrong, gap = rewards
    update = UpdateConfig(reward_wrong=reward_wrong, reward_correct=reward_wrong + gap)
    per_action = [update.reward_correct] * CORRECT + [reward_wrong] * (ACTIONS - CORRECT)
    expected = surrogate_gradient(logits, counts, per_action, weight, ratio=surrogate == "importance_ratio")
    actual = gradient_of(surrogate, np.array(logits), counts, update, weight)
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("surrogate", SURROGATES)
@given(counts=group_counts, weight=st.floats(0, 1))
def test_simulated_and_closed_form_steps_are_the_same(surrogate, counts, weight):
    logits, update = np.linspace(2, -1, ACTIONS), UpdateConfig(reward_wrong=-0.5, reward_correct=1.5)
    stated = logit_update(
        softmax(logits),
        np.arange(ACTIONS) < CORRECT,
        counts,
        surrogate=surrogate,
        learning_rate=weight,
        reward_correct=1.5,
        reward_wrong=-0.5,
    )
    actual = gradient_of(surrogate, logits, counts, update, weight)
    np.testing.assert_allclose(actual, stated, rtol=1e-12, atol=1e-16)


@given(counts=group_counts)
def test_ratio_gives_unsampled_actions_exactly_zero_and_linear_one_common_factor(counts):
    logits = np.linspace(2, -1, ACTIONS)
    unsampled = np.array(counts) == 0
    assert not gradient_of("importance_ratio", logits, counts, UpdateConfig(), 0.7)[unsampled].any()
    per_mass = gradient_of("linear", logits, counts, UpdateConfig(), 0.7)[unsampled] / softmax(logits)[unsampled]
    np.testing.assert_allclose(per_mass, per_mass.mean() if unsampled.any() else [], rtol=1e-12)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("counts", [[3, 0, 1, 0, 0, 0, 0], [0, 0, 0, 2, 0, 5, 0], [1, 0, 0, 0, 0, 0, 0]])
def test_homogeneous_groups_have_no_gradient(surrogate, counts):
    update = UpdateConfig(reward_correct=0.7, reward_wrong=0.1)
    assert not gradient_of(surrogate, np.linspace(2, -1, ACTIONS), counts, update, 1.0).any()


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.5), (0.5, 0.0)])
def test_adam_is_torch_adamw(weight_decay, betas):
    update = UpdateConfig(learning_rate=0.02, betas=betas, eps=1e-3, weight_decay=weight_decay)
    rng = np.random.default_rng(5)
    logits = rng.normal(size=40)
    theirs = torch.tensor(logits.copy(), requires_grad=True)
    torch_adam = torch.optim.AdamW(
        [theirs], lr=0.02, betas=betas, eps=1e-3, weight_decay=weight_decay, maximize=True, foreach=False
    )
    ours = Adam(update, 40)
    for step in range(50):
        gradient = rng.normal(size=40) * 10.0 ** rng.integers(-6, 2, size=40) * (rng.random(40) < 0.5)
        if step % 7 == 0:
            gradient[:] = 0.0
        theirs.grad = torch.tensor(gradient)
        torch_adam.step()
        ours.ascend(logits, gradient)
        np.testing.assert_allclose(logits, theirs.detach().numpy(), rtol=1e-12, atol=1e-14)


def test_adam_leaves_untouched_logits_and_lets_momentum_fade():
    update = UpdateConfig(betas=(0.5, 0.999))
    logits, expected, moments = np.full(2, 1.5), 1.5, [0.0, 0.0]
    adam = Adam(update, 2)
    for step in range(1, 3001):
        gradient = np.array([0.0, 1.0 if step == 1 else 0.0])
        moments = [0.5 * moments[0] + 0.5 * gradient[1], 0.999 * moments[1] + 0.001 * gradient[1] ** 2]
        corrected = moments[0] / (1 - 0.5**step), moments[1] / (1 - 0.999**step)
        expected += 0.01 * corrected[0] / (math.sqrt(corrected[1]) + 1e-8)
        adam.ascend(logits, gradient)
    assert logits[0] == 1.5
    assert logits[1] == pytest.approx(expected, rel=1e-13)


def test_weight_estimate_and_scale():
    run = RunConfig(8, gamma=2.0)
    assert WEIGHTS["focal"](0.25, run) == 0.5625
    assert WEIGHTS["focal"](1.0, RunConfig(8)) == 1.0
    assert SUCCESS_ESTIMATES["empirical"](run)(0.375, 0.9) == 0.375
    assert ADVANTAGE_SCALES["none"](run.update, 0.375) == 1.0


@given(hits=st.integers(0, 9), rewards=st.tuples(st.integers(-3, 3), st.integers(1, 4)))
def test_advantages_are_centred(hits, rewards):
    wrong, gap = rewards
    of_correct, of_wrong = centred_advantages(UpdateConfig(reward_correct=wrong + gap, reward_wrong=wrong), hits / 9)
    mean = (hits * (wrong + gap) + (9 - hits) * wrong) / 9
    assert of_correct == pytest.approx(wrong + gap - mean, abs=1e-12)
    assert of_wrong == pytest.approx(wrong - mean, abs=1e-12)
