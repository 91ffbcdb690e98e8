import numpy as np
import pytest

from fgrpo.theory.action_classes import ActionClasses
from fgrpo.theory.mean_field import mean_field_orbit

SIMULATION = ActionClasses.appendix_j()  # anchor, other correct, wrong
from_logits = ActionClasses.from_logits
LEVELS = [0.7, 0.8, 0.9, 0.95]


def test_retained_mass_of_the_simulated_policy():
    orbit = mean_field_orbit(SIMULATION, LEVELS)
    np.testing.assert_allclose(orbit.correct_mass, LEVELS, rtol=1e-12)
    np.testing.assert_allclose(orbit.retained_mass, [0.949, 0.633, 0.317, 0.159], atol=5e-4)
    np.testing.assert_allclose(orbit.probabilities @ SIMULATION.count, 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    "classes",
    [SIMULATION, from_logits([1, 4, 20, 40, 5], [2.0, 1.5, 0.3, 0.0, 1.0], [True, True, True, False, False])],
)
def test_time_change(classes):
    plain = mean_field_orbit(classes, LEVELS)
    times = [plain.time]
    for gamma, normalisation in ((0.5, "none"), (1.0, "none"), (0.0, "std"), (1.0, "std"), (2.0, "std")):
        orbit = mean_field_orbit(classes, LEVELS, gamma=gamma, normalisation=normalisation)
        np.testing.assert_allclose(orbit.retained_mass, plain.retained_mass, rtol=0, atol=1e-8)
        np.testing.assert_allclose(orbit.probabilities, plain.probabilities, rtol=1e-6)
        times.append(orbit.time)
    # the same path, but walked at another pace: not even proportionally so
    for time in times[1:]:
        assert not np.allclose(time / plain.time, time[0] / plain.time[0], rtol=1e-3, atol=0)


def test_time_of_two_actions_in_closed_form():
    # the odds q/(1-q) grow at the rate 2 q (1-q): time is the integral of dq / (2 q^2 (1-q)^2)
    q = np.array([0.5, 0.500001, 0.7, 0.9, 0.99])
    integral = np.log(q / (1 - q)) + (1 / (1 - q) - 1 / q) / 2
    orbit = mean_field_orbit(from_logits([1, 1], [0.0, 0.0], [True, False]), q[1:])
    np.testing.assert_allclose(orbit.time, integral[1:] - integral[0], rtol=1e-7, atol=1e-10)


def test_to_the_end_and_from_little():
    for options in ({"gamma": 2.0}, {"normalisation": "std"}):
        orbit = mean_field_orbit(SIMULATION, [0.99, 1 - 1e-6], **options)
        np.testing.assert_allclose(orbit.retained_mass, [0.0323692, 7.41597e-4], rtol=1e-5)
    assert mean_field_orbit(from_logits([1, 1], [-30.0, 0.0], [True, False]), 0.7).correct_mass == pytest.approx(
        0.7, abs=1e-3
    )


def test_each_stretch_takes_longer_by_the_weight_on_it():
    levels = np.linspace(0.65, 0.95, 61)
    plain, focal = (mean_field_orbit(SIMULATION, levels, gamma=gamma) for gamma in (0.0, 1.0))
    stretch = np.diff(focal.time) / np.diff(plain.time)
    assert np.all(stretch >= 1 / (1 - levels[:-1]))
    assert np.all(stretch <= 1 / (1 - levels[1:]))


def test_against_euler_steps_on_single_actions():
    # independent: explicit small steps over every action, with the update's expectation written out
    logits, correct = np.array([1.0, 0.5, 0.5, 0.0, 0.7]), np.array([True, True, True, False, False])
    z, step, kept = logits.copy(), 2e-3, None
    start = np.exp(z) / np.exp(z).sum()
    for _ in range(200_000):
        p = np.exp(z) / np.exp(z).sum()
        q = p[correct].sum()
        if q >= 0.9:
            kept = np.minimum(p, start)[correct].sum() / start[correct].sum()
            break
        z += step * p * (correct - q)
    orbit = mean_field_orbit(from_logits([1, 2, 1, 1], [1.0, 0.5, 0.0, 0.7], [True, True, False, False]), 0.9)
    assert orbit.retained_mass == pytest.approx(kept, abs=2e-3)


def test_uniform_correct_classes_keep_everything():
    orbit = mean_field_orbit(from_logits([10, 10], [0.0, 0.0], [True, False]), [0.6, 0.99])
    np.testing.assert_allclose(orbit.retained_mass, 1.0, rtol=1e-12)


def test_classes_of_probability_zero_stay_there():
    classes = ActionClasses([1, 2, 3, 1], [0.4, 0.0, 0.2, 0.0], [True, True, False, False])
    orbit, without = (
        mean_field_orbit(one, LEVELS) for one in (classes, from_logits([1, 3], np.log([2, 1]), [True, False]))
    )
    np.testing.assert_allclose(orbit.probabilities[:, [0, 2]], without.probabilities, rtol=1e-9)
    assert not orbit.probabilities[:, [1, 3]].any()
    np.testing.assert_allclose(orbit.retained_mass, 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((SIMULATION, [0.6, 0.7]), {}, "correct_mass must increase strictly from the initial one, 0.630075"),
        ((SIMULATION, [0.8, 0.7]), {}, "correct_mass must increase strictly"),
        ((SIMULATION, [[0.7, 0.8]]), {}, "correct_mass must increase strictly"),
        ((SIMULATION, 1.0), {}, "correct_mass must be strictly between 0 and 1, got 1"),
        ((SIMULATION, 0.8), {"gamma": -1}, "gamma must be finite and at least 0, got -1"),
        ((SIMULATION, 0.8), {"normalisation": "x"}, "normalisation must be one of none, std, got 'x'"),
        ((SIMULATION, 0.8), {"gamma": [0, 1]}, r"gamma must be one number, got an array of shape \(2,\)"),
        ((from_logits([1, 1], [0, 1], [True, True]), 0.8), {}, "classes must have a correct mass of .*, got 1 and 0"),
        ((from_logits([1, 1], [0, 1], [False, False]), 0.8), {}, "classes must have a correct mass of .*, got 0 and 1"),
        ((from_logits([1, 1], [-800, 0], [True, False]), 0.8), {}, "classes must have a correct mass of at least"),
        ((from_logits([1, 1], [-200, 0], [True, False]), 0.8), {}, "the flow must reach correct_mass 0.8, got"),
    ],
)
def test_invalid_input(arguments, options, message):
    with pytest.raises(ValueError, match=message) as error:
        mean_field_orbit(*arguments, **options)
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("error")
def test_exponents_whose_times_are_no_doubles_are_refused():
    classes = ActionClasses([1, 1, 2], [0.5, 0.3, 0.1], [True, False, True])
    same = mean_field_orbit(classes, 0.9, gamma=0).retained_mass
    np.testing.assert_allclose(mean_field_orbit(classes, 0.9, gamma=139).retained_mass, same, rtol=1e-7)
    for gamma in (141, 1e12, 1e300):
        with pytest.raises(ValueError, match=r"gamma must be at most 140 here, got .*not the path"):
            mean_field_orbit(classes, 0.9, gamma=gamma)
