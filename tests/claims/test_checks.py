"""Each check can fail: with a wrong formula or a changed table in place of the right one the verdict is another."""

import importlib
from collections.abc import Callable
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fgrpo.claims.evidence import NO_RUNS
from fgrpo.claims.groups import (
    random_groups,
    random_policies,
    rewards_above_zero,
    rewards_below_zero,
    rewards_in_scope,
    written,
)
from fgrpo.claims.ledger import CLAIMS, Entry
from fgrpo.claims.model import Finding, Verdict, by_scope, holds
from fgrpo.claims.text import fraction, numbers, share, sizes

BY_ID = {claim.id: claim for claim in CLAIMS}
Change = Callable[[Any], Any]


def scaled(factor: float) -> Change:
    """The same function, its values (or each of its named parts) times a factor."""

    def change(right: Callable[..., Any]) -> Callable[..., Any]:
        def wrong(*arguments: Any, **options: Any) -> Any:
            value = right(*arguments, **options)
            return type(value)(*(factor * part for part in value)) if hasattr(value, "_fields") else factor * value

        return wrong

    return change


def instead(value: Callable[..., Any]) -> Change:
    return lambda right: value


def edited(table: str, rows: str, score: float) -> Change:
    """The reported tables, with another score in the rows of one that meet a condition."""

    def change(right: Callable[[str], Any]) -> Callable[[str], Any]:
        def wrong(name: str) -> Any:
            values = right(name)
            if name == table:
                values.loc[values.eval(rows), "value"] = score
            return values

        return wrong

    return change


