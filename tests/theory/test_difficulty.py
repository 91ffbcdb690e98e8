from fractions import Fraction
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.difficulty import (
    beta_tail_miss_rare_fraction,
    beta_tail_miss_rare_mass,
    correlated_tail_miss,
    graded_tail_miss_probability,
    tail_miss_without_replacement,
)
from fgrpo.theory.tail_miss import tail_miss_probability
from fgrpo.theory.weighted_tail_miss import focal_tail_miss
from reference import tail_miss as exact

GAMMAS = [0, 1, 2]


def rare_fraction_formula(alpha, beta, rho, n):
    """The hypergeometric function and two ratios of rising factorials, 60 digits beyond the cancellation."""
    with mp.workdps(150):
        alpha, beta, rho = mp.mpf(alpha), mp.mpf(beta), mp.mpf(rho)
        return mp.hyp2f1(-n, alpha, alpha + beta, rho) - ((1 - rho) ** n * mp.rf(alpha, n) + mp.rf(beta, n)) / mp.rf(
            alpha + beta, n
        )


def rare_mass_formula(alpha, beta, tau, n):
    with mp.workdps(400):
        alpha, beta, tau = mp.mpf(alpha), mp.mpf(beta), mp.mpf(tau)
        return (1 - tau) ** n * (1 - (mp.rf(alpha, n) + mp.rf(beta, n)) / mp.rf(alpha + beta, n))


def beta_mean(alpha, beta, value):
    """Mean of value(x) for x ~ Beta(alpha, beta), by quadrature."""
    with mp.workdps(30):
        total = mp.quad(lambda x: value(x) * x ** (alpha - 1) * (1 - x) ** (beta - 1), [0, 0.25, 0.5, 0.75, 1])
        return float(total / mp.beta(alpha, beta))


def focal_by_counts(mu, tau, n, gamma):
    b, c = mu - tau, 1 - mu
    return sum(mp.binomial(n, w) * c**w * b ** (n - w) * (mp.mpf(w) / n) ** gamma for w in range(1, n))


@pytest.mark.parametrize("gamma", [0, 0.5, 1, 2])
@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2.5, 1.5)])
def test_beta_averages_equal_quadrature(alpha, beta, n, gamma):
    rho, tau = 0.1, 0.05
    by_fraction = beta_mean(alpha, beta, lambda mu: focal_by_counts(mu, rho * mu, n, gamma))
    assert beta_tail_miss_rare_fraction(alpha, beta, rho, n, gamma=gamma) == pytest.approx(by_fraction, rel=1e-12)
    by_mass = beta_mean(alpha, beta, lambda u: focal_by_counts(tau + (1 - tau) * u, tau, n, gamma))
    assert beta_tail_miss_rare_mass(alpha, beta, tau, n, gamma=gamma) == pytest.approx(by_mass, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 64, 1000])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.01, 0.3), (1e-8, 1), (3, 1e-9), (50, 2000), (1e9, 1e6)])
def test_beta_averages_equal_the_formulas(alpha, beta, n):
    for share in (0, 1e-12, 0.01, 0.5):
        by_fraction = float(rare_fraction_formula(alpha, beta, share, n))
        assert beta_tail_miss_rare_fraction(alpha, beta, share, n) == pytest.approx(by_fraction, rel=1e-11, abs=1e-300)
        by_mass = float(rare_mass_formula(alpha, beta, share, n))
        assert beta_tail_miss_rare_mass(alpha, beta, share, n) == pytest.approx(by_mass, rel=1e-12, abs=1e-300)


def test_beta_averages_vanish_where_all_correct_rollouts_are_rare():
    n = np.array([0, 1, 2, 64])
    assert np.all(beta_tail_miss_rare_fraction(2, 3, 1, n, gamma=[[0], [0.5]]) == 0)
    assert np.all(beta_tail_miss_rare_mass(2, 3, 1, n, gamma=[[0], [0.5]]) == 0)


def test_beta_averages_stay_accurate_for_a_million_rollouts():
    n = 10**6
    with mp.workdps(60):
        log_ratio = [mp.loggamma(x + n) - mp.loggamma(x) for x in map(mp.mpf, (0.3, 2.5, 2.8))]
        correct, wrong = (mp.exp(part - log_ratio[2]) for part in log_ratio[:2])
        true = mp.exp(n * mp.log1p(mp.mpf(-1e-6))) * (1 - correct - wrong)
    assert beta_tail_miss_rare_mass(0.3, 2.5, 1e-6, n) == pytest.approx(float(true), rel=1e-12)
    # a rare fraction of 0 is a rare mass of 0: the sum over counts against the product
    pair = beta_tail_miss_rare_fraction(0.3, 2.5, 0, n), beta_tail_miss_rare_mass(0.3, 2.5, 0, n)
    assert pair[0] == pytest.approx(pair[1], rel=1e-9)


