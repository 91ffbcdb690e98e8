"""How one update moves probability mass, given the group that was drawn: to first order, exactly, and with which sign.

To first order in the step dz, with m = sum_k p_k dz_k, the mass of any set S changes by sum_{i in S} p_i (dz_i - m).
For the raw-reward update on distinct samples (Eq 7 in v1, Eq 5 in v2) this gives, in the moments of `SampledMoments`,

    dQ_pos   = (eta/N) [(R_c - S_R) Q_neg A_2 + (S_R - R_w) Q_pos B_2 + S_R (Q_pos U_neg,2 - Q_neg U_pos,2)],
    dQ_u,pos = -(eta/N) [S_R U_pos,2 + Q_u,pos T],     T = (R_c - S_R) A_2 + (R_w - S_R) B_2 - S_R U_2,

and for mean-centred surrogates, with D = R_c - R_w, x = muhat (1 - muhat), pbar and p2bar the draw-weighted means of p
and p^2 over correct and wrong draws, d = pbar_c - pbar_w, M_P and M_N the sums of p^2 over all correct and all wrong
actions,

    importance_ratio   dQ_pos   =  eta D x [Q_neg pbar_c + Q_pos pbar_w],
                       dQ_u,pos = -eta D x Q_u,pos d;
    linear             dQ_pos   =  eta D x [Q_neg p2bar_c + Q_pos p2bar_w - d (Q_neg M_P - Q_pos M_N)],
                       dQ_u,pos = -eta D x [d (U_pos,2 - Q_u,pos (M_P + M_N)) + Q_u,pos (p2bar_c - p2bar_w)].

What is left out is of second order: see `fgrpo.theory.finite_step` for its bound and for the exact change.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.updates import (
    CENTRED,
    SampledGroup,
    SampledMoments,
    group_contrast,
    group_moments,
    read_group,
    read_step,
)

_CLOSED = ("linear_distinct", *CENTRED)


class CorrectMassChange(NamedTuple):
    """The three terms of the change of Q_pos: from sampled-correct, sampled-wrong and unsampled actions, each [...].

    With R_w <= 0 <= R_c the first two are at least 0; the third has either sign.
    """

    sampled_correct: FloatArray
    sampled_wrong: FloatArray
    unsampled: FloatArray

    @property
    def total(self) -> FloatArray:
        """dQ_pos."""
        return np.asarray(self.sampled_correct + self.sampled_wrong + self.unsampled)[()]


class UnsampledMassChange(NamedTuple):
    """The two terms of the change of Q_u,pos, each [...].

    `drift`: what the unsampled actions' own logits do, -S_R U_pos,2. `coupling`: what normalisation does to them,
    -Q_u,pos T.
    """

    drift: FloatArray
    coupling: FloatArray

    @property
    def total(self) -> FloatArray:
        """dQ_u,pos."""
        return np.asarray(self.drift + self.coupling)[()]


class CentredMassChange(NamedTuple):
    """First-order changes under a mean-centred surrogate, each [...]: of Q_pos and of Q_u,pos."""

    correct: FloatArray
    unsampled_correct: FloatArray


def _gaps(m: SampledMoments, r_c: FloatArray, r_w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """R_c - S_R and S_R - R_w; for R_w <= 0 <= R_c sums of terms >= 0, also where S_R is next to either reward."""
    unsampled = m.unsampled_correct_mass + m.unsampled_wrong_mass
    return (
        r_c * unsampled + (r_c - r_w) * m.sampled_wrong_mass,
        (r_c - r_w) * m.sampled_correct_mass - r_w * unsampled,
    )


def _correct_terms(group: SampledGroup, r_c: FloatArray, r_w: FloatArray) -> CorrectMassChange:
    """N/eta times the three terms of dQ_pos under linear_distinct."""
    m = group_moments(group)
    below_correct, above_wrong = _gaps(m, r_c, r_w)
    q_pos = m.sampled_correct_mass + m.unsampled_correct_mass
    q_neg = m.sampled_wrong_mass + m.unsampled_wrong_mass
    return CorrectMassChange(
        below_correct * q_neg * m.sampled_correct_collision,
        above_wrong * q_pos * m.sampled_wrong_collision,
        m.batch_baseline(reward_correct=r_c, reward_wrong=r_w)
        * (q_pos * m.unsampled_wrong_collision - q_neg * m.unsampled_correct_collision),
    )


def _unsampled_terms(group: SampledGroup, r_c: FloatArray, r_w: FloatArray) -> UnsampledMassChange:
    """N/eta times the two terms of dQ_u,pos under linear_distinct."""
    m = group_moments(group)
    baseline = m.batch_baseline(reward_correct=r_c, reward_wrong=r_w)
    below_correct, above_wrong = _gaps(m, r_c, r_w)
    unsampled = m.unsampled_correct_collision + m.unsampled_wrong_collision
    t = below_correct * m.sampled_correct_collision - above_wrong * m.sampled_wrong_collision - baseline * unsampled
    return UnsampledMassChange(-baseline * m.unsampled_correct_collision, -m.unsampled_correct_mass * t)


def _centred_terms(group: SampledGroup, surrogate: str) -> CentredMassChange:
    """1 / (eta D) times the changes under a mean-centred surrogate."""
    m, c = group_moments(group), group_contrast(group)
    q_u = m.unsampled_correct_mass
    q_pos, q_neg = m.sampled_correct_mass + q_u, m.sampled_wrong_mass + m.unsampled_wrong_mass
    gap = c.mean_correct - c.mean_wrong
    if surrogate == "importance_ratio":
        return CentredMassChange(c.activity * (q_neg * c.mean_correct + q_pos * c.mean_wrong), -c.activity * q_u * gap)
    m_pos = m.sampled_correct_collision + m.unsampled_correct_collision
    m_neg = m.sampled_wrong_collision + m.unsampled_wrong_collision
    correct = q_neg * c.mean_square_correct + q_pos * c.mean_square_wrong - gap * (q_neg * m_pos - q_pos * m_neg)
    unsampled = gap * (m.unsampled_correct_collision - q_u * (m_pos + m_neg)) + q_u * (
        c.mean_square_correct - c.mean_square_wrong
    )
    return CentredMassChange(c.activity * correct, -c.activity * unsampled)


def correct_mass_change(
    policy: ArrayLike,
    correct: ArrayLike,
    sampled: ArrayLike,
    *,
    learning_rate: ArrayLike = 1.0,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
) -> CorrectMassChange:
    """First-order change of the correct mass under the raw-reward update on distinct samples, in its three terms.

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        correct: Which actions are correct, boolean [A] or [..., A].
        sampled: How often each action was drawn, whole numbers [..., A], or which were drawn, boolean (each once).
        learning_rate: eta >= 0, of shape [...].
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].

    Returns:
        Terms from sampled-correct, sampled-wrong and unsampled actions; `.total` is dQ_pos. All 0 for no rollouts.

    Raises:
        ValueError: If an argument is out of range or shapes disagree.

    Signs: the first term is at least 0 if R_c >= 0, the second if R_w <= 0. The total can be negative with S_R > 0:
    p = (1/5 wrong drawn, 1/5 correct drawn, 3/5 correct not drawn) with rewards 1 and 0 gives -1/625 eta/N. Its
    expectation over groups is never negative for R_w <= 0 <= R_c (`expected_correct_mass_change`).

    Source: Eq 8 (v1), Eq 17 (v2); proof `correct_mass_change`.
    """
    group = read_group(policy, correct, sampled)
    eta, *rewards = read_step(group, learning_rate, reward_correct, reward_wrong)
    scale, terms = eta / group.group_size, _correct_terms(group, *rewards)
    return CorrectMassChange(*((scale * term)[()] for term in terms))


def unsampled_correct_mass_change(
    policy: ArrayLike,
    correct: ArrayLike,
    sampled: ArrayLike,
    *,
    learning_rate: ArrayLike = 1.0,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
) -> UnsampledMassChange:
    """First-order change of the unsampled-correct mass under the raw-reward update: its drift and its coupling.

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        correct: Which actions are correct, boolean [A] or [..., A].
        sampled: How often each action was drawn, whole numbers [..., A], or which were drawn, boolean (each once).
        learning_rate: eta >= 0, of shape [...].
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].

    Returns:
        Drift and coupling; `.total` is dQ_u,pos. Both 0 where every correct action was drawn.

    Raises:
        ValueError: If an argument is out of range or shapes disagree.

    Signs: for one unsampled action dp_i / p_i = -(eta/N) (S_R p_i + T), so a rare action's fate hangs on the coupling
    T, not on the drift. S_R > 0 alone does not make the total negative: p = (1/5 correct not drawn, 1/5 correct drawn,
    3/5 wrong drawn) with rewards 1 and 0 gives +1/625 eta/N; S_R > 0 and T >= 0 does.

    Source: Proposition 3.2 (v1 and v2), Eq 10 (v2); proof `unsampled_mass_change`.
    """
    group = read_group(policy, correct, sampled)
    eta, *rewards = read_step(group, learning_rate, reward_correct, reward_wrong)
    scale, terms = eta / group.group_size, _unsampled_terms(group, *rewards)
    return UnsampledMassChange(*((scale * term)[()] for term in terms))


def centred_mass_change(
    policy: ArrayLike,
    correct: ArrayLike,
    sampled: ArrayLike,
    *,
    surrogate: str = "importance_ratio",
    learning_rate: ArrayLike = 1.0,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
) -> CentredMassChange:
    """First-order changes of the correct and of the unsampled-correct mass under a mean-centred surrogate.

    For GRPO's own surrogate (`importance_ratio`) the correct mass rises in *every* active group, and the
    unsampled-correct mass falls iff there is some and the drawn correct actions are more probable, on average over
    draws, than the drawn wrong ones; the batch baseline S_R plays no part. Dividing the advantages by std + epsilon, or
    multiplying them by a focal weight, only rescales both changes (pass it in `learning_rate`).

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        correct: Which actions are correct, boolean [A] or [..., A].
        sampled: How often each action was drawn, whole numbers [..., A], or which were drawn, boolean (each once).
        surrogate: `importance_ratio` (GRPO) or `linear` (Appendix J as printed).
        learning_rate: eta >= 0, of shape [...].
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...]; only R_c - R_w matters.

    Returns:
        Changes of Q_pos and of Q_u,pos, exactly 0 in homogeneous groups.

    Raises:
        ValueError: If an argument is out of range, shapes disagree, or the surrogate is not mean-centred.

    Source: this project (proof `logit_update`).
    """
    check.one_of("surrogate", surrogate, CENTRED)
    group = read_group(policy, correct, sampled)
    eta, r_c, r_w = read_step(group, learning_rate, reward_correct, reward_wrong)
    scale = eta * (r_c - r_w)
    return CentredMassChange(*((scale * term)[()] for term in _centred_terms(group, surrogate)))


def correct_rise_margin(
    policy: ArrayLike,
    correct: ArrayLike,
    sampled: ArrayLike,
    *,
    surrogate: str = "linear_distinct",
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
) -> FloatArray:
    """Quantity whose sign is that of the first-order change of the correct mass: positive iff dQ_pos > 0.

    The brackets of the module's text, that is dQ_pos without eta/N (`linear_distinct`) or without eta D (mean-centred
    surrogates). For `importance_ratio` it is positive in every active group, whatever was drawn.

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        correct: Which actions are correct, boolean [A] or [..., A].
        sampled: How often each action was drawn, whole numbers [..., A], or which were drawn, boolean (each once).
        surrogate: `linear_distinct`, `linear` or `importance_ratio`.
        reward_correct: R_c, of shape [...]; plays no part under mean-centred surrogates.
        reward_wrong: R_w < R_c, of shape [...]; likewise.

    Returns:
        Margin of shape [...].

    Raises:
        ValueError: If an argument is out of range, shapes disagree, or the surrogate has no closed form here.

    Source: Eq 8 (v1), Eq 17 (v2); mean-centred: this project.
    """
    check.one_of("surrogate", surrogate, _CLOSED)
    group = read_group(policy, correct, sampled)
    _, *rewards = read_step(group, 1.0, reward_correct, reward_wrong)
    if surrogate in CENTRED:
        return _centred_terms(group, surrogate).correct[()]
    return _correct_terms(group, *rewards).total


def unsampled_decline_margin(
    policy: ArrayLike,
    correct: ArrayLike,
    sampled: ArrayLike,
    *,
    surrogate: str = "linear_distinct",
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
) -> FloatArray:
    """Quantity whose sign says whether the unsampled-correct mass falls to first order: positive iff dQ_u,pos < 0.

    S_R U_pos,2 + Q_u,pos T for `linear_distinct`, and the bracket of the module's text times muhat (1 - muhat) for
    mean-centred surrogates: for `importance_ratio` it is positive iff the group is active, Q_u,pos > 0 and pbar_c >
    pbar_w.

    Args:
        policy: p, probabilities [..., A], summing to 1 within 1e-9.
        correct: Which actions are correct, boolean [A] or [..., A].
        sampled: How often each action was drawn, whole numbers [..., A], or which were drawn, boolean (each once).
        surrogate: `linear_distinct`, `linear` or `importance_ratio`.
        reward_correct: R_c, of shape [...]; plays no part under mean-centred surrogates.
        reward_wrong: R_w < R_c, of shape [...]; likewise.

    Returns:
        Margin of shape [...].

    Raises:
        ValueError: If an argument is out of range, shapes disagree, or the surrogate has no closed form here.

    Source: Proposition 3.2 (v1 and v2); mean-centred: this project.
    """
    check.one_of("surrogate", surrogate, _CLOSED)
    group = read_group(policy, correct, sampled)
    _, *rewards = read_step(group, 1.0, reward_correct, reward_wrong)
    if surrogate in CENTRED:
        return -_centred_terms(group, surrogate).unsampled_correct[()]
    return -_unsampled_terms(group, *rewards).total
