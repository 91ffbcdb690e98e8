"""Verdicts about the figures: from made-up runs whose answer is known, and the report that is built from them."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from fgrpo.claims.evidence import DEFAULT_READING, OTHER_READINGS, Evidence
from fgrpo.claims.figures import FIGURE_CLAIMS
from fgrpo.claims.model import Finding, Verdict
from fgrpo.report import reproduction_report
from fgrpo.simulate import PolicyConfig

CLAIMS = {claim.id: claim for claim in FIGURE_CLAIMS}
SIZES = (2, 512, 131072)
RETAINED = {2: 0.99, 512: 0.03, 131072: 0.995}
GAINED = {2: 0.64, 512: 0.995, 131072: 0.99}


def runs(
    reading: str = DEFAULT_READING,
    steps: int = 1000,
    retained: Mapping[int, float] = RETAINED,
    correct: Mapping[int, float] = GAINED,
    entropy: float = 0.4,
    seeds: int = 2,
) -> pd.DataFrame:
    """Rows of runs that go on a straight line from the start to the given final values; gamma 1 keeps a bit more."""
    rows = []
    for group_size in retained:
        for gamma in (0.0, 1.0):
            for seed in range(seeds):
                for step in np.linspace(0, steps, 9).astype(int):
                    done = step / steps
                    kept = 1 + done * (retained[group_size] + 0.1 * gamma * (retained[group_size] < 0.5) - 1)
                    rows.append(
                        {
                            "reading": reading,
                            "steps": steps,
                            "group_size": group_size,
                            "gamma": gamma,
                            "seed": seed,
                            "step": step,
                            "retained_mass": kept,
                            "correct_mass": 0.63008 + done * (correct[group_size] - 0.63008),
                            "entropy": entropy,
                            "fgrpo_version": "0",
                            "numpy_version": "2",
                            "engine": "reference",
                        }
                    )
    return pd.DataFrame(rows)


def evidence(*others: pd.DataFrame, default: pd.DataFrame | None = None, long: pd.DataFrame | None = None) -> Evidence:
    collapsed = dict.fromkeys(SIZES, 0.02)
    readings = others or tuple(runs(name, retained=collapsed, entropy=10.5) for name in OTHER_READINGS)
    later = runs(steps=4000, retained=dict.fromkeys(SIZES, 0.01)) if long is None else long
    table = pd.concat([runs() if default is None else default, later, *readings], ignore_index=True)
    return Evidence(table, PolicyConfig(), 1000)


def finding(claim: str, *others: pd.DataFrame, **parts: pd.DataFrame) -> Finding:
    return CLAIMS[claim].check(evidence(*others, **parts))


def test_a_sentence_that_all_readings_meet_holds() -> None:
    assert finding("E7").verdict is Verdict.HOLDS


def test_a_sentence_that_only_the_default_meets_holds_on_a_condition() -> None:
    assert finding("E8").words == "holds if p_j stands for p_j / p_j^old"
    assert finding("E9").words == "holds if p_j stands for p_j / p_j^old"


def test_a_sentence_that_the_default_does_not_meet_differs() -> None:
    monotone = runs(retained={2: 0.99, 512: 0.95, 131072: 0.92})
    assert finding("E8", default=monotone).verdict is Verdict.DIFFERS
    assert finding("E9", default=monotone).verdict is Verdict.DIFFERS
    falling = runs(correct={2: 0.6, 512: 0.9, 131072: 0.9})
    assert finding("E7", default=falling).verdict is Verdict.DIFFERS


def test_largest_group_size_holds_only_until_one_stops() -> None:
    assert finding("E10").words.endswith("and at T = 1000")
    for_ever = runs(steps=4000, retained=dict.fromkeys(SIZES, 0.99))
    assert finding("E10", long=for_ever).words == "holds if p_j stands for p_j / p_j^old"


def test_only_the_largest() -> None:
    assert finding("E11").verdict is Verdict.DIFFERS
    alone = runs(retained={2: 0.7, 512: 0.03, 131072: 0.995})
    assert finding("E11", default=alone).verdict is Verdict.HOLDS_IF


def test_focal_weight_gain_is_measured_in_the_zone() -> None:
    found = finding("E13")
    assert found.verdict is Verdict.HOLDS_IF
    assert "+0.100 to +0.100 in the zone and by +0.000 to +0.000 outside" in found.measured
    equal = runs()
    equal.loc[equal["gamma"] == 1, "retained_mass"] = 0.0
    assert finding("E13", default=equal).verdict is Verdict.DIFFERS


@pytest.mark.parametrize(("claim", "verdict"), [("A6", "holds"), ("A7", "holds"), ("E1", "holds"), ("E4", "holds")])
def test_closed_forms_that_hold(claim: str, verdict: str) -> None:
    assert finding(claim).words == verdict


def test_numbers_of_the_leaf_curve() -> None:
    found = finding("E3")
    assert found.verdict is Verdict.NOT_IMPLIED
    assert "0.9986 at N = 20" in found.measured
    assert "0.127 at 2^15" in found.measured
    assert "2.59e-04" in finding("E4").measured
    assert "15, 8, 6, 4" in finding("A7").measured
    assert "Q_pos 0.63008, anchor 4.6527e-04, leaf 6.2967e-05" in finding("E1").measured


def test_missing_runs_are_named() -> None:
    table = evidence().results
    without = Evidence(table[table["reading"] == DEFAULT_READING], PolicyConfig(), 1000)
    with pytest.raises(
        ValueError, match=r"reading 'appendix_j_literal' and 1000 steps, got none: run `fgrpo reproduce`"
    ):
        CLAIMS["E7"].check(without)


def test_report_holds_every_sentence_and_value() -> None:
    text = reproduction_report(evidence())
    for claim in FIGURE_CLAIMS:
        assert text.count(claim.sentence) == 2
    assert "| 512 | 0.9683 | 0.9950 | 0.030 (0.000) | 0.40 | 0.9950 | 0.130 (0.000) | 0.40 |" in text
    assert "collapse zone): 512." in text
    assert "| 131072 | 0 | 0.752 | 0.629 |" in text  # T = 1000, 1500, ... on the long line from 1 to .01
    assert "Reduced action space" not in text
    small = Evidence(evidence().results, PolicyConfig(actions=1280, correct=100), 1000)
    assert "Reduced action space" in reproduction_report(small)


def test_lemma_explains_the_zone_only_if_the_ranks_agree() -> None:
    assert finding("E12").verdict is Verdict.HOLDS  # three made-up sizes that lose mass where the lemma says so
    lost_where_covered = runs(retained={2: 0.99, 512: 0.95, 131072: 0.02})
    assert finding("E12", default=lost_where_covered).verdict is Verdict.NOT_IMPLIED
