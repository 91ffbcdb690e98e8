"""Verdicts about the figures: from made-up runs whose answer is known, and the report that is built from them."""

import pandas as pd
import pytest

from fgrpo.claims.evidence import DEFAULT_READING, Evidence, reading_words
from fgrpo.claims.figures import FIGURE_CLAIMS
from fgrpo.claims.model import Finding, Verdict
from fgrpo.report import reproduction_report
from fgrpo.simulate import PolicyConfig
from reference.simulated_results import RETAINED, SIZES, made_up_results, made_up_runs

CLAIMS = {claim.id: claim for claim in FIGURE_CLAIMS}


def evidence(*others: pd.DataFrame, default: pd.DataFrame | None = None, long: pd.DataFrame | None = None) -> Evidence:
    return Evidence(made_up_results(*others, default=default, long=long), PolicyConfig(), 1000)


def finding(claim: str, *others: pd.DataFrame, **parts: pd.DataFrame) -> Finding:
    return CLAIMS[claim].check(evidence(*others, **parts))


def test_a_sentence_that_all_readings_meet_holds() -> None:
    assert finding("E7").verdict is Verdict.HOLDS


AS_FIGURE_MATCHING = "the update is read as figure_matching (p_j means p_j / p_j^old, no weight decay)"
FOR_EVER = made_up_runs(steps=4000)


def others(**of: dict[int, float]) -> list[pd.DataFrame]:
    """Runs of the other readings with these final retained masses."""
    return [made_up_runs(name, retained=retained) for name, retained in of.items()]


def test_the_condition_names_the_readings_that_meet_the_sentence() -> None:
    lost = dict.fromkeys(SIZES, 0.02)
    assert finding("E8", long=FOR_EVER).words == f"holds if {AS_FIGURE_MATCHING}"
    assert finding("E9", long=FOR_EVER).words == f"holds if {AS_FIGURE_MATCHING}"
    two = others(appendix_j_literal=lost, hu2025=RETAINED)
    assert finding("E8", *two, long=FOR_EVER).words == "holds if the update is read as figure_matching or hu2025"
    all_three = others(appendix_j_literal=RETAINED, hu2025=RETAINED)
    assert finding("E8", *all_three, long=FOR_EVER).words == "holds"


def test_readings_are_described_by_all_that_sets_them_apart() -> None:
    assert reading_words("figure_matching") == "p_j means p_j / p_j^old, no weight decay"
    assert reading_words("appendix_j_literal") == "p_j as printed, weight decay 0.01"
    assert reading_words("hu2025") == "p_j as printed, weight decay 0.01, learning rate 0.001"


@pytest.mark.parametrize("claim", ["E8", "E9", "E10"])
def test_where_longer_runs_answer_otherwise_the_length_is_a_condition(claim: str) -> None:
    assert finding(claim).words == f"holds if {AS_FIGURE_MATCHING}, and T = 1000"
    all_three = others(appendix_j_literal=RETAINED, hu2025=RETAINED)
    assert finding(claim, *all_three).words == "holds if T = 1000"
    assert finding(claim, *all_three, long=FOR_EVER).words == "holds"


def test_longer_runs_are_told_whatever_they_say() -> None:
    ran_on = ". figure_matching run on to T = 4000 at N = 2 / 512 / 131072: "
    assert finding("E7").measured.endswith(f"{ran_on}yes, from 0.630 to between 0.640 (N = 2) and 0.995 (N = 512)")
    assert finding("E8").measured.endswith(
        f"{ran_on}no, M_ret 0.010 at N = 2, at least 0.010 in between (N = 512), 0.010 at N = 131072"
    )
    assert finding("E9").measured.endswith(f"{ran_on}no, I at no N, II at N = 512 to 131072, III at no N")
    assert finding("E10").measured.endswith(f"{ran_on}no, lowest M_ret 0.010 at N = 131072")
    assert finding("E8", long=FOR_EVER).measured.count("yes, M_ret 0.990 at N = 2") == 2


def test_a_sentence_that_the_default_does_not_meet_differs() -> None:
    monotone = made_up_runs(retained={2: 0.99, 512: 0.95, 131072: 0.92})
    assert finding("E8", default=monotone).verdict is Verdict.DIFFERS
    assert finding("E9", default=monotone).verdict is Verdict.DIFFERS
    falling = made_up_runs(correct={2: 0.6, 512: 0.9, 131072: 0.9})
    assert finding("E7", default=falling).verdict is Verdict.DIFFERS


def test_only_the_largest() -> None:
    assert finding("E11").verdict is Verdict.DIFFERS
    alone = made_up_runs(retained={2: 0.7, 512: 0.03, 131072: 0.995})
    assert finding("E11", default=alone).verdict is Verdict.HOLDS_IF


def test_regimes_with_gaps_are_not_told_as_one_range() -> None:
    gap = made_up_runs(
        retained={2: 0.99, 8: 0.03, 32: 0.95, 512: 0.03, 131072: 0.995},
        correct={2: 0.64, 8: 0.99, 32: 0.65, 512: 0.99, 131072: 0.99},
    )
    found = finding("E9", default=gap)
    assert found.verdict is Verdict.DIFFERS
    assert "figure_matching: no, I at N = 2, 32, II at N = 8, 512, III at N = 131072" in found.measured


