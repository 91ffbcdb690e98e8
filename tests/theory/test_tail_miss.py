from fractions import Fraction
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fgrpo.theory import active_probability, coverage_group_size, peak_group_size, tail_miss_probability
from reference import tail_miss as exact

EPS = np.finfo(np.float64).eps
TINY = np.finfo(np.float64).tiny
POINTS = 5000

rates = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1 - 2.0**-53])


def random_points(count, seed):
    """mu, tau, N, 1 - mu in every corner that float64 has; mu is exact where 1 - mu is not given (nan)."""
    rng = np.random.default_rng(seed)
    small = 10.0 ** rng.uniform(-300, 0, count)
    moderate = rng.random(count)
    mu = np.choose(rng.integers(0, 4, count), [small, moderate, 1 - 2.0 ** -rng.integers(1, 52, count), moderate])
    nu = np.where(rng.random(count) < 0.3, 10.0 ** rng.uniform(-250, np.log10(0.5), count), np.nan)
    mu = np.where(np.isnan(nu), mu, 1.0 - nu)
    near = np.nextafter(mu * (1 - 2.0 ** -rng.uniform(1, 50, count)), 0)
    tau = np.choose(rng.integers(0, 3, count), [mu * rng.random(count), near, mu * 10.0 ** rng.uniform(-290, 0, count)])
    tau = np.clip(tau, 1e-300, mu)
    n = np.choose(
        rng.integers(0, 4, count),
        [
            np.floor(10 ** rng.uniform(0.31, 4, count)),
            np.floor(10 ** rng.uniform(0.31, 12, count)),
            1 + 10 ** rng.uniform(-8, 1, count),
            np.floor(np.clip(-np.log(rng.random(count)) / tau, 2, 1e12)),
        ],
    )
    return mu, tau, n, nu


def rest_of(mu, tau, n, nu):
    """1 - Pr(B_tau), with 60 digits beyond the smallest part of it."""
    with mp.workdps(60):
        large = max(mp.mpf(mu) - mp.mpf(tau), 1 - mp.mpf(mu))
        size = max(n * mp.mpf(tau), large**n, mp.mpf(10) ** -330)
    with mp.workdps(80 + int(max(0, -mp.log10(size)))):
        return 1 - exact.tail_miss(mu, tau, n, nu)


@pytest.fixture(scope="module")
def accurate():
    """Points (mu, tau, N, 1 - mu or None), Pr(B_tau) and 1 - Pr(B_tau) as mpf; mu - tau is a normal double."""
    kept = []
    for mu, tau, n, nu in zip(*random_points(POINTS, 0), strict=True):
        failure = None if np.isnan(nu) else nu
        with mp.workdps(400):
            gap = (mp.mpf(mu) if failure is None else 1 - mp.mpf(failure)) - mp.mpf(tau)
        wrong = 1.0 - mu if failure is None else failure
        if gap >= TINY and wrong > 0:
            with mp.workdps(exact.digits_for(float(gap), wrong, n - 1)):
                kept.append((mu, tau, n, failure, exact.tail_miss(mu, tau, n, failure), rest_of(mu, tau, n, failure)))
    return kept


def evaluate(points, **options):
    return [float(tail_miss_probability(mu, tau, n, failure_rate=nu, **options)) for mu, tau, n, nu, _, _ in points]


def exponent_of(tau, n):
    return n * -np.log1p(-tau)


def test_relative_error_is_within_the_stated_bound(accurate):
    normal = [point for point in accurate if point[4] >= TINY]
    assert len(normal) > 4000
    for (mu, tau, n, nu, true, _), value in zip(normal, evaluate(normal), strict=True):
        assert abs(mp.mpf(value) / true - 1) <= 4 * EPS * (1 + exponent_of(tau, n)), (mu, tau, n, nu)


def test_log_is_accurate_also_where_the_probability_underflows(accurate):
    assert sum(true < TINY for *_, true, _ in accurate) > 50
    for (mu, tau, n, nu, true, rest), log in zip(accurate, evaluate(accurate, log=True), strict=True):
        true_log = mp.log(true) if true < 0.5 else mp.log1p(-rest)
        error = abs(mp.mpf(log) - true_log)
        assert error <= 4 * EPS * (1 + abs(log)), (mu, tau, n, nu)
        if true > 0.5 and rest >= TINY:  # next to 0 as good as 1 - Pr
            assert error <= 8 * EPS * abs(true_log) * (1 + abs(mp.log(rest))), (mu, tau, n, nu)


