"""Expectations over the sampled group of what one update does, exact, in O(classes^2) whatever the number of actions.

Every surrogate moves the logits by dz_i = eta (v_i - p_i sum_k v_k) (see `fgrpo.theory.updates`). With Q = Q_pos and
M = sum p^2,

    dQ_pos   =  eta sum_k v_k [p_k (1_P(k) - Q) - (M_P - Q M)],
    dQ_u,pos = -eta sum_{i in P, not drawn} p_i sum_k v_k (p_i + p_k - M)                    to first order in eta,

linear in v. (For `importance_ratio` sum_k v_k = 0, so that M_P - Q M and p_i - M drop out.) The first needs E[c_k],
where v_k is c_k p_k or c_k; the second E[c_k 1(i not drawn)]. Given that i is not drawn, the other rollouts follow the
policy without i: that is (1 - p_i)^N times the first, at probabilities divided by 1 - p_i. One formula serves both.
With o_k the mass of the *other* label than k's and D = R_c - R_w,

    linear_distinct              E[c_k] = R_k Pr(k drawn) / N
    linear_counts, ratio_raw     E[c_k] = R_k p_k
    linear, importance_ratio     E[c_k] = +-D (N-1)/N p_k o_k         + if k is correct, - if it is wrong.

Restricted to active groups (`active=True`: E[. 1(active)], not divided by Pr(active)), Pr(k drawn) becomes Pr(k drawn,
active) = Pr(A_N) - Pr(B_tau) at tau = p_k, the probability of Lemma 3.1, and R_k p_k becomes
R_k p_k (1 - (1 - o_k)^(N-1)). Mean-centred surrogates vanish elsewhere, so for them nothing changes.

Measured against 120 digits on random tables of four classes (probabilities down to 1e-21, N to 10^7): relative error
of E[P_pos 1(active)] at most 4 eps, of E[dQ_pos], where terms of both signs remain, at most 1e-11; error of E[dQ_u,pos]
at most 1e-14 of |drift| + |coupling|.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.action_classes import ActionClasses, check_classes
from fgrpo.theory.mass_dynamics import UnsampledMassChange
from fgrpo.theory.tail_miss import tail_miss_probability
from fgrpo.theory.updates import CENTRED, RATIO, SURROGATES, SampledMoments


def _drawn(p: FloatArray, n: FloatArray) -> FloatArray:
    """1 - (1 - p)^n."""
    return np.asarray(-np.expm1(special.xlog1py(n, -p)))


def _not_drawn(classes: ActionClasses, n: FloatArray) -> FloatArray:
    """(1 - p)^n per class."""
    small = classes.probability < 0.5
    log = np.log1p(-np.minimum(classes.probability, 0.5))
    return np.where(small, np.exp(n * log), classes.complement**n)


def _drawn_and_active(p: FloatArray, other: FloatArray, n: FloatArray) -> FloatArray:
    """Pr(an action of probability p is drawn, and so is the other label, of mass `other`) in n >= 1 draws.

    1 - a^n - b^n + (a + b - 1)^n with a = 1 - p and b = 1 - other. As a + b - 1 = a b - p other, this is

        (1 - a^n)(1 - b^n) - (a b)^n [1 - (1 - r)^n],    r = p other / (a b).

    The subtrahend is at most 1/n of the minuend, so little is lost from n = 2 on; at n = 1 the two are equal.
    """
    both = _drawn(p, n) * _drawn(other, n)
    neither = np.exp(special.xlog1py(n, -p) + special.xlog1py(n, -other))
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.where((p < 1) & (other < 1), p * other / ((1.0 - p) * (1.0 - other)), 0.0)
    return np.where(n > 1, both - neither * _drawn(np.minimum(r, 1.0), n), 0.0)


class _Setting(NamedTuple):
    """Checked arguments that every expectation shares; arrays of shape [..., 1], to broadcast against classes."""

    surrogate: str
    n: FloatArray
    learning_rate: FloatArray
    reward_correct: FloatArray
    reward_wrong: FloatArray
    active: bool

    def mean_coefficients(self, p: FloatArray, other: FloatArray, correct: NDArray[np.bool_]) -> FloatArray:
        """E[c_k] of the module's table, [..., G]."""
        if self.surrogate in CENTRED:
            gap = (self.reward_correct - self.reward_wrong) * (self.n - 1.0) / self.n
            return np.asarray(gap * np.where(correct, p * other, -p * other))
        reward = np.where(correct, self.reward_correct, self.reward_wrong)
        if self.surrogate == "linear_distinct":
            return reward * (_drawn_and_active(p, other, self.n) if self.active else _drawn(p, self.n)) / self.n
        return reward * p * (_drawn(other, self.n - 1.0) if self.active else np.ones_like(self.n))


