"""Pass@k against exact arithmetic: values, moments over the binomial law, and the coverage of its intervals."""

from fractions import Fraction
from math import comb
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from fgrpo.theory.pass_estimates import (
    estimate_pass_at_k_variance,
    pass_at_k,
    pass_at_k_interval,
    pass_at_k_variance,
)
from reference import pass_at_k as reference


def relative_error(value: Any, exact: Fraction) -> float:
    return abs(float(Fraction(float(value)) / exact - 1)) if exact else abs(float(value))


def random_counts(rng: np.random.Generator, cases: int, largest: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """n, c, k in rows: small, large and middling ones, and both ends."""
    n = rng.integers(1, largest, size=cases, endpoint=True)
    c = np.where(rng.random(cases) < 0.5, rng.integers(0, n + 1), np.floor((n + 1) ** rng.random(cases)) - 1)
    k = np.where(rng.random(cases) < 0.5, rng.integers(1, n + 1), np.floor(n ** rng.random(cases)))
    return np.stack([n, c, k]).astype(np.int64)


@pytest.mark.parametrize(
    ("samples", "correct", "k", "expected"),
    [(4, 1, 1, 1 / 4), (4, 1, 2, 1 / 2), (5, 2, 2, 7 / 10), (8, 0, 8, 0), (8, 1, 8, 1), (8, 6, 3, 1), (1, 0, 1, 0)],
)
def test_values_by_hand(samples: int, correct: int, k: int, expected: float) -> None:
    assert pass_at_k(samples, correct, k) == pytest.approx(expected, rel=1e-15, abs=0)
    assert not np.signbit(pass_at_k(samples, correct, k))


def test_counts_go_up_to_where_doubles_stop_telling_them_apart() -> None:
    assert pass_at_k(2.0**53, 1, 1) == 2.0**-53
    with pytest.raises(ValueError, match=r"samples must be at most 2\^53, got 9007199254740994: "):
        pass_at_k(2.0**53 + 2, 1, 1)


def test_counts_the_subsets_with_a_correct_sample() -> None:
    for n in range(1, 8):
        for c in range(n + 1):
            for k in range(1, n + 1):
                exact = reference.share_of_subsets(n, c, k)
                assert reference.pass_at_k(n, c, k) == exact
                assert relative_error(pass_at_k(n, c, k), exact) < 1e-15


@pytest.mark.parametrize(("cases", "largest"), [(3000, 1024), (15, 100_000)])
def test_accuracy(cases: int, largest: int) -> None:
    n, c, k = random_counts(np.random.default_rng(7), cases, largest)
    values = pass_at_k(n, c, k)
    worst = max(
        relative_error(v, reference.pass_at_k(int(a), int(b), int(d)))
        for v, a, b, d in zip(values, n, c, k, strict=True)
    )
    assert worst <= 5e-16


def test_broadcasts_and_returns_scalars() -> None:
    table = pass_at_k(np.array([8, 16])[:, np.newaxis], 3, [1, 2, 4])
    assert table.shape == (2, 3)
    assert table[1, 2] == pass_at_k(16, 3, 4)
    assert isinstance(pass_at_k(8, 3, 2), float)
    assert pass_at_k(np.empty(0), 0, 1).shape == (0,)
    assert pass_at_k_variance(np.array([0.1, 0.2])[:, np.newaxis], [8, 16, 32], 2).shape == (2, 3)
    assert estimate_pass_at_k_variance([8, 16], [[1], [2], [3]], 4).shape == (3, 2)


@given(st.data())
def test_rises_with_correct_and_k_within_the_unit_interval(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 3000))
    c, k = data.draw(st.integers(0, n - 1)), data.draw(st.integers(1, n - 1))
    here, more_correct, more_tries = pass_at_k(n, [c, c + 1, c], [k, k, k + 1])
    assert 0 <= here <= more_correct <= 1
    assert here <= more_tries <= 1
    assert (here == 0) == (c == 0)
    assert here < 1 or comb(n - c, k) * 2**53 < comb(n, k)  # 1 - (something below eps / 2)


@given(st.data())
def test_symmetric_in_correct_and_k(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 3000))
    c, k = data.draw(st.integers(1, n)), data.draw(st.integers(1, n))
    assert pass_at_k(n, c, k) == pass_at_k(n, k, c)


