"""Claims about the simulation's set-up and its measure (Section 5.1, App. J) that need no runs: E5, E6, E16."""

from dataclasses import asdict

import numpy as np

from fgrpo.claims.groups import random_groups
from fgrpo.claims.model import Claim, Finding, by_scope, computed, holds
from fgrpo.claims.text import numbers, share
from fgrpo.simulate.config import PRESETS
from fgrpo.simulate.metrics import policy_metrics
from fgrpo.simulate.policy import softmax
from fgrpo.theory.action_classes import ActionClasses
from fgrpo.theory.expected_mass import expected_correct_mass_change
from fgrpo.theory.updates import logit_update


def _one_modification() -> Finding:
    literal, adopted = asdict(PRESETS["appendix_j_literal"]), asdict(PRESETS["hu2025"])
    changed = [name for name in literal if literal[name] != adopted[name]]
    steps, rate = 1000, PRESETS["appendix_j_literal"].learning_rate
    start = ActionClasses.appendix_j()
    n = np.array([2, 512, 131072])
    plain = steps * expected_correct_mass_change(start, n, surrogate="linear", learning_rate=rate)
    return holds(
        changed == ["learning_rate"] and bool(plain.max() < 1e-4),
        f"plain ascent on the printed surrogate with eta = {rate:g} would move Q_pos by {numbers(plain, '.1e')} in {steps} steps at N = "
        f"{numbers(n, 'd')} (first order, at the start): so 'gradient ascent' means the {literal['optimizer'].capitalize()}-type optimizer of the set-up that is "
        f"adopted, and the two configurations differ in {', '.join(changed)}",
    )


def _tests_the_mechanism() -> Finding:
    groups = random_groups()
    of_text = logit_update(*groups)
    printed = logit_update(*groups, surrogate="linear")
    ratio = logit_update(*groups, surrogate="importance_ratio")
    active, apart = groups.active, groups.unsampled
    opposite = (of_text * printed < 0)[active][apart[active]]
    still = np.all(printed[~active] == 0)
    return holds(
        not opposite.any() and not (of_text[~active] != 0).any(),
        f"in random active groups {share(opposite)} of the unsampled logits move the other way under the simulation's centred rewards than by "
        f"-S_R p_i; homogeneous groups are {'still' if still else 'moved'} there and moved by Eq 5; with ratios unsampled logits move by at most "
        f"{np.abs(ratio[apart]).max():g}",
    )


def _overlap() -> Finding:
    start = np.array([2.0, 1.0, 0.5, 0.0, 0.0, -1.0])
    correct = 3
    rng = np.random.default_rng(0)
    p0 = softmax(start)
    agree, bounded, gainers = [], [], []
    for after in start + rng.normal(0, 1, size=(2000, start.size)):
        measured = policy_metrics(after, start, correct)
        agree.append((measured["retained_mass"] > 1 - 1e-12) == (measured["worst_drop"] <= 1e-12))
        bounded.append(measured["retained_mass"] <= measured["correct_mass"] / p0[:correct].sum() + 1e-12)
        gained = softmax(after)[:correct] > p0[:correct]
        gainers.append(p0[:correct][gained].sum() / p0[:correct].sum() <= measured["retained_mass"] + 1e-12)

    def moved(mass: np.ndarray) -> dict[str, float]:
        rest = p0[correct:] * (1 - mass.sum()) / p0[correct:].sum()
        return policy_metrics(np.log(np.concatenate([mass, rest])), start, correct)

    slightly, gone = moved(0.99 * p0[:correct]), moved(1e-6 * p0[:correct])
    unchanged = bool(np.isclose(gone["correct_entropy"], moved(p0[:correct])["correct_entropy"]))
    # with Q_t >= Q_0 the correct mass that is not retained sits on those that gained, of little mass at the start
    return by_scope(
        all(agree) and all(gainers),
        not (gone["retained_mass"] < 0.01 and unchanged),
        f"1 exactly where no correct action lost mass in {np.sum(agree)} of {len(agree)} random changes, and at most Q_t / Q_0 in {np.sum(bounded)}; "
        f"those that gained had at most the share M_ret of Q_0 in {np.sum(gainers)}. "
        f"If all correct actions lose 1 % it is {slightly['retained_mass']:.2f}, though none 'remains at or above its starting value'; if the whole "
        f"correct mass shrinks evenly to 1e-6 of it, it is {gone['retained_mass']:.0e} with no concentration at all",
        "Q_t >= Q_0",
    )


SIMULATION_CLAIMS = (
    Claim(
        "E5",
        "App J",
        "The set-up is that of Hu et al. with one modification, a learning rate of 1e-2 for 1e-3.",
        computed(_one_modification),
        "Their section 4.1 has the linear surrogate, the batch-mean baseline, AdamW and T = 1000; it leaves decay, eps, betas and the meaning of p_j "
        "(ratio or not) unstated.",
    ),
    Claim(
        "E6",
        "Section 5.1",
        "The simulation directly tests the mechanism of Section 3.2.",
        computed(_tests_the_mechanism),
        "Its update has centred rewards, multiplicities and an Adam-type step; its unsampled drift is not -S_R p_i. It tests the outcome (Q_pos up, "
        "M_ret down), which it shows.",
        ("logit_update",),
    ),
    Claim(
        "E16",
        "Eq 26",
        "M_ret = 1 iff no correct action lost mass; near 0 the correct mass has concentrated on few actions.",
        computed(_overlap),
        "It is an overlap, not a share of actions. The condition concerns the second half and is met in the paper's runs (E7): then at least "
        "Q_t - M_ret Q_0 sits on actions that together had at most M_ret Q_0 at the start, few where the start is even.",
    ),
)
