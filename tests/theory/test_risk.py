from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.risk import risk_interval, tail_miss_per_rollout, tail_miss_regime, tail_misses_before_first_hit
from fgrpo.theory.tail_miss import coverage_group_size, peak_group_size, tail_miss_probability
from reference import tail_miss as exact

interior = st.floats(1e-3, 0.999)


def expected_misses_by_waiting(mu, tau, n):
    """Sum over k of Pr(the first hit comes after group k, and group k is a tail miss), until nothing is left."""
    miss = exact.tail_miss(mu, tau, n)
    no_hit = (1 - mp.mpf(tau)) ** n
    return mp.nsum(lambda k: no_hit ** (k - 1) * miss, [1, mp.inf])


@pytest.mark.parametrize(("mu", "tau", "n"), [(0.5, 0.25, 2), (0.64, 0.1, 8), (0.9, 0.5, 3), (0.3, 0.01, 64)])
def test_misses_before_the_first_hit_sum_over_the_groups(mu, tau, n):
    assert float(tail_misses_before_first_hit(mu, tau, n)) == pytest.approx(
        float(expected_misses_by_waiting(mu, tau, n)), rel=1e-13
    )


def test_misses_before_the_first_hit_by_simulation():
    # |z| < 4: false alarm 6e-5; the same sample must reject the value at N = 9
    rng = np.random.default_rng(5)
    mu, tau, n, runs = 0.6, 0.15, 8, 20_000
    misses = np.zeros(runs)
    waiting = np.arange(runs)
    while waiting.size:
        counts = rng.multinomial(n, [tau, mu - tau, 1 - mu], waiting.size)
        waiting, counts = waiting[counts[:, 0] == 0], counts[counts[:, 0] == 0]
        misses[waiting] += (counts[:, 1] > 0) & (counts[:, 2] > 0)
    z = (misses.mean() - tail_misses_before_first_hit(mu, tau, [n, n + 1])) / (misses.std() / np.sqrt(runs))
    assert abs(z[0]) < 4 < abs(z[1])


@pytest.mark.parametrize(
    ("mu", "tau", "n"),
    [(0.5, 1e-300, 2), (0.5, 1e-300, 1e12), (1e-12, 1e-14, 1e6), (0.9, 0.3, 64), (0.5, 1e-12, 1e12), (0.99, 1e-5, 1.5)],
)
def test_misses_before_the_first_hit_are_accurate(mu, tau, n):
    with mp.workdps(400):
        true = exact.tail_miss(mu, tau, n) / (1 - (1 - mp.mpf(tau)) ** mp.mpf(n))
    bound = 8 * np.finfo(float).eps * (1 - n * np.log1p(-tau))
    assert abs(mp.mpf(float(tail_misses_before_first_hit(mu, tau, n))) / true - 1) <= bound


@given(interior, interior, st.integers(2, 5000))
def test_both_rates_fall_with_the_group_size(mu, rho, n):
    tau = rho * mu
    for rate in (tail_miss_per_rollout, tail_misses_before_first_hit):
        here, there = rate(mu, tau, [n, n + 1])
        assert there < here or here == 0 or there == pytest.approx(here, rel=1e-14)


def test_rates_from_the_first_group_sizes():
    mu, tau = Fraction(3, 5), Fraction(1, 5)
    a, b, c = 1 - tau, mu - tau, 1 - mu
    assert tail_miss_per_rollout(mu, tau, [0, 1, 2, 3]) == pytest.approx([0, 0, float(b * c), float(a * b * c)])
    # between 2 and 3 the rate per rollout rises first: it is a statement about whole numbers
    assert tail_miss_per_rollout(0.6, 0.001, 2.5) > tail_miss_per_rollout(0.6, 0.001, 2)


def test_rates_at_the_edges():
    assert tail_misses_before_first_hit(0.5, 0, [0, 1, 2]) == pytest.approx([0, 0, np.inf])
    for mu, tau in ((0, 0), (1, 0), (1, 0.3), (1, 1), (0.4, 0.4)):
        assert np.all(tail_misses_before_first_hit(mu, tau, [0, 1, 2, 64]) == 0)
        assert np.all(tail_miss_per_rollout(mu, tau, [0, 1, 2, 64]) == 0)


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.99), st.floats(1e-3, 0.999))
def test_interval_of_whole_sizes_by_definition(mu, rho, level):
    tau = rho * mu
    n = np.arange(1, int(20 + 8 * -np.log(1e-3) / tau))
    probability = tail_miss_probability(mu, tau, n)
    if np.min(np.abs(probability / level - 1)) < 1e-12:
        return  # a tie: decided to rounding
    inside = n[probability >= level]
    low, high = risk_interval(mu, tau, level)
    if inside.size:
        assert (low, high) == (inside[0], inside[-1])
        assert high == coverage_group_size(mu, tau, level) - 1
    else:
        assert np.isnan(low)
        assert np.isnan(high)


