from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from fgrpo.theory.success_estimates import (
    ema_moments,
    ema_success_rate,
    posterior_focal_weight,
    posterior_weight_moments,
    shrunk_moments,
    shrunk_success_rate,
    shrunk_weight_moments,
)
from reference.groups import count_mean, focal_moments

rates = st.floats(0, 1)
pseudo_counts = st.floats(0.05, 50)


def test_shrunk_estimate_and_its_moments_by_enumeration():
    n, alpha, beta = 8, Fraction(3, 2), Fraction(1, 2)
    for mu in (Fraction(0), Fraction(3, 16), Fraction(1, 2), Fraction(1)):
        mean = count_mean(lambda k: (k + alpha) / (n + alpha + beta), mu, n)
        variance = count_mean(lambda k, m=mean: ((k + alpha) / (n + alpha + beta) - m) ** 2, mu, n)
        moments = shrunk_moments(float(mu), n, alpha=float(alpha), beta=float(beta))
        assert moments.mean == pytest.approx(float(mean), rel=1e-15)
        assert moments.variance == pytest.approx(float(variance), rel=1e-14)
    estimates = shrunk_success_rate(np.arange(9) / 8, 8, alpha=1.5, beta=0.5)
    np.testing.assert_allclose(estimates, [(k + 1.5) / 10 for k in range(9)], rtol=1e-15)


def test_known_values():
    assert np.sqrt(shrunk_moments(0.5, 8).variance) == pytest.approx(0.1414, abs=5e-5)
    bias = shrunk_moments([0.2, 0.5, 0.8], 8).mean - [0.2, 0.5, 0.8]
    np.testing.assert_allclose(bias, [0.06, 0, -0.06], atol=1e-15)
    assert shrunk_weight_moments(0.8, 8, 1.0).mean == pytest.approx(0.26)
    assert ema_moments(0.5, 8, 0.2).variance == pytest.approx(0.25 / 8 / 9)


@pytest.mark.parametrize("gamma", [0, 1, 2, 3])
def test_shrunk_weight_by_enumeration(gamma):
    n = 6
    for mu in (Fraction(0), Fraction(5, 16), Fraction(15, 16)):
        for active in (False, True):
            if active and mu == 0:
                continue
            mean = count_mean(lambda k: Fraction(n - k + 2, n + 3) ** gamma, mu, n, given_active=active)
            variance = count_mean(
                lambda k, m=mean: (Fraction(n - k + 2, n + 3) ** gamma - m) ** 2, mu, n, given_active=active
            )
            moments = shrunk_weight_moments(float(mu), n, gamma, alpha=1, beta=2, given_active=active)
            assert moments.mean == pytest.approx(float(mean), rel=1e-14)
            assert moments.variance == pytest.approx(float(variance), rel=1e-12, abs=1e-30)


@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_posterior_weight_by_enumeration(gamma):
    n, alpha, beta = 6, 1, 2

    def posterior(k):  # E[(1 - mu)^gamma] of Beta(alpha + k, beta + n - k), by raw moments
        product = Fraction(1)
        for j in range(gamma):
            product *= Fraction(beta + n - k + j, alpha + beta + n + j)
        return product

    computed = posterior_focal_weight(np.arange(n + 1) / n, n, gamma, alpha=alpha, beta=beta)
    np.testing.assert_allclose(computed, [float(posterior(k)) for k in range(n + 1)], rtol=1e-14)
    mu = Fraction(5, 16)
    for active in (False, True):
        mean = count_mean(posterior, mu, n, given_active=active)
        variance = count_mean(lambda k, m=mean: (posterior(k) - m) ** 2, mu, n, given_active=active)
        moments = posterior_weight_moments(float(mu), n, gamma, alpha=alpha, beta=beta, given_active=active)
        assert moments.mean == pytest.approx(float(mean), rel=1e-14)
        assert moments.variance == pytest.approx(float(variance), rel=1e-12)