def test_complement_is_accurate(accurate):
    for (mu, tau, n, nu, _, rest), value in zip(accurate, evaluate(accurate, complement=True), strict=True):
        if rest >= TINY:
            # where it all rests on u^N, the exponent's rounding counts
            assert abs(mp.mpf(value) / rest - 1) <= 4 * EPS * (1 + abs(mp.log(rest))), (mu, tau, n, nu)


def test_log_of_the_complement_is_accurate(accurate):
    values = evaluate(accurate, complement=True, log=True)
    for (mu, tau, n, nu, true, rest), log in zip(accurate, values, strict=True):
        if true >= TINY and rest >= TINY:
            true_log = mp.log1p(-true) if true < 0.5 else mp.log(rest)
            bound = 8 * EPS * (1 + (exponent_of(tau, n) if true < 0.5 else 0))
            assert abs(mp.mpf(log) / true_log - 1) <= bound, (mu, tau, n, nu)


@pytest.mark.parametrize("n", range(6))
def test_equals_the_enumeration_of_all_sequences(n):
    grid = [Fraction(k, 8) for k in range(9)]
    for mu, tau in product(grid, grid):
        if tau <= mu:
            enumerated = exact.mean_over_sequences(mu, tau, n, exact.is_tail_miss)
            assert float(tail_miss_probability(mu, tau, n)) == pytest.approx(float(enumerated), rel=1e-15, abs=0)
            complement = tail_miss_probability(mu, tau, n, complement=True)
            assert float(complement) == pytest.approx(float(1 - enumerated), rel=1e-15, abs=0)


def test_the_event_of_the_other_count_is_told_apart():
    # the enumeration would notice a formula that forgets one of the homogeneous groups, or counts inactive ones
    mu, tau, n = Fraction(1, 2), Fraction(1, 8), 4
    value = float(tail_miss_probability(mu, tau, n))
    for wrong_event in (lambda c: c[exact.RARE] == 0, lambda c: exact.is_tail_miss(c) or c[exact.CORRECT] == n):
        assert value != pytest.approx(float(exact.mean_over_sequences(mu, tau, n, wrong_event)), rel=1e-3)


def test_degenerate_edges():
    n = np.array([0, 1, 1.5, 2, 64, 1e12])
    for mu, tau in ((0, 0), (1, 0), (1, 0.3), (1, 1), (0.4, 0.4)):
        assert np.all(tail_miss_probability(mu, tau, n) == 0)
        assert np.all(tail_miss_probability(mu, tau, n, log=True) == -np.inf)
        assert np.all(tail_miss_probability(mu, tau, n, complement=True) == 1)
        assert np.all(tail_miss_probability(mu, tau, n, complement=True, log=True) == 0)
    assert np.all(tail_miss_probability(0.5, [0.1, 5e-7], [[0], [1]]) == 0)
    assert np.all(tail_miss_probability(0.5, [0.1, 5e-7], [[0], [1]], log=True) == -np.inf)
    assert tail_miss_probability(0.5, 0.1, 2) == pytest.approx(2 * 0.4 * 0.5, rel=1e-15)
    assert np.array_equal(active_probability(0.3, n), tail_miss_probability(0.3, 0, n))
    assert active_probability(0.5, 1e12) == 1


@given(rates, st.floats(0, 1), st.floats(1, 1e12) | st.sampled_from([0, 1, 2]), st.booleans(), st.booleans())
def test_never_warns_nor_leaves_its_range(mu, rho, n, log, complement):
    value = tail_miss_probability(mu, rho * mu, n, log=log, complement=complement)
    assert value <= 0 if log else 0 <= value <= 1


def test_returns_scalars_for_scalars_and_broadcasts():
    assert isinstance(tail_miss_probability(0.5, 0.1, 8), np.float64)
    many = tail_miss_probability([[0.5], [0.6]], [0.1, 0.2, 0.3], 8)
    assert many.shape == (2, 3)
    assert many[1, 2] == tail_miss_probability(0.6, 0.3, 8)
    assert tail_miss_probability(np.zeros((0, 3)), 0, 8).shape == (0, 3)
    big = np.linspace(0.1, 0.9, 20_001)  # more than one block
    assert np.array_equal(tail_miss_probability(big, 0.05, 8)[[0, -1]], tail_miss_probability(big[[0, -1]], 0.05, 8))
    assert np.array_equal(tail_miss_probability(big[::-2], 0.05, 8), tail_miss_probability(big, 0.05, 8)[::-2])


