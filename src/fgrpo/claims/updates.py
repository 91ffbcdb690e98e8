"""Claims about the categorical update and the correct mass (Sections 2.3 and 3.2, App. C): B1 to B8."""

import numpy as np

from fgrpo.claims.groups import (
    CASES,
    PAPER_REWARDS,
    SCOPE,
    Groups,
    Rewards,
    random_groups,
    random_policies,
    rewards_above_zero,
    rewards_below_zero,
    rewards_in_scope,
    written,
)
from fgrpo.claims.model import Claim, Finding, Verdict, by_scope, computed, holds
from fgrpo.claims.text import fraction, numbers, share
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.action_classes import ActionClasses
from fgrpo.theory.expected_mass import expected_batch_baseline, expected_correct_mass_change, expected_moments
from fgrpo.theory.finite_step import exact_mass_change, finite_step_bound, first_order_mass_change
from fgrpo.theory.mass_dynamics import correct_mass_change
from fgrpo.theory.updates import logit_update, sampled_moments

GROUP_SIZES = np.array([1, 2, 3, 5, 8, 32, 512, 20_000])
SHOWN_GROUP_SIZES = np.array([2, 512, 8192, 131072])


def _gradient_by_complex_step(groups: Groups, rewards: Rewards) -> FloatArray:
    """Gradient of (1/N) sum over distinct sampled i of R_i p_i in the logits, to rounding, shape [cases, actions]."""
    weights = np.where(groups.correct, rewards.correct[:, None], rewards.wrong[:, None]) * (groups.counts > 0)
    step = 1e-200
    logits = np.log(groups.policy)[:, None, :] + 1j * step * np.eye(groups.policy.shape[1])
    policy = np.exp(logits)
    policy /= policy.sum(axis=-1, keepdims=True)
    surrogate = np.sum(weights[:, None, :] * policy, axis=-1) / groups.group_size[:, None]
    return np.asarray(surrogate.imag / step)


def _logit_update() -> Finding:
    groups, rewards = random_groups(), rewards_in_scope()
    gradient = _gradient_by_complex_step(groups, rewards)
    p = groups.policy
    moments = sampled_moments(*groups)
    baseline = moments.batch_baseline(reward_correct=rewards.correct, reward_wrong=rewards.wrong)[:, None]
    reward = np.where(groups.correct, rewards.correct[:, None], rewards.wrong[:, None]) * (groups.counts > 0)
    printed = p * (reward - baseline) / groups.group_size[:, None]
    error = np.abs(gradient - printed).max()
    repeated = (groups.counts > 1).any(axis=1)
    counted = logit_update(*groups, surrogate="linear_counts", **rewards.arguments)
    apart = np.abs(counted - printed)[repeated].max(axis=1) > 1e-12
    return holds(
        error < 1e-14,
        f"differs from the gradient of (1/N) sum over the distinct sampled actions of R_i p_i by at most {error:.0e} eta in {CASES} random "
        f"groups. Scope: counted with multiplicity, {share(apart)} of the groups with repeated actions get another step",
    )


def _unbiased_estimate() -> Finding:
    classes = ActionClasses.from_policy(np.array([1 / 2, 1 / 8, 1 / 4, 1 / 8]), np.array([True, True, False, False]))
    n = np.array([1, 2, 3, 5])
    mean = expected_batch_baseline(classes, n, reward_correct=1.0, reward_wrong=0.0) / n
    exact = classes.correct_mass
    return holds(
        bool(np.allclose(mean, exact, atol=1e-12)),
        f"p = (1/2 c, 1/8 c, 1/4 w, 1/8 w), rewards 1 and 0: the mean of (1/N) sum over distinct samples of R_i p_i is "
        f"{numbers(mean)} at N = {numbers(n, 'd')}, the surrogate sum R_i p_i is {exact:.3f}",
    )


