"""What is measured: of a policy, how much mass is correct, kept, spread; of one group, what it missed.

`xp` is the library of the arrays, numpy or torch; the last axis is that of the actions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from fgrpo.simulate.optimizers import Array
from fgrpo.simulate.updates import WeightedGroup
from fgrpo.theory import tail_miss_probability

GROUP_AVERAGES = ("active_share", "mean_weight", "distinct_correct")
GROUP_MEASURES = (
    *("leaf_tail_miss", "leaf_tail_miss_probability"),
    *("unsampled_correct_mass", "unsampled_correct_mass_change"),
)


def entropy(logits: Array, xp: Any = np) -> Array:
    """Entropy of softmax(logits) in nats, in [0, log(actions)]; finite also where probabilities underflow to 0."""
    return _softmax_and_entropy(logits, xp)[1]


def _softmax_and_entropy(logits: Array, xp: Any) -> tuple[Array, Array]:
    # in place where it can be: fresh pages for arrays of this size cost more than the arithmetic on them
    shifted = logits - xp.amax(logits, axis=-1, keepdims=True)
    probabilities = xp.exp(shifted)
    total = probabilities.sum(axis=-1, keepdims=True)
    probabilities /= total
    shifted *= probabilities
    return probabilities, xp.log(total)[..., 0] - shifted.sum(axis=-1)


def _entropy_of(logits: Array, probabilities: Array, xp: Any) -> Array:
    """Entropy where the softmax is known: the log of the sum of exponentials is that of the largest probability."""
    shifted = logits - xp.amax(logits, axis=-1, keepdims=True)
    shifted *= probabilities
    return -xp.log(xp.amax(probabilities, axis=-1)) - shifted.sum(axis=-1)


class PolicyMeasures:
    """The measures of policies against one start.

    Args:
        initial_logits: Logits of the start, shape [..., actions], correct actions first, the anchor at 0.
        correct: Number of correct actions.
        xp: numpy or torch.
    """

    def __init__(self, initial_logits: Array, correct: int, xp: Any = np) -> None:
        self._correct, self._xp = correct, xp
        self._p0_C = _softmax_and_entropy(initial_logits, xp)[0][..., :correct]
        # from the logits, not as p0_C / Q_pos, which is 0 / 0 where the whole correct mass underflows
        self._conditional_p0_C, _ = _softmax_and_entropy(initial_logits[..., :correct], xp)

    def __call__(self, logits: Array, probabilities: Array = None) -> dict[str, Array]:
        """The measures of softmax(logits); p0 is the start, pt the policy, C the correct actions.

        Args:
            logits: Shape [..., actions].
            probabilities: Their softmax, where the caller has it.

        Returns:
            correct_mass: Q_pos = sum of pt over C, in [0, 1].
            retained_mass: M_ret = sum over C of min(p0, pt) / Q_pos at the start, in [0, 1]; 1 iff no correct action
                lost mass. Eq 26 (v1 and v2).
            entropy: Of pt, in nats.
            correct_entropy: Of pt given C, in nats, in [0, log(correct)].
            correct_overlap: 1 - total variation between p0 given C and pt given C, in [0, 1].
            share_improved: Share of C with pt > p0, in [0, 1] [hu2025brorl].
            worst_drop: max over C of p0 - pt; negative if every correct action gained [hu2025brorl].
            anchor_mass: pt of the anchor.
        """
        # fgrpo.theory.retention has the closed forms for numpy; they check and mask all actions, which makes them take
        # 22 times as long, and the tests compare the two
        xp, p0_C = self._xp, self._p0_C
        if probabilities is None:
            pt, entropy_of_all = _softmax_and_entropy(logits, xp)
        else:
            pt, entropy_of_all = probabilities, _entropy_of(logits, probabilities, xp)
        pt_C = pt[..., : self._correct]
        conditional_pt_C, entropy_of_correct = _softmax_and_entropy(logits[..., : self._correct], xp)
        return {
            "correct_mass": pt_C.sum(axis=-1),
            "retained_mass": xp.minimum(p0_C, pt_C).sum(axis=-1) / p0_C.sum(axis=-1),
            "entropy": entropy_of_all,
            "correct_entropy": entropy_of_correct,
            "correct_overlap": 1.0 - 0.5 * xp.abs(self._conditional_p0_C - conditional_pt_C).sum(axis=-1),
            "share_improved": xp.sum(pt_C > p0_C, axis=-1, dtype=xp.float64) / self._correct,
            "worst_drop": xp.amax(p0_C - pt_C, axis=-1),
            "anchor_mass": pt_C[..., 0],
        }


def policy_metrics(logits: Array, initial_logits: Array, correct: int) -> dict[str, Array]:
    """The measures of one policy against its start, see PolicyMeasures."""
    return PolicyMeasures(initial_logits, correct)(logits)


def mass_change(probabilities: Array, step: Array, inside: Array, xp: Any = np) -> Array:
    """By how much a step of the logits changes the mass of a set S, exact in the step and without cancellation.

    The same as `fgrpo.theory.finite_step.exact_mass_change`, unchecked and for either library: with the step dz and its
    mean m under p, (Q_rest sum_S p expm1(dz - m) - Q_S sum_rest p expm1(dz - m)) / sum p exp(dz - m).

    Args:
        probabilities: p, shape [..., actions].
        step: dz, shape [..., actions]; used up.
        inside: Flags of S for the first actions, shape [..., correct]; no later action is in S.
        xp: numpy or torch.
    """
    step -= (probabilities * step).sum(axis=-1, keepdims=True)
    # an action of probability 0 has nothing to give or gain, wherever it moves
    step *= xp.sign(probabilities)
    # far above the mean (only a rare action can be) exp would overflow: take the largest step as the origin instead
    highest = xp.amax(step, axis=-1, keepdims=True) - 600.0
    step -= highest * (highest > 0)
    gain = xp.expm1(step, out=step)
    gain *= probabilities
    flagged = inside.shape[-1]

    def inside_and_rest(values: Array) -> tuple[Array, Array]:
        # the rest by itself and not as a difference to the total, which would cancel
        head, tail = values[..., :flagged], values[..., flagged:]
        return (head * inside).sum(axis=-1), (head * ~inside).sum(axis=-1) + tail.sum(axis=-1)

    mass, mass_of_rest = inside_and_rest(probabilities)
    gained, gained_by_rest = inside_and_rest(gain)
    return (mass_of_rest * gained - mass * gained_by_rest) / (mass + gained + mass_of_rest + gained_by_rest)


def group_metrics(
    group: WeightedGroup,
    active: Array,
    leaves: slice,
    probabilities: Array,
    step: Array,
    tail_miss: Callable[..., Array] = tail_miss_probability,
    xp: Any = np,
) -> dict[str, Array]:
    """The measures of one group: what Lemma 3.1 and Proposition 3.2 speak of, observed.

    Over many groups leaf_tail_miss minus leaf_tail_miss_probability has mean zero, whatever happened before.

    Args:
        group: The group.
        active: Whether it has both right and wrong rollouts.
        leaves: Which actions are the leaves.
        probabilities: Policy that the group was drawn from, shape [..., actions].
        step: What the update then added to the logits, shape [..., actions]; used up.
        tail_miss: `fgrpo.theory.tail_miss_probability`, or the same for torch.
        xp: numpy or torch.

    Returns:
        leaf_tail_miss: Share of the leaves that were not drawn if the group was active, 0 if it was not.
        leaf_tail_miss_probability: Its expectation before the draw, the mean of Pr(B_tau) over the leaves, tau the
            probability of each. Lemma 3.1 (v1 and v2).
        unsampled_correct_mass: Q_u,pos, the probability of the correct actions that were not drawn.
        unsampled_correct_mass_change: By how much the update changed the mass of the same actions. Proposition 3.2 (v1
            and v2) gives its first order in the learning rate under Eq 7 (Eq 5 in v2).
    """
    number, leaf_probabilities = leaves.stop - leaves.start, probabilities[..., leaves]
    unsampled = group.counts[..., : group.correct] == 0
    missed = xp.sum(unsampled[..., leaves], axis=-1, dtype=xp.float64) / number
    correct_mass = probabilities[..., : group.correct].sum(axis=-1, keepdims=True)
    wrong_mass = probabilities[..., group.correct :].sum(axis=-1, keepdims=True)
    # clip: rounding may put a sum of probabilities above 1
    expected = tail_miss(
        correct_mass.clip(max=1.0), leaf_probabilities, group.group_size, failure_rate=wrong_mass.clip(max=1.0)
    )
    return {
        "leaf_tail_miss": missed * active,
        "leaf_tail_miss_probability": expected.sum(axis=-1) / number,
        "unsampled_correct_mass": (probabilities[..., : group.correct] * unsampled).sum(axis=-1),
        "unsampled_correct_mass_change": mass_change(probabilities, step, unsampled, xp),
    }


def group_statistics(active: Array, weight: Array, distinct_correct: Array) -> dict[str, Array]:
    """Means over groups; for either library.

    Args:
        active: Whether each group has both right and wrong rollouts, as 0.0 and 1.0, shape [..., groups].
        weight: Their weights; that of an inactive group changes nothing and is left out.
        distinct_correct: Number of different correct actions in each.

    Returns:
        active_share, mean_weight (over the active groups, NaN where there are none) and distinct_correct (per group),
        shape [...].
    """
    number_active = active.sum(axis=-1)
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN: nothing to average
        mean_weight = (weight * active).sum(axis=-1) / number_active
    return {
        "active_share": number_active / active.shape[-1],
        "mean_weight": mean_weight,
        "distinct_correct": distinct_correct.sum(axis=-1) / active.shape[-1],
    }
