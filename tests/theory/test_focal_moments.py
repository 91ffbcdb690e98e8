from fractions import Fraction
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.focal_moments import (
    expected_focal_weight,
    focal_weight_bias,
    focal_weight_standard_deviation,
    focal_weight_variance,
    weight_moments,
)
from fgrpo.theory.weights import constant_weight, focal_weight, hard_upweight, step_weight
from reference.groups import count_mean, focal, focal_moments, integral_focal_moment

RATES = [1e-9, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-9]
rates = st.floats(0, 1)
inner_rates = st.floats(1e-6, 1 - 1e-6)
sizes = st.integers(1, 200)
gammas = st.floats(0, 6)


def relative_error(value, exact):
    return float(abs(mp.mpf(float(value)) / exact - 1))


@pytest.mark.parametrize("gamma", [0, 1, 2, 3, 7, 20])
@pytest.mark.parametrize("group_size", [1, 2, 8, 23])
def test_whole_gamma_is_exact_enumeration(group_size, gamma):
    for mu in [Fraction(0), Fraction(1, 1024), Fraction(5, 16), Fraction(1, 2), Fraction(1023, 1024), Fraction(1)]:
        exact = count_mean(lambda k: focal(group_size - k, group_size, gamma), mu, group_size)
        assert expected_focal_weight(float(mu), group_size, gamma) == pytest.approx(float(exact), rel=2e-15, abs=0)


@pytest.mark.parametrize("group_size", [2, 8, 64, 500])
@pytest.mark.parametrize("gamma", [0.3, 0.5, 1.5, 3.7, 40.0])
def test_real_gamma_against_mpmath(group_size, gamma):
    for mu in RATES:
        mean, variance, bias = focal_moments(mu, group_size, gamma)
        assert relative_error(expected_focal_weight(mu, group_size, gamma), mean) < 1e-14
        assert relative_error(focal_weight_variance(mu, group_size, gamma), variance) < 1e-11
        assert relative_error(focal_weight_bias(mu, group_size, gamma), bias) < 1e-11


@pytest.mark.parametrize("group_size", [3, 8, 64])
@pytest.mark.parametrize("gamma", [0, 0.5, 1, 2, 3.7])
def test_given_active_against_mpmath(group_size, gamma):
    for mu in RATES:
        mean, variance, _ = focal_moments(mu, group_size, gamma, given_active=True)
        assert relative_error(expected_focal_weight(mu, group_size, gamma, given_active=True), mean) < 1e-14
        computed = focal_weight_variance(mu, group_size, gamma, given_active=True)
        assert computed == pytest.approx(float(variance), rel=1e-11, abs=1e-29)


@pytest.mark.parametrize(("mu", "group_size", "gamma"), [(0.3, 10**4, 0.5), (0.63, 10**6, 0.5), (0.999, 10**6, 0.3)])
def test_large_groups_against_the_laplace_integral(mu, group_size, gamma):
    assert (
        relative_error(expected_focal_weight(mu, group_size, gamma), integral_focal_moment(mu, group_size, gamma))
        < 1e-13
    )


def test_large_groups_agree_with_the_polynomial():
    mu, n = np.array([0.1, 0.63, 0.9999]), 10**6
    average = weight_moments(mu, n, partial(focal_weight, gamma=3.0))
    np.testing.assert_allclose(average.mean, expected_focal_weight(mu, n, 3.0), rtol=1e-12)
    np.testing.assert_allclose(focal_weight_variance(mu, n, 1.0), mu * (1 - mu) / n, rtol=1e-11)


def test_known_values():
    np.testing.assert_allclose(focal_weight_standard_deviation([0.5, 0.9], 8, 1), [0.177, 0.106], atol=5e-4)
    np.testing.assert_allclose(focal_weight_standard_deviation([0.5, 0.9], 8, 0.5), [0.136, 0.213], atol=5e-4)
    assert expected_focal_weight(0.9, 8, 1, given_active=True) == pytest.approx(0.176, abs=5e-4)
    assert focal_weight_bias(0.99, 8, 0.5) == pytest.approx(-0.072, abs=5e-4)
    delta_method = 0.5 * -0.5 / 2 * 0.01**-1.5 * 0.99 * 0.01 / 8
    assert delta_method == pytest.approx(-0.155, abs=5e-4)


@given(mu=rates, n=sizes)
def test_gamma_one_and_two_in_closed_form(mu, n):
    assert expected_focal_weight(mu, n, 1) == pytest.approx(1 - mu, rel=1e-15)
    assert focal_weight_bias(mu, n, 1) == 0
    assert focal_weight_bias(mu, n, 0) == 0
    assert focal_weight_variance(mu, n, 1) == pytest.approx(mu * (1 - mu) / n, rel=1e-9, abs=1e-30)
    assert expected_focal_weight(mu, n, 2) == pytest.approx((1 - mu) ** 2 + mu * (1 - mu) / n, rel=1e-14)
    assert focal_weight_bias(mu, n, 2) == pytest.approx(mu * (1 - mu) / n, rel=1e-8, abs=1e-30)


@given(mu=rates, n=sizes, gamma=gammas)
def test_jensen(mu, n, gamma):
    bias = focal_weight_bias(mu, n, gamma)
    assert bias >= 0 if gamma >= 1 else bias <= 0
    assert expected_focal_weight(mu, n, gamma) - (1 - mu) ** gamma == pytest.approx(bias, abs=1e-14)


