"""The ledger: all claims, verdicts as independent work found them, the committed page is what the code gives."""

import json
import math
import re
from pathlib import Path

import pytest

from fgrpo.claims.evidence import NO_RUNS, stored_evidence
from fgrpo.claims.ledger import CLAIMS, SECTIONS, Entry, ledger_json, ledger_markdown
from fgrpo.claims.model import Verdict
from fgrpo.claims.review import REVIEW_ONLY
from fgrpo.simulate import PolicyConfig
from fgrpo.theory.proofs import PROOFS
from reference.simulated_results import made_up_evidence

ROOT = Path(__file__).parents[2]

# found by hand, proof and other code, before this code was written
EXPECTED = {
    "holds": "A1 A2 A3 A4 A5 A6 A7 A9 A10 B1 B4 B6 C1 C2 C3 C6 D1 D3 D4 D5 D7 E1 E4 E5 F1 F3 F4 F6 F7 F8 F9 F12 F13",
    "holds if": "B3 B7 C4 D2 D6 E16",
    "not implied": "B2 B8 C5 C7 C8 E3 E6 F5 F14",
    "undetermined here": "A11 D10 F11",
}
ABOUT_RUNS = {"E7", "E8", "E9", "E10", "E11", "E12", "E13", "E14"}
ABOUT_THE_TABLES = {"F15", "F16"}


def test_every_claim_is_there_once() -> None:
    ids = [claim.id for claim in CLAIMS]
    expected = {one for ids in EXPECTED.values() for one in ids.split()} | ABOUT_RUNS | ABOUT_THE_TABLES
    assert len(ids) == len(set(ids))
    assert set(ids) == expected
    assert {claim.id[0] for claim in CLAIMS} == set(SECTIONS)
    assert ids.index("A9") < ids.index("A10") < ids.index("B1")


@pytest.mark.parametrize(("verdict", "ids"), EXPECTED.items())
def test_verdicts(entries: dict[str, Entry], verdict: str, ids: str) -> None:
    found = {one: str(entries[one].finding.verdict) for one in ids.split()}
    assert found == dict.fromkeys(ids.split(), verdict)


def test_conditions_are_named_where_and_only_where_there_is_one(entries: dict[str, Entry]) -> None:
    conditions = {one: entry.finding.condition for one, entry in entries.items() if entry.finding.condition}
    assert conditions == {
        "B3": "R_c >= 0 >= R_w",
        "B7": "N -> infinity (every action sampled)",
        "C4": "R_c >= 0 >= R_w",
        "D2": "R_c >= 0",
        "D6": "N >= 3",
        "E16": "Q_t >= Q_0",
    }


def test_claims_about_runs_need_runs(entries: dict[str, Entry]) -> None:
    assert {one for one, entry in entries.items() if entry.needs_runs} == ABOUT_RUNS
    assert all(entries[one].finding.words == "undetermined here" for one in ABOUT_RUNS)
    evidence = made_up_evidence()
    with_runs = {claim.id: claim.judge(evidence) for claim in CLAIMS if claim.id in ABOUT_RUNS}
    assert all(finding.verdict is not Verdict.UNDETERMINED for finding in with_runs.values())
    assert with_runs["E7"].verdict is Verdict.HOLDS


def test_named_proofs_exist_and_pass(entries: dict[str, Entry]) -> None:
    for claim in CLAIMS:
        assert set(claim.proofs) <= set(PROOFS), claim.id
    assert all(report.ok for entry in entries.values() for report in entry.proofs)
    assert entries["A3"].proofs[0].name == "lemma_3_1"


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("A3", "120 of 120"),
        ("A4", "in 300 of 300 random cases"),
        ("A6", "N = 9 / 8 / 6 at 0.832 / 0.726 / 0.572"),
        ("A7", "to the left in 0 of"),
        ("A9", "0.534 at mu = .63"),
        ("B2", "0.266 / 0.202 / 0.160 / 0.109 at N = 1 / 2 / 3 / 5, the surrogate sum R_i p_i is 0.625"),
        ("B3", "negative in 0 of 20000 random groups with R_c >= 0 >= R_w"),
        ("B7", "-1/625 eta/N"),
        ("B8", "4.21e-10 / 4.11e-10 / 3.14e-10 / 6.03e-11 eta"),
        ("C2", "dQ_pos 1/27, dQ_u,pos -1/27 eta/N"),
        ("C2", "dQ_pos 13/128, dQ_u,pos -5/128 eta/N"),
        ("C4", "(1/4 ws, 1/8 cu, 1/8 cs, 1/2 cs): -1/2048"),
        ("C4", "(1/8 ws, 3/4 cu, 1/8 cs): 11/2048"),
        ("C4", "(3/5 ws, 1/5 cs, 1/5 cu): 1/625"),
        ("C4", "as a whole falls in 0 of"),
        ("C5", "-2.18e-09 / -2.17e-09 / -2.07e-09 / -9.88e-10 / -6.32e-14 eta"),
        ("C7", "T = -1/54"),
        ("C7", "S_R = +0.0104"),
        ("C8", "dQ_pos = -11/2048 eta/N"),
        ("D2", "-1/2, -9/16, -19/32, -7/64"),
        ("D4", "E[S_R] = -0.09999"),
        ("D5", "0.354 / 0.125 / 0.016"),
        ("D10", "0.949 / 0.633 / 0.317 / 0.159"),
        ("E4", "below 1e-3 from N = 109644"),
        ("F3", "average +3.93; OOD"),
        ("F3", "8 of 81 go down"),
        ("F4", "preserved in 7 / 4 / 2, pass@256 in 8 / 9 / 9"),
        ("F11", "recovers 82 %"),
        ("F12", "0.67906 / 0.50000 / 0.31250"),
        ("F12", "Without the root 0.6857"),
    ],
)
def test_numbers_that_were_found_independently(entries: dict[str, Entry], claim: str, words: str) -> None:
    assert words in entries[claim].finding.measured


