"""Size of the group-relative advantages, with and without focal weight, as a function of the group's success rate.

In a group with success rate m and rewards R_w < R_c, D = R_c - R_w, the mean reward is R_w + D m and its population
standard deviation D sqrt(m (1 - m)). The advantages of GRPO, times the focal weight g = (1 - m)^gamma, are therefore

    g |A_c| = m^(-1/2) (1 - m)^(gamma + 1/2)  (correct),     g |A_w| = m^(1/2) (1 - m)^(gamma - 1/2)  (wrong),

whatever the rewards. |A_w| grows beyond all bounds for m -> 1; gamma = 1/2 is the exponent that cancels this exactly,
a smaller one leaves it. Per rollout the group receives m g |A_c| + (1 - m) g |A_w| = 2 m^(1/2) (1 - m)^(gamma + 1/2).
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray


def advantage_magnitude(
    success_rate: ArrayLike,
    *,
    correct: bool,
    gamma: ArrayLike = 0.0,
    ddof: Literal[0, 1] = 0,
    group_size: ArrayLike | None = None,
    epsilon: ArrayLike = 0.0,
) -> FloatArray:
    """Size of the focal-weighted advantage of one correct, or one wrong, rollout: g |A|.

    Args:
        success_rate: m, share of correct rollouts in the group, in [0, 1] (a curve: m need not be a multiple of 1/N).
        correct: True for correct rollouts, False for wrong ones.
        gamma: Focal exponent, >= 0; 0 gives the unweighted |A|.
        ddof: 0 for the population standard deviation, 1 for the sample one, which divides by N - 1 and so makes
            advantages smaller by sqrt((N - 1) / N) (.935 at N = 8).
        group_size: N, whole numbers >= 2; used, and needed, with ddof = 1 only.
        epsilon: Constant added to the standard deviation, in units of the reward gap R_c - R_w, >= 0.

    Returns:
        g |A| >= 0, float64, broadcast over all arguments.

    Raises:
        ValueError: If an argument is out of range or not a number, or ddof = 1 comes without group_size.

    Limiting cases (epsilon = 0): correct: inf for m -> 0, 0 for m -> 1 (any gamma). Wrong: 0 for m -> 0; for m -> 1 inf
    if gamma < 1/2, 1 if gamma = 1/2, 0 if gamma > 1/2. With epsilon > 0 the ends are finite: 1 / epsilon (correct, m =
    0), and 1 / epsilon at gamma = 0, else 0 (wrong, m = 1). The values at m = 0 and m = 1 are limits: such groups have
    no advantages.

    Source: Figure 3 in v1, Figure 4 in v2; the exact cancellation at gamma = 1/2: this project.
    """
    check.flag("correct", correct)
    m, exponent = check.probability("success_rate", success_rate), check.gamma(gamma)
    eps = check.non_negative("epsilon", epsilon, "epsilon = 0 leaves the standard deviation as it is")
    spread = _spread(check.ddof(ddof), group_size)
    check.broadcastable(success_rate=m, gamma=exponent, group_size=spread, epsilon=eps)
    with np.errstate(divide="ignore", invalid="ignore"):
        if correct:
            bare = m**-0.5 * (1.0 - m) ** (exponent + 0.5)
            deviation = 1.0 - m
        else:
            bare = m**0.5 * (1.0 - m) ** (exponent - 0.5)
            deviation = m
        softened = (1.0 - m) ** exponent * deviation / (spread * np.sqrt(m * (1.0 - m)) + eps)
    return np.where(eps == 0, bare / spread, softened)[()]


def mean_advantage_magnitude(success_rate: ArrayLike, *, gamma: ArrayLike = 0.0) -> FloatArray:
    """Mean size of the focal-weighted advantages over a group: 2 m^(1/2) (1 - m)^(gamma + 1/2).

    It is m g |A_c| + (1 - m) g |A_w|, half of it from either kind of rollout.

    How strongly a prompt pulls per rollout (population standard deviation, no epsilon; times sqrt((N - 1) / N) for the
    sample one).

    Args:
        success_rate: m, share of correct rollouts in the group, in [0, 1].
        gamma: Focal exponent, >= 0.

    Returns:
        Mean size in [0, 1], float64, broadcast over both arguments; 0 at m = 0 and m = 1, largest at
        `strongest_success_rate`.

    Raises:
        ValueError: If an argument is out of range or not a number.

    Source: this project.
    """
    m, exponent = check.probability("success_rate", success_rate), check.gamma(gamma)
    check.broadcastable(success_rate=m, gamma=exponent)
    return (2.0 * np.sqrt(m) * (1.0 - m) ** (exponent + 0.5))[()]


def strongest_success_rate(gamma: ArrayLike) -> FloatArray:
    """Success rate of the groups with the largest mean weighted advantage: 1 / (2 + 2 gamma).

    1/2 without focal weight, 1/3, 1/4 and 1/6 for gamma = 1/2, 1 and 2: never the hardest prompts.

    Args:
        gamma: Focal exponent, >= 0.

    Returns:
        Success rate in (0, 1/2], float64, in the shape of gamma.

    Raises:
        ValueError: If gamma is negative or not a number.

    Source: this project.
    """
    return (1.0 / (2.0 + 2.0 * check.gamma(gamma)))[()]


def matched_learning_rate(
    gamma: ArrayLike, learning_rate: ArrayLike = 1.0, *, alpha: ArrayLike = 1.0, beta: ArrayLike = 1.0
) -> FloatArray:
    """Learning rate at which the unweighted method has the mean advantage size that the focal weight leaves.

    m_gamma = E[(1 - mu)^gamma sqrt(mu (1 - mu))] / E[sqrt(mu (1 - mu))] times `learning_rate`, for success rates spread
    over prompts by Beta(alpha, beta):

        m_gamma = B(alpha + 1/2, beta + gamma + 1/2) / B(alpha + 1/2, beta + 1/2).

    For the uniform spread of the paper this is (4 / sqrt(pi)) Gamma(gamma + 3/2) / Gamma(gamma + 3): .679, .5 and .3125
    for gamma = 1/2, 1 and 2. A control for step size: of plain gradient steps exactly so; with Adam or norm clipping,
    scaled advantages and a scaled learning rate are not the same.

    Args:
        gamma: Focal exponent, >= 0.
        learning_rate: Learning rate of the focal-weighted run, > 0; 1 returns the factor m_gamma.
        alpha: First parameter of the Beta distribution of success rates, > 0.
        beta: Second parameter, > 0.

    Returns:
        Learning rate > 0, float64, broadcast over all arguments; `learning_rate` itself at gamma = 0.

    Raises:
        ValueError: If an argument is out of range or not a number.

    Source: Appendix N in v2 (uniform spread); the Beta spread: this project (proof `matched_learning_rate`, for both).
    """
    exponent = check.gamma(gamma)
    rate = check.positive("learning_rate", learning_rate, "pass the learning rate of the focal-weighted run")
    a = check.positive("alpha", alpha, "alpha = beta = 1 is the uniform spread") + 0.5
    b = check.positive("beta", beta, "alpha = beta = 1 is the uniform spread") + 0.5
    check.broadcastable(gamma=exponent, learning_rate=rate, alpha=a, beta=b)
    return (rate * np.exp(betaln(a, b + exponent) - betaln(a, b)))[()]


def _spread(ddof: int, group_size: ArrayLike | None) -> FloatArray:
    """Standard deviation of a group in units of the population one."""
    if ddof == 0:
        return np.ones(())
    if group_size is None:
        raise ValueError("ddof = 1 needs group_size, got None: pass the number of rollouts per prompt")
    n = check.integer_group_size(group_size, minimum=2)
    return np.sqrt(n / (n - 1.0))
