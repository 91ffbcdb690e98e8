"""What is measured of a policy: how much mass is correct, how much of the start's correct mass is kept, how spread."""

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.policy import softmax

FloatArray = NDArray[np.float64]


def entropy(logits: FloatArray) -> float:
    """Entropy of softmax(logits) in nats, in [0, log(actions)]; finite also where probabilities underflow to 0."""
    shifted = logits - logits.max()
    weights = np.exp(shifted)
    total = weights.sum()
    return float(np.log(total) - (weights * shifted).sum() / total)


def policy_metrics(logits: FloatArray, initial_logits: FloatArray, correct: int) -> dict[str, float]:
    """The measures of one policy against the start; p0 is the start, pt the policy, C the correct actions.

    Args:
        logits: Logits of the policy, shape [actions], correct actions first, the anchor at 0.
        initial_logits: Logits of the start, shape [actions].
        correct: Number of correct actions.

    Returns:
        correct_mass: Q_pos = sum of pt over C, in [0, 1].
        retained_mass: M_ret = sum over C of min(p0, pt) / Q_pos at the start, in [0, 1]; 1 iff no correct action
            lost mass. Eq 26 (v1 and v2).
        entropy: Of pt, in nats.
        correct_entropy: Of pt given C, in nats, in [0, log(correct)].
        correct_overlap: 1 - total variation between p0 given C and pt given C, in [0, 1].
        share_improved: Share of C with pt > p0, in [0, 1] (Hu et al. 2025).
        worst_drop: max over C of p0 - pt; negative if every correct action gained (Hu et al. 2025).
        anchor_mass: pt of the anchor.
    """
    probabilities = softmax(logits)
    p0_C, pt_C = softmax(initial_logits)[:correct], probabilities[:correct]
    # from the logits, not as pt_C / Q_pos, which is 0 / 0 where the whole correct mass underflows
    conditional_p0_C, conditional_pt_C = softmax(initial_logits[:correct]), softmax(logits[:correct])
    return {
        "correct_mass": float(pt_C.sum()),
        "retained_mass": float(np.minimum(p0_C, pt_C).sum() / p0_C.sum()),
        "entropy": entropy(logits),
        "correct_entropy": entropy(logits[:correct]),
        "correct_overlap": float(1.0 - 0.5 * np.abs(conditional_p0_C - conditional_pt_C).sum()),
        "share_improved": float(np.mean(pt_C > p0_C)),
        "worst_drop": float((p0_C - pt_C).max()),
        "anchor_mass": float(probabilities[0]),
    }


class GroupStatistics:
    """Means over the groups since the previous record; NaN where there was nothing to average."""

    def __init__(self) -> None:
        self._start_over()

    def add(self, active: bool, weight: float, distinct_correct: int) -> None:
        """Counts one group.

        Args:
            active: Whether the group has both right and wrong rollouts.
            weight: Its weight; that of an inactive group changes nothing and is left out.
            distinct_correct: Number of different correct actions in it.
        """
        self._groups += 1
        self._distinct += distinct_correct
        if active:
            self._active += 1
            self._weight += weight

    def take(self) -> dict[str, float]:
        """active_share, mean_weight (over active groups) and distinct_correct (per group); starts over."""
        groups, active = self._groups or np.nan, self._active or np.nan
        means = {
            "active_share": self._active / groups,
            "mean_weight": self._weight / active,
            "distinct_correct": self._distinct / groups,
        }
        self._start_over()
        return means

    def _start_over(self) -> None:
        self._groups, self._active, self._weight, self._distinct = 0, 0, 0.0, 0
