"""The batch baseline S_R = R_c P_pos + R_w P_neg given the number of successes (Corollary B.2 in v1, H.2 in v2).

P_pos and P_neg are the total probabilities of the *distinct* correct and wrong actions in a group, so S_R is no mean
reward. Given X = k correct rollouts of N, the k correct ones are independent draws from the correct actions and the
other N - k ones from the wrong actions:

    E[P_pos | X = k] = sum_P p (1 - (1 - p/Q_pos)^k),        E[P_neg | X = k] = sum_N p (1 - (1 - p/Q_neg)^(N-k)).

The first rises and the second falls with k, whatever the rewards. For R_w <= 0 <= R_c (`batch_baseline_is_monotone`)
therefore E[S_R | X = k] rises. More is true: couple k and k + 1 by the same sequences of correct and of wrong draws, so
that k + 1 takes one correct draw more and one wrong draw fewer. Then P_pos does not fall, P_neg does not rise, and S_R
does not fall, draw for draw: S_R given X = k is stochastically non-decreasing in k, hence so is Pr(S_R > s | X = k) for
every s (proof `batch_baseline_dominance`).

Outside that scope the functions still compute, and monotonicity can fail (N = 3):

    R_w > 0: p = (1/2 correct, 1/4 wrong, 1/4 wrong), rewards 1 and 1/2: E[S_R | X = 0..3] = 7/32, 11/16, 5/8, 1/2.
    R_c < 0: p = (1/2 wrong, 1/4 correct, 1/4 correct), rewards -1/4 and -1: -1/2, -9/16, -19/32, -7/64.

It is a statement about one prompt. Across prompts S_R follows the collision mass, not the success rate. With rewards 1
and -1 and N = 8: success rate .9 spread evenly over 10^6 actions, the rest on one, and X = 7 give E[S_R] = -.09999;
success rate .3 on one action, the rest spread over 10^6, and X = 2 give +.29999.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.action_classes import ActionClasses, check_classes
from fgrpo.theory.updates import sampled_moments


class SampledMass(NamedTuple):
    """Expected P_pos and P_neg, each of shape [...]."""

    correct: FloatArray
    wrong: FloatArray


def batch_baseline(
    policy: ArrayLike,
    correct: ArrayLike,
    sampled: ArrayLike,
    *,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
) -> FloatArray:
    """S_R = R_c P_pos + R_w P_neg over the distinct sampled actions of one group.

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        correct: Which actions are correct, boolean [A] or [..., A].
        sampled: Which actions were drawn, boolean [..., A], or how often, whole numbers [..., A].
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].

    Returns:
        S_R of shape [...]; 0 for no rollouts. S_R <= R_c if R_c >= 0, and S_R >= R_w if R_w <= 0.

    Raises:
        ValueError: If an argument is out of range or shapes disagree.

    Source: Section 2.3 (v1 and v2).
    """
    moments = sampled_moments(policy, correct, sampled)
    return moments.batch_baseline(reward_correct=reward_correct, reward_wrong=reward_wrong)


def batch_baseline_is_monotone(*, reward_correct: ArrayLike, reward_wrong: ArrayLike) -> NDArray[np.bool_]:
    """Whether the rewards meet the hypothesis under which S_R rises with the number of successes: R_w <= 0 <= R_c.

    Args:
        reward_correct: R_c.
        reward_wrong: R_w < R_c.

    Returns:
        Booleans, broadcast. Where False, monotonicity may fail (the module's text has examples for either sign).

    Raises:
        ValueError: If reward_correct is not above reward_wrong.

    Source: Corollary B.2 (v1), Corollary H.2 (v2), which state R_c > R_w and R_w <= 0; their proof also uses R_c >= 0.
    """
    r_c, r_w = check.rewards(reward_correct, reward_wrong)
    return np.asarray((r_w <= 0) & (r_c >= 0))[()]


def _successes(value: ArrayLike, limit_name: str, limit: FloatArray) -> FloatArray:
    """Numbers of correct rollouts: whole, in [0, limit]."""
    way_out = "pass the number of correct rollouts of the group"
    k = check.whole("successes", value, 0, way_out)
    check.at_most("successes", k, limit_name, limit, way_out)
    return k


class _Label(NamedTuple):
    """The actions of one label: count and probability per class, and the probability given the label."""

    multiplicity: FloatArray
    probability: FloatArray
    conditional: FloatArray

    def mass_drawn(self, draws: FloatArray) -> FloatArray:
        """Expected mass of the distinct actions among `draws` of this label; 0 where it has none to draw."""
        hit = -np.expm1(special.xlog1py(draws[..., None], -self.conditional))
        return np.asarray(np.sum(self.multiplicity * self.probability * hit, axis=-1))

    def mass_of_next_draw(self, draws: FloatArray) -> FloatArray:
        """Expected mass of one more draw if it is not among the first `draws`; nan where the label has no action."""
        new = np.exp(special.xlog1py(draws[..., None], -self.conditional))
        mass = np.sum(self.multiplicity * self.probability * self.conditional * new, axis=-1)
        return mass if self.conditional.size else np.full_like(mass, np.nan)


def _label(classes: ActionClasses, correct: bool) -> _Label:
    mine = (classes.correct == correct) & (classes.probability > 0)
    count, probability = classes.count[mine], classes.probability[mine]
    # p / Q is at most 1, and exactly 1 for a single action
    return _Label(count, probability, probability / max(np.sum(count * probability), np.finfo(float).tiny))


def conditional_sampled_mass(classes: ActionClasses, group_size: ArrayLike, successes: ArrayLike) -> SampledMass:
    """E[P_pos | X = k] and E[P_neg | X = k]: expected mass of the distinct correct and wrong actions in the group.

    Args:
        classes: The policy.
        group_size: N, whole numbers >= 1, of shape [...].
        successes: k, whole numbers in [0, N], of shape [...].

    Returns:
        Both expectations, broadcast: the first rises with k from 0, the second falls with k to 0 at k = N. nan where
        the policy cannot have k successes (no correct mass and k > 0, or no wrong mass and k < N).

    Raises:
        ValueError: If an argument is out of range.

    Source: the proof of Corollary B.2 (v1), Lemma H.1 (v2); proof `batch_baseline_monotone`.
    """
    check_classes(classes)
    n = check.integer_group_size(group_size)
    k = _successes(successes, "group_size", n)
    right, wrong = _label(classes, True), _label(classes, False)
    possible = ((k == 0) | (right.multiplicity.size > 0)) & ((k == n) | (wrong.multiplicity.size > 0))
    masses = (right.mass_drawn(k), wrong.mass_drawn(n - k))
    return SampledMass(*(np.where(possible, mass, np.nan)[()] for mass in masses))


def conditional_batch_baseline(
    classes: ActionClasses,
    group_size: ArrayLike,
    successes: ArrayLike,
    *,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
) -> FloatArray:
    """E[S_R | X = k], the expected batch baseline of a group with k successes among N rollouts.

    Non-decreasing in k where `batch_baseline_is_monotone`; within one prompt only (see the module's text).

    Args:
        classes: The policy.
        group_size: N, whole numbers >= 1, of shape [...].
        successes: k, whole numbers in [0, N], of shape [...].
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].

    Returns:
        Expectation, broadcast over all arguments; nan where the policy cannot have k successes.

    Raises:
        ValueError: If an argument is out of range.

    Source: Corollary B.2 (v1), Corollary H.2 (v2); proof `batch_baseline_monotone`.
    """
    r_c, r_w = check.rewards(reward_correct, reward_wrong)
    mass = conditional_sampled_mass(classes, group_size, successes)
    check.broadcastable(masses=np.asarray(mass.correct), reward_correct=r_c, reward_wrong=r_w)
    return np.asarray(r_c * mass.correct + r_w * mass.wrong)[()]


def batch_baseline_increment(
    classes: ActionClasses,
    group_size: ArrayLike,
    successes: ArrayLike,
    *,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
) -> FloatArray:
    """E[S_R | X = k + 1] - E[S_R | X = k], without subtracting the two.

    R_c sum_P (p^2/Q_pos) (1 - p/Q_pos)^k - R_w sum_N (p^2/Q_neg) (1 - p/Q_neg)^(N-k-1): for R_w <= 0 <= R_c a sum of
    terms >= 0.

    Args:
        classes: The policy.
        group_size: N, whole numbers >= 1, of shape [...].
        successes: k, whole numbers in [0, N - 1], of shape [...].
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].

    Returns:
        Increment, broadcast over all arguments; nan where the policy has no correct or no wrong mass.

    Raises:
        ValueError: If an argument is out of range.

    Source: Corollary B.2 (v1), Corollary H.2 (v2); proof `batch_baseline_monotone`.
    """
    check_classes(classes)
    r_c, r_w = check.rewards(reward_correct, reward_wrong)
    n = check.integer_group_size(group_size)
    k = _successes(successes, "group_size - 1", n - 1.0)
    check.broadcastable(group_size=n, successes=k, reward_correct=r_c, reward_wrong=r_w)
    gained = _label(classes, True).mass_of_next_draw(k)
    lost = _label(classes, False).mass_of_next_draw(n - k - 1.0)
    return np.asarray(r_c * gained - r_w * lost)[()]