def always_up(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *groups, **options: SimpleNamespace(total=np.abs(right(*groups, **options).total) + 1)


def never_added(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *groups, **options: SimpleNamespace(coupling=-1.0 - 0 * right(*groups, **options).drift, total=-1.0)


def bent_by_gamma(right: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*start: Any, gamma: float) -> Any:
        orbit = right(*start, gamma=gamma)
        return orbit._replace(retained_mass=orbit.retained_mass * (1 - gamma / 10))

    return wrong


def rising_moments(classes: Any, group_size: Any) -> Any:
    return SimpleNamespace(unsampled_correct_collision=group_size, unsampled_wrong_collision=group_size)


def other_start(policy: Any) -> dict[str, float]:
    return {"correct_mass": 0.5, "anchor_mass": 4.7e-4, "leaf_mass": 6.3e-5}


def nothing_lost(*logits: Any) -> dict[str, float]:
    return {"retained_mass": 1.0, "correct_mass": 1.0, "worst_drop": 1.0, "correct_entropy": 0.0}


def one_update(*groups: Any, surrogate: str = "") -> Any:
    """The same for every surrogate, and nothing in homogeneous groups."""
    return np.repeat(random_groups().active[:, None], 6, axis=1) * 1.0


def rejecting_one_in_twenty() -> Callable[..., Any]:
    outcomes = cycle([True] + [False] * 19)
    return lambda *data, **options: SimpleNamespace(reject=next(outcomes))


MONOTONE = instead(lambda mu, tau, n, **_: 1 - (1 - np.asarray(mu)) ** np.asarray(n))


AIME25_AT_2 = "benchmark == 'aime25' and k == 1 and group_size == 2"
NLL_AT_2 = "benchmark == 'delta_nll_rare' and group_size == 2"


@pytest.mark.parametrize(
    ("claim", "module", "name", "change"),
    [
        ("A1", "tail_miss", "CENTRED", instead(("linear_distinct",))),
        ("A2", "tail_miss", "active_probability", scaled(0.5)),
        ("A3", "tail_miss", "_chance", scaled(1.01)),
        ("A4", "tail_miss", "tail_miss_probability", MONOTONE),
        ("A5", "tail_miss", "tail_miss_probability", scaled(0.99)),
        ("A6", "figures", "peak_group_size", instead(lambda mu, tau: np.full(np.shape(mu * tau), 1000.0))),
        ("A7", "figures", "peak_group_size", instead(lambda mu, tau: np.ceil(9 + 0 * mu * tau))),
        ("A9", "tail_miss", "active_probability", scaled(1.1)),
        ("A10", "tail_miss", "risk_interval", instead(lambda mu, tau, level: (2, 64))),
        ("A11", "tail_miss", "tail_miss_regime", instead(lambda mu, tau, n, level: np.array("covered"))),
        ("B1", "updates", "_gradient_by_complex_step", scaled(1.001)),
        ("B2", "updates", "expected_batch_baseline", instead(lambda classes, n, **_: classes.correct_mass * n)),
        ("B3", "updates", "correct_mass_change", scaled(-1)),
        ("B4", "updates", "correct_mass_change", scaled(1.001)),
        ("B6", "updates", "expected_moments", instead(rising_moments)),
        ("B7", "updates", "correct_mass_change", scaled(-1)),
        ("B8", "updates", "expected_correct_mass_change", scaled(-1)),
        ("C1", "unsampled_mass", "unsampled_correct_mass_change", scaled(1.001)),
        ("C2", "unsampled_mass", "unsampled_correct_mass_change", scaled(-1)),
        ("C3", "unsampled_mass", "logit_update", scaled(-1)),
        ("C4", "unsampled_mass", "_factor_signs", instead(lambda groups, rewards: np.zeros(len(groups.policy), bool))),
        ("C6", "unsampled_mass", "unsampled_correct_mass_change", scaled(-1)),
        ("C7", "unsampled_mass", "unsampled_correct_mass_change", never_added),
        ("C8", "unsampled_mass", "correct_mass_change", always_up),
        ("D1", "weight", "conditional_sampled_mass", scaled(1.001)),
        ("D2", "weight", "batch_baseline_increment", scaled(-1)),
        ("D3", "weight", "comb", instead(lambda n, k: 1)),
        ("D4", "weight", "conditional_batch_baseline", scaled(-1)),
        ("D5", "weight", "focal_weight", instead(lambda rate, gamma: np.asarray(rate) ** gamma)),
        ("D6", "weight", "focal_weight", instead(lambda rate, gamma: np.asarray(rate) ** gamma)),
        ("D7", "weight", "focal_weight", instead(lambda rate, gamma: -((1 - np.asarray(rate)) ** gamma))),
        ("D10", "weight", "mean_field_orbit", bent_by_gamma),
        ("E1", "figures", "initial_masses", instead(other_start)),
        ("E3", "figures", "tail_miss_probability", instead(lambda mu, tau, n: 0.9)),
        ("E4", "figures", "tail_miss_probability", scaled(5)),
        ("E5", "simulation", "expected_correct_mass_change", scaled(1e6)),
        ("E6", "simulation", "logit_update", instead(one_update)),
        (
            "E16",
            "simulation",
            "policy_metrics",
            instead(nothing_lost),
        ),
        ("F1", "models", "reported_table", edited("maze", "gamma == 0.5", 60.0)),
        ("F3", "models", "reported_table", edited("main_results", "benchmark == 'average_math'", 60.0)),
        ("F4", "models", "reported_table", edited("main_results", "benchmark == 'average_math'", 60.0)),
        (
            "F5",
            "models",
            "reported_table",
            edited("group_size", AIME25_AT_2, 6.0),
        ),
        ("F6", "models", "reported_table", edited("group_size", "group_size == 8", 99.0)),
        ("F7", "models", "reported_table", edited("group_size", "method == 'F-GRPO'", 50.0)),
        (
            "F8",
            "models",
            "reported_table",
            edited("group_size", NLL_AT_2, 0.6),
        ),
        ("F9", "models", "reported_table", edited("controls", "method == 'F-GRPO'", 50.0)),
        ("F11", "models", "reported_table", edited("controls", "method == 'F-GRPO'", 99.0)),
        ("F12", "evaluation", "matched_learning_rate", scaled(1.01)),
        ("F13", "evaluation", "pass_at_k", scaled(1.001)),
        ("F14", "evaluation", "paired_subsampling_test", instead(rejecting_one_in_twenty())),
        ("F15", "evaluation", "reported_table", edited("main_results", "benchmark == 'aime24'", 1.0)),
        ("F16", "evaluation", "reported_setting", instead(lambda key: "1263" if key.endswith("trajectories") else "1")),
    ],
)
def test_a_wrong_formula_or_table_changes_the_verdict(
    monkeypatch: pytest.MonkeyPatch, entries: dict[str, Entry], claim: str, module: str, name: str, change: Change
) -> None:
    home = importlib.import_module(f"fgrpo.claims.{module}")
    monkeypatch.setattr(home, name, change(getattr(home, name)))
    assert BY_ID[claim].judge(NO_RUNS).words != entries[claim].finding.words


def test_c5_needs_both_one_update_and_an_inverted_u(monkeypatch: pytest.MonkeyPatch) -> None:
    home = importlib.import_module("fgrpo.claims.unsampled_mass")
    monkeypatch.setattr(home, "logit_update", lambda *groups, **options: np.zeros(3))
    assert BY_ID["C5"].judge(NO_RUNS).verdict is Verdict.NOT_IMPLIED
    curve = SimpleNamespace(total=np.array([-1.0, -2.0, -3.0, -2.0, -1.0]))
    monkeypatch.setattr(home, "expected_unsampled_correct_mass_change", lambda *start, **options: curve)
    assert BY_ID["C5"].judge(NO_RUNS).verdict is Verdict.HOLDS


def test_every_claim_without_runs_has_a_wrong_variant(entries: dict[str, Entry]) -> None:
    tried = {case[0] for mark in test_a_wrong_formula_or_table_changes_the_verdict.pytestmark for case in mark.args[1]}
    assert tried | {"C5"} == {one for one, entry in entries.items() if not entry.needs_runs}


# What the checks are built from


def test_scales_of_verdicts() -> None:
    assert by_scope(True, True, "m", "c") == Finding(Verdict.HOLDS, "m")
    assert by_scope(True, False, "m", "c").words == "holds if c"
    assert by_scope(False, True, "m", "c").words == "not implied"
    assert holds(False, "m", Verdict.DIFFERS).words == "differs in our run"
    assert holds(True, "m").words == "holds"


def test_written_group() -> None:
    group = written("1/4 ws, 1/2 cs, 1/4 cu")
    assert group.policy.tolist() == [0.25, 0.5, 0.25]
    assert group.correct.tolist() == [False, True, True]
    assert group.counts.tolist() == [1, 1, 0]
    assert group.unsampled.tolist() == [False, False, True]
    assert (group.group_size, group.correct_mass, group.active) == (2, 0.75, True)
    assert not written("1/2 wu, 1/2 cs").active
    assert not written("1/2 ws, 1/2 cu").active


def test_random_groups_are_seeded_and_in_range() -> None:
    groups, again = random_groups(500), random_groups(500)
    assert all(np.array_equal(one, other) for one, other in zip(groups, again, strict=True))
    assert not np.array_equal(groups.policy, random_groups(500, seed=1).policy)
    assert np.allclose(groups.policy.sum(axis=1), 1)
    assert groups.correct.any(axis=1).all()
    assert not groups.correct.all(axis=1).any()
    assert set(groups.group_size) == set(range(2, 9))
    chosen = groups.where(groups.active)
    assert len(chosen.policy) == groups.active.sum() < 500
    assert all(0 < one.correct_mass < 1 for one in random_policies(5))


def test_random_rewards_are_where_they_say() -> None:
    inside, below, above = rewards_in_scope(500), rewards_below_zero(500), rewards_above_zero(500)
    assert np.all((inside.wrong <= 0) & (inside.correct >= 0) & (inside.wrong < inside.correct))
    assert np.any(inside.wrong == 0)
    assert np.any(inside.correct == 0)
    assert np.all((below.wrong < below.correct) & (below.correct < 0))
    assert np.all((above.wrong > 0) & (above.correct > above.wrong))


def test_numbers_in_words() -> None:
    assert numbers([0.5, 2], ".1f") == "0.5 / 2.0"
    assert numbers(3, "d") == "3"
    assert sizes([]) == "no N"
    assert sizes([2, 8]) == "N = 2 / 8"
    assert fraction(-1 / 2048) == "-1/2048"
    assert fraction(np.pi) == "3.142"
    assert share(np.array([True, False, False, False])) == "25 %"
