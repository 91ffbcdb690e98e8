"""The NLL rise against high precision, and what its parts can and cannot be."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.rare_nll import delta_nll_rare, nll_rise_parts
from reference import rare_nll as reference


def test_mean_rise_by_hand() -> None:
    assert delta_nll_rare([1.0, 2.0], [2.0, 5.0]) == 2.0
    assert delta_nll_rare([1.0, 2.0], [2.0, 5.0], lengths=[1, 6]) == 0.75
    assert delta_nll_rare(3.0, 2.5) == -0.5
    np.testing.assert_array_equal(delta_nll_rare([1.0, 2.0], [[2.0, 5.0], [1.0, 2.0]]), [2.0, 0.0])


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction], list[bool]]:
    """Two distributions on up to 6 actions, the second positive, and a set with initial mass."""
    size = draw(st.integers(1, 6))
    weights = [draw(st.lists(st.integers(least, 1000), min_size=size, max_size=size).filter(any)) for least in (0, 1)]
    initial, final = ([Fraction(w, sum(ws)) for w in ws] for ws in weights)
    members = draw(
        st.lists(st.booleans(), min_size=size, max_size=size).filter(
            lambda chosen: any(p and inside for p, inside in zip(initial, chosen, strict=True))
        )
    )
    return initial, final, members


@given(cases())
def test_parts_follow_their_definitions_and_add_up(case: tuple[list[Fraction], list[Fraction], list[bool]]) -> None:
    initial, final, members = case
    exact = reference.rise(*case)
    parts = nll_rise_parts([float(p) for p in initial], [float(p) for p in final], members=members)
    np.testing.assert_allclose(parts, exact, rtol=0, atol=3e-15)
    assert parts.redistribution >= 0
    assert exact[0] == pytest.approx(exact[1] + exact[2], abs=1e-15)


@given(cases())
def test_over_all_actions_any_change_raises_the_nll(case: tuple[list[Fraction], list[Fraction], list[bool]]) -> None:
    initial, final, _ = case
    parts = nll_rise_parts([float(p) for p in initial], [float(p) for p in final])
    assert parts.total >= -1e-15
    assert abs(parts.mass_change) <= 1e-15
    assert parts.total > 0 or max(abs(p - q) for p, q in zip(initial, final, strict=True)) < 1e-7


def test_a_set_s_rise_can_be_all_mass_or_all_redistribution() -> None:
    initial, rare = [0.1, 0.1, 0.8], [True, True, False]
    moved_out = nll_rise_parts(initial, [0.05, 0.05, 0.9], members=rare)
    assert moved_out.redistribution == 0
    assert moved_out.total == pytest.approx(np.log(2))
    within = nll_rise_parts(initial, [0.15, 0.05, 0.8], members=rare)
    assert within.mass_change == pytest.approx(0, abs=1e-15)
    assert within.total == pytest.approx(np.log(4 / 3) / 2)
    gained = nll_rise_parts(initial, [0.2, 0.2, 0.6], members=rare)
    assert gained.total == pytest.approx(-np.log(2))


def test_the_identity_is_one_of_expected_nll_differences() -> None:
    # a sample that holds every action in proportion to pi_0(.|S) has exactly the expected rise
    initial, final = np.array([0.1, 0.2, 0.7]), np.array([0.3, 0.1, 0.6])
    sample = np.array([0, 1, 1])
    rise = delta_nll_rare(-np.log(initial[sample]), -np.log(final[sample]))
    assert rise == pytest.approx(nll_rise_parts(initial, final, members=[True, True, False]).total)
    per_token = delta_nll_rare(-np.log(initial[sample]), -np.log(final[sample]), lengths=[1, 9, 9])
    assert per_token < 0 < rise - per_token  # weighted by 1 / length, the sign may turn


def test_impossible_actions() -> None:
    lost = nll_rise_parts([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], members=[True, True, False])
    assert lost.total == np.inf
    assert lost.redistribution == np.inf
    assert lost.mass_change == pytest.approx(np.log(2))
    all_lost = nll_rise_parts([0.5, 0.5], [0.0, 1.0], members=[True, False])
    assert all_lost.total == all_lost.mass_change == np.inf
    assert np.isnan(all_lost.redistribution)


def test_shapes() -> None:
    initial, final = np.full(4, 0.25), np.array([[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]])
    parts = nll_rise_parts(initial, final, members=[[[True, True, False, False]], [[False, True, True, True]]])
    assert all(part.shape == (2, 2) for part in parts)
    assert parts.total[1, 1] == pytest.approx(np.log(2.5))
    assert isinstance(nll_rise_parts(initial, initial).total, float)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0], [1.0]), "nll_before must be finite and at least 0, got -1: "),
        (([1.0], [np.nan]), "nll_after must be finite and at least 0, got nan: "),
        (([1.0], [np.inf]), "nll_after must be finite and at least 0, got inf: "),
        (([1.0], [1.0], [0]), "lengths must be a whole number of at least 1, got 0: "),
        (([1.0], [1.0], [2.5]), "lengths must be a whole number of at least 1, got 2.5: "),
        (
            ([1.0, 2.0], [1.0, 2.0, 3.0]),
            "shapes must broadcast, got (2,) for nll_before, (3,) for nll_after, () for lengths: ",
        ),
        (([], []), "nll_before must hold at least one sequence, got none: "),
    ],
)
def test_invalid_nll(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match="must") as caught:
        delta_nll_rare(*arguments[:2], lengths=arguments[2] if len(arguments) > 2 else None)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("initial", "final", "members", "message"),
    [
        ([0.5, 0.4], [0.5, 0.5], None, "the sum of initial_probabilities must be 1 within 1e-9, got 0.9"),
        ([0.5, 0.5], [1.5, -0.5], None, "probabilities must be between 0 and 1, got 1.5: "),
        ([0.5, 0.5], [0.5, 0.5], [1, 0], "members must be a boolean array, got dtype int64"),
        ([0.0, 1.0], [0.5, 0.5], [True, False], "members must have initial probability above 0, got 0: "),
        ([0.5, 0.5], [0.2, 0.3, 0.5], None, "shapes must broadcast, got (2,) for initial_probabilities, (3,) for "),
    ],
)
def test_invalid_distributions(initial: Any, final: Any, members: Any, message: str) -> None:
    with pytest.raises(ValueError, match="must") as caught:
        nll_rise_parts(initial, final, members=members)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
