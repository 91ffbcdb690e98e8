import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.advantages import (
    advantage_magnitude,
    matched_learning_rate,
    mean_advantage_magnitude,
    strongest_success_rate,
)

gammas = st.floats(0, 5)


@given(
    n=st.integers(2, 64),
    x=st.integers(1, 63),
    gamma=gammas,
    ddof=st.sampled_from([0, 1]),
    epsilon=st.sampled_from([0.0, 1e-6, 0.1]),
    rewards=st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (0.25, 0.75)]),
)
def test_against_the_advantages_of_a_literal_group(n, x, gamma, ddof, epsilon, rewards):
    x = 1 + (x - 1) % (n - 1)
    r = np.array([rewards[1]] * x + [rewards[0]] * (n - x))
    gap = rewards[1] - rewards[0]
    advantages = (1 - x / n) ** gamma * (r - r.mean()) / (r.std(ddof=ddof) + epsilon * gap)
    for correct, expected in ((True, advantages[0]), (False, -advantages[-1])):
        value = advantage_magnitude(x / n, correct=correct, gamma=gamma, ddof=ddof, group_size=n, epsilon=epsilon)
        assert value == pytest.approx(expected, rel=1e-12)
    if ddof == epsilon == 0:
        assert mean_advantage_magnitude(x / n, gamma=gamma) == pytest.approx(np.abs(advantages).mean(), rel=1e-12)


def test_limits():
    gamma = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    assert np.all(advantage_magnitude(0.0, correct=True, gamma=gamma) == np.inf)
    assert np.all(advantage_magnitude(1.0, correct=True, gamma=gamma) == 0)
    assert np.all(advantage_magnitude(0.0, correct=False, gamma=gamma) == 0)
    assert advantage_magnitude(1.0, correct=False, gamma=gamma).tolist() == [np.inf, np.inf, 1.0, 0.0, 0.0]
    # with epsilon the ends are finite
    assert np.all(advantage_magnitude(0.0, correct=True, gamma=gamma, epsilon=0.25) == 4)
    assert advantage_magnitude(1.0, correct=False, gamma=gamma, epsilon=0.25).tolist() == [4, 0, 0, 0, 0]
    assert mean_advantage_magnitude([0.0, 1.0], gamma=0.5).tolist() == [0, 0]


@given(m=st.floats(0, 1))
def test_one_half_cancels_the_blow_up_exactly(m):
    assert advantage_magnitude(m, correct=False, gamma=0.5) == np.sqrt(m)


def test_smaller_gamma_still_diverges_and_ddof_shrinks():
    near = 1 - np.logspace(-3, -15, 13)
    assert np.all(np.diff(advantage_magnitude(near, correct=False, gamma=0.4)) > 0)
    assert np.all(np.diff(advantage_magnitude(near, correct=False, gamma=0.6)) < 0)
    ratio = advantage_magnitude(0.3, correct=True, ddof=1, group_size=8) / advantage_magnitude(0.3, correct=True)
    assert ratio == pytest.approx(np.sqrt(7 / 8))
    assert ratio == pytest.approx(0.935, abs=5e-4)


@given(gamma=gammas, m=st.floats(0, 1))
def test_strongest_success_rate(gamma, m):
    best = strongest_success_rate(gamma)
    assert mean_advantage_magnitude(best, gamma=gamma) >= mean_advantage_magnitude(m, gamma=gamma) * (1 - 1e-15)
    away = 0.01
    assert (
        mean_advantage_magnitude(best, gamma=gamma)
        > mean_advantage_magnitude([best - away, best + away], gamma=gamma).max()
    )


def test_strongest_success_rate_values():
    np.testing.assert_allclose(strongest_success_rate([0, 0.5, 1, 2]), [1 / 2, 1 / 3, 1 / 4, 1 / 6], rtol=1e-15)


def test_matched_learning_rate_values():
    np.testing.assert_allclose(matched_learning_rate([0, 1, 2]), [1, 0.5, 0.3125], rtol=1e-14)
    assert matched_learning_rate(0.5, 1e-6) == pytest.approx(6.7906e-7, rel=1e-5)
    assert matched_learning_rate(1.0, alpha=0.5, beta=0.5) == pytest.approx(0.5)
    assert matched_learning_rate(0.5, alpha=0.5, beta=0.5) == pytest.approx(2 / 3)


@pytest.mark.parametrize("gamma", [0.25, 0.5, 1.7, 9.0])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.5, 0.5), (3, 0.75), (2, 7)])
def test_matched_learning_rate_against_quadrature(gamma, alpha, beta):
    def mean(power):
        return mp.quad(lambda m: m ** (alpha - 0.5) * (1 - m) ** (beta - 0.5 + power), [0, 0.5, 1])

    assert matched_learning_rate(gamma, alpha=alpha, beta=beta) == pytest.approx(
        float(mean(gamma) / mean(0)), rel=1e-12
    )


def test_uniform_spread_is_the_papers_formula():
    for gamma in (0.1, 0.5, 1.3, 4.0):
        paper = 4 / mp.sqrt(mp.pi) * mp.gamma(gamma + 1.5) / mp.gamma(gamma + 3)
        assert matched_learning_rate(gamma) == pytest.approx(float(paper), rel=1e-14)


@given(gamma=gammas, alpha=st.floats(0.1, 20), beta=st.floats(0.1, 20))
def test_matched_learning_rate_is_smaller_for_larger_gamma(gamma, alpha, beta):
    low = matched_learning_rate(gamma + 0.1, alpha=alpha, beta=beta)
    assert 0 < low < matched_learning_rate(gamma, alpha=alpha, beta=beta) <= 1 + 1e-13


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: advantage_magnitude(1.1, correct=True), "success_rate must be between 0 and 1, got 1.1"),
        (lambda: advantage_magnitude(0.5, correct=True, gamma=-1), "gamma must be finite and at least 0, got -1"),
        (lambda: advantage_magnitude(0.5, correct=True, ddof=1), "ddof = 1 needs group_size, got None"),
        (lambda: advantage_magnitude(0.5, correct=True, ddof=2), "ddof must be 0 or 1, got 2"),
        (lambda: advantage_magnitude(0.5, correct=True, ddof=True, group_size=8), "ddof must be 0 or 1, got True"),
        (lambda: advantage_magnitude(0.5, correct=True, ddof=1, group_size=1), "whole number of at least 2, got 1"),
        (lambda: advantage_magnitude(0.5, correct=True, epsilon=-1e-6), "epsilon must be finite and at least 0"),
        (lambda: strongest_success_rate(np.nan), "gamma must be finite and at least 0, got nan"),
        (lambda: matched_learning_rate(1, 0), "learning_rate must be finite and above 0, got 0"),
        (lambda: matched_learning_rate(1, alpha=0), "alpha must be finite and above 0, got 0"),
        (lambda: matched_learning_rate(1, beta=-1), "beta must be finite and above 0, got -1"),
    ],
)
def test_invalid_input(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