@pytest.mark.parametrize("success_rate", [Fraction(0), Fraction(1, 1000), Fraction(1, 3), Fraction(9, 10), Fraction(1)])
@pytest.mark.parametrize(("samples", "k"), [(1, 1), (7, 1), (7, 3), (7, 7), (30, 4), (30, 15), (30, 20)])
def test_unbiased_with_the_stated_variance(success_rate: Fraction, samples: int, k: int) -> None:
    mean, variance = reference.mean_and_variance(samples, success_rate, k)
    assert mean == 1 - (1 - success_rate) ** k
    law = stats.binom.pmf(np.arange(samples + 1), samples, float(success_rate))
    assert law @ pass_at_k(samples, np.arange(samples + 1), k) == pytest.approx(float(mean), rel=1e-12)
    assert pass_at_k_variance(float(success_rate), samples, k) == pytest.approx(float(variance), rel=1e-12, abs=0)
    if 2 * k <= samples:
        exact_law = reference.binomial(samples, success_rate)
        estimates = [reference.variance_estimate(samples, c, k) for c in range(samples + 1)]
        assert sum(p * v for p, v in zip(exact_law, estimates, strict=True)) == variance


@pytest.mark.parametrize(("success_rate", "samples", "k"), [(1e-9, 1024, 256), (0.002, 1024, 256), (0.3, 1000, 16)])
def test_variance_at_the_paper_s_size(success_rate: float, samples: int, k: int) -> None:
    with mpmath.workdps(50):
        q = 1 - mpmath.mpf(success_rate)
        exact = sum(
            mpmath.mpf(comb(k, j) * comb(samples - k, k - j)) / comb(samples, k) * q ** (2 * k - j) * (1 - q**j)
            for j in range(max(1, 2 * k - samples), k + 1)
        )
        assert abs(pass_at_k_variance(success_rate, samples, k) / exact - 1) < 1e-13


@pytest.mark.parametrize(("samples", "k"), [(20_000, 5000), (20_000, 16), (9000, 8000)])
def test_variance_of_many_samples_for_many_success_rates(samples: int, k: int) -> None:
    rates = np.minimum(np.geomspace(1e-2, 125, 100) / k, 0.9)  # more than one block
    got = pass_at_k_variance(rates, samples, k)
    for place in (0, 60, 99):
        with mpmath.workdps(40):
            q, low = 1 - mpmath.mpf(rates[place]), max(0, 2 * k - samples)
            share = mpmath.mpf(comb(k, low) * comb(samples - k, k - low)) / comb(samples, k)
            exact = mpmath.mpf(0)
            for j in range(low, k + 1):
                exact += share * q ** (2 * k - j) * (1 - q**j)
                share *= mpmath.mpf((k - j) ** 2) / ((j + 1) * (samples - 2 * k + j + 1))
            assert abs(got[place] / exact - 1) < 1e-13


def test_variance_of_several_samples_and_tries_at_once() -> None:
    n, k, mu = np.array([[5], [9], [9]]), np.array([1, 2, 2, 5]), np.array([0.0, 0.25, 0.5, 1.0])
    together = pass_at_k_variance(mu, n, k)
    assert together.tolist() == [[pass_at_k_variance(m, a[0], b) for m, b in zip(mu, k, strict=True)] for a in n]
    assert not np.signbit(together).any()
    assert pass_at_k_variance(np.ones((0, 2)), 8, 2).shape == (0, 2)


def test_variance_in_closed_form_at_the_ends() -> None:
    mu = np.linspace(0, 1, 11)
    np.testing.assert_allclose(pass_at_k_variance(mu, 64, 1), mu * (1 - mu) / 64, rtol=1e-13)
    np.testing.assert_allclose(pass_at_k_variance(mu, 64, 64), (1 - mu) ** 64 * (1 - (1 - mu) ** 64), rtol=1e-12)


