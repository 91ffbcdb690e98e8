"""Retained mass, overlap and entropy of the correct actions against their definitions in exact arithmetic."""

from fractions import Fraction
from math import log
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.action_classes import ActionClasses
from fgrpo.theory.retention import correct_entropy, correct_overlap, retained_mass

C = np.array([True, True, False, True])


def policy(weights: list[int]) -> list[Fraction]:
    return [Fraction(w, sum(weights)) for w in weights]


def floats(p: list[Fraction]) -> np.ndarray:
    return np.array([float(x) for x in p])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction], list[bool], list[int]]:
    """Two policies over the same classes, initial correct mass above 0."""
    size = draw(st.integers(1, 6))
    count = draw(st.lists(st.integers(1, 4), min_size=size, max_size=size))
    masses = [draw(st.lists(st.sampled_from([0, 1, 2, 5, 1000]), min_size=size, max_size=size)) for _ in range(2)]
    correct = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    correct[0], masses[0][0], masses[1][-1] = True, masses[0][0] + 1, masses[1][-1] + 1
    before, after = ([p / m for p, m in zip(policy(mass), count, strict=True)] for mass in masses)
    return before, after, correct, count


def spread_out(p: list[Fraction], correct: list[bool], count: list[int]) -> list[Fraction]:
    """Probabilities of the single correct actions."""
    return [x for x, flag, m in zip(p, correct, count, strict=True) if flag for _ in range(m)]


@given(pairs())
def test_all_three_by_their_definitions(case: Any) -> None:
    before, after, correct, count = case
    p0, pt = spread_out(before, correct, count), spread_out(after, correct, count)
    q0, qt = sum(p0), sum(pt)
    options = {"correct": correct, "count": count}
    kept = sum(min(x, y) for x, y in zip(p0, pt, strict=True)) / q0
    assert retained_mass(floats(before), floats(after), **options) == pytest.approx(float(kept), rel=1e-14)
    overlap, entropy = (
        correct_overlap(floats(before), floats(after), **options),
        correct_entropy(floats(after), **options),
    )
    if qt == 0:
        assert np.isnan(overlap)
        assert np.isnan(entropy)
        return
    distance = sum(abs(x / q0 - y / qt) for x, y in zip(p0, pt, strict=True)) / 2
    assert overlap == pytest.approx(float(1 - distance), rel=1e-14, abs=1e-15)
    with mpmath.workdps(30):
        shares = [mpmath.mpf(y.numerator) / y.denominator for y in (x / qt for x in pt) if y > 0]
        assert entropy == pytest.approx(float(-sum(y * mpmath.log(y) for y in shares)), rel=1e-14, abs=1e-15)


@given(pairs())
def test_bounds_and_what_binds_them(case: Any) -> None:
    before, after, correct, count = case
    options = {"correct": correct, "count": count}
    initial, present = floats(before), floats(after)
    q0, qt = (float(sum(spread_out(p, correct, count))) for p in (before, after))
    kept = retained_mass(initial, present, **options)
    assert 0 <= kept <= min(1, qt / q0 * (1 + 1e-15))
    assert retained_mass(initial, initial, **options) == 1
    if qt == 0:
        assert kept == 0
        return
    overlap, entropy = correct_overlap(initial, present, **options), correct_entropy(present, **options)
    assert min(1, qt / q0) * overlap <= kept * (1 + 1e-14)
    assert 0 <= overlap <= 1
    assert correct_overlap(present, initial, **options) == overlap
    assert 0 <= entropy <= log(sum(m for m, flag in zip(count, correct, strict=True) if flag)) * (1 + 1e-15)