def _lowest_terms(groups: Groups, rewards: Rewards) -> FloatArray:
    """The first two terms of Eq 17, the smaller one, in units of eta/N."""
    terms = correct_mass_change(*groups, learning_rate=groups.group_size, **rewards.arguments)
    return np.minimum(terms.sampled_correct, terms.sampled_wrong)


def _first_two_terms() -> Finding:
    groups, rounding = random_groups(), -1e-15
    inside = _lowest_terms(groups, rewards_in_scope()) >= rounding
    below = _lowest_terms(groups, rewards_below_zero()) >= rounding
    above = _lowest_terms(groups, rewards_above_zero()) >= rounding
    return by_scope(
        bool(inside.all()),
        bool(below.all() and above.all()),
        f"negative in {np.sum(~inside)} of {CASES} random groups with {SCOPE}, in {np.sum(~below)} with R_c < 0 and in "
        f"{np.sum(~above)} with R_w > 0",
        SCOPE,
    )


def _correct_mass_formula() -> Finding:
    groups, rewards = random_groups(), rewards_in_scope()
    step = logit_update(*groups, **rewards.arguments)
    terms = correct_mass_change(*groups, **rewards.arguments)
    error = np.abs(first_order_mass_change(groups.policy, step, groups.correct) - terms.total).max()
    large = step * np.geomspace(1e-3, 50, CASES)[:, None] * groups.group_size[:, None]
    remainder = np.abs(
        exact_mass_change(groups.policy, large, groups.correct)
        - first_order_mass_change(groups.policy, large, groups.correct)
    )
    ratio = float(np.max(remainder / np.maximum(finite_step_bound(large), 1e-300)))
    third = terms.unsampled
    return holds(
        error < 1e-14 and bool((third > 0).any() and (third < 0).any()),
        f"equal to the first-order change in {CASES} random groups (largest difference {error:.0e} eta); the third term is positive in "
        f"{share(third > 1e-15)} and negative in {share(third < -1e-15)} of them; what is left out is at most {ratio:.2f} of "
        "(max dz - min dz)^2 / 8, steps up to eta/N = 50",
    )


def _unsampled_moments() -> Finding:
    start = ActionClasses.appendix_j()
    falls = []
    for classes in [start, *random_policies()]:
        moments = expected_moments(classes, GROUP_SIZES)
        parts = (moments.unsampled_correct_collision, moments.unsampled_wrong_collision)
        falls.append(all(bool(np.all(np.diff(part) <= 0)) for part in parts))
    last = expected_moments(start, np.array([2, 131072, 10_000_000]))
    total = last.unsampled_correct_collision + last.unsampled_wrong_collision
    return holds(
        all(falls) and total[-1] < 1e-9 * total[0],
        f"E[U_2] falls with N in {sum(falls)} of {len(falls)} policies; at the App. J start it is {numbers(total, '.2e')} at "
        "N = 2 / 131072 / 10^7",
    )


def _scaling_ensures() -> Finding:
    groups, rewards = random_groups(), rewards_in_scope()
    everything = groups._replace(counts=np.ones_like(groups.counts))
    scale = everything.group_size
    complete = correct_mass_change(*everything, learning_rate=scale, **rewards.arguments).total
    some = correct_mass_change(*groups, learning_rate=groups.group_size, **rewards.arguments).total
    example = written("1/5 ws, 1/5 cs, 3/5 cu")
    change = correct_mass_change(*example, learning_rate=2, reward_wrong=0.0).total
    expected = [
        expected_correct_mass_change(classes, GROUP_SIZES, reward_correct=right, reward_wrong=wrong).min()
        for classes in random_policies()
        for right, wrong in (*PAPER_REWARDS, (0.5, -2.0))
    ]
    return by_scope(
        bool(np.all(complete >= -1e-15)),
        bool(np.all(some >= -1e-15)),
        f"negative in {np.sum(complete < -1e-15)} of {CASES} random cases with every action sampled and in {np.sum(some < -1e-15)} at N = 2 to 8; "
        f"p = (1/5 ws, 1/5 cs, 3/5 cu), rewards 1 and 0, S_R > 0: {fraction(change)} eta/N. In expectation over groups the smallest of "
        f"{len(expected)} policies and rewards over N = {GROUP_SIZES[0]} to {GROUP_SIZES[-1]}: {min(expected):.1e} eta",
        "N -> infinity (every action sampled)",
    )