def test_failure_rate_carries_the_digits():
    assert tail_miss_probability(1.0, 0.25, 2, failure_rate=1e-200) == pytest.approx(1.5e-200, rel=1e-15)
    # mu and tau just above and below 1/2: 1 - tau is not a double, mu - tau is
    nu, tau = np.nextafter(0.5, 0) - 2.0**-40, np.nextafter(0.5, 0)
    with mp.workdps(60):
        true = exact.tail_miss(0, tau, 2, nu)
    assert tail_miss_probability(1 - nu, tau, 2, failure_rate=nu) == pytest.approx(float(true), rel=1e-15)


def random_interior(count, seed):
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0.01, 0.99, count)
    return mu, mu * 10 ** rng.uniform(-2, np.log10(0.95), count)


def test_integer_peak_is_the_brute_force_maximum():
    mu, tau = random_interior(400, 1)
    n = np.arange(2, 20_000)
    for m, t, peak in zip(mu, tau, peak_group_size(mu, tau), strict=True):
        assert peak == n[np.argmax(tail_miss_probability(m, t, n[: int(3 / t) + 10]))]


def test_real_peak_is_the_root_with_50_digits():
    mu, tau = random_interior(100, 2)
    mu, tau = np.append(mu, [1e-6, 0.9999999, 0.63]), np.append(tau, [1e-9, 0.999, 1e-12])
    with mp.workdps(70):
        for m, t, peak in zip(mu, tau, peak_group_size(mu, tau, integer=False), strict=True):
            root = exact.real_peak(m, t, peak)
            assert abs((mp.mpf(peak) - 1) / (root - 1) - 1) <= 1e-14 + EPS / (float(root) - 1)


@given(st.floats(1e-6, 0.9))
def test_peak_in_the_middle_has_a_closed_form(tau):
    # u = w = 1/2
    peak = peak_group_size((1 + tau) / 2, tau, integer=False)
    assert peak == pytest.approx(1 + np.log2(1 + np.log(2) / -np.log1p(-tau)), rel=1e-8)


def test_peak_is_two_from_a_third_on():
    third = 1 / 3  # the double is below 1/3 by a rounding error: 2 and 3 tie to rounding
    for mu in (0.4, 0.5, 0.9):
        assert peak_group_size(mu, third) == 2
        two, three = tail_miss_probability(mu, third, [2, 3])
        assert two == pytest.approx(three, rel=1e-15)
        assert peak_group_size(mu, third + 1e-9) == 2
        assert peak_group_size(mu, third - 1e-9) == 3


def test_peak_at_the_edges():
    assert peak_group_size(0.5, 0) == np.inf
    for mu, tau in ((0, 0), (1, 0), (1, 0.2), (1, 1), (0.4, 0.4)):
        assert np.isnan(peak_group_size(mu, tau))
        assert coverage_group_size(mu, tau, 0.5) == 1
    assert coverage_group_size(0.5, 0, 0.5) == np.inf
    assert peak_group_size(0.5, 1e-310) > 900
    assert coverage_group_size(0.5, 1e-310, 0.5) == np.inf  # no double is so large
    assert peak_group_size([[0.5]], [0.1, 0.2]).shape == (1, 2)


@given(st.floats(0.02, 0.98), st.floats(0.01, 0.99), st.floats(0.001, 0.999))
def test_coverage_is_the_smallest_size_from_which_on_the_level_holds(mu, rho, level):
    tau = rho * mu
    whole = coverage_group_size(mu, tau, level)
    n = np.arange(1, max(4 * whole, 10 / tau))
    exceeds = np.flatnonzero(tail_miss_probability(mu, tau, n) > level)
    expected = n[exceeds[-1]] + 1 if exceeds.size else 1
    if abs(tail_miss_probability(mu, tau, np.array([expected, whole])) / level - 1).min() > 1e-12:
        assert whole == expected
    real = coverage_group_size(mu, tau, level, integer=False)
    if real > 1:
        assert tail_miss_probability(mu, tau, real) == pytest.approx(level, rel=1e-9)
        assert real <= np.log(level) / np.log1p(-tau) * (1 + 1e-12)
        assert np.all(tail_miss_probability(mu, tau, real * np.array([1.001, 1.1, 2, 10])) < level)


