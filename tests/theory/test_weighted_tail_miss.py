from fractions import Fraction
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.tail_miss import tail_miss_probability
from fgrpo.theory.weighted_tail_miss import (
    advantage_weighted_tail_miss,
    focal_tail_miss,
    focal_tail_miss_peak,
    tail_miss_update_share,
)
from reference import tail_miss as exact

EPS = np.finfo(np.float64).eps
GRID = [Fraction(k, 6) for k in range(7)]


def strength(counts):
    share = Fraction(counts[exact.WRONG], sum(counts))
    return share * (1 - share)


def mean_over_wrong_counts(mu, tau, n, weight):
    """E[weight(W/N) 1_B] by the sum over W = 1..N-1, 60 digits."""
    with mp.workdps(60):
        b, c, size = mp.mpf(mu) - mp.mpf(tau), 1 - mp.mpf(mu), mp.mpf(n)
        return mp.fsum(mp.binomial(n, w) * c**w * b ** (n - w) * weight(w / size) for w in range(1, n))


@pytest.mark.parametrize("n", range(7))
@pytest.mark.parametrize("gamma", [0, 1, 2, 3, 5])
def test_equal_the_enumeration_of_all_counts(n, gamma):
    for mu, tau in product(GRID, GRID):
        if tau <= mu:
            law = exact.independent(mu, tau)
            focal = exact.mean_on_tail_misses(law, n, lambda c: exact.focal(c, gamma))
            assert focal_tail_miss(mu, tau, n, gamma) == pytest.approx(float(focal), rel=1e-14, abs=0)
            update = exact.mean_on_tail_misses(law, n, lambda c: strength(c) * exact.focal(c, gamma))
            assert advantage_weighted_tail_miss(mu, tau, n, gamma=gamma) == pytest.approx(
                float(update), rel=1e-14, abs=0
            )


def test_the_reference_enumerations_agree():
    mu, tau, n = Fraction(3, 5), Fraction(1, 5), 4
    by_sequence = exact.mean_over_sequences(mu, tau, n, lambda c: exact.is_tail_miss(c) * exact.focal(c, 2))
    assert by_sequence == exact.mean_on_tail_misses(exact.independent(mu, tau), n, lambda c: exact.focal(c, 2))


@pytest.mark.parametrize("gamma", [0, 1, 2, 3, 7, 64, 0.5, 1.5, 2.5, 0.01, 20.25, 65, 80])
@pytest.mark.parametrize(
    ("mu", "tau"),
    [
        (0.64, 6.3e-5),
        (0.1, 0.05),
        (1e-12, 1e-14),
        (1 - 2.0**-50, 1e-5),
        (1 - 2.0**-53, 0.3125 + 3 * 2.0**-54),  # the share of correct rollouts outside the rare region rounds to 1
        (0.5, 0.5 * (1 - 2.0**-40)),
        (0.9999, 0.9),
    ],
)
def test_accurate_in_the_corners(mu, tau, gamma):
    for n in (2, 3, 8, 65, 400):
        exponent = n * -np.log1p(-tau)
        for function, weight in (
            (focal_tail_miss, lambda x: x ** mp.mpf(gamma)),
            (advantage_weighted_tail_miss, lambda x: x * (1 - x) * x ** mp.mpf(gamma)),
        ):
            true = mean_over_wrong_counts(mu, tau, n, weight)
            if true < np.finfo(np.float64).tiny:
                continue
            bound = 8 * EPS * (gamma + 1) * (1 + exponent) if gamma == int(gamma) and gamma < 64 else 1e-12
            bound *= 1 + exponent
            assert abs(mp.mpf(float(function(mu, tau, n, gamma=gamma))) / true - 1) <= bound, (n, function.__name__)


def test_the_sum_stays_accurate_for_huge_groups():
    # sums around a whole exponent, whose closed form is exact, must not leave their neighbours' line
    for n in (10**4, 10**6):
        for gamma in (1, 3):
            around = focal_tail_miss(0.64, 1e-7, n, gamma + np.array([-1e-4, 0, 1e-4]))
            logs = np.log(around)
            assert logs[1] == pytest.approx((logs[0] + logs[2]) / 2, abs=1e-8)  # log-convex, second order in the step
    # and a group of a million with a handful of wrong ones: the Poisson law
    mean, n, gamma = 2.0, 10**6, 0.5
    k = np.arange(1, 60)
    poisson = np.exp(k * np.log(mean) - mean - np.cumsum(np.log(k)))
    value = focal_tail_miss(1 - mean / n, 1e-20, n, gamma)
    assert value == pytest.approx(np.sum((k / n) ** gamma * poisson), rel=1e-5)


