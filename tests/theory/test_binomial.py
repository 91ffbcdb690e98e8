"""Moments of a binomial count by their coefficients, against the enumerated law."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory._binomial import moment_coefficients


@given(order=st.integers(0, 12), size=st.integers(1, 40), missing=st.integers(0, 1), percent=st.integers(0, 100))
def test_moments_are_those_of_the_enumerated_law(order: int, size: int, missing: int, percent: int) -> None:
    p, draws = Fraction(percent, 100), size - missing
    law = [comb(draws, y) * p**y * (1 - p) ** (draws - y) for y in range(draws + 1)]
    exact = sum(Fraction(y, size) ** order * chance for y, chance in enumerate(law))
    coefficients = moment_coefficients(order, np.array([float(size)]), missing)
    assert len(coefficients) == order
    assert all(c[0] >= 0 for c in coefficients)
    value = 1.0 if order == 0 else sum(c[0] * float(p) ** j for j, c in enumerate(coefficients, start=1))
    assert value == pytest.approx(float(exact), rel=(order + 2) * 1e-15, abs=0)


def test_full_groups_keep_their_digits_at_the_largest_order() -> None:
    # every rollout counts: the moment is 1 although the coefficients reach over 60 powers of ten
    for size in (1.0, 2.0, 63.0, 64.0, 1000.0):
        assert sum(c[0] for c in moment_coefficients(64, np.array([size]))) == pytest.approx(1.0, rel=1e-14)