@pytest.mark.parametrize("group_size", [1, 8, 100, 9000, 10**6, 10**9])
@pytest.mark.parametrize("gamma", [1e-3, 0.5, 2.5, 50.0])
def test_posterior_weight_against_mpmath(group_size, gamma):
    for alpha, beta in ((1, 1), (0.01, 0.3), (12.5, 700.0)):
        for correct in {0, group_size // 3, group_size}:
            value = posterior_focal_weight(correct / group_size, group_size, gamma, alpha=alpha, beta=beta)
            with mp.workdps(40):
                wrong = beta + group_size * (1 - mp.mpf(correct / group_size))
                exact = mp.beta(alpha + group_size - wrong + beta, wrong + gamma) / mp.beta(
                    alpha + group_size - wrong + beta, wrong
                )
            assert value == pytest.approx(float(exact), rel=5e-14)


@given(n=st.integers(1, 100), alpha=pseudo_counts, beta=pseudo_counts, gamma=st.floats(0, 5))
def test_posterior_weight_has_no_bias_over_the_prior(n, alpha, beta, gamma):
    x = np.arange(n + 1)
    average = betabinom.pmf(x, n, alpha, beta) @ posterior_focal_weight(x / n, n, gamma, alpha=alpha, beta=beta)
    prior = mp.beta(alpha, beta + gamma) / mp.beta(alpha, beta)
    assert average == pytest.approx(float(prior), rel=1e-9)


@given(m=rates, n=st.integers(1, 100), alpha=pseudo_counts, beta=pseudo_counts, gamma=st.floats(0, 5))
def test_posterior_weight_is_jensen_from_the_shrunk_rate(m, n, alpha, beta, gamma):
    posterior = posterior_focal_weight(m, n, gamma, alpha=alpha, beta=beta)
    plug_in = (1 - shrunk_success_rate(m, n, alpha=alpha, beta=beta)) ** gamma
    assert 0 < posterior <= 1 + 1e-14
    if gamma >= 1:
        assert posterior >= plug_in * (1 - 1e-12)
    else:
        assert posterior <= plug_in * (1 + 1e-12)


@given(mu=rates, n=st.integers(1, 100), alpha=pseudo_counts, beta=pseudo_counts)
def test_gamma_one(mu, n, alpha, beta):
    prior = {"alpha": alpha, "beta": beta}
    estimate = shrunk_moments(mu, n, **prior)
    for function in (shrunk_weight_moments, posterior_weight_moments):
        weight = function(mu, n, 1.0, **prior)
        assert weight.mean == pytest.approx(1 - estimate.mean, rel=1e-11)
        assert weight.variance == pytest.approx(estimate.variance, rel=1e-8, abs=1e-26)
    assert estimate.variance <= mu * (1 - mu) / n


def test_a_vanishing_prior_gives_the_empirical_weight():
    for mu in (0.2, 0.7):
        mean, variance, _ = focal_moments(mu, 8, 0.5)
        moments = shrunk_weight_moments(mu, 8, 0.5, alpha=1e-14, beta=1e-14)
        assert moments.mean == pytest.approx(float(mean), abs=2e-7)
        assert moments.variance == pytest.approx(float(variance), abs=2e-7)


@given(mu=rates, n=st.integers(1, 64), rate=st.floats(0.05, 1), slope=st.floats(-1, 1))
def test_moving_average_is_the_fixed_point_of_its_recursion(mu, n, rate, slope):
    # lag L and variance V repeat themselves: L' = (1 - rate)(L + slope), V' = (1 - rate)^2 V + rate^2 Var(X/N)
    slope = min(mu, slope) if slope > 0 else max(mu - 1, slope)
    moments = ema_moments(mu, n, rate, slope=slope * rate)
    lag = mu - moments.mean
    assert lag == pytest.approx((1 - rate) * (lag + slope * rate), abs=1e-14)
    renewed = (1 - rate) ** 2 * moments.variance + rate**2 * mu * (1 - mu) / n
    assert renewed == pytest.approx(moments.variance, rel=1e-12, abs=1e-300)


def test_moving_average_by_simulation():
    # 20,000 prompts, 100 groups each; z-scores beyond 4.5 in either test: false alarm below 2e-5
    generator, mu, n, rate, slope, prompts = np.random.default_rng(7), 0.3, 8, 0.2, 0.002, 20_000
    estimate = np.full(prompts, mu)
    for step in range(100):
        now = mu + slope * step
        estimate = ema_success_rate(estimate, generator.binomial(n, now, prompts) / n, rate)
    expected = ema_moments(now, n, rate, slope=slope)
    # the past groups had other success rates: the variance is exact with the average of mu (1 - mu) over the weights
    ages = np.arange(100)
    past = now - slope * ages
    variance = rate**2 * np.sum((1 - rate) ** (2 * ages) * past * (1 - past)) / n
    z_mean = (estimate.mean() - expected.mean) / np.sqrt(variance / prompts)
    z_variance = (estimate.var() / variance - 1) * np.sqrt(prompts / 2)
    assert abs(z_mean) < 4.5
    assert abs(z_variance) < 4.5
    # the same test rejects the mean without its lag, and X/N's variance
    assert abs(estimate.mean() - now) / np.sqrt(variance / prompts) > 4.5
    assert abs(estimate.var() / (now * (1 - now) / n) - 1) * np.sqrt(prompts / 2) > 4.5


def test_moving_average_ends():
    assert ema_success_rate(0.25, 0.75, 1.0) == 0.75
    assert ema_success_rate(0.25, 0.75, 0.0) == 0.25
    assert ema_success_rate([0.0, 1.0], 0.5, 0.5).tolist() == [0.25, 0.75]
    moments = ema_moments(0.3, 8, 1.0, slope=0.1)
    assert moments.mean == 0.3
    assert moments.variance == pytest.approx(0.21 / 8)


def test_defaults_are_the_uniform_prior_over_all_groups():
    prior = {"alpha": 1.0, "beta": 1.0}
    assert shrunk_success_rate(0.25, 8) == shrunk_success_rate(0.25, 8, **prior)
    assert posterior_focal_weight(0.25, 8, 1.5) == posterior_focal_weight(0.25, 8, 1.5, **prior)
    assert shrunk_moments(0.25, 8) == shrunk_moments(0.25, 8, **prior)
    for function in (shrunk_weight_moments, posterior_weight_moments):
        assert function(0.25, 8, 1.5) == function(0.25, 8, 1.5, given_active=False, **prior)
        assert function(0.25, 8, 1.5) != function(0.25, 8, 1.5, given_active=True, **prior)


def test_broadcasting():
    mu, n, gamma = np.linspace(0, 1, 4)[:, None, None], np.array([1, 8, 30])[:, None], np.array([0.5, 2.0])
    for function in (shrunk_weight_moments, posterior_weight_moments):
        table = function(mu, n, gamma, alpha=2.0)
        assert table.mean.shape == table.variance.shape == (4, 3, 2)
        assert table.mean[1, 1, 0] == function(1 / 3, 8, 0.5, alpha=2.0).mean
    assert ema_moments(0.5, [8, 16], 0.5).mean.shape == (2,)
    assert shrunk_moments([0.1, 0.2], 8).variance.shape == (2,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shrunk_success_rate(1.2, 8), "empirical_success_rate must be between 0 and 1, got 1.2"),
        (lambda: shrunk_success_rate(0.5, 0), "group_size must be a whole number of at least 1, got 0"),
        (lambda: shrunk_success_rate(0.5, 8, alpha=0), "alpha must be finite and above 0, got 0"),
        (lambda: posterior_focal_weight(0.5, 8, -1), "gamma must be finite and at least 0, got -1"),
        (lambda: posterior_focal_weight(0.5, 8, 1, beta=np.inf), "beta must be finite and above 0, got inf"),
        (lambda: shrunk_moments(2, 8), "success_rate must be between 0 and 1, got 2"),
        (lambda: shrunk_weight_moments(0.5, 8, np.nan), "gamma must be finite and at least 0, got nan"),
        (lambda: posterior_weight_moments(0.5, 8.5, 1), "group_size must be a whole number of at least 1, got 8.5"),
        (lambda: ema_success_rate(-1, 0.5, 0.5), "previous must be between 0 and 1, got -1"),
        (lambda: ema_success_rate(0.5, 0.5, 1.5), "rate must be between 0 and 1, got 1.5"),
        (lambda: ema_moments(0.5, 8, 0), "rate must be finite and above 0, got 0"),
        (lambda: ema_moments(0.5, 8, 1.5), "rate must be between 0 and 1, got 1.5"),
        (lambda: ema_moments(0.5, 8, 0.5, slope=np.inf), "slope must be finite, got inf"),
        (lambda: ema_moments(0.1, 8, 0.01, slope=0.5), r"slope \(1 - rate\) / rate must be between 0 and 1, got -49"),
        (
            lambda: ema_moments(0.9, 8, [0.5, 0.1], slope=-0.1),
            r"slope \(1 - rate\) / rate must be between 0 and 1, got 1.8",
        ),
    ],
)
def test_invalid_input(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("error")
def test_the_slowest_moving_average():
    assert ema_moments(0.3, 8, 5e-324).mean == 0.3
    with pytest.raises(ValueError, match="got -inf: "):
        ema_moments(0.3, 8, 5e-324, slope=0.5)
