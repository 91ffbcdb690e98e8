"""Mean-field flow of one prompt: group-relative training with infinitely many rollouts and infinitely small steps.

For N -> inf the on-policy, unclipped update follows F'(Q) grad Q (see `fgrpo.theory.utilities`), Q the correct mass of
the policy. For a tabular softmax policy with logits z this is

    dz_i/dt = F'(Q) p_i (1[i correct] - Q),    F'(Q) = (1 - Q)^gamma, or that over sqrt(Q (1 - Q)).

The factor F'(Q) is common to all logits: gamma and the normalisation change how fast the path is walked, not the path
(proof `time_change`). Differences in retained mass *at equal correct mass* between methods are thus effects of finite
N, of the step size or of the optimiser.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.special import log_softmax

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.utilities import Normalisation, focal_utility_slope

_SMALLEST_MASS = 1e-100


class MeanFieldOrbit(NamedTuple):
    """Points of a mean-field flow, one per requested correct mass [M]; probabilities of one action per class [M, G]."""

    time: FloatArray
    correct_mass: FloatArray
    retained_mass: FloatArray
    probabilities: FloatArray


def mean_field_orbit(
    class_logits: ArrayLike,
    class_sizes: ArrayLike,
    class_correct: ArrayLike,
    correct_mass: ArrayLike,
    *,
    gamma: float = 0.0,
    normalisation: Normalisation = "none",
) -> MeanFieldOrbit:
    """Follow the mean-field flow of one prompt and report it where it passes the given correct masses.

    Assumes one prompt, a tabular softmax policy, N -> inf, gradient flow (step size -> 0, no momentum, no adaptive
    scaling), on-policy, unclipped, no KL or entropy term. Actions come in classes of equal logit, which the flow keeps
    equal.

    Args:
        class_logits: Initial logit of the actions of each class, [G].
        class_sizes: Number of actions of each class, whole numbers >= 1, [G].
        class_correct: Whether the class is correct, booleans, [G]; at least one class of each kind.
        correct_mass: Correct masses at which to report, strictly increasing, from the initial one (exclusive) to 1
            (exclusive), [M] or a scalar.
        gamma: Focal exponent, >= 0.
        normalisation: 'none', or 'std' (population standard deviation, epsilon = 0).

    Returns:
        `MeanFieldOrbit(time, correct_mass, retained_mass, probabilities)`. `time` counts learning rate times steps in
        units of 1 / (R_c - R_w) ('none') or as it is ('std'); it depends on gamma and normalisation, the rest does not.

    Raises:
        ValueError: If an argument is out of range, shapes differ, or the integration fails.

    Accuracy: retained mass to about 1e-9 (relative tolerance 1e-10 of the integrator). From a very small correct mass
    the flow waits long and then moves within what float64 can resolve of the time: `correct_mass` says where each point
    lies.

    Source: retained mass: Equation 26 (v1 and v2); the flow and its time change: this project (proof `time_change`).
    """
    logits, sizes, correct = _classes(class_logits, class_sizes, class_correct)
    levels = np.atleast_1d(check.open_probability("correct_mass", correct_mass))
    exponent = float(check.gamma(gamma))
    log_sizes = np.log(sizes)

    def log_mass(z: FloatArray) -> FloatArray:
        return np.asarray(log_softmax(z + log_sizes))

    start = np.exp(log_mass(logits))
    initial_mass = start[correct].sum()
    if initial_mass < _SMALLEST_MASS:
        raise ValueError(
            f"class_logits must give the correct actions a mass of at least {_SMALLEST_MASS:g}, got {initial_mass:g}: "
            "raise a correct logit, or the flow never starts"
        )
    if levels.ndim != 1 or np.any(np.diff(np.concatenate([[initial_mass], levels])) <= 0):
        raise ValueError(
            f"correct_mass must increase strictly from the initial one, {initial_mass:.6g}, got {levels.tolist()}: "
            "the flow only ever raises the correct mass"
        )

    def velocity(time: float, z: FloatArray) -> FloatArray:
        mass = np.exp(log_mass(z))
        q, failure = mass[correct].sum(), mass[~correct].sum()
        pull = np.where(correct, failure, -q) * mass / sizes
        return np.asarray(focal_utility_slope(min(q, 1.0), exponent, normalisation=normalisation) * pull)

    def crossing(level: float) -> Callable[[float, FloatArray], float]:
        return lambda time, z: float(np.exp(log_mass(z))[correct].sum() - level)

    events = [crossing(level) for level in levels]
    events[-1].terminal = True  # type: ignore[attr-defined]  # how solve_ivp is told to stop
    solution = solve_ivp(velocity, (0.0, np.inf), logits, method="DOP853", events=events, rtol=1e-10, atol=1e-10)
    if solution.status != 1 or solution.t_events is None or solution.y_events is None:
        raise ValueError(
            f"the flow must reach correct_mass {levels[-1]:.6g}, got {solution.message!r}: "
            "raise a correct logit, or ask for less correct mass"
        )
    mass = np.exp([log_mass(points[0]) for points in solution.y_events])
    kept = np.minimum(mass, start)[:, correct].sum(axis=1) / initial_mass
    time = np.array([times[0] for times in solution.t_events])
    return MeanFieldOrbit(time, mass[:, correct].sum(axis=1), kept, mass / sizes)


def _classes(
    class_logits: ArrayLike, class_sizes: ArrayLike, class_correct: ArrayLike
) -> tuple[FloatArray, FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    logits = check.finite("class_logits", class_logits, "pass one logit per class")
    sizes = check.positive("class_sizes", class_sizes, "pass the number of actions of each class")
    correct = np.asarray(class_correct)
    if logits.ndim != 1 or not logits.shape == sizes.shape == correct.shape:
        raise ValueError(
            "class_logits, class_sizes and class_correct must be one-dimensional and of one length, "
            f"got shapes {logits.shape}, {sizes.shape}, {correct.shape}: pass one entry per class"
        )
    if np.any(sizes != np.floor(sizes)):
        raise ValueError(f"class_sizes must be whole numbers, got {sizes.tolist()}: pass counts of actions")
    if correct.dtype != np.bool_ or not (correct.any() and not correct.all()):
        raise ValueError(
            f"class_correct must be booleans with at least one of each kind, got {correct.tolist()}: "
            "without wrong, or without correct actions nothing moves"
        )
    return logits, sizes, correct
