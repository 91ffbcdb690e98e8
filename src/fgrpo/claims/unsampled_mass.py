"""Claims about the mass of correct actions that a group did not draw (Section 3.2, App. G): C1 to C8."""

import numpy as np
from numpy.typing import NDArray

from fgrpo.claims.groups import (
    CASES,
    PAPER_REWARDS,
    SCOPE,
    Groups,
    Rewards,
    random_groups,
    rewards_above_zero,
    rewards_below_zero,
    rewards_in_scope,
    written,
)
from fgrpo.claims.model import Claim, Finding, by_scope, computed, holds
from fgrpo.claims.text import fraction, numbers, share, yes
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.action_classes import ActionClasses
from fgrpo.theory.expected_mass import expected_unsampled_correct_mass_change
from fgrpo.theory.finite_step import first_order_mass_change
from fgrpo.theory.mass_dynamics import UnsampledMassChange, correct_mass_change, unsampled_correct_mass_change
from fgrpo.theory.updates import logit_update, sampled_moments

GROUP_SIZES = np.array([2, 8, 512, 8192, 131072])


def _changes(groups: Groups, reward_wrong: float) -> tuple[FloatArray, UnsampledMassChange]:
    """dQ_pos and dQ_u,pos in units of eta/N, R_c = 1."""
    scale = groups.group_size
    return (
        correct_mass_change(*groups, learning_rate=scale, reward_wrong=reward_wrong).total,
        unsampled_correct_mass_change(*groups, learning_rate=scale, reward_wrong=reward_wrong),
    )


def _reward_positive(reward_wrong: float, least_success: float = 0.0) -> Groups:
    """Random active groups with S_R > 0, some unsampled-correct mass, and a correct mass of at least `least_success`."""
    groups = random_groups(2 * CASES)
    positive = sampled_moments(*groups).batch_baseline(reward_wrong=reward_wrong) > 0
    left = (groups.unsampled & groups.correct).any(axis=1)
    return groups.where(positive & left & groups.active & (groups.correct_mass >= least_success))


def _proposition() -> Finding:
    groups, rewards = random_groups(), rewards_in_scope()
    change = unsampled_correct_mass_change(*groups, **rewards.arguments).total
    step = logit_update(*groups, **rewards.arguments)
    error = np.abs(first_order_mass_change(groups.policy, step, groups.unsampled & groups.correct) - change).max()
    return holds(
        error < 1e-14, f"equal to the first-order change in {CASES} random groups (largest difference {error:.0e} eta)"
    )


def _falls_while_correct_mass_rises() -> Finding:
    found = []
    for text, wrong in (("1/3 ws, 1/3 cu, 1/3 cs", 0.0), ("1/4 ws, 1/4 cu, 1/2 cs", -1.0)):
        total, unsampled = _changes(written(text), wrong)
        found.append((text, wrong, float(total), float(unsampled.total)))
    measured = "; ".join(
        f"p = ({text}), R_w = {wrong:g}: dQ_pos {fraction(total)}, dQ_u,pos {fraction(unsampled)} eta/N"
        for text, wrong, total, unsampled in found
    )
    return holds(any(unsampled < 0 < total for *_, total, unsampled in found), measured)


def _drift() -> Finding:
    groups, rewards = random_groups(), rewards_in_scope()
    moments = sampled_moments(*groups)
    baseline = moments.batch_baseline(reward_correct=rewards.correct, reward_wrong=rewards.wrong)
    step = logit_update(*groups, **rewards.arguments)
    down = ~groups.unsampled | (step < 0) | (baseline <= 1e-12)[:, None]
    # what the step of their own logits does to the unsampled-correct actions, without the normalisation
    own = np.sum(groups.policy * step, axis=1, where=groups.unsampled & groups.correct) * groups.group_size
    error = np.abs(own + baseline * moments.unsampled_correct_collision).max()
    return holds(
        bool(down.all()) and error < 1e-14,
        f"with S_R > 0 every unsampled logit falls in all of {CASES} random groups: {yes(down.all())}; what these "
        f"steps do to the unsampled-correct mass is -S_R U_pos,2 eta/N (largest difference {error:.0e})",
    )


def _factor_signs(groups: Groups, rewards: Rewards) -> NDArray[np.bool_]:
    """Whether (R_c - S_R) A_2 >= 0 >= (R_w - S_R) B_2; of -S_R U_2 with S_R > 0 there is nothing to check."""
    m = sampled_moments(*groups)
    baseline = m.batch_baseline(reward_correct=rewards.correct, reward_wrong=rewards.wrong)
    rounding = 1e-15
    return np.asarray(
        ((rewards.correct - baseline) * m.sampled_correct_collision >= -rounding)
        & ((rewards.wrong - baseline) * m.sampled_wrong_collision <= rounding)
    )


