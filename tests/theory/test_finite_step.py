import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.finite_step import exact_mass_change, finite_step_bound, first_order_mass_change


def policies_and_steps(size):
    weights = st.lists(st.floats(1e-6, 1), min_size=2, max_size=6)
    return weights.flatmap(
        lambda w: st.tuples(
            st.just(np.array(w) / np.sum(w)),
            st.lists(st.floats(-size, size), min_size=len(w), max_size=len(w)).map(np.array),
            st.lists(st.booleans(), min_size=len(w), max_size=len(w)).map(np.array),
        )
    )


@given(case=st.sampled_from([1e-3, 1.0, 50.0]).flatmap(policies_and_steps))
def test_finite_step_bound_holds(case):
    p, step, subset = case
    gap = exact_mass_change(p, step, subset) - first_order_mass_change(p, step, subset)
    assert abs(gap) <= finite_step_bound(step) * (1 + 1e-12) + 1e-15


def test_finite_step_bound_has_the_right_order_and_is_not_slack_by_more_than_a_small_factor():
    assert finite_step_bound([0.0, 3.0, -1.0]) == 2
    p, subset = np.array([0.2, 0.8]), np.array([True, False])
    for size in (1e-1, 1e-2, 1e-3):
        step = np.array([size, 0.0])
        gap = exact_mass_change(p, step, subset) - first_order_mass_change(p, step, subset)
        assert 0.3 < abs(gap) / finite_step_bound(step) < 1


@pytest.mark.parametrize("scale", [1e-14, 1e-9, 1e-3, 1.0, 30.0, 1e3])
def test_exact_change_keeps_its_digits(scale):
    rng = np.random.default_rng(11)
    worst = 0.0
    for _ in range(40):
        weights = rng.lognormal(sigma=8, size=5)
        p = weights / weights.sum()
        step, subset = scale * rng.normal(size=5) + rng.normal(), np.array([True, False, True, False, False])
        with mpmath.workdps(60):
            total = mpmath.fsum(p)
            exact = [mpmath.mpf(q) / total for q in p]
            moved = [q * mpmath.exp(mpmath.mpf(z)) for q, z in zip(exact, step, strict=True)]
            norm = mpmath.fsum(moved)
            change = mpmath.fsum(m / norm - q for m, q, flag in zip(moved, exact, subset, strict=True) if flag)
            error = abs(exact_mass_change(p, step, subset) - change)
            worst = max(worst, float(error / abs(change)))
    assert worst < 1e-14


def test_exact_change_for_extreme_steps():
    subset = np.array([True, False])
    assert exact_mass_change([0.25, 0.75], [1e5, 0], subset) == pytest.approx(0.75)
    assert exact_mass_change([0.25, 0.75], [-1e5, 0], subset) == pytest.approx(-0.25)
    assert exact_mass_change([0.25, 0.75], [1e150, -1e150], subset) == 0.75
    assert first_order_mass_change([0.25, 0.75], [1e150, -1e150], subset) == pytest.approx(3.75e149)
    assert finite_step_bound([1e150, -1e150]) == pytest.approx(5e299)
    assert exact_mass_change([1e-300, 1.0], [2000.0, 0], subset) == pytest.approx(1)
    assert exact_mass_change([1e-300, 1.0], [300 * np.log(10), 0], subset) == pytest.approx(0.5, rel=1e-10)
    assert exact_mass_change([0.0, 1.0], [1e5, 0], subset) == 0
    assert exact_mass_change([0.25, 0.75], [7.0, 7.0], subset) == 0
    for everything in ([True, True], [False, False]):
        assert exact_mass_change([0.25, 0.75], [3.0, -1.0], everything) == 0
        assert first_order_mass_change([0.25, 0.75], [3.0, -1.0], everything) == 0


def test_a_single_action_has_nowhere_to_move():
    assert exact_mass_change([1.0], [0.3], [True]) == first_order_mass_change([1.0], [0.3], [True]) == 0
    assert finite_step_bound([0.3]) == 0


def test_shapes():
    p = np.random.default_rng(2).dirichlet(np.ones(5), size=3)
    subset = np.array([True, True, False, False, True])
    assert exact_mass_change(p, np.zeros((4, 1, 5)), subset).shape == (4, 3)
    assert first_order_mass_change(p, np.zeros((4, 1, 5)), subset).shape == (4, 3)
    assert finite_step_bound(np.zeros((4, 1, 5))).shape == (4, 1)
    assert isinstance(exact_mass_change(p[0], np.ones(5), subset), float)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exact_mass_change([0.5, 0.5], [1.0], [True, False]), "same actions on their last axis"),
        (lambda: exact_mass_change([0.5, 0.5], [1.0, np.inf], [True, False]), "logit_step must be finite"),
        (lambda: exact_mass_change([0.5, 0.5], [1.7e308, 0.0], [True, False]), "size of logit_step must be at most 1e"),
        (lambda: finite_step_bound([0.0, -1.7e308]), "size of logit_step must be at most 1e"),
        (lambda: first_order_mass_change([0.5, 0.5], [1.0, 0.0], [1, 0]), "subset must be a boolean"),
        (lambda: finite_step_bound(3.0), "at least one action"),
        (lambda: finite_step_bound([]), "at least one action"),
        (lambda: finite_step_bound([0.0, np.nan]), "logit_step must be finite"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
