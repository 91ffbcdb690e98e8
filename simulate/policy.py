"""The softmax policy over numbered actions, class by class: by default the start of Appendix J.

Action 0 is the anchor, then come the other correct actions, then the wrong ones; so the correct actions are the slice
[:correct] of every array over actions.
"""

from typing import Any

import numpy as np

from fgrpo.simulate.policy_config import LARGEST_LOGIT, SMALLEST_CORRECT_MASS, PolicyConfig
from fgrpo.theory._validation import FloatArray, finite


def initial_logits(policy: PolicyConfig) -> FloatArray:
    """Logits before the first step, shape [actions].

    Source: Appendix J (v1 and v2).
    """
    logits, counts = zip(*((one.logit, one.count) for one in policy.action_classes), strict=True)
    return np.repeat(np.array(logits), counts)


def read_logits(logits: Any, policy: PolicyConfig) -> FloatArray:
    """A start of one's own: a copy of `logits` as float64, shape [actions].

    Raises:
        ValueError: If they are not finite numbers between -700 and 700, one per action, or the correct mass is below
            1e-300.
    """
    start: FloatArray = finite("logits", logits, "pass one finite logit per action")
    if start.shape != (policy.actions,):
        raise ValueError(
            f"logits must have shape ({policy.actions},), got {start.shape}: pass one logit per action, correct "
            "actions first"
        )
    if np.abs(start).max() > LARGEST_LOGIT:
        raise ValueError(f"logits must be at most {LARGEST_LOGIT:g} in size, got {np.abs(start).max():g}: scale them")
    mass = softmax(start)[: policy.correct].sum()
    if mass < SMALLEST_CORRECT_MASS:
        raise ValueError(
            f"the correct mass must be at least {SMALLEST_CORRECT_MASS:g}, got {mass:g}: "
            "raise the logits of the correct actions"
        )
    return start


def softmax(logits: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Probabilities exp(z) / sum exp(z), shape [actions]; finite for all finite logits.

    Args:
        logits: Finite logits, shape [actions].
        out: Array to write into, or None for a new one.
    """
    probabilities: FloatArray = np.subtract(logits, logits.max(), out=out)
    np.exp(probabilities, out=probabilities)
    probabilities /= probabilities.sum()
    return probabilities


def initial_masses(policy: PolicyConfig) -> dict[str, float]:
    """Probabilities before the first step.

    Returns:
        correct_mass (Q_pos of the whole correct set, the start's success rate), anchor_mass (of the anchor) and
        leaf_mass (of one action of the leaf class; NaN if the anchor is the only correct action). With the default
        policy 0.63008, 4.6527e-4 and 6.2967e-5.

    Source: Appendix J and Figure 5's caption (v1 and v2).
    """
    probabilities = softmax(initial_logits(policy))
    return {
        "correct_mass": float(probabilities[: policy.correct].sum()),
        "anchor_mass": float(probabilities[0]),
        "leaf_mass": float(probabilities[policy.leaves][0]) if policy.correct > 1 else float("nan"),
    }