def test_beta_averages_by_simulation():
    # |z| < 4: false alarm 6e-5 each; another rare fraction must be rejected
    rng = np.random.default_rng(3)
    mu = rng.beta(2, 3, 400_000)
    values = tail_miss_probability(mu, 0.1 * mu, 8)
    expected = beta_tail_miss_rare_fraction(2, 3, [0.1, 0.11], 8)
    z = (values.mean() - expected) / (values.std() / np.sqrt(mu.size))
    assert abs(z[0]) < 4 < abs(z[1])


def test_concentrated_difficulty_is_one_prompt():
    single = tail_miss_probability(0.4, 0.04, 16)
    assert beta_tail_miss_rare_fraction(4e9, 6e9, 0.1, 16) == pytest.approx(single, rel=1e-8)
    share = (0.4 - 0.04) / 0.96
    assert beta_tail_miss_rare_mass(1e10 * share, 1e10 * (1 - share), 0.04, 16) == pytest.approx(single, rel=1e-8)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("n", range(6))
def test_correlated_rollouts_equal_the_enumeration(n, gamma):
    for rare, correct, wrong in [(1, 2, 3), (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)), (0, 1, 1), (1, 0, 1)]:
        parts = [Fraction(part) for part in (rare, correct, wrong)]
        total = sum(parts)
        law = exact.dirichlet_multinomial(*parts)
        true = exact.mean_on_tail_misses(law, n, lambda c: exact.focal(c, gamma))
        mu, tau, correlation = (parts[0] + parts[1]) / total, parts[0] / total, 1 / (1 + total)
        value = correlated_tail_miss(mu, tau, n, correlation, gamma=gamma)
        assert value == pytest.approx(float(true), rel=1e-13, abs=0)


def test_the_reference_laws_sum_to_one():
    laws = exact.dirichlet_multinomial(*map(Fraction, (1, 2, 3))), exact.hypergeometric(7, 5, 2)
    for law in (*laws, exact.independent(Fraction(1, 2), Fraction(1, 5))):
        assert sum(law(c) for c in exact.all_counts(4)) == 1


def test_correlation_is_the_correlation_of_two_rollouts():
    # two rollouts: Pr(B) = 2 Pr(first correct and not rare, second wrong) = 2 (1 - r) b c
    assert correlated_tail_miss(0.6, 0.1, 2, 0.3) == pytest.approx(2 * 0.7 * 0.5 * 0.4, rel=1e-14)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 500), st.sampled_from([0, 0.5, 1, 2]))
def test_no_correlation_is_the_lemma(mu, rho, n, gamma):
    tau = rho * mu
    independent = focal_tail_miss(mu, tau, n, gamma)
    assert correlated_tail_miss(mu, tau, n, 0, gamma=gamma) == pytest.approx(independent, rel=1e-10, abs=1e-300)
    almost = correlated_tail_miss(mu, tau, n, 1e-15, gamma=gamma)
    # a factor 1 - tau of the law becomes (1 - tau + i r) / (1 + i r) at draw i: all together N^2 r / (1 - tau) off
    effect = n**2 * 1e-15 / max(1 - tau, 1e-300)
    assert almost == pytest.approx(independent, rel=1e-9 + effect, abs=1e-300)
    assert correlated_tail_miss(mu, tau, n, 1, gamma=gamma) == 0


@pytest.mark.parametrize("gamma", GAMMAS)
def test_without_replacement_equals_the_enumeration(gamma):
    for pool in range(7):
        for correct, rare, n in product(range(pool + 1), range(pool + 1), range(pool + 1)):
            if rare <= correct:
                law = exact.hypergeometric(pool, correct, rare)
                true = exact.mean_on_tail_misses(law, n, lambda c: exact.focal(c, gamma))
                value = tail_miss_without_replacement(pool, correct, rare, n, gamma=gamma)
                assert value == pytest.approx(float(true), rel=1e-13, abs=0)


@pytest.mark.parametrize(
    ("pool", "correct", "rare"), [(10**4, 6000, 30), (10**4, 1, 0), (10**4, 9999, 1), (300, 200, 199)]
)
def test_without_replacement_equals_binomials_of_large_pools(pool, correct, rare):
    for n in (2, 17, 250):
        ways = mp.binomial
        with mp.workdps(500):
            few = ways(pool - rare, n) - ways(correct - rare, n) - ways(pool - correct, n)
            true = float(few / ways(pool, n))
        assert tail_miss_without_replacement(pool, correct, rare, n) == pytest.approx(true, rel=1e-12, abs=0)


def test_a_huge_pool_is_like_replacement():
    value = tail_miss_without_replacement(10**12, 6 * 10**11, 10**10, 16)
    assert value == pytest.approx(tail_miss_probability(0.6, 0.01, 16), rel=1e-9)