@given(mu=inner_rates, n=st.integers(2, 200), gamma=gammas)
def test_active_groups_keep_a_weight(mu, n, gamma):
    mean = expected_focal_weight(mu, n, gamma, given_active=True)
    lowest, highest = n**-gamma, (1 - 1 / n) ** gamma
    assert lowest * (1 - 1e-13) <= mean <= highest * (1 + 1e-13)
    # variance of anything in an interval (Bhatia and Davis)
    assert focal_weight_variance(mu, n, gamma, given_active=True) <= (highest - mean) * (mean - lowest) + 1e-14


@given(mu=inner_rates, gamma=gammas)
def test_two_rollouts_have_a_constant_weight_when_active(mu, gamma):
    assert expected_focal_weight(mu, 2, gamma, given_active=True) == pytest.approx(2**-gamma)
    assert focal_weight_variance(mu, 2, gamma, given_active=True) == pytest.approx(0, abs=1e-30)


@given(mu=rates, gamma=st.floats(0.01, 6))
def test_one_rollout(mu, gamma):
    assert expected_focal_weight(mu, 1, gamma) == pytest.approx(1 - mu, rel=1e-14)


def test_active_limits():
    n, gamma = 8, 1.5
    assert expected_focal_weight(1 - 2**-50, n, gamma, given_active=True) == pytest.approx(n**-gamma)
    assert expected_focal_weight(1e-200, n, gamma, given_active=True) == pytest.approx((1 - 1 / n) ** gamma)
    assert np.isnan(expected_focal_weight([0, 1, 0.5], [8, 8, 1], gamma, given_active=True)).all()
    assert np.isnan(focal_weight_variance([0, 1, 0.5], [8, 8, 1], gamma, given_active=True)).all()


@pytest.mark.parametrize("group_size", [2, 8, 1000])
def test_rates_next_to_zero(group_size):
    mu = np.array([5e-324, 1e-308, 1e-291, 1e-289, 1e-200])
    expected = mu * group_size * ((1 - (1 - 1 / group_size) ** 0.5) ** 2)  # one correct rollout, or none
    np.testing.assert_allclose(focal_weight_variance(mu, group_size, 0.5), expected, rtol=1e-12, atol=1e-323)
    np.testing.assert_allclose(
        expected_focal_weight(mu[1:], group_size, 0.5, given_active=True), (1 - 1 / group_size) ** 0.5, rtol=1e-14
    )


def test_broadcasting_and_batches():
    mu, n, gamma = np.linspace(0, 1, 7)[:, None, None], np.array([1, 8, 4000])[:, None], np.array([0.0, 0.5, 1.0])
    for function in (expected_focal_weight, focal_weight_variance, focal_weight_bias):
        table = function(mu, n, gamma)
        assert table.shape == (7, 3, 3)
        assert table[3, 1, 1] == function(0.5, 8, 0.5)
        assert isinstance(function(0.5, 8, 0.5), float)
        assert function(np.zeros((0,)), 8, 0.5).shape == (0,)
    many = np.full(20_000, 0.3)  # more terms than fit one batch
    assert np.all(focal_weight_variance(many, 128, 0.5) == focal_weight_variance(0.3, 128, 0.5))


def test_weight_moments_of_other_weights():
    mu, n = Fraction(3, 8), 8
    for weight in (
        partial(hard_upweight, alpha=2.0),
        partial(step_weight, threshold=0.5, below=1.5, above=0.25),
        constant_weight,
    ):
        mean = count_mean(lambda k, w=weight: Fraction(float(w(k / n))), mu, n)
        variance = count_mean(lambda k, w=weight, m=mean: (Fraction(float(w(k / n))) - m) ** 2, mu, n)
        computed = weight_moments(float(mu), n, weight)
        assert computed.mean == pytest.approx(float(mean), rel=1e-14)
        assert computed.variance == pytest.approx(float(variance), rel=1e-13, abs=1e-30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.5, 8, 1), "success_rate must be between 0 and 1, got 1.5"),
        ((float("nan"), 8, 1), "success_rate must be between 0 and 1, got nan"),
        ((0.5, 0, 1), "group_size must be a whole number of at least 1, got 0"),
        ((0.5, 2.5, 1), "group_size must be a whole number of at least 1, got 2.5"),
        ((0.5, float("inf"), 1), "group_size must be a whole number of at least 1, got inf"),
        ((0.5, 8, -1), "gamma must be finite and at least 0, got -1"),
        (("x", 8, 1), "success_rate must be a real number"),
    ],
)
def test_invalid_input(arguments, message):
    for function in (expected_focal_weight, focal_weight_variance, focal_weight_bias, focal_weight_standard_deviation):
        with pytest.raises(ValueError, match=message) as error:
            function(*arguments)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("mu", [5e-324, 1e-310, 1e-291])
def test_an_active_group_of_the_smallest_success_rates_has_one_correct_rollout(mu):
    assert expected_focal_weight(mu, 2, 2, given_active=True) == 0.25
    assert expected_focal_weight(mu, 8, 1, given_active=True) == pytest.approx(7 / 8, rel=1e-14)
    assert focal_weight_variance(mu, 8, 1, given_active=True) == pytest.approx(0, abs=1e-30)
    assert np.isnan(expected_focal_weight(0.0, 8, 1, given_active=True))


def test_the_largest_group_that_is_averaged_over_is_next_to_the_limit():
    assert expected_focal_weight(0.3, 1e9, 0.5) == pytest.approx(0.7**0.5, rel=1e-9)
    with pytest.raises(ValueError, match=r"group_size must be at most 1e\+09 here, got 1000000001: "):
        expected_focal_weight(0.3, 1e9 + 1, 0.5)
    assert expected_focal_weight(0.3, 1e300, 2) == pytest.approx(0.49, rel=1e-14)  # the polynomial has no limit
