import math
from fractions import Fraction

import numpy as np
import pytest

from fgrpo.simulate import PolicyClass, PolicyConfig
from fgrpo.simulate.policy import initial_logits, initial_masses, read_logits, softmax


def test_default_start_is_that_of_appendix_j():
    masses = initial_masses(PolicyConfig())
    total = math.exp(5) + 9_999 * math.exp(3) + 118_000
    assert masses["correct_mass"] == pytest.approx(1 - 118_000 / total, rel=1e-13)
    assert masses["anchor_mass"] == pytest.approx(math.exp(5) / total, rel=1e-13)
    assert masses["leaf_mass"] == pytest.approx(math.exp(3) / total, rel=1e-13)
    assert round(masses["correct_mass"], 5) == 0.63008
    assert f"{masses['anchor_mass']:.4e} {masses['leaf_mass']:.4e}" == "4.6527e-04 6.2967e-05"


def test_classes_lie_in_order():
    assert initial_logits(PolicyConfig(6, 3, 2.0, 1.0, -1.0)).tolist() == [2.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    only_anchor = initial_masses(PolicyConfig(2, 1, 0.0, 9.0, 0.0))
    assert only_anchor["correct_mass"] == only_anchor["anchor_mass"] == 0.5
    assert math.isnan(only_anchor["leaf_mass"])


def test_any_number_of_classes():
    classes = (PolicyClass(2, 1.0, True), PolicyClass(1, -1.0, False), PolicyClass(3, 0.5, True))
    policy = PolicyConfig(classes=classes)
    assert initial_logits(policy).tolist() == [1.0, 1.0, 0.5, 0.5, 0.5, -1.0]
    masses = initial_masses(policy)
    total = 2 * math.exp(1) + 3 * math.exp(0.5) + math.exp(-1)
    assert masses["leaf_mass"] == pytest.approx(math.exp(0.5) / total, rel=1e-14)
    assert masses["anchor_mass"] == pytest.approx(math.exp(1) / total, rel=1e-14)
    three = (PolicyClass(1, 5.0, True), PolicyClass(9_999, 3.0, True), PolicyClass(118_000, 0.0, False))
    np.testing.assert_array_equal(initial_logits(PolicyConfig(classes=three)), initial_logits(PolicyConfig()))


def test_softmax_of_rational_odds_and_of_extreme_logits():
    odds = [1, 2, 3, 10]
    exact = [float(Fraction(one, sum(odds))) for one in odds]
    np.testing.assert_allclose(softmax(np.log(odds)), exact, rtol=1e-15)
    out = np.empty(4)
    assert softmax(np.log(odds) + 1e4, out=out) is out
    np.testing.assert_allclose(out, exact, rtol=1e-11)
    assert softmax(np.array([1e6, -1e6])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([1e308, -1e308], "at most 700 in size, got 1e\\+308"),
        ([-700, 700], "correct mass must be at least 1e-300, got 0"),
    ],
)
def test_starts_that_would_overflow_are_refused(logits, message):
    with pytest.raises(ValueError, match=message):
        read_logits(logits, PolicyConfig(2, 1))
