"""`fgrpo prove`: a line for each proof, JSON, and an exit code that tells whether all stand."""

import json
import re
from dataclasses import replace

import pytest

from fgrpo.cli import main
from fgrpo.theory import proofs

LINE = re.compile(r"(\w+): ok, (\d+) steps checked by sympy, (\d+) on named lemmas, \d+\.\d\d s")


@pytest.fixture
def broken_lemma(monkeypatch: pytest.MonkeyPatch) -> str:
    """Lemma 3.1 with the checks of its falsified variant in place of its own."""
    lemma = proofs.PROOFS["lemma_3_1"]
    broken = replace(lemma, steps=lemma.wrong.steps)
    monkeypatch.setattr(proofs, "PROOFS", {**proofs.PROOFS, "lemma_3_1": broken})
    return next(step.text for step in broken.verify().failed)


def test_every_proof_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove"]) == 0
    lines = [LINE.fullmatch(line) for line in capsys.readouterr().out.splitlines()]
    assert [line and line[1] for line in lines] == list(proofs.PROOFS)
    assert all(line and int(line[2]) > 0 for line in lines)


def test_named_proofs_run_in_the_order_of_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "integer_peak", "lemma_3_1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["integer_peak", "lemma_3_1"]
    lemma = LINE.fullmatch(lines[1])
    steps = proofs.PROOFS["lemma_3_1"].steps
    assert lemma is not None
    assert int(lemma[2]) == sum(step.check is not None for step in steps)
    assert int(lemma[3]) == sum(step.check is None for step in steps)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "integer_peak", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    report = proofs.verify("integer_peak")
    assert (row["name"], row["ok"]) == ("integer_peak", True)
    assert (row["checked"], row["on_lemmas"]) == (report.checked, report.on_lemmas)
    assert row["seconds"] == pytest.approx(sum(step["seconds"] for step in row["steps"]))
    assert [(step["text"], step["ok"], step["how"]) for step in row["steps"]] == [
        (step.text, step.ok, step.how) for step in report.steps
    ]


def test_a_failure_is_named_and_exits_with_1(capsys: pytest.CaptureFixture[str], broken_lemma: str) -> None:
    assert main(["prove", "integer_peak", "lemma_3_1"]) == 1
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith("integer_peak: ok")
    assert lines[1].startswith("lemma_3_1: FAILED")
    assert f"  not established: {broken_lemma}" in lines[2:]
    assert captured.err == ""


def test_a_failure_exits_with_1_in_json_too(capsys: pytest.CaptureFixture[str], broken_lemma: str) -> None:
    assert main(["prove", "lemma_3_1", "integer_peak", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [row["ok"] for row in rows] == [False, True]
    assert broken_lemma in [step["text"] for step in rows[0]["steps"] if not step["ok"]]


@pytest.mark.parametrize("arguments", [["lema_3_1"], ["integer_peak", "lema_3_1"], ["lema_3_1", "--json"]])
def test_an_unknown_name_is_one_line_and_runs_nothing(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["prove", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "got 'lema_3_1': did you mean 'lemma_3_1'?" in captured.err
