from fractions import Fraction
from functools import partial
from math import comb

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.utilities import focal_utility, focal_utility_slope, utility, utility_slope
from fgrpo.theory.weights import (
    constant_weight,
    focal_weight,
    hard_upweight,
    inverse_weight,
    pass_at_k_weight,
    step_weight,
)
from reference.groups import count_mean, expected_update

LOGITS = [0.3, -1.1, 0.8, -0.2]
CORRECT = [True, False, False, True]
NORMALISATIONS = {
    "none": ({}, lambda r: 1.0),
    "population std": ({"normalisation": "std"}, lambda r: r.std()),
    "sample std": ({"normalisation": "std", "ddof": 1}, lambda r: r.std(ddof=1)),
    "std plus epsilon": ({"normalisation": "std", "ddof": 1, "epsilon": 0.3}, lambda r: r.std(ddof=1) + 0.3),
}
WEIGHTS = {
    "focal": partial(focal_weight, gamma=1.0),
    "constant": constant_weight,
    "hard": partial(hard_upweight, alpha=2.0),
    "step": partial(step_weight, threshold=0.5),
    "inverse": inverse_weight,
    "plug-in pass@3": partial(pass_at_k_weight, k=3),
}
rates = st.floats(0, 1)
sizes = st.integers(2, 60)


def softmax_policy():
    p = np.exp(LOGITS) / np.sum(np.exp(LOGITS))
    mu = p[CORRECT].sum()
    return mu, p * (np.array(CORRECT) - mu)  # success rate, and its gradient by the logits


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", NORMALISATIONS)
def test_expected_update_is_the_gradient_of_the_utility(name, gamma):
    mu, gradient = softmax_policy()
    options, deviation = NORMALISATIONS[name]
    weight = partial(focal_weight, gamma=gamma)
    for group_size in (2, 3, 5):
        update = expected_update(LOGITS, CORRECT, group_size, weight, deviation=deviation)
        slope = utility_slope(mu, group_size, weight, **options)
        np.testing.assert_allclose(update, slope * gradient, rtol=0, atol=2e-15)


@pytest.mark.parametrize("name", WEIGHTS)
def test_expected_update_with_other_weights_and_rewards(name):
    mu, gradient = softmax_policy()
    update = expected_update(LOGITS, CORRECT, 4, WEIGHTS[name], rewards=(-1.0, 1.0))
    np.testing.assert_allclose(update, 2 * utility_slope(mu, 4, WEIGHTS[name]) * gradient, rtol=0, atol=4e-15)
    # with the standard deviation the reward gap divides out
    update = expected_update(LOGITS, CORRECT, 4, WEIGHTS[name], rewards=(-1.0, 1.0), deviation=lambda r: r.std())
    slope = utility_slope(mu, 4, WEIGHTS[name], normalisation="std")
    np.testing.assert_allclose(update, slope * gradient, rtol=0, atol=4e-15)


@pytest.mark.parametrize("group_size", [2, 3, 8, 17])
@pytest.mark.parametrize("gamma", [0, 1, 2, 3])
def test_slope_is_the_literal_quotient(group_size, gamma):
    for mu in [Fraction(1, 1024), Fraction(5, 16), Fraction(7, 8), Fraction(1023, 1024)]:

        def w(k, n=group_size):
            return (1 - Fraction(k, n)) ** gamma * Fraction(k, n) * (1 - Fraction(k, n))

        exact = count_mean(w, mu, group_size) / (mu * (1 - mu))
        slope = utility_slope(float(mu), group_size, partial(focal_weight, gamma=gamma))
        assert slope == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("name", NORMALISATIONS)
@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_utility_is_the_integral_of_the_slope(name, gamma):
    weight = partial(focal_weight, gamma=gamma)
    options = NORMALISATIONS[name][0]
    nodes, node_weights = np.polynomial.legendre.leggauss(12)  # exact: a polynomial of degree 6
    for mu in (0.2, 0.7, 1.0):
        area = mu / 2 * node_weights @ utility_slope(mu / 2 * (nodes + 1), 8, weight, **options)
        assert utility(mu, 8, weight, **options) == pytest.approx(area, rel=1e-13)


def pass_at(k, mu):
    if isinstance(mu, Fraction) or mu == 1:
        return 1 - (1 - mu) ** k
    return -np.expm1(k * np.log1p(-mu))


@given(mu=rates, n=sizes)
def test_focal_gamma_one_is_a_mixture_of_pass_at_two_and_one(mu, n):
    exact = (n - 1) / n**2 * ((n - 2) * pass_at(2, mu) / 2 + pass_at(1, mu))
    assert utility(mu, n, partial(focal_weight, gamma=1)) == pytest.approx(exact, rel=1e-12, abs=1e-300)


