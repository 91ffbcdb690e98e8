"""What of a results folder becomes evidence."""

from pathlib import Path

import pandas as pd
import pytest

from fgrpo.claims.evidence import DEFAULT_READING, NO_RUNS, MissingRunsError, stored_evidence
from fgrpo.claims.ledger import CLAIMS
from fgrpo.claims.model import NEEDS_RUNS, Claim, Finding, Verdict
from fgrpo.simulate import PolicyConfig
from reference.simulated_results import made_up_results, made_up_runs, store_results

RUNS = {claim.id: claim for claim in CLAIMS}


def stored(folder: Path, results: pd.DataFrame) -> Path:
    store_results(results, folder)
    return folder


def test_folder_without_results(tmp_path: Path) -> None:
    assert stored_evidence(tmp_path) is NO_RUNS
    assert stored_evidence(tmp_path / "nowhere") is NO_RUNS
    assert stored_evidence(stored(tmp_path, made_up_runs("hu2025"))) is NO_RUNS


def test_folder_that_reproduce_left(tmp_path: Path) -> None:
    policy = PolicyConfig(actions=1280, correct=100, anchor_logit=4.5)
    evidence = stored_evidence(stored(tmp_path, made_up_results(policy=policy)))
    assert (evidence.policy, evidence.steps) == (policy, 1000)
    assert evidence.runs(DEFAULT_READING).group_sizes == [2, 512, 131072]
    assert evidence.long_runs.steps == 4000


def test_other_policies_and_weights_are_left_out(tmp_path: Path) -> None:
    wanted = made_up_results()
    sizes = dict.fromkeys((8, 16, 32), 0.7)
    other_policy = made_up_runs(policy=PolicyConfig(actions=50, correct=5), retained=sizes, correct=sizes)
    other_weight = made_up_runs().assign(weight="constant", retained_mass=-1.0)
    evidence = stored_evidence(stored(tmp_path, pd.concat([other_weight, wanted, other_policy])))
    assert evidence.policy == PolicyConfig()
    assert evidence.runs(DEFAULT_READING).group_sizes == [2, 512, 131072]
    assert evidence.runs(DEFAULT_READING).rows["retained_mass"].min() >= 0


def test_damaged_table_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "sweep.parquet").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="damaged file"):
        stored_evidence(tmp_path)


@pytest.mark.parametrize(
    ("claim", "kept"),
    [
        ("E13", lambda results: results[results["gamma"] == 0]),
        ("E8", lambda results: results[results["group_size"] != 512]),
        ("E10", lambda results: results[results["steps"] == 1000]),
        ("E14", lambda results: results[results["reading"] != "hu2025"]),
    ],
)
def test_results_that_lack_a_part_leave_the_claim_undetermined(tmp_path: Path, claim: str, kept) -> None:
    evidence = stored_evidence(stored(tmp_path, kept(made_up_results())))
    assert RUNS[claim].judge(evidence) == Finding(Verdict.UNDETERMINED, NEEDS_RUNS)
    with pytest.raises(MissingRunsError, match=r"got \w+: run `fgrpo reproduce` with this folder as --out$"):
        RUNS[claim].check(evidence)


def test_other_errors_are_not_hidden() -> None:
    def broken(evidence: object) -> Finding:
        raise ValueError("something else")

    with pytest.raises(ValueError, match="something else"):
        Claim("X1", "", "", broken).judge(NO_RUNS)
