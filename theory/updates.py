"""One update of a categorical softmax policy, given the group that was drawn: moments of the sample and logit steps.

A policy p over A actions, some correct and some wrong, draws a group of N rollouts; action i is drawn n_i times. One
step of gradient ascent on a surrogate moves the logits. With c_i the surrogate's coefficient of action i, v_i = c_i p_i
where the surrogate is linear in p_i, and v_i = c_i where it is linear in the ratio p_i / p_i^old (at the sampling point
p = p^old),

    dz_i = eta (v_i - p_i sum_j v_j),

for every surrogate; they differ in c alone. R_i is the reward, r_i the reward minus the group's mean reward:

    linear_distinct     c_i = R_i / N, once per distinct sampled action      linear in p    Eq 7 in v1, Eq 5 in v2
    linear_counts       c_i = n_i R_i / N                                    linear in p
    linear              c_i = n_i r_i / N                                    linear in p    Appendix J as printed
    ratio_raw           c_i = n_i R_i / N                                    in the ratio
    importance_ratio    c_i = n_i r_i / N                                    in the ratio   GRPO (on-policy, unclipped)

The last one is GRPO's [shao2024deepseekmath]. For it sum_j v_j = 0: unsampled logits do not move at all (their
probabilities do, through the normalisation).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray

SURROGATES = ("linear_distinct", "linear_counts", "linear", "ratio_raw", "importance_ratio")
"""The updates that `logit_update` knows, see there."""
RATIO = ("ratio_raw", "importance_ratio")
CENTRED = ("linear", "importance_ratio")


class SampledGroup(NamedTuple):
    """A checked policy with its sample, all of shape [..., A]: probabilities, correct flags, draws per action."""

    policy: FloatArray
    correct: NDArray[np.bool_]
    counts: FloatArray

    @property
    def sampled(self) -> NDArray[np.bool_]:
        """Which actions were drawn at least once."""
        return self.counts > 0

    @property
    def group_size(self) -> FloatArray:
        """N, at least 1: a group without rollouts updates nothing whatever N is divided by."""
        return np.asarray(np.maximum(self.counts.sum(axis=-1), 1.0))

    def total(self, values: FloatArray, where: NDArray[np.bool_]) -> FloatArray:
        """Sum of `values` over the actions that `where` marks."""
        return np.asarray(np.sum(values, axis=-1, where=where))


def read_group(policy: ArrayLike, correct: ArrayLike, sampled: ArrayLike) -> SampledGroup:
    """The three arrays, checked and broadcast; `sampled` holds flags (each drawn once) or whole numbers of draws."""
    p = check.distribution("policy", policy)
    flags = check.mask("correct", correct)
    counts = check.whole("sampled", sampled, 0, "pass how often each action was drawn, or which were drawn")
    for name, array in (("correct", flags), ("sampled", counts)):
        if array.shape[-1:] != p.shape[-1:]:
            raise ValueError(
                f"{name} must have the policy's {p.shape[-1]} actions on its last axis, got shape {array.shape}: "
                "pass one entry per action"
            )
    check.broadcastable(policy=p, correct=flags, sampled=counts)
    shape = np.broadcast_shapes(p.shape, flags.shape, counts.shape)
    group = SampledGroup(np.broadcast_to(p, shape), np.broadcast_to(flags, shape), np.broadcast_to(counts, shape))
    if np.any(group.sampled & (group.policy == 0)):
        raise ValueError(
            "sampled must not hold an action of probability 0, got one: pass the policy that the group was drawn from"
        )
    return group


def read_step(
    group: SampledGroup, learning_rate: ArrayLike, reward_correct: ArrayLike, reward_wrong: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Checked learning rate and rewards, each of shape [...]: they must broadcast with the groups."""
    eta, (r_c, r_w) = check.learning_rate(learning_rate), check.rewards(reward_correct, reward_wrong)
    check.broadcastable(groups=group.policy[..., 0], learning_rate=eta, reward_correct=r_c, reward_wrong=r_w)
    return eta, r_c, r_w


class SampledMoments(NamedTuple):
    """First and second moments of the sampled and unsampled parts of a policy; `*_collision` is a sum of squares.

    The paper's symbols in order: P_pos, P_neg, Q_u,pos, Q_u,neg; A_2, B_2, U_pos,2, U_neg,2 (U_2 is the sum of the last
    two). Each sampled action counts once, however often it was drawn.
    """

    sampled_correct_mass: FloatArray
    sampled_wrong_mass: FloatArray
    unsampled_correct_mass: FloatArray
    unsampled_wrong_mass: FloatArray
    sampled_correct_collision: FloatArray
    sampled_wrong_collision: FloatArray
    unsampled_correct_collision: FloatArray
    unsampled_wrong_collision: FloatArray

    def batch_baseline(self, *, reward_correct: ArrayLike = 1.0, reward_wrong: ArrayLike = -1.0) -> FloatArray:
        """S_R = R_c P_pos + R_w P_neg."""
        r_c, r_w = check.rewards(reward_correct, reward_wrong)
        masses = np.asarray(self.sampled_correct_mass)
        check.broadcastable(masses=masses, reward_correct=r_c, reward_wrong=r_w)
        return (r_c * self.sampled_correct_mass + r_w * self.sampled_wrong_mass)[()]