def test_focal_gamma_one_in_fractions():
    for n in (2, 3, 8, 12):
        for mu in (Fraction(1, 16), Fraction(1, 2), Fraction(15, 16)):
            # F' as a literal quotient is linear in mu; its integral by the trapezium rule is exact
            w = [Fraction(k, n) * (1 - Fraction(k, n)) ** 2 for k in range(n + 1)]
            slopes = [
                n * w[1] if m == 0 else count_mean(w.__getitem__, m, n) / (m * (1 - m)) for m in (Fraction(0), mu)
            ]
            exact = mu * sum(slopes) / 2
            assert exact == Fraction(n - 1, n * n) * (Fraction(n - 2, 2) * pass_at(2, mu) + pass_at(1, mu))
            assert utility(float(mu), n, partial(focal_weight, gamma=1)) == pytest.approx(float(exact), rel=1e-14)


@given(mu=rates, n=sizes)
def test_constant_weight_is_pass_at_one(mu, n):
    assert utility(mu, n, constant_weight) == pytest.approx((n - 1) / n * mu, rel=1e-12, abs=1e-300)
    assert utility_slope(mu, n, constant_weight) == pytest.approx((n - 1) / n)


@given(mu=rates, n=sizes)
def test_inverse_weight_is_likelihood_cut_off(mu, n):
    exact = sum((1 - (1 - mu) ** k) / k for k in range(1, n))
    assert utility(mu, n, inverse_weight) == pytest.approx(exact, rel=1e-12, abs=1e-13)


@given(mu=rates, k=st.integers(1, 20), spare=st.integers(1, 30))
def test_unbiased_pass_at_k_weight(mu, k, spare):
    n = k + spare
    weight = partial(pass_at_k_weight, k=k, group_size=n)
    assert utility(mu, n, weight) == pytest.approx(pass_at(k, mu), rel=1e-11, abs=1e-15)
    assert utility_slope(mu, n, weight) == pytest.approx(k * (1 - mu) ** (k - 1), rel=1e-11, abs=1e-11)


def test_plug_in_pass_at_k_weight_is_biased_at_finite_n():
    plug_in = utility(0.3, [8, 10_000], partial(pass_at_k_weight, k=4))
    assert abs(plug_in[0] - pass_at(4, 0.3)) > 0.02
    assert plug_in[1] == pytest.approx(pass_at(4, 0.3), abs=1e-3)


def test_ends():
    weight = partial(focal_weight, gamma=0.5)
    n = np.array([2.0, 8.0, 1000.0])
    np.testing.assert_allclose(utility_slope(0.0, n, weight), (n - 1) / n * (1 - 1 / n) ** 0.5, rtol=1e-14)
    np.testing.assert_allclose(utility_slope(1.0, n, weight), (n - 1) / n * n**-0.5, rtol=1e-14)
    assert utility(0.0, n, weight).tolist() == [0, 0, 0]
    np.testing.assert_allclose(utility_slope([0, 0.3, 1], 2, weight), 0.5**1.5, rtol=1e-15)


@pytest.mark.parametrize("normalisation", ["none", "std"])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 1.7])
def test_large_groups_tend_to_the_closed_form(gamma, normalisation):
    mu, weight = np.array([0.05, 0.5, 0.9]), partial(focal_weight, gamma=gamma)
    limit = focal_utility_slope(mu, gamma, normalisation=normalisation)
    error = [
        np.max(np.abs(utility_slope(mu, n, weight, normalisation=normalisation) / limit - 1))
        for n in (1000, 4000, 100_000)
    ]
    assert error[0] / error[1] == pytest.approx(4, rel=0.02)  # first order in 1/N
    assert error[2] < 2e-4
    whole = utility(mu, 10_000, weight, normalisation=normalisation)
    # next to the ends a standard deviation leaves an error of order sqrt(1/N)
    np.testing.assert_allclose(whole, focal_utility(mu, gamma, normalisation=normalisation), rtol=0.04)


def test_known_limits():
    mu = np.linspace(0, 1, 11)
    root, angle = np.sqrt(mu), np.arcsin(np.sqrt(mu))
    for gamma, exact in ((0, 2 * angle), (0.5, 2 * root), (1, np.sqrt(mu * (1 - mu)) + angle)):
        np.testing.assert_allclose(focal_utility(mu, gamma, normalisation="std"), exact, rtol=1e-14, atol=1e-16)
    for k in (1, 2, 5):
        np.testing.assert_allclose(focal_utility(mu, k - 1), (1 - (1 - mu) ** k) / k, rtol=1e-14)
    gamma = np.array([0, 0.25, 0.5, 1])
    assert focal_utility_slope(1.0, gamma, normalisation="std").tolist() == [np.inf, np.inf, 1, 0]
    assert np.all(focal_utility_slope(0.0, gamma, normalisation="std") == np.inf)