def test_focal_weight_gain_is_measured_in_the_zone_of_each_reading() -> None:
    none_lost = others(appendix_j_literal=dict.fromkeys(SIZES, 0.02), hu2025=dict.fromkeys(SIZES, 0.96))
    found = finding("E13", *none_lost)
    assert found.words == "holds if the update is read as figure_matching or appendix_j_literal"
    assert "figure_matching: yes, M_ret changes by +0.100 to +0.100 in the zone and by +0.000 to +0.000 outside it" in (
        found.measured
    )
    assert "appendix_j_literal: yes, M_ret changes by +0.100 to +0.100 in the zone at equal steps" in found.measured
    assert "hu2025: no, no group size collapses at gamma 0" in found.measured
    equal = made_up_runs()
    equal.loc[equal["gamma"] == 1, "retained_mass"] = 0.0
    assert finding("E13", default=equal).verdict is Verdict.DIFFERS


def with_entropies(reading: str, *of_sizes: float) -> pd.DataFrame:
    runs = made_up_runs(reading)
    return runs.assign(entropy=runs["group_size"].map(dict(zip(SIZES, of_sizes, strict=True))))


@pytest.mark.parametrize(
    ("literal", "hu", "default", "words"),
    [
        ((0.5, 0.5, 0.5), (11, 11, 10), (0.4, 0.4, 0.4), "holds"),
        ((9, 0.5, 0.5), (11, 11, 10), (0.4, 0.4, 0.4), "holds if N >= 512"),
        (
            (9, 0.5, 0.5),
            (11, 11, 10),
            (9, 0.4, 9),
            "holds if the update is read as appendix_j_literal (p_j as printed, weight decay 0.01), and N >= 512",
        ),
        ((0.5, 9, 0.5), (11, 11, 10), (0.4, 0.4, 0.4), "holds if N >= 131072"),
        ((0.5, 0.5, 9), (11, 11, 10), (0.4, 0.4, 0.4), "differs in our run"),
        ((0.5, 0.5, 0.5), (11, 11, 3), (0.4, 0.4, 0.4), "differs in our run"),
    ],
)
def test_learning_rates_are_compared_between_readings_that_differ_in_nothing_else(
    literal: tuple[float, ...], hu: tuple[float, ...], default: tuple[float, ...], words: str
) -> None:
    readings = (with_entropies("appendix_j_literal", *literal), with_entropies("hu2025", *hu))
    found = finding("E14", *readings, default=with_entropies(DEFAULT_READING, *default))
    assert found.words == words
    assert f"hu2025 (1e-3) {hu[-1]:.2f} nats at N = 131072; appendix_j_literal (1e-2) below 1 nat at" in found.measured
    assert (
        f"Besides, figure_matching (1e-2) below 1 nat at N = {'512' if default[0] == 9 else '2 to'}" in found.measured
    )


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
    assert "collapse zone): N = 512. Pr(B)" in text
    assert "| 131072 | 0 | 0.752 | 0.629 |" in text  # T = 1000, 1500, ... on the long line from 1 to .01
    assert "`hu2025` (p_j as printed, weight decay 0.01, learning rate 0.001; 2 seeds):" in text
    assert "| 512 | 0.9683 | 0.9950 | 0.020 (0.000) | 10.50 | 0.9950 | 0.120 (0.000) | 10.50 |" in text
    assert "Reduced action space" not in text
    small = Evidence(evidence().results, PolicyConfig(actions=1280, correct=100), 1000)
    reduced = reproduction_report(small)
    assert "Reduced action space" in reduced
    # what other runs have shown is theirs, what needs no runs is no one's
    note = "*Sharpened (runs that it names have 128000 actions, these do not):* "
    assert f"{note}The large-N regime is a matter of when one stops" in reduced
    assert note not in text
    assert "*Computed:* peaks at N" in reduced
    assert "*Sharpened:* True of all 0 < tau < mu < 1" in reduced
    assert all(text.count(f"*{word}:*") > 3 for word in ("Measured", "Computed"))
    for word in ("N", "gamma", "mu", "tau", "Active group", "Tail miss", "Q_pos", "M_ret"):
        assert f"**{word}**" in text


def test_report_names_all_versions_and_engines_that_computed_the_runs() -> None:
    results = evidence().results
    assert "fgrpo 0, engine reference, numpy 2." in reproduction_report(evidence())
    results.loc[results["reading"] == "hu2025", ["engine", "numpy_version"]] = ("sparse", "1")
    mixed = reproduction_report(Evidence(results, PolicyConfig(), 1000))
    assert "fgrpo 0, engine reference and sparse, numpy 1 and 2." in mixed


def test_report_names_each_stretch_of_the_zone() -> None:
    gap = made_up_runs(
        retained={2: 0.1, 8: 0.9, 512: 0.1, 8192: 0.1, 131072: 0.9},
        correct=dict.fromkeys((2, 8, 512, 8192, 131072), 0.9),
    )
    assert "collapse zone): N = 2, 512 to 8192. Pr(B)" in reproduction_report(evidence(default=gap))
    kept = made_up_runs(retained={2: 0.9, 512: 0.8, 131072: 0.9})
    assert "collapse zone): no N. Pr(B)" in reproduction_report(evidence(default=kept))


def test_lemma_explains_the_zone_only_if_the_ranks_agree() -> None:
    assert finding("E12").verdict is Verdict.HOLDS  # three made-up sizes that lose mass where the lemma says so
    lost_where_covered = made_up_runs(retained={2: 0.99, 512: 0.95, 131072: 0.02})
    assert finding("E12", default=lost_where_covered).verdict is Verdict.NOT_IMPLIED