@pytest.mark.parametrize("n", range(5))
def test_graded_rewards_equal_the_enumeration(n):
    levels, tau = [Fraction(1, 5), Fraction(2, 5), Fraction(3, 10)], Fraction(1, 10)
    mass = [tau, *levels]
    true = Fraction(0)
    for group in product(range(4), repeat=n):
        if 0 not in group and len(set(group)) > 1:
            true += Fraction(np.prod([mass[kind] for kind in group]))
    assert graded_tail_miss_probability(levels, tau, n) == pytest.approx(float(true), rel=1e-14)


@given(st.floats(0.001, 0.999), st.floats(0, 1), st.floats(1, 1e6))
def test_two_levels_are_the_lemma(mu, rho, n):
    tau = rho * mu
    graded = graded_tail_miss_probability([mu - tau, 1 - mu], tau, n)
    expected = tail_miss_probability(mu, tau, n)
    # 1e-300: results that are no normal doubles
    assert graded == pytest.approx(expected, rel=1e-11 * (1 + n * -np.log1p(-tau)), abs=1e-300)


def test_graded_rewards_in_their_limits():
    assert graded_tail_miss_probability([0.9], 0.1, 8) == 0
    for levels in (1, 2, 3):
        np.testing.assert_array_equal(graded_tail_miss_probability(np.zeros(levels), 1.0, [0, 1, 2, 8]), np.zeros(4))
    many = np.full(100_000, 0.9 / 100_000)
    assert graded_tail_miss_probability(many, 0.1, 2) == pytest.approx(0.81, rel=1e-4)
    assert graded_tail_miss_probability([1e-200, 1 - 1e-3], 1e-3, 2) == pytest.approx(2e-200 * (1 - 1e-3), rel=1e-14)
    assert graded_tail_miss_probability([[0.5, 0.5], [0.4, 0.6]], 0, [[0], [1], [2]]).shape == (3, 2)
    assert graded_tail_miss_probability([[0.5, 0.4], [0.4, 0.4]], [0.1, 0.2], 2) == pytest.approx([0.4, 0.32])


@given(st.floats(0.01, 10), st.floats(0.01, 10), st.floats(0, 1), st.integers(0, 200), st.floats(0, 4))
def test_averages_are_probabilities_and_fall_with_gamma_and_the_rare_part(alpha, beta, share, n, gamma):
    for function in (beta_tail_miss_rare_fraction, beta_tail_miss_rare_mass):
        whole, weighted = function(alpha, beta, share, n, gamma=np.array([0, gamma]))
        assert 0 <= weighted <= whole * (1 + 1e-11) <= 1 + 1e-11
        assert function(alpha, beta, share / 2, n) >= whole * (1 - 1e-11)
        if n < 2:
            assert whole == 0


def test_broadcast_and_scalars():
    many = correlated_tail_miss([[0.5], [0.6]], 0.1, [2, 3, 8], 0.2)
    assert many.shape == (2, 3)
    assert many[1, 2] == correlated_tail_miss(0.6, 0.1, 8, 0.2)
    assert isinstance(beta_tail_miss_rare_fraction(1, 1, 0.1, 8), np.float64)
    assert beta_tail_miss_rare_mass(np.ones((0, 2)), 1, 0.1, 8).shape == (0, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: beta_tail_miss_rare_fraction(0, 1, 0.1, 8), "alpha must be finite and above 0, got 0"),
        (lambda: beta_tail_miss_rare_fraction(1, np.inf, 0.1, 8), "beta"),
        (lambda: beta_tail_miss_rare_fraction(1, 1, 1.1, 8), "rare_fraction"),
        (
            lambda: beta_tail_miss_rare_fraction(1, 1, 0.1, 8.5),
            "group_size must be a whole number of at least 0, got 8.5",
        ),
        (lambda: beta_tail_miss_rare_mass(1, 1, -0.1, 8), "rare_mass"),
        (lambda: beta_tail_miss_rare_mass(1, 1, 0.1, 8, gamma=-1), "gamma"),
        (lambda: correlated_tail_miss(0.5, 0.6, 8, 0.1), "rare_mass must be at most success_rate"),
        (lambda: correlated_tail_miss(0.5, 0.1, 8, 1.1), "correlation"),
        (lambda: tail_miss_without_replacement(5, 6, 1, 2), "correct must be at most pool_size, got 6"),
        (lambda: tail_miss_without_replacement(5, 3, 4, 2), "rare must be at most correct, got 4"),
        (lambda: tail_miss_without_replacement(5, 3, 1, 6), "group_size must be at most pool_size, got 6"),
        (lambda: tail_miss_without_replacement(5, 2.5, 1, 2), "correct must be a whole number"),
        (lambda: graded_tail_miss_probability([0.5, 0.6], 0, 2), "sum of level_masses with rare_mass"),
        (lambda: graded_tail_miss_probability(0.5, 0.5, 2), "at least one level"),
        (lambda: graded_tail_miss_probability([], 1.0, 2), "at least one level"),
        (lambda: graded_tail_miss_probability([0.5, 0.5], 0, 0.5), "group_size"),
    ],
)
def test_invalid_input_is_refused_in_one_line(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)