def _setting(
    surrogate: str,
    group_size: ArrayLike,
    learning_rate: ArrayLike,
    reward_correct: ArrayLike,
    reward_wrong: ArrayLike,
    active: bool,
) -> _Setting:
    check.one_of("surrogate", surrogate, SURROGATES)
    check.flag("active", active)
    n, eta = check.integer_group_size(group_size), check.learning_rate(learning_rate)
    r_c, r_w = check.rewards(reward_correct, reward_wrong)
    check.broadcastable(group_size=n, learning_rate=eta, reward_correct=r_c, reward_wrong=r_w)
    return _Setting(surrogate, n[..., None], eta[..., None], r_c[..., None], r_w[..., None], active)


def _mean_v(classes: ActionClasses, setting: _Setting) -> FloatArray:
    """E[v_k] per action, [..., G]."""
    p, correct = classes.probability, classes.correct
    other = np.where(correct, classes.wrong_mass, classes.correct_mass)
    coefficients = setting.mean_coefficients(p, other, correct)
    return coefficients if setting.surrogate in RATIO else coefficients * p


def expected_moments(classes: ActionClasses, group_size: ArrayLike, *, active: bool = False) -> SampledMoments:
    """Expected moments of the sampled and unsampled parts of the policy.

    E[P_pos] = sum_P p (1 - (1 - p)^N), E[U_pos,2] = sum_P p^2 (1 - p)^N, and so on; with `active`, (1 - p)^N becomes
    the tail-miss probability of Lemma 3.1 at tau = p, and 1 - (1 - p)^N the probability of an active group that holds
    the action.

    Args:
        classes: The policy.
        group_size: N, whole numbers >= 1, of shape [...].
        active: Restrict to active groups: E[. 1(active)], not divided by the probability of being active.

    Returns:
        The eight expectations, each of shape [...]. `.batch_baseline()` is E[S_R].

    Raises:
        ValueError: If group_size is not a whole number of at least 1.

    Limiting cases: N -> inf, everything is sampled; N = 1, no group is active.

    Source: Section 3.2 (v1 and v2) for E[U_pos,2]; the rest: this project.
    """
    check_classes(classes)
    check.flag("active", active)
    n = check.integer_group_size(group_size)[..., None]
    p, correct, q_pos, q_neg = classes.probability, classes.correct, classes.correct_mass, classes.wrong_mass
    if active:
        own, other = np.where(correct, q_pos, q_neg), np.where(correct, q_neg, q_pos)
        hit = _drawn_and_active(p, other, n)
        miss = tail_miss_probability(own, p, n, failure_rate=other)
    else:
        hit, miss = _drawn(p, n), _not_drawn(classes, n)
    return SampledMoments(
        *(
            classes.total(power * chance, label)[()]
            for power in (p, p * p)
            for chance in (hit, miss)
            for label in (correct, ~correct)
        )
    )


