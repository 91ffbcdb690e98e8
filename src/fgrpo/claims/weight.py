"""Claims about the success count and the focal weight (Sections 4 and 4.1, App. H and I): D1 to D10."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np

from fgrpo.claims.groups import PAPER_REWARDS, SCOPE, random_policies
from fgrpo.claims.model import Claim, Finding, Verdict, by_scope, computed, holds
from fgrpo.claims.text import fraction, numbers, yes
from fgrpo.theory.action_classes import ActionClasses
from fgrpo.theory.advantages import advantage_magnitude
from fgrpo.theory.baseline import batch_baseline_increment, conditional_batch_baseline, conditional_sampled_mass
from fgrpo.theory.focal_moments import expected_focal_weight
from fgrpo.theory.mean_field import mean_field_orbit
from fgrpo.theory.weights import focal_weight

GAMMAS = (0.5, 1.0, 2.0)


def _enumerated_masses(policy: list[Fraction], correct: list[bool], n: int) -> dict[int, tuple[Fraction, Fraction]]:
    """E[P_pos | X = k] and E[P_neg | X = k] over all sequences of n actions, by k."""
    weight: dict[int, Fraction] = defaultdict(Fraction)
    masses: dict[int, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for actions in product(range(len(policy)), repeat=n):
        chance = Fraction(1)
        for action in actions:
            chance *= policy[action]
        k = sum(correct[action] for action in actions)
        weight[k] += chance
        for action in set(actions):
            masses[k][not correct[action]] += chance * policy[action]
    return {k: (masses[k][0] / weight[k], masses[k][1] / weight[k]) for k in sorted(weight)}


def _exposure_lemma() -> Finding:
    policy = [Fraction(1, 2), Fraction(1, 8), Fraction(1, 4), Fraction(1, 8)]
    correct = [True, True, False, False]
    classes = ActionClasses.from_policy(np.array([float(p) for p in policy]), np.array(correct))
    error, cases = 0.0, 0
    for n in (2, 3, 4):
        for k, (right, wrong) in _enumerated_masses(policy, correct, n).items():
            formula = conditional_sampled_mass(classes, n, k)
            error = max(error, abs(float(formula.correct) - float(right)), abs(float(formula.wrong) - float(wrong)))
            cases += 1
    counts = np.arange(9)
    monotone = []
    for one in random_policies():
        mass = conditional_sampled_mass(one, 8, counts)
        monotone.append(bool(np.all(np.diff(mass.correct) >= 0) and np.all(np.diff(mass.wrong) <= 0)))
    return holds(
        error < 1e-14 and all(monotone),
        f"equal to the enumeration of all groups for N = 2 to 4 and all k ({cases} cases, largest difference {error:.0e}); E[P_pos] rises and "
        f"E[P_neg] falls with k in {sum(monotone)} of {len(monotone)} random policies at N = 8",
    )


def _expected_baseline() -> Finding:
    counts = np.arange(8)
    lowest = min(
        float(batch_baseline_increment(one, 8, counts, reward_correct=right, reward_wrong=wrong).min())
        for one in random_policies()
        for right, wrong in (*PAPER_REWARDS, (0.0, -1.0), (0.5, -2.0))
    )
    classes = ActionClasses.from_policy(np.array([1 / 2, 1 / 4, 1 / 4]), np.array([False, True, True]))
    below = conditional_batch_baseline(classes, 3, np.arange(4), reward_correct=-0.25, reward_wrong=-1.0)
    return by_scope(
        lowest >= 0,
        bool(np.all(np.diff(below) >= 0)),
        f"smallest increment over random policies, N = 8, all k and four pairs of rewards with {SCOPE}: {lowest:.1e}. With R_c = -1/4, R_w = -1 "
        f"(R_c > R_w and R_w <= 0 as the corollary asks), p = (1/2 w, 1/4 c, 1/4 c), N = 3: E[S_R | X = 0..3] = "
        f"{', '.join(fraction(value) for value in below)}",
        "R_c >= 0",
    )


def _success_estimate() -> Finding:
    rates, n = [Fraction(k, 20) for k in range(1, 20)], 8
    means = [sum(comb(n, k) * mu**k * (1 - mu) ** (n - k) * Fraction(k, n) for k in range(n + 1)) for mu in rates]
    unbiased = sum(mean == mu for mean, mu in zip(means, rates, strict=True))
    rng = np.random.default_rng(0)
    correct = rng.random((200, n)) < 0.5
    error = 0.0
    for right, wrong in (*PAPER_REWARDS, (2.0, -0.5)):
        mean = np.where(correct, right, wrong).mean(axis=1)
        error = max(error, float(np.abs((mean - wrong) / (right - wrong) - correct.mean(axis=1)).max()))
    at = np.array([float(mu) for mu in rates])
    bias = {gamma: expected_focal_weight(at, n, gamma) - focal_weight(at, gamma) for gamma in GAMMAS}
    words = ", ".join(
        f"{values.min():+.4f} to {values.max():+.4f} for gamma {gamma:g}" for gamma, values in bias.items()
    )
    return holds(
        error < 1e-14 and unbiased == len(rates),
        f"the rescaled mean reward is X/N (largest difference {error:.0e}), whose mean is exactly mu for {unbiased} of {len(rates)} mu. The weight: "
        f"E[g] - (1 - mu)^gamma at N = 8 is {words}",
    )


def _broader_exposure() -> Finding:
    counts = np.arange(9)
    rises = []
    for one in random_policies():
        mass = conditional_sampled_mass(one, 8, counts).correct
        baselines = [conditional_batch_baseline(one, 8, counts, reward_wrong=wrong) for _, wrong in PAPER_REWARDS]
        rises.append(all(bool(np.all(np.diff(values) >= 0)) for values in (mass, *baselines)))
    million = 1e6
    spread = ActionClasses(np.array([million, 1.0]), np.array([0.9 / million, 0.1]), np.array([True, False]))
    single = ActionClasses(np.array([1.0, million]), np.array([0.3, 0.7 / million]), np.array([True, False]))
    across = (float(conditional_batch_baseline(spread, 8, 7)), float(conditional_batch_baseline(single, 8, 2)))
    return holds(
        all(rises),
        f"at a fixed prompt E[P_pos | X] and E[S_R | X] rise with X in {sum(rises)} of {len(rises)} random policies. Scope: across prompts a spread "
        f"mu = .9 with X = 7 of 8 has E[S_R] = {across[0]:+.5f}, a single correct answer of mu = .3 with X = 2 has {across[1]:+.5f}",
    )


def _weight_properties() -> Finding:
    rates = np.linspace(0, 1, 101)
    weights = np.array([focal_weight(rates, gamma) for gamma in (0.25, *GAMMAS)])
    plain = bool(np.all(focal_weight(rates, 0) == 1))
    fine = bool(
        np.all((weights >= 0) & (weights <= 1)) and np.all(weights[:, -1] == 0) and np.all(np.diff(weights) < 0)
    )
    n = 8
    least = [focal_weight((n - 1) / n, gamma) for gamma in GAMMAS]
    return holds(
        plain and fine,
        f"gamma = 0 gives weight 1: {yes(plain)}; for gamma > 0 the weight falls from 1 to 0: {yes(fine)}. The smallest on an active group of 8 is "
        f"{numbers(least)} for gamma {numbers(GAMMAS, 'g')}",
    )


def _relative_weights() -> Finding:
    differs = {n: bool(np.ptp(focal_weight(np.arange(1, n) / n, 1.0)) > 0) for n in (2, 3, 4, 8)}
    falls = all(
        bool(np.all(np.diff(focal_weight(np.arange(1, n) / n, gamma)) < 0)) for n in (3, 4, 8) for gamma in GAMMAS
    )
    near_one = [float(advantage_magnitude(1 - 1e-12, correct=False, gamma=gamma)) for gamma in (0.0, 0.25, 0.5, 1.0)]
    return by_scope(
        falls,
        differs[2],
        f"over the active groups of N = 3, 4, 8 the weight falls with X: {yes(falls)}; at N = 2 every active group has the same weight "
        f"{numbers([focal_weight(0.5, gamma) for gamma in GAMMAS])} for gamma {numbers(GAMMAS, 'g')}. g |A| of wrong rollouts at success rate "
        f"1 - 1e-12: {numbers(near_one, '.3g')} for gamma 0 / 0.25 / 0.5 / 1",
        "N >= 3",
    )


def _beside_clipping() -> Finding:
    rng = np.random.default_rng(0)
    cases, low, high = 100_000, 0.8, 1.28
    ratio, advantage = np.exp(rng.normal(0, 0.4, cases)), rng.normal(size=cases)
    g = focal_weight(rng.integers(0, 9, cases) / 8, rng.choice(GAMMAS, cases))
    clipped = np.clip(ratio, low, high)
    plain = np.stack([ratio * advantage, clipped * advantage])
    weighted = np.stack([ratio * (g * advantage), clipped * (g * advantage)])
    # where both branches are equal there is no choice
    decided = (np.abs(plain[0] - plain[1]) > 1e-12) & (g > 0)
    same = bool(np.all((plain.argmin(axis=0) == weighted.argmin(axis=0))[decided]))
    error = float(np.abs(weighted.min(axis=0) - g * plain.min(axis=0)).max())
    return holds(
        same and error < 1e-12,
        f"min(r g A, clip(r) g A) = g min(r A, clip(r) A) on {cases} random tokens: same branch {yes(same)}, largest difference {error:.0e}; "
        "CISPO's objective is linear in A",
    )


def _within_prompt() -> Finding:
    levels = np.array([0.7, 0.8, 0.9, 0.95])
    plain, weighted = (mean_field_orbit(ActionClasses.appendix_j(), levels, gamma=gamma) for gamma in (0.0, 1.0))
    apart = float(np.abs(plain.retained_mass - weighted.retained_mass).max())
    slower = float(weighted.time[-1] / plain.time[-1])
    measured = (
        f"in the expected flow of one prompt (App. J start, N = infinity) M_ret at Q_pos = {numbers(levels, 'g')} is "
        f"{numbers(plain.retained_mass)} with gamma 0 and differs by at most {apart:.0e} with gamma 1, which takes {slower:.1f} times as long"
    )
    return Finding(Verdict.UNDETERMINED if apart < 1e-6 else Verdict.HOLDS, measured)


WEIGHT_CLAIMS = (
    Claim(
        "D1",
        "Lemma H.1",
        "E[P_pos | X = k] and E[P_neg | X = k] have the given forms; the first rises with k, the second falls.",
        computed(_exposure_lemma),
        "Within one prompt; it needs no assumption about the rewards.",
        ("batch_baseline_monotone",),
    ),
    Claim(
        "D2",
        "v1 Corollary B.2 = v2 Corollary H.2",
        "For R_c > R_w and R_w <= 0, E[S_R | X = k] does not decrease in k.",
        computed(_expected_baseline),
        "The proof uses R_c > 0, which its hypothesis does not give; R_c = 0 is enough. Then S_R given X = k is even stochastically non-decreasing. "
        "Scope: R_w > 0 is excluded, and can fail.",
        ("batch_baseline_monotone", "batch_baseline_dominance"),
    ),
    Claim(
        "D3",
        "Section 4.1",
        "The estimate (mean reward - R_w) / (R_c - R_w) is X/N and unbiased.",
        computed(_success_estimate),
        "The weight is not: E[g] = 1 - mu for gamma = 1 only, above (1 - mu)^gamma for gamma > 1 and below it for gamma < 1.",
        ("focal_weight_moments",),
    ),
    Claim(
        "D4",
        "Sections 4, 4.1",
        "A larger success estimate means, in expectation, broader sampled-correct exposure, and S_R goes the same way; unsampled correct actions are "
        "affected indirectly.",
        computed(_broader_exposure),
        "At a fixed prompt, as App. H says. Scope: across prompts the collision mass sets S_R, not the success rate.",
        ("batch_baseline_monotone", "batch_baseline_dominance"),
    ),
    Claim(
        "D5",
        "Abstract, Sections 4.1, 4.2",
        "gamma = 0 is GRPO; the weight is in [0, 1] and goes to 0 as the success estimate goes to 1; one scalar, no extra rollouts.",
        computed(_weight_properties),
        "On active groups it is at least N^-gamma, never 0.",
        ("focal_weight_moments",),
    ),
    Claim(
        "D6",
        "Section 4.1, App I, v1 Fig 3 = v2 Fig 4",
        "The weight attenuates groups of high success more and changes the relative weight of active updates.",
        computed(_relative_weights),
        "At N = 2 it is the constant 2^-gamma. gamma = 1/2 cancels the growth of the wrong rollouts' advantages exactly, a smaller gamma does not.",
    ),
    Claim(
        "D7",
        "Section 4.2",
        "The weight is orthogonal to clipping and importance weights, and leaves rewards and bounds as they are.",
        computed(_beside_clipping),
        "A statement about one objective: later ratios do change with smaller steps, and a KL or entropy term is not scaled.",
    ),
    Claim(
        "D10",
        "Section 4, Conclusion",
        "The weight mitigates concentration within a prompt (as its motivation).",
        computed(_within_prompt),
        "On-policy, unclipped and to first order it changes the length of the expected update of a prompt, never its direction: an effect comes from "
        "step size and noise, or from the balance between prompts. The paper claims a motivation, no theorem.",
        ("utility_gradient", "time_change"),
    ),
)