def test_variance_estimate_accuracy() -> None:
    n, c, k = random_counts(np.random.default_rng(8), 1000, 1024)
    n, k = np.maximum(n, 2), np.maximum(np.minimum(k, n // 2), 1)
    for value, *counts in zip(estimate_pass_at_k_variance(n, c, k), n, c, k, strict=True):
        exact = reference.variance_estimate(*map(int, counts))
        assert value >= 0
        if exact == 0 or exact > Fraction(1, 10**290):
            assert relative_error(value, exact) < (2e-14 if exact > Fraction(1, 10**20) else 1e-12)


def test_single_problem_interval_is_clopper_pearson() -> None:
    for c in range(13):
        _, lower, upper = pass_at_k_interval(12, c, 1, level=0.9, method="single_problem")
        if c > 0:
            above = sum(reference.binomial(12, Fraction(float(lower)))[c:])
            assert float(above) == pytest.approx(0.05, rel=1e-12)
        if c < 12:
            below = sum(reference.binomial(12, Fraction(float(upper)))[: c + 1])
            assert float(below) == pytest.approx(0.05, rel=1e-12)
        for k in (2, 12):
            interval = pass_at_k_interval(12, c, k, level=0.9, method="single_problem")
            assert interval.lower == pytest.approx(1 - (1 - lower) ** k, rel=1e-12)
            assert interval.upper == pytest.approx(1 - (1 - upper) ** k, rel=1e-12)
            assert interval.estimate == pass_at_k(12, c, k)
    assert pass_at_k_interval(12, 0, 3, method="single_problem").lower == 0
    assert pass_at_k_interval(12, 12, 3, method="single_problem").upper == 1


@pytest.mark.parametrize("k", [1, 5, 20])
def test_single_problem_interval_covers_for_every_success_rate(k: int) -> None:
    limits = [pass_at_k_interval(20, c, k, level=0.9, method="single_problem") for c in range(21)]
    for mu in np.linspace(0, 1, 101):
        truth = 1 - (1 - mu) ** k
        covered = np.array([lim.lower - 1e-12 <= truth <= lim.upper + 1e-12 for lim in limits])
        assert stats.binom.pmf(np.arange(21), 20, mu) @ covered >= 0.9 - 1e-12


def test_intervals_over_problems_cover_what_they_name_and_no_more() -> None:
    # 400 repetitions at .95: standard error .0109; the bounds are 4 of them (false alarms below 1e-4), plus .01 for the
    # normal approximation
    rng, repetitions, k = np.random.default_rng(9), 400, 8
    fixed = rng.beta(0.5, 2, size=60)
    population_mean = 1 - special.beta(0.5, 2 + k) / special.beta(0.5, 2)
    hits = {"within, these": 0, "over, population": 0, "within, population": 0, "over, these": 0}
    for _ in range(repetitions):
        random = rng.beta(0.5, 2, size=60)
        these, drawn = rng.binomial(64, fixed), rng.binomial(64, random)
        for name, counts, method, truth in (
            ("within, these", these, "within_problems", np.mean(1 - (1 - fixed) ** k)),
            ("over, these", these, "over_problems", np.mean(1 - (1 - fixed) ** k)),
            ("over, population", drawn, "over_problems", population_mean),
            ("within, population", drawn, "within_problems", population_mean),
        ):
            interval = pass_at_k_interval(64, counts, k, method=method)  # type: ignore[arg-type]
            hits[name] += bool(interval.lower <= truth <= interval.upper)
    assert abs(hits["within, these"] / repetitions - 0.95) < 0.054
    assert abs(hits["over, population"] / repetitions - 0.95) < 0.054
    assert hits["within, population"] / repetitions < 0.6
    assert hits["over, these"] / repetitions > 0.99


def test_interval_of_a_curve() -> None:
    counts = np.array([0, 3, 10, 16])
    curve = pass_at_k_interval(16, counts, [1, 4, 8], method="over_problems")
    assert curve.estimate.shape == curve.lower.shape == curve.upper.shape == (3,)
    for i, k in enumerate((1, 4, 8)):
        point = pass_at_k_interval(16, counts, k, method="over_problems")
        assert (curve.estimate[i], curve.lower[i], curve.upper[i]) == tuple(point)
    values = counts / 16
    half = stats.t.ppf(0.975, 3) * values.std(ddof=1) / 2
    assert curve.upper[0] == pytest.approx(min(values.mean() + half, 1))
    assert curve.lower[0] == pytest.approx(max(values.mean() - half, 0))


def test_problems_that_are_all_alike_do_not_make_the_mean_certain() -> None:
    for problems in (2, 30):
        solved = pass_at_k_interval([8] * problems, 8, [1, 8], method="over_problems")
        assert solved.estimate.tolist() == solved.upper.tolist() == [1.0, 1.0]
        assert solved.lower == pytest.approx(0.025 ** (1 / problems))  # m of which all 1 has probability .025 at most
        failed = pass_at_k_interval([8] * problems, 0, [1, 8], method="over_problems")
        assert failed.upper == pytest.approx(1 - 0.025 ** (1 / problems))
        assert failed.lower.tolist() == [0.0, 0.0]
    halves = pass_at_k_interval([8] * 6, 4, 1, level=0.9, method="over_problems")
    exact = stats.binomtest(3, 6).proportion_ci(0.9, method="exact")
    assert (halves.lower, halves.upper) == pytest.approx((exact.low, exact.high))
    mixed = pass_at_k_interval([8, 8, 8], [6, 7, 8], [1, 8], method="over_problems")  # at k = 8 all are 1
    assert mixed.lower[1] == pytest.approx(0.025 ** (1 / 3))
    half = stats.t.ppf(0.975, 2) * np.std([6, 7, 8], ddof=1) / 8 / np.sqrt(3)
    assert mixed.lower[0] == pytest.approx(7 / 8 - half)


def test_the_limit_where_all_are_solved_is_one_of_the_mean() -> None:
    """Exact coverage over problems that are solved (probability m) or not: never below the level at either end."""
    n = 4
    limits = [
        pass_at_k_interval([1] * n, [1] * c + [0] * (n - c), 1, level=0.9, method="over_problems") for c in (0, n)
    ]
    for m in np.linspace(0, 1, 201):
        missed = [not lim.lower - 1e-12 <= m <= lim.upper + 1e-12 for lim in limits]
        assert ((1 - m) ** n, m**n) @ np.array(missed, float) <= 0.1


@given(st.lists(st.integers(0, 16), min_size=2, max_size=6), st.integers(1, 8), st.floats(0.01, 0.99))
def test_intervals_hold_the_estimate_and_grow_with_the_level(counts: list[int], k: int, level: float) -> None:
    for method in ("within_problems", "over_problems"):
        narrow = pass_at_k_interval(16, counts, k, level=level, method=method)  # type: ignore[arg-type]
        wide = pass_at_k_interval(16, counts, k, level=(1 + level) / 2, method=method)  # type: ignore[arg-type]
        assert 0 <= wide.lower <= narrow.lower <= narrow.estimate <= narrow.upper <= wide.upper <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 5, 1), "correct must be at most samples, got 5 > 3: "),
        ((0, 0, 1), "samples must be a whole number of at least 1, got 0: "),
        ((8, 0, 9), "k must be at most samples, got 9 > 8: "),
        ((8, 8, 9), "k must be at most samples, got 9 > 8: "),
        ((8, 0, 0), "k must be a whole number of at least 1, got 0: "),
        ((8, -1, 1), "correct must be a whole number of at least 0, got -1: "),
        ((8, 2.5, 1), "correct must be a whole number of at least 0, got 2.5: "),
        ((8, 2, 1.5), "k must be a whole number of at least 1, got 1.5: "),
        ((np.nan, 0, 1), "samples must be a whole number of at least 1, got nan: "),
        ((np.inf, 0, 1), "samples must be a whole number of at least 1, got inf: "),
        ((2**54, 0, 1), "samples must be at most 2^53, got 1.8014398509481984e+16: "),
        (("8", 0, 1), "samples must be a real number or an array of them, got '8': "),
        (([8, 8], [1, 2, 3], 1), "shapes must broadcast, got (2,) for samples, (3,) for correct, () for k: "),
    ],
)
def test_invalid_counts(arguments: tuple[Any, Any, Any], message: str) -> None:
    for function in (pass_at_k, estimate_pass_at_k_variance):
        with pytest.raises(ValueError, match="must") as caught:
            function(*arguments)
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)