def expected_batch_baseline(
    classes: ActionClasses,
    group_size: ArrayLike,
    *,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
    active: bool = False,
) -> FloatArray:
    """E[S_R] = sum_k R_k p_k (1 - (1 - p_k)^N), the expected batch baseline over groups of N rollouts.

    Args:
        classes: The policy.
        group_size: N, whole numbers >= 1, of shape [...].
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].
        active: Restrict to active groups: E[S_R 1(active)].

    Returns:
        Expectation of shape [...], between R_c Q_pos + R_w Q_neg (N -> inf) and 0 (no mass sampled).

    Raises:
        ValueError: If an argument is out of range.

    Source: this project; given the number of successes see `conditional_batch_baseline`.
    """
    moments = expected_moments(classes, group_size, active=active)
    return moments.batch_baseline(reward_correct=reward_correct, reward_wrong=reward_wrong)


def expected_logit_update(
    classes: ActionClasses,
    group_size: ArrayLike,
    *,
    surrogate: str = "linear_distinct",
    learning_rate: ArrayLike = 1.0,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
    active: bool = False,
) -> FloatArray:
    """E[dz] of one action of each class.

    Args:
        classes: The policy.
        group_size: N, whole numbers >= 1, of shape [...].
        surrogate: A name of `fgrpo.theory.updates.SURROGATES`.
        learning_rate: eta >= 0, of shape [...].
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].
        active: Restrict to active groups.

    Returns:
        float64 [..., G]. For mean-centred surrogates N enters through (N - 1)/N alone.

    Raises:
        ValueError: If an argument is out of range or the surrogate is unknown.

    Source: this project.
    """
    check_classes(classes)
    setting = _setting(surrogate, group_size, learning_rate, reward_correct, reward_wrong, active)
    v = _mean_v(classes, setting)
    if surrogate != "importance_ratio":  # there the v_k of the two labels cancel exactly
        v = v - classes.probability * classes.total(v)[..., None]
    return np.asarray(setting.learning_rate * v)


def logit_gain_threshold(classes: ActionClasses) -> float:
    """Probability p* above which a correct action gains logit on average under the `linear` surrogate.

    p* = M_P - (Q_pos/Q_neg) M_N, whatever N >= 2: a correct action that is rarer loses logit in expectation.

    Args:
        classes: The policy.

    Returns:
        p*; at most 0 if every correct action gains, nan if the policy has no wrong mass (no group is active).

    Source: this project, for the update printed in Appendix J (p* = 3.79e-5 at its start, below the leaves' 6.30e-5).
    """
    q_neg = check_classes(classes).wrong_mass
    if q_neg == 0:
        return float("nan")
    return classes.correct_collision - classes.correct_mass / q_neg * classes.wrong_collision


def expected_correct_mass_change(
    classes: ActionClasses,
    group_size: ArrayLike,
    *,
    surrogate: str = "linear_distinct",
    learning_rate: ArrayLike = 1.0,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
    active: bool = False,
) -> FloatArray:
    """E[dQ_pos], the expected first-order change of the correct mass.

    Under `linear_distinct` with R_w <= 0 <= R_c it is >= 0 at every N and, at fixed eta, non-increasing in N: eta/N
    falls faster than the sample grows. Under `importance_ratio` it is eta D (N-1)/N (Q_neg^2 M_P + Q_pos^2 M_N) >= 0.

    Args:
        classes: The policy.
        group_size: N, whole numbers >= 1, of shape [...].
        surrogate: A name of `fgrpo.theory.updates.SURROGATES`.
        learning_rate: eta >= 0, of shape [...]; a focal weight varies with the group and is no constant factor here.
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].
        active: Restrict to active groups: E[dQ_pos 1(active)], not divided by their probability.

    Returns:
        Expectation of shape [...].

    Raises:
        ValueError: If an argument is out of range or the surrogate is unknown.

    Source: Section 3.2 and Eq 8 (v1), Eq 17 (v2) give the change for one group; expectation: this project (proof
    `expected_change_positive`).
    """
    check_classes(classes)
    setting = _setting(surrogate, group_size, learning_rate, reward_correct, reward_wrong, active)
    p, q_pos, q_neg = classes.probability, classes.correct_mass, classes.wrong_mass
    if surrogate == "importance_ratio":
        effect = np.where(classes.correct, p * q_neg, -p * q_pos)
    else:  # p_k (1_P(k) - Q) - (M_P - Q M), regrouped so that no digits are lost
        effect = np.where(
            classes.correct,
            q_neg * classes.label_deviation + q_pos * classes.wrong_collision,
            -q_pos * classes.label_deviation - q_neg * classes.correct_collision,
        )
    return (setting.learning_rate[..., 0] * classes.total(_mean_v(classes, setting) * effect))[()]


