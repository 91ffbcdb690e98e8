"""The softmax policy of Appendix J: one anchor, other correct actions, wrong actions, each class with one start logit.

Action 0 is the anchor, actions 1 .. correct - 1 are the other correct ones ('leaves'), the rest are wrong; so the
correct actions are the slice [:correct] of every array over actions.
"""

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.config import PolicyConfig

FloatArray = NDArray[np.float64]


def initial_logits(policy: PolicyConfig) -> FloatArray:
    """Logits before the first step, shape [actions].

    Source: Appendix J (v1 and v2).
    """
    logits = np.full(policy.actions, policy.wrong_logit)
    logits[: policy.correct] = policy.correct_logit
    logits[0] = policy.anchor_logit
    return logits


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
        leaf_mass (of one other correct action; NaN if the anchor is the only correct one). With the default policy
        0.63008, 4.6527e-4 and 6.2967e-5.

    Source: Appendix J and Figure 5's caption (v1 and v2).
    """
    probabilities = softmax(initial_logits(policy))
    return {
        "correct_mass": float(probabilities[: policy.correct].sum()),
        "anchor_mass": float(probabilities[0]),
        "leaf_mass": float(probabilities[1]) if policy.correct > 1 else float("nan"),
    }