def test_limiting_cases() -> None:
    start = np.array([0.3, 0.2, 0.4, 0.1])
    lost_everywhere, gained_everywhere = [0.15, 0.1, 0.7, 0.05], [0.4, 0.3, 0.1, 0.2]
    moved, elsewhere = [0.6, 0.0, 0.4, 0.0], [0.0, 0.0, 1.0, 0.0]
    kept = retained_mass(start, [lost_everywhere, gained_everywhere, moved, elsewhere], correct=C)
    np.testing.assert_allclose(kept, [0.5, 1.0, 0.5, 0.0], rtol=1e-15)
    assert kept[1] == 1.0
    overlap = correct_overlap(start, [lost_everywhere, moved, elsewhere], correct=C)
    np.testing.assert_allclose(overlap, [1.0, 0.5, np.nan], rtol=1e-15)
    assert correct_overlap([0.5, 0.0, 0.25, 0.25], [0.0, 0.5, 0.5, 0.0], correct=C) == 0
    entropies = correct_entropy([[0.2, 0.2, 0.4, 0.2], [0.0, 0.6, 0.4, 0.0], elsewhere], correct=C)
    np.testing.assert_allclose(np.exp(entropies), [3.0, 1.0, np.nan], rtol=1e-15)


def test_small_overlap_keeps_its_digits() -> None:
    # as 1 - total variation it would be 2.22e-16 or 0
    before, after = [1.0 - 1e-17, 1e-17, 0.0, 0.0], [1e-17, 1.0 - 1e-17, 0.0, 0.0]
    assert correct_overlap(before, after, correct=C) == pytest.approx(2e-17, rel=1e-14)


def test_classes_are_their_actions() -> None:
    start = ActionClasses.appendix_j()
    rng = np.random.default_rng(0)
    z = rng.normal(size=3)
    later = ActionClasses.from_logits(start.count, z, start.correct)
    dense = [np.repeat(one.probability, one.count.astype(int)) for one in (start, later)]
    flags = np.repeat(start.correct, start.count.astype(int))
    options = {"correct": start.correct, "count": start.count}
    policies = start.probability, later.probability
    assert retained_mass(*policies, **options) == pytest.approx(retained_mass(*dense, correct=flags), rel=1e-11)
    assert correct_overlap(*policies, **options) == pytest.approx(correct_overlap(*dense, correct=flags), rel=1e-11)
    assert correct_entropy(policies[1], **options) == pytest.approx(correct_entropy(dense[1], correct=flags), rel=1e-11)


def test_leading_axes() -> None:
    rng = np.random.default_rng(1)
    before, after = rng.dirichlet(np.ones(4), size=(3, 1)), rng.dirichlet(np.ones(4), size=5)
    flags = rng.random((3, 1, 4)) < 0.5
    flags[..., 0] = True
    table = retained_mass(before, after, correct=flags)
    assert table.shape == correct_overlap(before, after, correct=flags).shape == (3, 5)
    assert table[2, 4] == retained_mass(before[2, 0], after[4], correct=flags[2, 0])
    assert isinstance(table[2, 4], float)
    assert correct_entropy(after, correct=C).shape == (5,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: retained_mass([0.5, 0.4], [0.5, 0.5], correct=[True, False]),
            "the sum of initial_probabilities must be 1",
        ),
        (lambda: retained_mass([0.5, 0.5], [0.5, 0.6], correct=[True, False]), "the sum of probabilities must be 1"),
        (lambda: retained_mass([0.0, 1.0], [0.5, 0.5], correct=[True, False]), "correct must hold initial probability"),
        (lambda: correct_overlap([0.5, 0.5], [0.5, 0.5], correct=[1, 0]), "correct must be a boolean array"),
        (
            lambda: correct_overlap([0.5, 0.5], [0.5, 0.5], correct=[True]),
            "must have the same actions on their last axis",
        ),
        (
            lambda: correct_entropy([0.5, 0.5], correct=[True, False, True]),
            "must have the same actions on their last axis",
        ),
        (
            lambda: correct_entropy([1.0], correct=[True], count=[0]),
            "count must be a whole number of at least 1, got 0",
        ),
        (lambda: correct_entropy([1.0], correct=[True], count=[[1]]), "count must be one number or one per entry"),
        (
            lambda: correct_entropy([0.5, 0.5], correct=[True, False], count=[1, 2]),
            "the sum of probabilities must be 1",
        ),
        (lambda: correct_entropy([0.5, 0.5], correct=[True, False], count=[1, 1, 1]), "shapes must broadcast, got"),
        (
            lambda: correct_entropy([0.25, 0.25], correct=[True, False], count=[2]),
            "probabilities, correct and count must have the same actions on their last axis",
        ),
    ],
)
def test_invalid_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