def expected_unsampled_correct_mass_change(
    classes: ActionClasses,
    group_size: ArrayLike,
    *,
    surrogate: str = "linear_distinct",
    learning_rate: ArrayLike = 1.0,
    reward_correct: ArrayLike = 1.0,
    reward_wrong: ArrayLike = -1.0,
    active: bool = False,
) -> UnsampledMassChange:
    """E[dQ_u,pos], expected first-order change of the correct mass that was not drawn, as drift and coupling.

    Under `linear_distinct` at the Appendix J start its size only falls with N (the factor eta/N); the inverted U in N
    appears after restriction to active groups. Under `importance_ratio` unsampled logits do not move: all of it is
    coupling, with

        E[dQ_u,pos] = -eta D (N-1)/N sum_P p (1 - p)^(N-2) [Q_neg (M_P - p^2) - (Q_pos - p) M_N].

    Cost O(correct classes * classes) per group size, memory O(classes).

    Args:
        classes: The policy.
        group_size: N, whole numbers >= 1, of shape [...].
        surrogate: A name of `fgrpo.theory.updates.SURROGATES`.
        learning_rate: eta >= 0, of shape [...]; a focal weight varies with the group and is no constant factor here.
        reward_correct: R_c, of shape [...].
        reward_wrong: R_w < R_c, of shape [...].
        active: Restrict to active groups: E[dQ_u,pos 1(active)], not divided by their probability.

    Returns:
        Drift (unsampled logits move) and coupling (normalisation), each of shape [...]; `.total` is E[dQ_u,pos].

    Raises:
        ValueError: If an argument is out of range or the surrogate is unknown.

    Source: Proposition 3.2 (v1 and v2) gives the change for one group; expectation: this project.
    """
    check_classes(classes)
    setting = _setting(surrogate, group_size, learning_rate, reward_correct, reward_wrong, active)
    p, correct, complement = classes.probability, classes.correct, classes.complement
    moves = surrogate != "importance_ratio"
    pull = classes.deviation if moves else p  # p_k - M
    chance = _not_drawn(classes, setting.n)
    drift = np.zeros(
        np.broadcast_shapes(setting.n.shape, setting.reward_correct.shape, setting.reward_wrong.shape)[:-1]
    )
    coupling = drift.copy()
    for i in np.flatnonzero(correct & (p > 0) & (complement > 0)):
        others = classes.without(i)
        mass = others * p
        own, opposite = np.sum(mass, where=correct), np.sum(mass, where=~correct)
        left = own + opposite
        # the policy that the group follows, given that it does not draw this action of class i
        given = np.where(others > 0, np.minimum(p / left, 1.0), 0.0)
        v = others * setting.mean_coefficients(given, np.where(correct, opposite, own) / left, correct)
        v = v * chance[..., i, None] * (1.0 if surrogate in RATIO else p)
        weight = classes.count[i] * p[i]
        if moves:
            drift = drift - weight * p[i] * v.sum(axis=-1)
        coupling = coupling - weight * np.sum(v * pull, axis=-1)
    eta = setting.learning_rate[..., 0]
    return UnsampledMassChange((eta * drift)[()], (eta * coupling)[()])