def test_json_holds_every_field(entries: dict[str, Entry]) -> None:
    rows = json.loads(ledger_json(list(entries.values())))
    assert [row["id"] for row in rows] == [claim.id for claim in CLAIMS]
    row = next(row for row in rows if row["id"] == "D2")
    assert row["section"] == "Success count and focal weight"
    assert (row["verdict"], row["condition"]) == ("holds if", "R_c >= 0")
    assert row["proofs"] == {"batch_baseline_monotone": True, "batch_baseline_dominance": True}


def test_markdown_holds_every_claim_and_says_what_it_rests_on(entries: dict[str, Entry]) -> None:
    text = ledger_markdown(list(entries.values()), NO_RUNS)
    for entry in entries.values():
        assert f"| {entry.claim.id} | {entry.claim.place} | " in text
        assert f"- **{entry.claim.id}** *Evidence:* {entry.finding.measured}" in text
    assert "No runs of the simulation were at hand" in text
    assert all(said.replace("|", "\\|") in text for pair in REVIEW_ONLY for said in pair)
    small = made_up_evidence(PolicyConfig(actions=1280, correct=100))
    assert "reduced action space" in ledger_markdown(list(entries.values()), small)
    assert "reduced action space" not in ledger_markdown(list(entries.values()), made_up_evidence())


# The committed page

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?")


def page_rows(text: str) -> dict[str, tuple[str, str]]:
    """Verdict and evidence by id."""
    verdicts = dict(re.findall(r"^\| ([A-F]\d+) \| .* \| \*\*(.*)\*\* \|$", text, flags=re.M))
    evidence = dict(re.findall(r"^- \*\*([A-F]\d+)\*\* \*Evidence:\* (.*)$", text, flags=re.M))
    assert verdicts.keys() == evidence.keys()
    return {one: (verdicts[one], evidence[one]) for one in verdicts}


def same_up_to_last_digits(one: str, other: str) -> bool:
    """Equal words; numbers within 2 % or 1e-10, so that rounding on another machine does not count."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=0.02, abs_tol=1e-10) for a, b in pairs)


def test_the_comparison_sees_differences() -> None:
    assert same_up_to_last_digits("at 4.10e-05 / 3e-17", "at 4.12e-05 / 8e-16")
    assert not same_up_to_last_digits("at 4.10e-05", "at 4.40e-05")
    assert not same_up_to_last_digits("in 300 of 300", "in 280 of 300")
    assert not same_up_to_last_digits("yes, 3", "no, 3")


def test_committed_page_is_what_the_code_says(entries: dict[str, Entry]) -> None:
    committed = page_rows((ROOT / "docs" / "claims.md").read_text(encoding="utf-8"))
    now = page_rows(ledger_markdown(list(entries.values()), NO_RUNS))
    assert committed.keys() == now.keys()
    for one in now.keys() - ABOUT_RUNS:
        assert committed[one][0] == now[one][0], one
        assert same_up_to_last_digits(committed[one][1], now[one][1]), (one, committed[one][1], now[one][1])


def test_committed_page_has_runs_and_agrees_with_those_at_hand() -> None:
    """With full-size results in results/, as `make reproduce` leaves them: their verdicts too."""
    committed = page_rows((ROOT / "docs" / "claims.md").read_text(encoding="utf-8"))
    assert not any("needs the results" in committed[one][1] for one in ABOUT_RUNS)
    evidence = stored_evidence(ROOT / "results")
    if evidence is not NO_RUNS and evidence.policy == PolicyConfig() and evidence.steps == 1000:
        for claim in CLAIMS:
            if claim.id in ABOUT_RUNS:
                assert committed[claim.id][0] == claim.judge(evidence).words, claim.id