def test_invalid_settings() -> None:
    with pytest.raises(ValueError, match=r"^2 k must be at most samples, got 10 > 8: "):
        estimate_pass_at_k_variance(8, 3, 5)
    with pytest.raises(ValueError, match=r"^2 k must be at most samples, got 10 > 8: "):
        pass_at_k_interval(8, [3, 4], 5, method="within_problems")
    with pytest.raises(ValueError, match=r"^success_rate must be between 0 and 1, got 1.5: "):
        pass_at_k_variance(1.5, 8, 2)
    with pytest.raises(ValueError, match=r"^k must be at most samples, got 9 > 8: "):
        pass_at_k_variance(0.5, 8, 9)
    with pytest.raises(ValueError, match=r"^samples must be at most 1e\+06 here, got 1000001: "):
        pass_at_k_variance(0.5, 10**6 + 1, 2)
    with pytest.raises(ValueError, match=r"^method must be one of within_problems, .*, got 'wilson': "):
        pass_at_k_interval(8, [3, 4], 1, method="wilson")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^level must be strictly between 0 and 1, got 1: "):
        pass_at_k_interval(8, [3, 4], 1, level=1.0, method="over_problems")
    with pytest.raises(ValueError, match=r"^single_problem needs the counts of one problem, got 2: "):
        pass_at_k_interval(8, [3, 4], 1, method="single_problem")
    with pytest.raises(ValueError, match=r"^over_problems needs at least 2 problems, got 1: "):
        pass_at_k_interval(8, [3], 1, method="over_problems")
    with pytest.raises(ValueError, match=r"^counts must be one per problem, got shape \(1, 2\): "):
        pass_at_k_interval(8, [[3, 4]], 1, method="over_problems")
    with pytest.raises(ValueError, match=r"^counts must be one per problem, got shape \(0,\): "):
        pass_at_k_interval(8, [], 1, method="over_problems")