@given(interior, st.floats(1e-9, 0.99), st.floats(1e-6, 0.999))
def test_interval_of_real_sizes_by_definition(mu, rho, level):
    tau = rho * mu
    low, high = risk_interval(mu, tau, level, integer=False)
    peak = peak_group_size(mu, tau, integer=False)
    if np.isnan(low):
        assert np.isnan(high)
        assert tail_miss_probability(mu, tau, peak) < level * (1 + 1e-12)
    else:
        assert 1 < low <= peak * (1 + 1e-7)
        assert high >= peak * (1 - 1e-7)
        assert tail_miss_probability(mu, tau, [low, high]) == pytest.approx([level, level], rel=1e-9)


def test_interval_without_a_rare_region_has_no_upper_end():
    low, high = risk_interval([0.5, 0.9, 1e-9], 0, [0.5, 0.6, 0.25])
    assert list(high) == [np.inf] * 3
    assert low[0] == 2  # 1/2 exactly: the tie belongs to the set
    for mu, level, n in zip([0.9, 1e-9], [0.6, 0.25], low[1:], strict=True):
        assert tail_miss_probability(mu, 0, n) >= level > tail_miss_probability(mu, 0, n - 1)
    real, _ = risk_interval(0.9, 0, 0.6, integer=False)
    assert tail_miss_probability(0.9, 0, real) == pytest.approx(0.6, rel=1e-12)
    for mu, tau in ((0, 0), (1, 0), (1, 0.2), (1, 1), (0.4, 0.4)):
        assert np.isnan(risk_interval(mu, tau, 0.5)).all()


def test_whole_sizes_may_miss_an_interval_between_them():
    level = (tail_miss_probability(0.55, 0.1, 4) + tail_miss_probability(0.55, 0.1, peak_group_size(0.55, 0.1))) / 2
    top = tail_miss_probability(0.55, 0.1, peak_group_size(0.55, 0.1))
    summit = tail_miss_probability(0.55, 0.1, peak_group_size(0.55, 0.1, integer=False))
    between = (top + summit) / 2
    assert level <= top < between < summit
    assert np.isnan(risk_interval(0.55, 0.1, between)).all()
    low, high = risk_interval(0.55, 0.1, between, integer=False)
    assert np.ceil(low) > np.floor(high)


@pytest.mark.parametrize("integer", [True, False])
def test_level_of_the_maximum_itself(integer):
    for mu, tau in ((0.5, 0.1), (0.64, 6.3e-5), (0.3, 0.29), (0.9, 1e-9)):
        peak = peak_group_size(mu, tau, integer=integer)
        low, high = risk_interval(mu, tau, tail_miss_probability(mu, tau, peak), integer=integer)
        assert np.isnan(high) if np.isnan(low) else low <= peak * (1 + 1e-6)
        assert np.isnan(low) or peak * (1 - 1e-6) <= high < 2 * peak


def test_tiny_levels():
    # N - 1 is then known to rounding only
    low, high = risk_interval(0.5, 5e-10, [1e-9, 1e-12, 1e-300], integer=False)
    assert low - 1 == pytest.approx(np.array([1e-9, 1e-12, 0]) / np.log(2), rel=1e-3, abs=1e-15)
    assert high == pytest.approx(np.log([1e-9, 1e-12, 1e-300]) / np.log1p(-5e-10), rel=1e-12)


def test_interval_broadcasts():
    low, high = risk_interval([[0.5], [0.64]], [0.01, 0.02, 0.03], 0.5)
    assert low.shape == high.shape == (2, 3)
    assert risk_interval(0.64, 0.02, 0.5) == (low[1, 1], high[1, 1])
    assert risk_interval(np.zeros((0, 2)), 0, 0.5)[0].shape == (0, 2)