def _size_grows() -> Finding:
    start = ActionClasses.appendix_j()
    change = expected_correct_mass_change(start, SHOWN_GROUP_SIZES)
    rises = [
        bool(np.any(np.diff(expected_correct_mass_change(classes, GROUP_SIZES, reward_wrong=wrong)) > 1e-15))
        for classes in random_policies()
        for _, wrong in PAPER_REWARDS
    ]
    return holds(
        bool(np.all(np.diff(change) > 0)),
        f"E[dQ_pos] at the App. J start is {numbers(change, '.3g')} eta at N = {numbers(SHOWN_GROUP_SIZES, 'd')}; it rises anywhere with N in "
        f"{sum(rises)} of {len(rises)} random policies and rewards. Without the factor eta/N: {numbers(change * SHOWN_GROUP_SIZES, '.2g')}",
        Verdict.NOT_IMPLIED,
    )


UPDATE_CLAIMS = (
    Claim(
        "B1",
        "Section 2.3, v1 Eq 7 = v2 Eq 5",
        "One step moves the logits by (eta/N) p_i (R_i - S_R), unsampled ones by -(eta/N) p_i S_R.",
        computed(_logit_update),
        "The exact gradient of (1/N) times the sum over the *distinct* sampled actions. Scope: multiplicities, centred rewards or ratios "
        "make another update; with centred rewards and ratios (GRPO) unsampled logits do not move.",
        ("logit_update",),
    ),
    Claim(
        "B2",
        "Section 2.3",
        "The analysis uses TRPO-style linear surrogate updates and their unbiased Monte Carlo estimates.",
        computed(_unbiased_estimate),
        "The mean over groups is (1/N) sum (1 - (1 - p_i)^N) R_i p_i. Unbiased: draws with multiplicity, over p_i^old. Eq 5, 10 and 17 do not "
        "use unbiasedness.",
    ),
    Claim(
        "B3",
        "App C",
        "The first two terms of Eq 17 are always non-negative.",
        computed(_first_two_terms),
        "S_R <= R_c whenever R_c >= 0, and S_R >= R_w whenever R_w <= 0. Both 'typical' settings meet it, and BroRL assumes it.",
        ("correct_mass_change",),
    ),
    Claim(
        "B4",
        "App C, v1 Eq 8 = v2 Eq 17",
        "The change of Q_pos has three terms; the third, of the unsampled actions, has either sign.",
        computed(_correct_mass_formula),
        "To first order in eta, with a remainder of at most (max dz - min dz)^2 / 8.",
        ("correct_mass_change", "finite_step_bound"),
    ),
    Claim(
        "B6",
        "Section 3.2, App C",
        "The unsampled second moments decay with N, and with them the coupling.",
        computed(_unsampled_moments),
        "In expectation, sum p^2 (1 - p)^N; draw for draw if larger groups extend smaller ones.",
    ),
    Claim(
        "B7",
        "Section 3.2",
        "Scaling N ensures that Q_pos does not fall; the drift of unsampled actions vanishes.",
        computed(_scaling_ensures),
        "For R_c >= 0 >= R_w E[dQ_pos] >= 0 at *every* N, though single steps can be negative at finite N.",
        ("expected_change_positive",),
    ),
    Claim(
        "B8",
        "Section 3.2",
        "By Eq 17 Q_pos tends to increase with N.",
        computed(_size_grows),
        "True of the sign (B7). The size goes the other way: at fixed eta E[dQ_pos] does not increase with N, since eta/N falls faster than the "
        "sample grows. An Adam-type step takes the 1/N out.",
        ("expected_change_positive",),
    ),
)