def test_zero_exponent_is_the_tail_miss_probability():
    n = np.array([0, 1, 1.5, 2, 8, 1e9])
    assert np.array_equal(focal_tail_miss(0.64, 0.01, n, 0), tail_miss_probability(0.64, 0.01, n))


def test_explicit_formulas_of_the_first_exponents():
    mu, tau, n = 0.7, 0.2, np.array([2.0, 3, 8, 20])
    a, b, c = 1 - tau, mu - tau, 1 - mu
    assert focal_tail_miss(mu, tau, n, 1) == pytest.approx(c * (a ** (n - 1) - c ** (n - 1)), rel=1e-13)
    second = c**2 * a ** (n - 2) * (1 - 1 / n) + c * a ** (n - 1) / n - c**n
    assert focal_tail_miss(mu, tau, n, 2) == pytest.approx(second, rel=1e-13)
    assert advantage_weighted_tail_miss(mu, tau, n) == pytest.approx((1 - 1 / n) * b * c * a ** (n - 2), rel=1e-13)
    first = (n - 1) / n**2 * b * c * a ** (n - 3) * ((n - 2) * c + a)
    assert advantage_weighted_tail_miss(mu, tau, n, gamma=1) == pytest.approx(first, rel=1e-13)


def test_many_exponents_at_once_and_scalars():
    gamma = np.array([0, 0.5, 1, 2, 2.5])
    for function in (focal_tail_miss, advantage_weighted_tail_miss):
        together = function(0.64, [[0.01], [0.1]], 8, gamma=gamma)
        assert together.shape == (2, 5)
        assert together[1, 3] == function(0.64, 0.1, 8, gamma=2)
        assert together[1, 4] == function(0.64, 0.1, 8, gamma=2.5)
        assert isinstance(function(0.64, 0.1, 8, gamma=0.5), np.float64)
        assert function(np.zeros((0, 2)), 0, 8, gamma=0.5).shape == (0, 2)


@given(
    st.just(0.0) | st.floats(1e-290, 1), st.floats(0, 1 - 1e-9), st.integers(0, 300), st.floats(0, 5), st.floats(0, 5)
)
def test_focal_tail_miss_falls_with_gamma_between_its_bounds(mu, rho, n, gamma, more):
    tau = rho * mu
    miss = tail_miss_probability(mu, tau, n)
    less_weighted, weighted = focal_tail_miss(mu, tau, n, [gamma, gamma + more])
    assert weighted <= less_weighted * (1 + 1e-11)
    assert weighted <= miss * (1 + 1e-11)
    assert weighted >= max(n, 1) ** -(gamma + more) * miss * (1 - 1e-11)


@given(st.floats(0.01, 0.99), st.floats(1e-3, 0.999), st.integers(2, 10**6), st.sampled_from([0, 1, 2, 0.5]))
def test_edges_of_the_rare_region_and_the_share(mu, rho, n, gamma):
    assert advantage_weighted_tail_miss(mu, mu, n, gamma=gamma) == focal_tail_miss(mu, mu, n, gamma) == 0
    tau = rho * mu
    missed, everything = advantage_weighted_tail_miss(mu, [tau, 0], n)
    assert tail_miss_update_share(mu, tau, n) * everything == pytest.approx(missed, rel=1e-9, abs=1e-300)
    assert tail_miss_update_share(mu, tau, n + 1) <= tail_miss_update_share(mu, tau, n)


@pytest.mark.parametrize("gamma", [0, 0.5, 1, 2])
def test_nothing_is_missed_where_every_rollout_is_rare_or_all_are_alike(gamma):
    for mu, tau in ((1, 1), (1, 0.25), (0, 0), (0.25, 0.25)):
        for function in (focal_tail_miss, advantage_weighted_tail_miss):
            np.testing.assert_array_equal(function(mu, tau, [0, 1, 2, 8], gamma=gamma), np.zeros(4))


def test_share_at_the_edges():
    assert np.isnan(tail_miss_update_share([0, 1, 0.5, 0.5], 0, [8, 8, 0, 1])).all()
    assert np.isnan(tail_miss_update_share(1, 1, [0, 2, 8])).all()
    assert tail_miss_update_share(0.5, 0, 8) == 1
    assert tail_miss_update_share(0.5, 0.5, 8) == 0
    assert tail_miss_update_share(Fraction(1, 2), Fraction(1, 4), 3) == pytest.approx(3 / 8)