def _signs_of_terms() -> Finding:
    groups = random_groups()
    inside = _factor_signs(groups, rewards_in_scope())
    outside = np.concatenate([_factor_signs(groups, rewards_below_zero()), _factor_signs(groups, rewards_above_zero())])
    examples = (
        ("a sampled-correct action loses", "1/4 ws, 1/8 cu, 1/8 cs, 1/2 cs", 2),
        ("a sampled-wrong action gains", "1/8 ws, 3/4 cu, 1/8 cs", 0),
        ("an unsampled-correct action gains", "3/5 ws, 1/5 cs, 1/5 cu", 2),
    )
    net = []
    for words, text, action in examples:
        group = written(text)
        step = logit_update(*group, learning_rate=group.group_size, reward_wrong=0.0)
        change = first_order_mass_change(group.policy, step, np.arange(group.policy.size) == action)
        net.append(f"{words} in ({text}): {fraction(change)}")
    rewards = rewards_in_scope()
    total = correct_mass_change(*groups, **rewards.arguments).total
    sampled = total - unsampled_correct_mass_change(*groups, **rewards.arguments).total
    positive = sampled_moments(*groups).batch_baseline(reward_correct=rewards.correct, reward_wrong=rewards.wrong) >= 0
    return by_scope(
        bool(inside.all()),
        bool(outside.all()),
        f"as signs of the factors wrong in {np.sum(~inside)} of {inside.size} random groups with {SCOPE} and in {np.sum(~outside)} of "
        f"{outside.size} outside. Net movements differ (R_w = 0, S_R > 0, units of eta/N): {'; '.join(net)}. The sampled-correct mass as a whole "
        f"falls in {np.sum(sampled[positive] < -1e-15)} of {positive.sum()} random groups with S_R >= 0",
        SCOPE,
    )


def _active_and_missed() -> Finding:
    start = ActionClasses.appendix_j()
    raw = expected_unsampled_correct_mass_change(start, GROUP_SIZES).total
    active = expected_unsampled_correct_mass_change(start, GROUP_SIZES, active=True).total
    homogeneous = logit_update([0.5, 0.25, 0.25], [True, True, False], [2, 1, 0])
    ratio = logit_update([0.5, 0.25, 0.25], [True, True, False], [1, 0, 1], surrogate="importance_ratio")
    same_update = bool(np.all(homogeneous == 0))
    return holds(
        same_update and bool(np.argmin(raw) not in (0, raw.size - 1)),
        f"Eq 5 moves an all-correct group by up to {np.abs(homogeneous).max():.3f} eta, though Lemma 3.1 counts it as inactive. E[dQ_u,pos] under "
        f"Eq 5 at the App. J start: {numbers(raw, '.2e')} eta at N = {numbers(GROUP_SIZES, 'd')}; restricted to active groups "
        f"{numbers(active, '.2e')}. With centred rewards and ratios the unsampled logit moves by {ratio[1]:g}",
    )


def _both_terms() -> Finding:
    found, measured = False, []
    for _, wrong in PAPER_REWARDS:
        groups = _reward_positive(wrong)
        change = _changes(groups, wrong)[1]
        found |= bool(np.any((change.drift < 0) & (change.coupling < 0)))
        measured.append(
            f"R_w = {wrong:g}: both negative in {share((change.drift < 0) & (change.coupling < 0))}, the coupling adds mass in "
            f"{share(change.coupling > 0)}"
        )
    return holds(found, f"of random active groups with S_R > 0 and unsampled-correct mass, {'; '.join(measured)}")


