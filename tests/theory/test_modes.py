from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.modes import (
    MOST_MODES,
    any_mode_missed_probability,
    expected_mass_missed,
    expected_modes_missed,
    modes_missed_distribution,
)
from fgrpo.theory.tail_miss import active_probability, tail_miss_probability
from reference import tail_miss as exact

FUNCTIONS = (any_mode_missed_probability, expected_modes_missed, expected_mass_missed, modes_missed_distribution)
CASES = [
    (Fraction(1, 2), [Fraction(1, 8)]),
    (Fraction(3, 5), [Fraction(1, 10), Fraction(1, 5)]),
    (Fraction(3, 4), [Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)]),  # nothing correct beside the modes
    (Fraction(1, 2), [Fraction(0), Fraction(1, 3)]),
    (Fraction(1), [Fraction(1, 3), Fraction(1, 3)]),
]


@pytest.mark.parametrize("n", range(6))
@pytest.mark.parametrize(("mu", "masses"), CASES)
def test_equal_the_enumeration_of_all_sequences(mu, masses, n):
    law = exact.modes_missed(mu, masses, n) if n else [Fraction(0)] * (len(masses) + 1)
    tau = [float(mass) for mass in masses]
    assert modes_missed_distribution(mu, tau, n) == pytest.approx([float(p) for p in law], abs=1e-14)
    assert any_mode_missed_probability(mu, tau, n) == pytest.approx(float(sum(law[1:])), rel=1e-14)
    assert expected_modes_missed(mu, tau, n) == pytest.approx(float(sum(m * p for m, p in enumerate(law))), rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_mass_missed_equals_the_enumeration(n):
    mu, masses = Fraction(3, 5), [Fraction(1, 10), Fraction(1, 5)]
    missed = sum(mass * exact.mean_over_sequences(mu, mass, n, exact.is_tail_miss) for mass in masses)
    assert expected_mass_missed(mu, [0.1, 0.2], n) == pytest.approx(float(missed), rel=1e-14)


masses = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(st.just(0.0) | st.floats(1e-300, 1), masses, st.integers(0, 2000))
def test_probabilities_fit_together(mu, shares, n):
    tau = np.array(shares) * mu / max(1, np.sum(shares))
    law = modes_missed_distribution(mu, tau, n)
    anything, number = any_mode_missed_probability(mu, tau, n), expected_modes_missed(mu, tau, n)
    assert np.sum(law) == pytest.approx(active_probability(mu, n), abs=1e-11)
    assert np.sum(law[1:]) == pytest.approx(anything, abs=1e-11)
    assert law @ np.arange(law.size) == pytest.approx(number, abs=1e-11)
    rarest = tail_miss_probability(mu, np.minimum(tau.min(), mu), n)
    assert rarest * (1 - 1e-11) <= anything <= number * (1 + 1e-11) + 1e-300


def test_any_mode_keeps_its_digits_where_it_is_rare():
    # 12 equal modes, covered: the union bound is all but exact, and 1 - Pr would show nothing
    tau, n = np.full(MOST_MODES, 0.01), 9000
    single = tail_miss_probability(0.5, 0.01, n)
    assert single < 1e-38
    assert any_mode_missed_probability(0.5, tau, n) == pytest.approx(MOST_MODES * single, rel=1e-11)
    # and where groups are hardly ever active
    assert any_mode_missed_probability(1e-9, tau * 1e-9, 2) == pytest.approx(2e-9, rel=1e-8)


def test_many_modes_and_none():
    leaves = np.full(9999, 6.2967e-5)
    assert expected_modes_missed(0.63008, leaves, 131072) == pytest.approx(2.6, abs=0.05)
    assert expected_mass_missed(0.63008, leaves, 131072) == pytest.approx(2.6 * 6.2967e-5, rel=0.02)
    assert expected_modes_missed(0.5, [], 8) == expected_mass_missed(0.5, [], 8) == 0
    assert any_mode_missed_probability(0.5, [], 8) == 0
    assert modes_missed_distribution(0.5, [], 8) == pytest.approx([active_probability(0.5, 8)])


def test_last_axis_holds_the_modes():
    tau = np.array([[0.1, 0.2], [0.05, 0.05], [0.0, 0.3]])
    mu, n = np.array([0.5, 0.4, 0.3]), np.array([[2], [8]])
    for function in FUNCTIONS:
        whole = function(mu, tau, n)
        assert whole.shape[:2] == (2, 3)
        for i, j in np.ndindex(2, 3):
            assert whole[i, j] == pytest.approx(function(mu[j], tau[j], n[i, 0]), abs=0)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    "arguments",
    [
        (0.5, [0.3, 0.3], 8),
        (0.5, [0.1, -0.1], 8),
        (0.5, 0.1, 8),
        (1.5, [0.1], 8),
        (0.5, [0.1, np.nan], 8),
        (0.5, [0.1], 0.5),
        (0.5, ["a"], 8),
    ],
)
def test_invalid_input_is_refused_in_one_line(function, arguments):
    with pytest.raises(ValueError, match=r"must .*, got .*: ") as error:
        function(*arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("function", [any_mode_missed_probability, modes_missed_distribution])
def test_too_many_modes_are_refused(function):
    with pytest.raises(ValueError, match="at most 12 modes here, got 13"):
        function(0.5, np.full(13, 0.01), 8)
    assert np.all(np.isfinite(function(0.5, np.full(12, 0.01), 8)))