def test_expected_strength_peaks_where_stated():
    tau = 6.3e-5
    n = np.arange(2, 2000)
    assert n[np.argmax(advantage_weighted_tail_miss(0.64, tau, n))] in (126, 127)
    assert (1 + np.sqrt(1 + 4 / -np.log1p(-tau))) / 2 == pytest.approx(126.49, abs=0.01)


@given(st.floats(0.02, 0.98), st.floats(0.01, 0.99))
def test_focal_peak_is_the_brute_force_maximum(mu, rho):
    tau = rho * mu
    n = np.arange(2, int(10 + 3 / tau))
    values = focal_tail_miss(mu, tau, n, 1)
    peak = focal_tail_miss_peak(mu, tau)
    assert focal_tail_miss(mu, tau, peak, 1) == pytest.approx(values.max(), rel=1e-13)
    if np.sort(values)[-2] < values.max() * (1 - 1e-12):
        assert peak == n[np.argmax(values)]
    real = focal_tail_miss_peak(mu, tau, integer=False)
    assert abs(real - peak) < 1
    with mp.workdps(50):
        a, c = mp.log(1 - mp.mpf(tau)), mp.log(1 - mp.mpf(mu))
        assert float(real) == pytest.approx(float(1 + mp.log(c / a) / (a - c)), rel=1e-13)


def test_focal_peak_ties_and_edges():
    assert list(focal_tail_miss_peak([0.75, 0.875], [0.25, 0.125])) == [2, 2]  # mu = 1 - tau: 2 and 3 tie
    assert focal_tail_miss(0.75, 0.25, 2, 1) == focal_tail_miss(0.75, 0.25, 3, 1)
    assert focal_tail_miss_peak(0.5, 0) == np.inf
    for integer in (True, False):
        for mu, tau in ((0, 0), (1, 0), (1, 0.2), (1, 1), (0.4, 0.4)):
            assert np.isnan(focal_tail_miss_peak(mu, tau, integer=integer))
    near = 0.01 * (1 + 1e-9)
    assert focal_tail_miss_peak(near, 0.01, integer=False) == pytest.approx(1 - 1 / np.log1p(-0.01), rel=1e-6)


@pytest.mark.parametrize(("mu", "tau"), [(0.5, 1e-309), (0.5, 1.5e-323), (1 - 2**-53, 1e-308), (1e-5, 1e-320)])
def test_focal_peak_for_rare_masses_whose_reciprocal_is_no_double(mu, tau):
    with mp.workdps(400):
        a, c = mp.log(1 - mp.mpf(tau)), mp.log(1 - mp.mpf(mu))
        real, whole = 1 + mp.log(c / a) / (a - c), 1 + mp.ceil(mp.log(mp.mpf(mu) / mp.mpf(tau)) / (a - c))
    assert focal_tail_miss_peak(mu, tau, integer=False) == pytest.approx(float(real), rel=1e-14)
    assert focal_tail_miss_peak(mu, tau) == float(whole)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: focal_tail_miss(0.5, 0.1, 8.5, 2), "group_size must be a whole number of at least 0, got 8.5"),
        (lambda: focal_tail_miss(0.5, 0.1, 8.5, 0.5), "whole number"),
        (lambda: advantage_weighted_tail_miss(0.5, 0.1, 8.5, gamma=1), "whole number"),
        (lambda: focal_tail_miss(0.5, 0.1, [8, 8.5], [0, 2]), "whole number"),
        (lambda: focal_tail_miss(0.5, 0.1, 8, -1), "gamma must be finite and at least 0, got -1"),
        (lambda: focal_tail_miss(0.5, 0.1, 8, np.nan), "gamma"),
        (lambda: focal_tail_miss(0.5, 0.1, 8, np.inf), "gamma"),
        (lambda: focal_tail_miss(0.5, 0.6, 8, 1), "rare_mass must be at most success_rate"),
        (lambda: advantage_weighted_tail_miss(1.5, 0.1, 8), "success_rate"),
        (lambda: tail_miss_update_share(0.5, 0.1, 0.5), "group_size"),
        (lambda: focal_tail_miss_peak(0.5, np.nan), "rare_mass"),
    ],
)
def test_invalid_input_is_refused_in_one_line(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)


def test_real_group_sizes_where_the_closed_form_allows_them():
    assert focal_tail_miss(0.64, 0.01, 8.5, 1) == pytest.approx(0.36 * (0.99**7.5 - 0.36**7.5), rel=1e-13)
    assert advantage_weighted_tail_miss(0.64, 0.01, 8.5) == pytest.approx(
        7.5 / 8.5 * 0.63 * 0.36 * 0.99**6.5, rel=1e-13
    )