def _concentrated_sample() -> Finding:
    adds = []
    for _, wrong in PAPER_REWARDS:
        groups = _reward_positive(wrong, least_success=0.8)
        m = sampled_moments(*groups)
        pulled = _changes(groups, wrong)[1].coupling > 0
        concentrated = m.sampled_correct_collision >= m.sampled_correct_mass**2 / 2
        adds.append((wrong, pulled, pulled[concentrated]))
    counts = "; ".join(
        f"R_w = {wrong:g}: {share(every)} of {every.size}, {share(few)} of the {few.size} with A_2 >= P_pos^2 / 2"
        for wrong, every, few in adds
    )
    text = "1/2 cu, 1/3 cs, 1/6 ws"
    small = written(text)
    t = -_changes(small, 0.0)[1].coupling / 0.5
    # 1000 equally likely correct answers and one wrong one; 31 correct ones and the wrong one drawn
    spread = Groups(
        np.append(np.full(1000, 0.00098), 0.02),
        np.append(np.full(1000, True), False),
        np.append(np.arange(1000) < 31, True) * 1,
    )
    total, unsampled = _changes(spread, -1.0)
    baseline = sampled_moments(*spread).batch_baseline()
    return holds(
        not any(np.any(few) for *_, few in adds),
        f"at Q_pos >= .8 the coupling adds unsampled-correct mass (T < 0) in: {counts}. p = ({text}), R_w = 0: T = {fraction(t)}. 1000 correct "
        f"actions of .00098, a wrong one of .02, 31 + 1 drawn, R_w = -1: S_R = {baseline:+.4f}, dQ_pos {total:+.1e}, dQ_u,pos "
        f"{unsampled.total:+.1e} eta/N",
    )


def _stays_positive() -> Finding:
    counts, falls = [], False
    for _, wrong in PAPER_REWARDS:
        total = _changes(_reward_positive(wrong, least_success=0.8), wrong)[0]
        counts.append(f"R_w = {wrong:g}: {np.sum(total < 0)} of {total.size}")
        falls |= bool(np.any(total < 0))
    text = "1/8 ws, 3/4 cu, 1/8 cs"
    example = _changes(written(text), 0.0)[0]
    return holds(
        not falls and bool(example > 0),
        f"p = ({text}), R_w = 0, Q_pos = 7/8, S_R > 0: dQ_pos = {fraction(example)} eta/N; negative in random reward-positive groups with "
        f"Q_pos >= .8: {'; '.join(counts)}",
    )


UNSAMPLED_MASS_CLAIMS = (
    Claim(
        "C1",
        "Proposition 3.2, v2 Eq 10",
        "The change of the unsampled-correct mass is a drift and a coupling.",
        computed(_proposition),
        "To first order in eta.",
        ("unsampled_mass_change", "finite_step_bound"),
    ),
    Claim(
        "C2",
        "Abstract, Section 3.2",
        "The unsampled-correct mass can fall while the correct mass rises.",
        computed(_falls_while_correct_mass_rises),
        "It falls iff S_R U_pos,2 + Q_u,pos T > 0.",
        ("unsampled_mass_change",),
    ),
    Claim(
        "C3",
        "Section 3.2, App G",
        "S_R > 0 pushes unsampled logits down; the drift scales with U_pos,2.",
        computed(_drift),
        "Scope: for a rare action the drift is of second order in p_i, so that its fate hangs on the coupling.",
        ("logit_update",),
    ),
    Claim(
        "C4",
        "App G",
        "The terms have fixed signs: (R_c - S_R) A_2 >= 0, (R_w - S_R) B_2 <= 0, and -S_R U_2 < 0 in reward-positive batches.",
        computed(_signs_of_terms),
        "As signs of the factors; as net gains and losses of single actions none of it is implied. What is: for R_c >= 0 >= R_w and S_R >= 0 the "
        "sampled-correct mass as a whole never falls.",
        ("sampled_mass_never_falls",),
    ),
    Claim(
        "C5",
        "Section 3.2, end",
        "Active updates that miss a rare mode then pull mass toward the sampled correct subset: 3.1 and 3.2 are one mechanism.",
        computed(_active_and_missed),
        "Lemma 3.1 speaks of centred rewards in active groups, Eq 5 of raw rewards in all groups. Under Eq 5 the expected loss at the paper's start "
        "only shrinks with N; the inverted U comes from the restriction to active groups.",
        ("logit_update",),
    ),
    Claim(
        "C6",
        "Section 3.2",
        "In reward-positive batches both terms can be negative.",
        computed(_both_terms),
        "'Can': often the coupling adds mass.",
    ),
    Claim(
        "C7",
        "App G",
        "At high success the coupling is dominated by (R_c - S_R) A_2 when the sampled-correct mass is concentrated, and so takes mass.",
        computed(_concentrated_sample),
        "It needs T > 0, which a concentrated sample does not give; many correct answers and one concentrated wrong one do the opposite.",
    ),
    Claim(
        "C8",
        "App G",
        "There dQ_pos stays positive: the first two terms outweigh the third.",
        computed(_stays_positive),
        "True in expectation over groups (B7), not for each group.",
        ("expected_change_positive",),
    ),
)
