"""How a logit step moves the probability mass of a set: to first order, exactly, and how far the two may differ.

The new policy is proportional to p_i exp(dz_i). With m = sum_k p_k dz_k and Q_S the mass of a set S,

    first order   sum_{i in S} p_i (dz_i - m)       = (1 - Q_S) sum_S p dz - Q_S sum_rest p dz,
    exact         sum_S p e^dz / sum p e^dz - Q_S   = [(1 - Q_S) sum_S p t - Q_S sum_rest p t] / sum p e^(dz - m),

t = expm1(dz - m): the same covariance with t in place of dz. They differ by at most range(dz)^2 / 8.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray

_LARGEST_STEP = 1e150  # its square is a double


def _finite_step(logit_step: ArrayLike) -> FloatArray:
    step = check.finite("logit_step", logit_step, "pass dz, one entry per action")
    check.limited("the size of logit_step", np.abs(step), _LARGEST_STEP, "steps above 1000 all but choose one action")
    return step


def _read_step(
    policy: ArrayLike, logit_step: ArrayLike, subset: ArrayLike
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Policy, step minus its mean under the policy, and the flags of S, broadcast."""
    p, inside = check.distribution("policy", policy), check.mask("subset", subset)
    step = _finite_step(logit_step)
    check.per_action(policy=p, logit_step=step, subset=inside)
    mean = np.sum(p * step, axis=-1, keepdims=True)
    p, step, inside = np.broadcast_arrays(p, step - mean, inside)
    return p, step, inside


def _moved(p: FloatArray, tilt: FloatArray, inside: NDArray[np.bool_]) -> FloatArray:
    """(1 - Q_S) sum_S p tilt - Q_S sum_rest p tilt, that is Cov_p(1_S, tilt), free of a common offset in tilt."""
    gain = p * tilt
    mass, rest = (np.sum(p, axis=-1, where=part) for part in (inside, ~inside))
    return np.asarray(rest * np.sum(gain, axis=-1, where=inside) - mass * np.sum(gain, axis=-1, where=~inside))


def first_order_mass_change(policy: ArrayLike, logit_step: ArrayLike, subset: ArrayLike) -> FloatArray:
    """Change of the mass of a set to first order in the logit step: sum_{i in S} p_i (dz_i - m), m = sum_k p_k dz_k.

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        logit_step: dz, at most 1e150 in size, [..., A]; a common offset changes nothing.
        subset: Flags of S, boolean [..., A], e.g. `correct` or `correct & (counts == 0)`.

    Returns:
        Change of shape [...]; 0 for the empty and for the full set.

    Raises:
        ValueError: If an argument is out of range or the last axes differ.

    Source: Section 3.2 (v1 and v2), through the softmax Jacobian.
    """
    return _moved(*_read_step(policy, logit_step, subset))[()]


def exact_mass_change(policy: ArrayLike, logit_step: ArrayLike, subset: ArrayLike) -> FloatArray:
    """Change of the mass of a set under the new policy, proportional to p_i exp(dz_i), exact in the step.

    Written as a difference of expm1 terms about the mean step, so that a tiny step loses no digits to Q' - Q (relative
    error below 2e-15 for random steps of size 1e-14 to 1000).

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        logit_step: dz, at most 1e150 in size, [..., A]; a common offset changes nothing.
        subset: Flags of S, boolean [..., A].

    Returns:
        Change of shape [...], in [-Q_S, 1 - Q_S].

    Raises:
        ValueError: If an argument is out of range or the last axes differ.

    Source: this project; `first_order_mass_change` is its derivative, `finite_step_bound` bounds the difference.
    """
    p, step, inside = _read_step(policy, logit_step, subset)
    # far above the mean (only a rare action can be), exp would overflow: take the largest step as the origin instead
    largest = np.max(step, axis=-1, keepdims=True, where=p > 0, initial=-np.inf)
    step = np.where(p > 0, step - np.maximum(largest - 600.0, 0.0), 0.0)
    return np.asarray(_moved(p, np.expm1(step), inside) / np.sum(p * np.exp(step), axis=-1))[()]


def finite_step_bound(logit_step: ArrayLike) -> FloatArray:
    """Bound on |exact - first-order| change of the mass of any set: range(dz)^2 / 8.

    Along the path the second derivative of Q_S is E[(1_S - Q_S)(dz - m)^2] under the tilted policy, at most a variance
    of dz and so at most range^2 / 4 in size [popoviciu1935racines].

    Args:
        logit_step: dz, at most 1e150 in size, [..., A].

    Returns:
        Bound of shape [...]; 0 for a constant step. It tells something where it is below the first-order change.

    Raises:
        ValueError: If the step is not finite, too large, or has no action axis.

    Source: this project (proof `finite_step_bound`).
    """
    step = _finite_step(logit_step)
    if step.ndim == 0 or step.shape[-1] == 0:
        raise ValueError(
            f"logit_step must have at least one action on its last axis, got shape {step.shape}: pass dz [..., A]"
        )
    return np.asarray(np.ptp(step, axis=-1) ** 2 / 8.0)[()]