@pytest.mark.parametrize("mu", [1e-300, 1e-9, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("gamma", [0.3, 2.5, 50.0])
def test_focal_utility_against_mpmath(mu, gamma):
    with mp.workdps(400):
        m, g = mp.mpf(mu), mp.mpf(gamma)
        plain = (1 - (1 - m) ** (g + 1)) / (g + 1)
    with mp.workdps(40):
        std = mp.betainc(0.5, g + mp.mpf(1) / 2, 0, m)
    assert focal_utility(mu, gamma) == pytest.approx(float(plain), rel=1e-14)
    assert focal_utility(mu, gamma, normalisation="std") == pytest.approx(float(std), rel=2e-14)


@given(mu=st.lists(rates, min_size=3, max_size=3), n=sizes, gamma=st.floats(0, 4), std=st.booleans())
def test_focal_utility_rises_and_focal_weight_bends_it(mu, n, gamma, std):
    low, high = sorted(mu)[0], sorted(mu)[2]
    options = {"normalisation": "std" if std else "none"}
    weight = partial(focal_weight, gamma=gamma)
    values = utility([low, high], n, weight, **options)
    assert 0 <= values[0] <= values[1] * (1 + 1e-13)
    if not std:  # concave: a larger success rate never pulls harder
        slopes = utility_slope([low, high], n, weight)
        assert slopes[0] >= slopes[1] * (1 - 1e-13)


def test_large_group_against_mpmath():
    n, mu = 3000, 0.7
    with mp.workdps(40):
        m, total = mp.mpf(mu), mp.mpf(0)
        for k in range(1, n):
            x = mp.mpf(k) / n
            total += comb(n, k) * m**k * (1 - m) ** (n - k) * (1 - x) ** mp.mpf(0.5) * mp.sqrt(x * (1 - x))
        exact = total / (m * (1 - m))
    slope = utility_slope(mu, n, partial(focal_weight, gamma=0.5), normalisation="std")
    assert slope == pytest.approx(float(exact), rel=1e-13)


def test_very_large_group_in_closed_form():
    n, mu, weight = 10**6, np.array([1e-6, 0.3, 0.999]), partial(focal_weight, gamma=1)
    slope = (n - 1) / n**2 * (1 + (n - 2) * (1 - mu))
    whole = (n - 1) / n**2 * (mu + (n - 2) * mu * (2 - mu) / 2)
    np.testing.assert_allclose(utility_slope(mu, n, weight), slope, rtol=1e-13)
    np.testing.assert_allclose(utility(mu, n, weight), whole, rtol=1e-13)


def test_broadcasting():
    mu, n = np.linspace(0, 1, 5)[:, None], np.array([2, 8, 5])
    for function in (utility, utility_slope):
        table = function(mu, n, constant_weight, normalisation="std")
        assert table.shape == (5, 3)
        assert table[2, 1] == function(0.5, 8, constant_weight, normalisation="std")
        assert isinstance(function(0.5, 8, constant_weight), float)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((-0.1, 8), {}, "success_rate must be between 0 and 1, got -0.1"),
        ((0.5, 1), {}, "group_size must be a whole number of at least 2, got 1"),
        ((0.5, 8), {"normalisation": "mean"}, "normalisation must be one of none, std, got 'mean'"),
        ((0.5, 8), {"normalisation": "std", "ddof": 2}, "ddof must be 0 or 1, got 2"),
        ((0.5, 8), {"normalisation": "std", "epsilon": -1}, "epsilon must be finite and at least 0, got -1"),
        ((0.5, 8), {"ddof": 7}, "ddof must be 0 or 1, got 7"),
        ((0.5, 8), {"epsilon": -3}, "epsilon must be finite and at least 0, got -3"),
        ((0.5, 8), {"epsilon": [0.0, 0.1]}, r"epsilon must be one number, got an array of shape \(2,\)"),
    ],
)
def test_invalid_input(arguments, options, message):
    for function in (utility, utility_slope):
        with pytest.raises(ValueError, match=message) as error:
            function(*arguments, constant_weight, **options)
        assert "\n" not in str(error.value)


def test_invalid_input_of_the_limit():
    for function in (focal_utility, focal_utility_slope):
        with pytest.raises(ValueError, match="gamma must be finite and at least 0, got -1"):
            function(0.5, -1)
        with pytest.raises(ValueError, match="success_rate must be between 0 and 1, got 2"):
            function(2, 1)
        with pytest.raises(ValueError, match="normalisation must be one of none, std, got None"):
            function(0.5, 1, normalisation=None)
