"""The subsampling test against its law by enumeration, its level under the null hypothesis, and Holm's adjustment."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fgrpo.theory.pass_estimates import pass_at_k
from fgrpo.theory.significance import (
    Variant,
    exact_paired_subsampling_test,
    holm_adjust,
    paired_subsampling_test,
)
from reference import significance as reference

VARIANTS = cast(tuple[Variant, ...], ("raw", "rescaled", "finite_population"))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("a", "b"), [([2, 5, 3], [1, 3, 3]), ([0, 6, 1], [0, 6, 1]), ([6, 6, 6], [0, 0, 1])])
def test_exact_test_is_the_enumerated_law(a: list[int], b: list[int], variant: Variant, k: int) -> None:
    n, m, level = 6, 3, 0.8
    law = reference.subsampling_law(a, b, [n] * 3, k, m)
    estimate = sum((x * p for x, p in law.items()), Fraction(0))
    if variant != "raw":
        factor = Fraction(float(np.sqrt(m / n if variant == "rescaled" else m / (n - m))))
        law = {estimate - factor * (x - estimate): p for x, p in law.items()}
    result = exact_paired_subsampling_test(n, a, b, k, subsample=m, variant=variant, level=level)
    lower, upper = reference.central_interval(law, Fraction(1, 10))
    assert result.estimate == pytest.approx(float(estimate), abs=1e-15)
    assert (result.lower, result.upper) == (
        pytest.approx(float(lower), abs=1e-14),
        pytest.approx(float(upper), abs=1e-14),
    )
    assert result.p_value == pytest.approx(float(reference.p_value(law)), rel=1e-12, abs=1e-15)
    assert result.reject == (lower > 0 or upper < 0)
    assert (result.level, result.variant) == (level, variant)


def test_exact_raw_test_with_samples_that_differ() -> None:
    n, a, b = [4, 6, 5], [2, 4, 1], [1, 1, 1]
    law = reference.subsampling_law(a, b, n, 3, 3)
    result = exact_paired_subsampling_test(n, a, b, 3, subsample=3)
    assert result.p_value == pytest.approx(float(reference.p_value(law)), rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_drawn_test_follows_the_enumerated_law(k: int) -> None:
    # a two-sided p-value is twice a binomial share: z beyond 4 has probability 6e-5
    n, a, b, draws = [6, 7, 8], [3, 2, 5], [2, 2, 3], 20_000
    right = float(reference.p_value(reference.subsampling_law(a, b, n, k, 3)))
    other_size = float(reference.p_value(reference.subsampling_law(a, b, n, k, 4 if k < 3 else 5)))
    drawn = paired_subsampling_test(n, a, b, k, subsample=3, iterations=draws, rng=np.random.default_rng(11)).p_value
    error = 2 * np.sqrt(right / 2 * (1 - right / 2) / draws)
    assert abs(drawn - right) < 4 * error
    assert abs(drawn - other_size) > 8 * error


def test_draws_are_without_replacement() -> None:
    # the wrong law, drawing with replacement, is wider by 1 / sqrt(1 - m/n)
    a, b, n, m, draws = np.array([300, 530, 30]), np.array([260, 500, 25]), 1024, 256, 20_000
    exact = exact_paired_subsampling_test(n, a, b, 1, subsample=m)
    drawn = paired_subsampling_test(n, a, b, 1, subsample=m, iterations=draws, rng=np.random.default_rng(12))
    law = np.ones(1)
    for c in a:
        law = np.convolve(law, stats.binom.pmf(np.arange(m + 1), m, c / n))
    for c in b:
        law = np.convolve(law, stats.binom.pmf(np.arange(m + 1), m, c / n)[::-1])
    replaced = 2 * law[: 3 * m + 1].sum()  # differences at or below 0
    error = 2 * np.sqrt(exact.p_value / 2 * (1 - exact.p_value / 2) / draws)
    assert abs(drawn.p_value - exact.p_value) < 4 * error
    assert abs(drawn.p_value - replaced) > 8 * error
    assert drawn.lower == pytest.approx(exact.lower, abs=0.001)
    assert drawn.upper == pytest.approx(exact.upper, abs=0.001)
    assert drawn.estimate == exact.estimate == pytest.approx(np.mean(a - b) / n, rel=1e-12)


def test_exact_test_at_the_paper_s_size() -> None:
    # one problem: the p-value is a tail of the difference of two hypergeometric counts
    counts = np.arange(257)
    gain, loss = (stats.hypergeom.pmf(counts, 1024, c, 256) for c in (530, 500))
    tail = gain @ loss[::-1].cumsum()[::-1]
    assert exact_paired_subsampling_test(1024, [530], [500], 1).p_value == pytest.approx(2 * tail, rel=1e-12)


def rejections(variant: Variant, k: int, nulls: int, success_rates: Callable[[np.random.Generator], Any]) -> float:
    """Share of rejections at nominal .05 for two models with equal success rates."""
    rng = np.random.default_rng(13)
    count = 0
    for _ in range(nulls):
        mu = success_rates(rng)
        a, b = rng.binomial(1024, mu), rng.binomial(1024, mu)
        count += exact_paired_subsampling_test(1024, a, b, k, variant=variant).reject
    return count / nulls


@pytest.mark.parametrize(
    ("variant", "width", "level"),
    [("raw", 3**0.5, 0.00068), ("rescaled", 0.75**0.5, 0.08963), ("finite_population", 1.0, 0.05)],
)
def test_level_at_pass_at_1(variant: Variant, width: float, level: float) -> None:
    assert 2 * stats.norm.sf(stats.norm.ppf(0.975) * width) == pytest.approx(level, abs=1e-5)
    # 4 standard errors (false alarms of the skewed 'raw' below 1e-3), plus .005 for the normal approximation
    nulls, share = 1500, rejections(variant, 1, 1500, lambda rng: rng.uniform(0.1, 0.9, size=3))
    assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / nulls) + 0.005


def test_level_at_pass_at_256_is_not_the_nominal_one() -> None:
    # measured 0, .092 and .062 in 4,000 nulls; 4 standard errors on either side, false alarms below 1e-4
    raw, rescaled, finite = (rejections(v, 256, 600, lambda rng: 10 ** rng.uniform(-4, -0.3, size=8)) for v in VARIANTS)
    assert raw < 0.004
    assert abs(rescaled - 0.092) < 0.051
    assert abs(finite - 0.062) < 0.043


def test_a_real_difference_is_found_with_its_sign() -> None:
    a, b = np.full(20, 600), np.full(20, 400)
    for variant in VARIANTS:
        better = paired_subsampling_test(1024, a, b, 1, variant=variant, iterations=999, rng=np.random.default_rng(15))
        worse = paired_subsampling_test(1024, b, a, 1, variant=variant, iterations=999, rng=np.random.default_rng(15))
        assert better.reject
        assert better.lower > 0
        assert better.p_value == pytest.approx(2 / 1000)
        assert worse.reject
        assert worse.upper < 0


def test_seed_and_samples_per_problem() -> None:
    a, b = [3, 9, 20], [2, 9, 11]
    first, again, other = (
        paired_subsampling_test(32, a, b, 2, subsample=8, iterations=99, rng=np.random.default_rng(s))
        for s in (1, 1, 2)
    )
    assert first == again != other
    listed = paired_subsampling_test([32, 32, 32], a, b, 2, subsample=8, iterations=99, rng=np.random.default_rng(1))
    assert listed == first
    assert first.estimate == pytest.approx(np.mean(pass_at_k(32, a, 2) - pass_at_k(32, b, 2)))


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=4),
    st.sampled_from(VARIANTS),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0.8, 0.9, 0.95]),
    st.booleans(),
)
def test_interval_and_p_value_decide_alike(
    counts: list[tuple[int, int]], variant: Variant, k: int, level: float, exact: bool
) -> None:
    a, b = zip(*counts, strict=True)
    if exact and k != 2:
        result = exact_paired_subsampling_test(12, a, b, k, subsample=4, variant=variant, level=level)
        swapped = exact_paired_subsampling_test(12, b, a, k, subsample=4, variant=variant, level=level)
        assert swapped.p_value == pytest.approx(result.p_value)
        assert (swapped.lower, swapped.upper) == pytest.approx((-result.upper, -result.lower))
    else:
        rng = np.random.default_rng(16)
        result = paired_subsampling_test(12, a, b, k, subsample=4, variant=variant, iterations=59, level=level, rng=rng)
        assert result.p_value >= 2 / 60
    assert 0 <= result.p_value <= 1
    assert -1 <= result.estimate <= 1
    assert result.lower <= result.upper
    assert result.reject == (result.p_value <= 1 - level + 1e-12)
    if a == b:
        assert not result.reject


@given(st.lists(st.integers(0, 1000), max_size=6))
def test_holm_is_the_closed_bonferroni_test(thousandths: list[int]) -> None:
    p = [Fraction(i, 1000) for i in thousandths]
    adjusted = holm_adjust([float(x) for x in p])
    np.testing.assert_allclose(adjusted, [float(x) for x in reference.holm(p)], rtol=1e-14)


def test_holm_by_hand_and_shapes() -> None:
    np.testing.assert_allclose(holm_adjust([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm_adjust(0.2) == 0.2
    assert holm_adjust([[0.01, 0.5], [0.9, 0.02]]).shape == (2, 2)
    for bad in ([0.1, np.nan], [1.5], [-0.1]):
        with pytest.raises(ValueError, match=r"^p_values must be between 0 and 1, got "):
            holm_adjust(bad)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"correct_a": [13, 1]}, "correct_a must be at most samples, got 13 > 12: "),
        ({"correct_b": [1.5, 1]}, "correct_b must be a whole number of at least 0, got 1.5: "),
        (
            {"correct_a": [1, 2, 3]},
            "shapes must broadcast, got () for samples, (3,) for correct_a, (2,) for correct_b: ",
        ),
        ({"samples": 0}, "samples must be a whole number of at least 1, got 0: "),
        ({"subsample": 12}, "subsample must be below samples, got 12 >= 12: "),
        ({"subsample": 2.5}, "subsample must be a whole number of at least 1, got 2.5: "),
        ({"k": 5}, "k must be at most subsample, got 5 > 4: "),
        ({"k": 0}, "k must be a whole number of at least 1, got 0: "),
        ({"variant": "bootstrap"}, "variant must be one of raw, rescaled, finite_population, got 'bootstrap': "),
        ({"level": 1.0}, "level must be strictly between 0 and 1, got 1: "),
        ({"iterations": 38}, "iterations must be a whole number of at least 39, got 38: "),
        ({"rng": 7}, "rng must be a numpy Generator, got 7: "),
    ],
)
def test_invalid_input(changes: dict[str, Any], message: str) -> None:
    valid = {"correct_a": [3, 4], "correct_b": [2, 5], "samples": 12, "k": 1, "subsample": 4}
    options = {"iterations": 39, "rng": np.random.default_rng(0)}
    paired_subsampling_test(**valid | options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must") as caught:
        paired_subsampling_test(**valid | options | changes)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    if not changes.keys() & options:
        with pytest.raises(ValueError, match="must") as caught:
            exact_paired_subsampling_test(**valid | changes)
        assert str(caught.value).startswith(message)


def test_exact_test_says_where_no_exact_law_exists() -> None:
    with pytest.raises(ValueError, match=r"^k must be 1 or subsample = 4, got 2: use paired_subsampling_test"):
        exact_paired_subsampling_test(12, [3], [2], 2, subsample=4)
    with pytest.raises(ValueError, match=r"^samples must be the same for all problems with rescaled, got 8 to 12: "):
        exact_paired_subsampling_test([12, 8], [3, 4], [2, 4], 1, subsample=4, variant="rescaled")


def test_more_draws_than_memory_holds_are_refused():
    with pytest.raises(ValueError, match=r"iterations must be at most 1e\+07 here, got 1000000000000: "):
        paired_subsampling_test(16, [3], [2], 4, subsample=4, iterations=10**12, rng=np.random.default_rng(0))
