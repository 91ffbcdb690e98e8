import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.simulate import PolicyConfig, RunConfig, UpdateConfig
from fgrpo.simulate.policy import softmax
from fgrpo.simulate.updates import (
    ADVANTAGE_SCALES,
    OPTIMIZERS,
    SUCCESS_ESTIMATES,
    SURROGATES,
    WEIGHTS,
    centred_advantages,
    weighted_group,
)
from fgrpo.theory import weights as theory
from fgrpo.theory.updates import logit_update
from reference.simulation import literal_optimizer, surrogate_gradient

ACTIONS, CORRECT = 7, 3


def gradient_of(surrogate, logits, counts, update, weight):
    counts = np.array(counts)
    group_size = int(counts.sum())
    config = RunConfig(group_size, policy=PolicyConfig(ACTIONS, CORRECT), update=update)
    group = weighted_group(config, counts, group_size, int(counts[:CORRECT].sum()) / group_size, weight)
    gradient = np.full(ACTIONS, np.nan)
    SURROGATES[surrogate](group, softmax(logits), gradient)
    return gradient


group_counts = st.lists(st.integers(0, 4), min_size=ACTIONS, max_size=ACTIONS).filter(any)


@pytest.mark.parametrize(
    ("surrogate", "scale"), [(one, scale) for one in SURROGATES for scale in ADVANTAGE_SCALES][:-1]
)
@given(
    logits=st.lists(st.floats(-4, 4), min_size=ACTIONS, max_size=ACTIONS),
    counts=group_counts,
    rewards=st.tuples(st.floats(-3, 3), st.floats(0.1, 5)),
    weight=st.floats(0, 1),
)
def test_gradient_is_that_of_the_literal_surrogate(surrogate, scale, logits, counts, rewards, weight):
    reward_wrong, gap = rewards
    update = UpdateConfig(
        surrogate=surrogate,
        advantage_scale=scale,
        scale_eps=0.01,
        reward_wrong=reward_wrong,
        reward_correct=reward_wrong + gap,
    )
    per_action = [update.reward_correct] * CORRECT + [reward_wrong] * (ACTIONS - CORRECT)
    eps = 0.01 if scale == "std" else None
    expected = surrogate_gradient(logits, counts, per_action, weight, surrogate=surrogate, scale_eps=eps)
    actual = gradient_of(surrogate, np.array(logits), counts, update, weight)
    # a homogeneous group has rewards equal to their mean only up to rounding in the literal one, which eps magnifies
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)


@given(counts=group_counts, r=st.tuples(st.floats(-2, 2), st.floats(0.1, 3)))
def test_linear_distinct_is_equation_7(counts, r):
    """p_i (R_i s_i - S_R) / N, written out."""
    logits, update = np.linspace(2, -1, ACTIONS), UpdateConfig(reward_wrong=r[0], reward_correct=r[0] + r[1])
    p, n = softmax(logits), sum(counts)
    reward = [update.reward_correct] * CORRECT + [update.reward_wrong] * (ACTIONS - CORRECT)
    baseline = math.fsum(reward[i] * p[i] for i in range(ACTIONS) if counts[i])
    expected = [p[i] * (reward[i] * (counts[i] > 0) - baseline) / n for i in range(ACTIONS)]
    actual = gradient_of("linear_distinct", logits, counts, update, 1.0)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-16)
    theory = logit_update(p, np.arange(ACTIONS) < CORRECT, counts, reward_correct=r[0] + r[1], reward_wrong=r[0])
    np.testing.assert_allclose(actual, theory, rtol=1e-12, atol=1e-16)


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


@pytest.mark.parametrize("scale", ADVANTAGE_SCALES)
@pytest.mark.parametrize("counts", [[3, 0, 1, 0, 0, 0, 0], [0, 0, 0, 2, 0, 5, 0], [1, 0, 0, 0, 0, 0, 0]])
def test_homogeneous_groups_have_exactly_no_gradient_but_under_equation_7(counts, scale):
    update = UpdateConfig(reward_correct=0.7, reward_wrong=0.1, advantage_scale=scale)
    for surrogate in ("importance_ratio", "linear"):
        assert not gradient_of(surrogate, np.linspace(2, -1, ACTIONS), counts, update, 1.0).any()
    raw = gradient_of("linear_distinct", np.linspace(2, -1, ACTIONS), counts, UpdateConfig(), 1.0)
    assert np.abs(raw).min() > 1e-4


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.5), (0.5, 0.0)])
def test_optimizers_are_those_of_torch_with_decoupled_decay(name, weight_decay, betas):
    update = UpdateConfig(optimizer=name, learning_rate=0.02, betas=betas, eps=1e-3, weight_decay=weight_decay)
    rng = np.random.default_rng(5)
    logits = rng.normal(size=40)
    parameter = torch.tensor(logits.copy(), requires_grad=True)
    expected, ours = literal_optimizer(parameter, update), OPTIMIZERS[name](update, lambda: np.zeros(40))
    for step in range(50):
        gradient = rng.normal(size=40) * 10.0 ** rng.integers(-6, 2, size=40) * (rng.random(40) < 0.5)
        if step % 7 == 0:
            gradient[:] = 0.0
        parameter.grad = torch.tensor(gradient)
        with torch.no_grad():
            parameter *= 1 - 0.02 * weight_decay
        expected.step()
        ours.ascend(logits, gradient)
        np.testing.assert_allclose(logits, parameter.detach().numpy(), rtol=1e-12, atol=1e-14)