@given(interior, st.floats(1e-6, 0.99), st.integers(1, 10**6), st.floats(0.01, 0.99))
def test_regimes_are_the_sides_of_the_interval(mu, rho, n, level):
    tau = rho * mu
    regime = tail_miss_regime(mu, tau, n, level=level)
    low, high = risk_interval(mu, tau, level, integer=False)
    if np.isnan(low):
        assert regime == ("inactive" if n <= peak_group_size(mu, tau, integer=False) else "covered")
    elif min(abs(n / low - 1), abs(n / high - 1)) > 1e-9:
        assert regime == ("inactive" if n < low else "miss-prone" if n <= high else "covered")


@given(interior, st.floats(1e-6, 0.99), st.floats(0.01, 0.99))
def test_regimes_come_in_order(mu, rho, level):
    order = ["inactive", "miss-prone", "covered"]
    regimes = tail_miss_regime(mu, rho * mu, np.unique(np.floor(np.geomspace(1, 1e9, 200))), level=level)
    positions = [order.index(regime) for regime in regimes]
    assert positions == sorted(positions)
    assert positions[0] == 0


def test_regimes_have_the_shape_of_their_arguments():
    assert tail_miss_regime([[0.5], [0.6]], 0.1, [2, 8, 64]).shape == (2, 3)
    assert isinstance(tail_miss_regime(0.5, 0.1, 8), str)


def test_regimes_at_the_edges():
    assert list(tail_miss_regime(0.5, 0, [0, 1, 2, 1e12])) == ["inactive", "inactive", "miss-prone", "miss-prone"]
    assert set(tail_miss_regime([0, 1], 0, [[1], [1e12]]).ravel()) == {"inactive"}
    assert list(tail_miss_regime(1, 1, [0, 1, 2])) == ["inactive", "inactive", "covered"]
    assert list(tail_miss_regime(0.5, 5e-324, [1, 8, 1e300])) == ["inactive", "miss-prone", "miss-prone"]
    # tau = mu: the limit of the peak, 1 / lambda
    assert list(tail_miss_regime(0.01, 0.01, [99, 100])) == ["inactive", "covered"]
    assert peak_group_size(0.01, 0.01 * (1 - 1e-9), integer=False) == pytest.approx(-1 / np.log1p(-0.01), rel=1e-6)
    assert tail_miss_regime(0.64, 0.01, 8) == "miss-prone"


@pytest.mark.parametrize(
    "call",
    [
        lambda: tail_miss_per_rollout(0.5, 0.6, 8),
        lambda: tail_misses_before_first_hit(1.5, 0.1, 8),
        lambda: tail_misses_before_first_hit(0.5, 0.1, 0.5),
        lambda: risk_interval(0.5, 0.1, 1.0),
        lambda: risk_interval(0.5, np.nan, 0.5),
        lambda: tail_miss_regime(0.5, 0.1, -1),
        lambda: tail_miss_regime(0.5, 0.1, 8, level=0),
        lambda: tail_miss_regime("0.5", 0.1, 8),
    ],
)
def test_invalid_input_is_refused_in_one_line(call):
    with pytest.raises(ValueError, match=r"must be .*, got .*: |must be at most") as error:
        call()
    assert "\n" not in str(error.value)


def test_interval_that_begins_beyond_the_doubles() -> None:
    low, high = risk_interval(5e-324, 0.0, 0.5)
    assert low == high == np.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("integer", [True, False])
def test_regions_of_the_smallest_masses_give_no_warning(integer):
    for mu, tau in ((1e-8, 1e-308), (0.5, 5e-324), (1e-300, 1e-308)):
        _, high = risk_interval(mu, tau, 0.5, integer=integer)
        assert high == pytest.approx(np.log(2) / tau if tau > 1e-320 else np.inf, rel=1e-6)
        assert coverage_group_size(mu, tau, 0.5, integer=integer) == pytest.approx(high, rel=1e-12)


def test_misses_before_the_first_hit_of_the_smallest_region():
    tau = 5e-324
    with mp.workprec(1200):
        w = 1 - mp.mpf(1e-300)
        miss = 1 - w ** mp.mpf(1.5) - mp.mpf(1e-300) ** mp.mpf(1.5)
        exactly = miss / (mp.mpf(tau) * mp.mpf(1.5))
    assert tail_misses_before_first_hit(1e-300, tau, 1.5) == pytest.approx(float(exactly), rel=1e-14)
