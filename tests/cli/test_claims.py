"""`fgrpo claims`: the page or JSON on stdout or in a file, and one line on stderr where runs are missing."""

import json
from pathlib import Path

import pytest

from fgrpo.claims import ledger
from fgrpo.cli import main
from reference.simulated_results import made_up_results, store_results


@pytest.fixture(autouse=True)
def few_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """One claim by theory and one about runs: the whole ledger is tested by itself."""
    monkeypatch.setattr(ledger, "CLAIMS", tuple(claim for claim in ledger.CLAIMS if claim.id in ("A3", "E8")))


def test_without_runs_one_line_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["claims", "--results", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("# The paper's claims, one by one\n")
    assert "| E8 | " in captured.out
    assert captured.err == f"fgrpo: E8 undetermined: {tmp_path} lacks results of `fgrpo reproduce` (--results)\n"


def test_with_runs_into_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    store_results(made_up_results(), tmp_path)
    page = tmp_path / "claims.md"
    assert main(["claims", "--results", str(tmp_path), "--out", str(page)]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert (
        "**holds if the update is read as figure_matching (p_j means p_j / p_j^old, no weight decay), and T = 1000**"
        in page.read_text(encoding="utf-8")
    )


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["claims", "--json", "--results", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["id"], row["verdict"]) for row in rows] == [("A3", "holds"), ("E8", "undetermined here")]


def test_one_claim(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["claims", "A3", "--results", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    labels = [line.partition(": ")[0] for line in captured.out.splitlines()]
    assert labels == ["A3 (Lemma 3.1)", "Verdict", "Evidence", "Sharpened", "Proofs"]
    assert "Verdict: holds.\n" in captured.out
    assert captured.err == ""
    assert main(["claims", "E8", "A3", "--json", "--results", str(tmp_path)]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == ["E8", "A3"]
    assert main(["claims", "A33", "--results", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "fgrpo: claim must be one of A3, E8, got 'A33': did you mean 'A3'?\n"


@pytest.mark.parametrize("arguments", [["--out", "{}/no/claims.md"], ["--results", "{}"], ["--results", "{}/no"]])
def test_failures_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "sweep.parquet").write_bytes(b"nothing")
    folder = tmp_path / "empty"
    folder.mkdir()
    arguments = [argument.format(tmp_path) for argument in arguments]
    others = ["--results", str(folder)] if arguments[0] == "--out" else []
    assert main(["claims", *arguments, *others]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fgrpo: ")
    assert captured.err.count("\n") == 1