@given(rates, st.floats(0, 1), st.integers(2, 10_000))
def test_log_concave_on_whole_group_sizes(mu, rho, n):
    left, middle, right = tail_miss_probability(mu, rho * mu, np.arange(n - 1, n + 2), log=True)
    assume(np.isfinite(middle))
    assert left + right <= 2 * middle + 8 * EPS * (1 + abs(right))


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.integers(2, 300))
def test_log_concavity_is_strict(mu, rho, n):
    with mp.workdps(400):
        left, middle, right = (exact.tail_miss(mu, rho * mu, k) for k in (n - 1, n, n + 1))
        assert left * right < middle**2


@given(rates, st.floats(0, 1), st.floats(1, 1e6))
def test_symmetric_in_the_two_shares(mu, rho, n):
    # u and w swap places when mu becomes 1 + tau - mu
    tau = rho * mu
    swapped = 1 + tau - mu
    assume(tau <= swapped <= 1 and 1e-3 < mu < 0.999 and rho < 0.999)
    log = tail_miss_probability([mu, swapped], tau, n, log=True)
    assert log[0] == pytest.approx(log[1], rel=1e-12, abs=1e-12)


@given(rates, st.floats(0, 1), st.floats(0, 1), st.floats(1, 1e6))
def test_falls_as_the_rare_region_grows(mu, rho, other, n):
    low, high = sorted((rho * mu, other * mu))
    small, large = tail_miss_probability(mu, [low, high], n, log=True)
    assert large <= small or large == pytest.approx(small, abs=16 * EPS * (1 + abs(small)))


@given(rates, st.floats(0, 1), st.floats(1, 1e9))
def test_lies_between_the_bounds_of_the_events(mu, rho, n):
    tau = rho * mu
    value = tail_miss_probability(mu, tau, n)
    no_rare = np.exp(n * np.log1p(-tau)) if tau < 1 else 0.0
    assert 0 <= value <= no_rare * (1 + 8 * EPS)
    assert value <= active_probability(mu, n) * (1 + 16 * EPS)
    assert value + tail_miss_probability(mu, tau, n, complement=True) == pytest.approx(1, abs=4 * EPS)


@given(st.floats(0.01, 0.99), st.floats(1e-3, 0.99), st.floats(1e-3, 0.99))
def test_peak_never_moves_right_as_the_rare_region_grows(mu, rho, other):
    low, high = sorted((rho * mu, other * mu))
    left, right = peak_group_size(mu, [high, low])
    assert left <= right


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1.5, 0.1, 8), "success_rate must be between 0 and 1, got 1.5"),
        ((-0.1, 0.0, 8), "success_rate"),
        ((np.nan, 0.0, 8), "success_rate"),
        ((0.5, 0.75, 8), "rare_mass must be at most success_rate, got 0.75"),
        ((0.5, -0.1, 8), "rare_mass"),
        ((0.5, np.nan, 8), "rare_mass"),
        ((0.5, 0.1, 0.5), "group_size must be 0 or at least 1"),
        ((0.5, 0.1, -3), "group_size must be 0 or at least 1, and finite, got -3"),
        ((0.5, 0.1, np.inf), "group_size"),
        ((0.5, 0.1, np.nan), "group_size"),
        (("0.5", 0.1, 8), "success_rate must be a real number"),
        ((0.5, 0.1j, 8), "rare_mass must be a real number"),
        ((0.5, 0.1, None), "group_size must be a real number"),
        (([0.5, [0.1]], 0.1, 8), "success_rate must be a real number"),
    ],
)
def test_invalid_input_is_refused_in_one_line(arguments, words):
    with pytest.raises(ValueError, match=r".+: ") as error:
        tail_miss_probability(*arguments)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("failure_rate", [0.4, 1.5, -1e-300, np.nan, "x"])
def test_wrong_failure_rates_are_refused(failure_rate):
    with pytest.raises(ValueError, match="failure_rate must be") as error:
        tail_miss_probability(0.5, 0.1, 8, failure_rate=failure_rate)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("level", [0, 1, -0.5, np.nan, "half"])
def test_levels_outside_the_open_interval_are_refused(level):
    with pytest.raises(ValueError, match="level must be") as error:
        coverage_group_size(0.5, 0.1, level)
    assert "\n" not in str(error.value)