def group_moments(group: SampledGroup) -> SampledMoments:
    """The moments of a checked group."""
    p, correct, hit = group.policy, group.correct, group.sampled
    parts = (correct & hit, ~correct & hit, correct & ~hit, ~correct & ~hit)
    return SampledMoments(*(group.total(power, part)[()] for power in (p, p * p) for part in parts))


def sampled_moments(policy: ArrayLike, correct: ArrayLike, sampled: ArrayLike) -> SampledMoments:
    """What the raw-reward update (`linear_distinct`) needs to know of a group.

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        correct: Which actions are correct, boolean [A] or [..., A].
        sampled: Which actions were drawn, boolean [..., A], or how often, whole numbers [..., A].

    Returns:
        The eight moments, each of shape [...] and in [0, 1]. For no rollouts the sampled ones are 0, once every action
        is sampled the unsampled ones are.

    Raises:
        ValueError: If the policy is no distribution, shapes disagree, or an action of probability 0 was 'drawn'.

    Source: Section 2.3 and Proposition 3.2 (v1 and v2).
    """
    return group_moments(read_group(policy, correct, sampled))


class Contrast(NamedTuple):
    """What a mean-centred update knows of a group, each of shape [...].

    muhat (1 - muhat) with muhat = X/N, and the draw-weighted means of p and of p^2 over correct and over wrong draws.
    Without a correct (wrong) draw the means of that kind are 0, and so is muhat (1 - muhat).
    """

    activity: FloatArray
    mean_correct: FloatArray
    mean_wrong: FloatArray
    mean_square_correct: FloatArray
    mean_square_wrong: FloatArray


def group_contrast(group: SampledGroup) -> Contrast:
    """The contrast of a checked group."""
    n = group.group_size
    right = group.total(group.counts, group.correct)
    wrong = group.total(group.counts, ~group.correct)

    def mean(values: FloatArray, draws: FloatArray, where: NDArray[np.bool_]) -> FloatArray:
        return np.asarray(group.total(group.counts * values, where) / np.maximum(draws, 1.0))

    p, square = group.policy, group.policy**2
    return Contrast(
        (right / n) * (wrong / n),
        mean(p, right, group.correct),
        mean(p, wrong, ~group.correct),
        mean(square, right, group.correct),
        mean(square, wrong, ~group.correct),
    )


def _coefficients(group: SampledGroup, surrogate: str, r_c: FloatArray, r_w: FloatArray) -> FloatArray:
    """The coefficients c of the module's table, [..., A]."""
    n = group.group_size[..., None]
    r_c, r_w = r_c[..., None], r_w[..., None]
    if surrogate in CENTRED:
        # r = R - mean reward, as D (1 - muhat) and -D muhat: exactly 0 in a homogeneous group
        rate = group.total(group.counts, group.correct)[..., None] / n
        r_c, r_w = (r_c - r_w) * (1.0 - rate), (r_w - r_c) * rate
    draws = group.sampled if surrogate == "linear_distinct" else group.counts
    return np.asarray(np.where(group.correct, r_c, r_w) * draws / n)


def logit_update(
    policy: ArrayLike,
    correct: ArrayLike,
    sampled: ArrayLike,
    *,
    surrogate: str = "linear_distinct",
    learning_rate: ArrayLike = 1.0,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
) -> FloatArray:
    """Step of the logits: gradient of the surrogate at the sampling policy, times the learning rate.

    dz_i = eta (v_i - p_i sum_j v_j) with v from the module's table. For `linear_distinct` it is Eq 7 (v1; Eq 5 in v2):
    dz_i = (eta/N) p_i (R_i - S_R) for sampled and -(eta/N) p_i S_R for unsampled actions. It holds for the *distinct*
    sampled set; where actions repeat, `linear_counts` is another update. Raw-reward surrogates move logits in
    homogeneous groups too; mean-centred ones (`linear`, `importance_ratio`) then give exactly 0.

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        correct: Which actions are correct, boolean [A] or [..., A].
        sampled: How often each action was drawn, whole numbers [..., A], or which were drawn, boolean (each once).
            Their sum is N; with N = 0 the step is 0.
        surrogate: `linear_distinct`, `linear_counts`, `linear`, `ratio_raw` or `importance_ratio`.
        learning_rate: eta >= 0, of shape [...]; a focal weight multiplies it.
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].

    Returns:
        dz, float64 [..., A]. For `importance_ratio` the unsampled entries are exactly 0.

    Raises:
        ValueError: If an argument is out of range, shapes disagree, or the surrogate is unknown.

    Source: Section 2.3, Eq 7 (v1), Eq 5 (v2); Appendix J; the other surrogates: this project (proof `logit_update`).
    """
    check.one_of("surrogate", surrogate, SURROGATES)
    group = read_group(policy, correct, sampled)
    eta, *rewards = read_step(group, learning_rate, reward_correct, reward_wrong)
    eta, coefficients = eta[..., None], _coefficients(group, surrogate, *rewards)
    if surrogate == "importance_ratio":
        return np.asarray(eta * coefficients)  # sum_j v_j = 0; its rounding error would touch unsampled logits
    v = coefficients if surrogate in RATIO else coefficients * group.policy
    return np.asarray(eta * (v - group.policy * v.sum(axis=-1, keepdims=True)))