def test_adam_with_decay_is_torch_adamw():
    update = UpdateConfig(learning_rate=0.02, weight_decay=0.3)
    rng = np.random.default_rng(5)
    logits = rng.normal(size=40)
    parameter = torch.tensor(logits.copy(), requires_grad=True)
    expected = torch.optim.AdamW([parameter], lr=0.02, weight_decay=0.3, maximize=True, foreach=False)
    ours = OPTIMIZERS["adam"](update, lambda: np.zeros(40))
    for _ in range(20):
        gradient = rng.normal(size=40)
        parameter.grad = torch.tensor(gradient)
        expected.step()
        ours.ascend(logits, gradient)
    np.testing.assert_allclose(logits, parameter.detach().numpy(), rtol=1e-12)


def test_adam_leaves_untouched_logits_and_lets_momentum_fade():
    update = UpdateConfig(betas=(0.5, 0.999))
    logits, expected, moments = np.full(2, 1.5), 1.5, [0.0, 0.0]
    adam = OPTIMIZERS["adam"](update, lambda: np.zeros(2))
    for step in range(1, 3001):
        gradient = np.array([0.0, 1.0 if step == 1 else 0.0])
        moments = [0.5 * moments[0] + 0.5 * gradient[1], 0.999 * moments[1] + 0.001 * gradient[1] ** 2]
        corrected = moments[0] / (1 - 0.5**step), moments[1] / (1 - 0.999**step)
        expected += 0.01 * corrected[0] / (math.sqrt(corrected[1]) + 1e-8)
        adam.ascend(logits, gradient)
    assert logits[0] == 1.5
    assert logits[1] == pytest.approx(expected, rel=1e-13)


@given(rate=st.floats(0, 1), gamma=st.floats(0, 3), parameter=st.floats(0, 5), threshold=st.floats(0, 1))
def test_weights_are_those_of_theory(rate, gamma, parameter, threshold):
    changes = {"weight_scale": parameter, "weight_alpha": parameter, "weight_low": parameter}
    run = RunConfig(8, gamma=gamma, weight_threshold=threshold, **changes)
    assert set(WEIGHTS) <= set(theory.WEIGHTS)
    assert WEIGHTS["focal"](rate, run) == theory.focal_weight(rate, gamma)
    assert WEIGHTS["constant"](rate, run) == parameter
    assert WEIGHTS["hard_upweight"](rate, run) == pytest.approx(1 + parameter * (1 - rate))
    assert WEIGHTS["step"](rate, run) == (1.0 if rate <= threshold else parameter)


def test_weights_at_chosen_points():
    assert WEIGHTS["focal"](0.25, RunConfig(8, gamma=2.0)) == 0.5625
    assert WEIGHTS["focal"](1.0, RunConfig(8)) == 1.0
    assert WEIGHTS["hard_upweight"](0.25, RunConfig(8, weight_alpha=2)) == 2.5
    assert [WEIGHTS["step"](rate, RunConfig(8, weight_low=0.25)) for rate in (0.0, 0.5, 0.625)] == [1, 1, 0.25]


@given(hits=st.lists(st.integers(0, 8), min_size=1, max_size=6), a=st.floats(0.1, 9), rate=st.floats(0.01, 1))
def test_estimates_follow_their_definitions(hits, a, rate):
    run = RunConfig(8, prior_correct=a, prior_wrong=2 * a, ema_rate=rate)
    estimates = {name: make(run) for name, make in SUCCESS_ESTIMATES.items()}
    average = hits[0] / 8
    for x in hits:
        average = (1 - rate) * average + rate * x / 8
        seen = {name: float(estimate(x / 8, 0.9)) for name, estimate in estimates.items()}
        expected = {"empirical": x / 8, "population": 0.9, "shrunk": (x + a) / (8 + 3 * a), "ema": average}
        assert seen == pytest.approx(expected, rel=1e-13)


def test_scales_at_chosen_points():
    assert ADVANTAGE_SCALES["none"](UpdateConfig(), 0.375) == 1.0
    update = UpdateConfig(reward_correct=3.0, reward_wrong=1.0, scale_eps=0.5)
    assert ADVANTAGE_SCALES["std"](update, 0.2) == pytest.approx(np.std([3.0] + [1.0] * 4) + 0.5)


@given(hits=st.integers(0, 9), rewards=st.tuples(st.integers(-3, 3), st.integers(1, 4)))
def test_advantages_are_centred(hits, rewards):
    wrong, gap = rewards
    of_correct, of_wrong = centred_advantages(UpdateConfig(reward_correct=wrong + gap, reward_wrong=wrong), hits / 9)
    mean = (hits * (wrong + gap) + (9 - hits) * wrong) / 9
    assert of_correct == pytest.approx(wrong + gap - mean, abs=1e-12)
    assert of_wrong == pytest.approx(wrong - mean, abs=1e-12)
