"""Mean-field flow of one prompt: group-relative training with infinitely many rollouts and infinitely small steps.

For N -> inf the on-policy, unclipped update follows F'(Q) grad Q (see `fgrpo.theory.utilities`), Q the correct mass of
the policy. For a tabular softmax policy with logits z this is

    dz_i/dt = F'(Q) p_i (1[i correct] - Q),    F'(Q) = (1 - Q)^gamma, or that over sqrt(Q (1 - Q)).

The factor F'(Q) is common to all logits: gamma and the normalisation change how fast the path is walked, not the path
(proof `time_change`). Differences in retained mass *at equal correct mass* between methods are thus effects of finite
N, of the step size or of the optimizer.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.special import log_softmax

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.action_classes import ActionClasses, check_classes
from fgrpo.theory.retention import retained_mass
from fgrpo.theory.utilities import Normalisation, focal_utility_slope

_SMALLEST_MASS = 1e-100
_SMALLEST_SLOPE = 1e-140  # of (1 - Q)^gamma: the integrator squares what it divides by


class MeanFieldOrbit(NamedTuple):
    """Points of a mean-field flow, one per requested correct mass [M]; probabilities of one action per class [M, G]."""

    time: FloatArray
    correct_mass: FloatArray
    retained_mass: FloatArray
    probabilities: FloatArray


def mean_field_orbit(
    classes: ActionClasses,
    correct_mass: ArrayLike,
    *,
    gamma: float = 0.0,
    normalisation: Normalisation = "none",
) -> MeanFieldOrbit:
    """Follow the mean-field flow of one prompt and report it where it passes the given correct masses.

    Assumes one prompt, a tabular softmax policy, N -> inf, gradient flow (step size -> 0, no momentum, no adaptive
    scaling), on-policy, unclipped, no KL or entropy term. Actions come in classes of equal probability, which the flow
    keeps equal; those of probability 0 stay there.

    Args:
        classes: The initial policy, with a correct mass of at least 1e-100 and some wrong mass.
        correct_mass: Correct masses at which to report, strictly increasing, from the initial one (exclusive) to 1
            (exclusive), [M] or a scalar.
        gamma: Focal exponent, >= 0 and so small that (1 - correct_mass)^gamma >= 1e-140; beyond, times are no doubles.
        normalisation: 'none', or 'std' (population standard deviation, epsilon = 0).

    Returns:
        `MeanFieldOrbit(time, correct_mass, retained_mass, probabilities)`. `time` counts learning rate times steps in
        units of 1 / (R_c - R_w) ('none') or as it is ('std'); it depends on gamma and normalisation, the rest does not.

    Raises:
        ValueError: If an argument is out of range, or the integration fails.

    Accuracy: retained mass to about 1e-9 (relative tolerance 1e-10 of the integrator). From a very small correct mass
    the flow waits long and then moves within what float64 can resolve of the time: `correct_mass` says where each point
    lies.

    Source: retained mass: Eq 26 (v1 and v2); the flow and its time change: this project (proof `time_change`).
    """
    check_classes(classes)
    levels = np.atleast_1d(check.open_probability("correct_mass", correct_mass))
    exponent = check.scalar("gamma", check.gamma(gamma))
    largest = np.log(_SMALLEST_SLOPE) / np.log1p(-levels.max(initial=0.5))
    check.limited("gamma", np.asarray(exponent), largest, "gamma changes the time only, not the path")
    _check_start(classes, levels)
    moving = classes.probability > 0
    count, correct = classes.count[moving], classes.correct[moving]
    log_count = np.log(count)

    def log_mass(z: FloatArray) -> FloatArray:
        return np.asarray(log_softmax(z + log_count))

    def velocity(time: float, z: FloatArray) -> FloatArray:
        mass = np.exp(log_mass(z))
        q, failure = mass[correct].sum(), mass[~correct].sum()
        pull = np.where(correct, failure, -q) * mass / count
        return np.asarray(focal_utility_slope(min(q, 1.0), exponent, normalisation=normalisation) * pull)

    def crossing(level: float) -> Callable[[float, FloatArray], float]:
        return lambda time, z: float(np.exp(log_mass(z))[correct].sum() - level)

    events = [crossing(level) for level in levels]
    events[-1].terminal = True  # type: ignore[attr-defined]  # how solve_ivp is told to stop
    start = np.log(classes.probability[moving])
    solution = solve_ivp(velocity, (0.0, np.inf), start, method="DOP853", events=events, rtol=1e-10, atol=1e-10)
    if solution.status != 1 or solution.t_events is None or solution.y_events is None:
        raise ValueError(
            f"the flow must reach correct_mass {levels[-1]:.6g}, got {check.shown(solution.message)}: "
            "start with more correct mass, or ask for less"
        )
    probabilities = np.zeros((levels.size, classes.count.size))
    probabilities[:, moving] = np.exp([log_mass(points[0]) for points in solution.y_events]) / count
    return MeanFieldOrbit(
        np.array([times[0] for times in solution.t_events]),
        classes.total(probabilities, classes.correct),
        retained_mass(classes.probability, probabilities, correct=classes.correct, count=classes.count),
        probabilities,
    )


def _check_start(classes: ActionClasses, levels: FloatArray) -> None:
    if not (classes.correct_mass >= _SMALLEST_MASS and classes.wrong_mass > 0):
        raise ValueError(
            f"classes must have a correct mass of at least {_SMALLEST_MASS:g} and some wrong mass, got "
            f"{classes.correct_mass:g} and {classes.wrong_mass:g}: without either the flow never starts"
        )
    if levels.ndim != 1 or np.any(np.diff(np.concatenate([[classes.correct_mass], levels])) <= 0):
        raise ValueError(
            f"correct_mass must increase strictly from the initial one, {classes.correct_mass:.6g}, got "
            f"{levels.tolist()}: the flow only ever raises the correct mass"
        )
