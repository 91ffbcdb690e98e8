"""The command line: what it prints, and that every failure is one line with exit code 2."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from fgrpo.as_typed import as_typed
from fgrpo.cli import app, main
from fgrpo.reproduce import reproduce
from fgrpo.simulate import RunConfig


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fgrpo: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def test_no_command_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "reproduce" in capsys.readouterr().out


def test_tail_miss_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tail-miss", "--success-rate", "0.5", "--rare-mass", "0.25", "--group-size", "0,1,2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:4]] == [["0", "0", "0"], ["1", "0", "0"], ["2", "0.5", "0.25"]]
    assert lines[4] == "Pr(tail miss) of a group is highest at N = 3"


def test_tail_miss_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tail-miss", "--success-rate", "0.5", "--rare-mass", "0", "--group-size", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    row = {"group_size": 2, "active_probability": 0.5, "tail_miss_probability": 0.5}
    assert answer == {"peak_group_size": None, "rows": [row]}


@pytest.mark.parametrize(("tau", "words"), [("0.5", "no group size has"), ("0", "a region of no mass")])
def test_tail_miss_without_a_peak(capsys: pytest.CaptureFixture[str], tau: str, words: str) -> None:
    assert main(["tail-miss", "--success-rate", "0.5", "--rare-mass", tau]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "No such command 'nothing': try `fgrpo --help`"),
        (["sweep", "nothing"], "try `fgrpo sweep --help`"),
        (["doctor", "now"], "try `fgrpo doctor --help`"),
        (
            ["tail-miss", "--success-rate", "0,3", "--rare-mass", "0"],
            "--success-rate must be a number, got '0,3': write a decimal point, 0.3",
        ),
        (["advise", "--group-size=x"], "--group-size must be a whole number, got 'x': try `fgrpo advise --help`"),
        (["tail-miss", "--success-rate", ".1", "--rare-mass", "0", "--group-size", "2,", "8"], "--group-size 2,8"),
        (["tail-miss"], "Missing option '--success-rate': try `fgrpo tail-miss --help`"),
        (["tail-miss", "--success-rate", "2", "--rare-mass", "0"], "--success-rate must be between 0 and 1, got 2"),
        (["tail-miss", "--success-rate", "nan", "--rare-mass", "0"], "--success-rate must be between 0 and 1, got nan"),
        (["tail-miss", "--success-rate", ".1", "--rare-mass", ".2"], "--rare-mass must be at most --success-rate"),
        (["tail-miss", "--success-rate", ".1", "--rare-mass", ".1", "--group-size", "2,x"], "--group-size must be"),
        (["tail-miss", "--success-rate", ".1", "--rare-mass", ".1", "--group-size", "-2"], "--group-size must be 0 or"),
        (["figure", "7"], "not one of"),
        (["reproduce", "--workers", "0"], "workers must be"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
) -> None:
    if arguments[0] == "reproduce":
        arguments = [*arguments, "--out", str(tmp_path)]
    assert words in fails(capsys, *arguments)


def test_output_path_that_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    assert str(file) in fails(capsys, "reproduce", "--quick", "--out", str(file))
    assert file.read_text() == "kept"


@pytest.mark.parametrize("error", [ValueError("a bug inside"), OSError("no room")])
def test_traceback_on_demand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("fgrpo.drawing.draw_figures", broken)
    assert str(error) in fails(capsys, "figure", "2")
    monkeypatch.setenv("FGRPO_TRACEBACK", "0")
    assert str(error) in fails(capsys, "figure", "2")
    monkeypatch.setenv("FGRPO_TRACEBACK", "1")
    with pytest.raises(type(error), match=str(error)):
        main(["figure", "2"])
    assert "not one of" in fails(capsys, "figure", "7")  # misuse needs no traceback


@pytest.mark.parametrize(("quick", "runs"), [(False, 17 * 2 * 4 + 4 * 2 * 2 + (5 + 6) * 2 * 8), (True, 68 + 12)])
def test_every_reading_runs_with_and_without_the_weight(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quick: bool, runs: int
) -> None:
    planned: list[RunConfig] = []

    def only_planned(configs: list[RunConfig], *_: object, **__: object) -> None:
        planned.extend(configs)
        raise InterruptedError

    monkeypatch.setattr("fgrpo.reproduce.run_sweep", only_planned)
    with pytest.raises(InterruptedError):
        reproduce(tmp_path, quick=quick)
    assert len(set(planned)) == runs
    for reading in ("figure_matching", "appendix_j_literal", "hu2025"):
        of_reading = [one for one in planned if one.reading == reading]
        unweighted = {replace(one, gamma=0.0) for one in of_reading}
        assert {one.gamma for one in of_reading} == {0.0, 1.0}
        assert len(of_reading) == 2 * len(unweighted)


def test_interruption_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fgrpo.reproduce.reproduce", interrupted)
    assert "interrupted" in fails(capsys, "reproduce")


@pytest.mark.parametrize("command", ["advise", "tail-miss"])
def test_a_group_size_of_400_digits_is_quoted_short(capsys: pytest.CaptureFixture[str], command: str) -> None:
    message = fails(capsys, command, "--success-rate", ".3", "--rare-mass", ".03", "--group-size", "9" * 400)
    assert "--group-size must be within float64, got " in message
    assert len(message) < 150


def test_groups_too_large_to_average_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text("samples,correct\n8,2\n")
    one = ("--success-rate", ".3", "--rare-mass", ".03", "--gamma", ".5")
    many = ("--counts", str(tmp_path / "counts.csv"), "--rare-fraction", ".1")
    for prompts in (one, many):
        assert "--group-size must be at most 1e+0" in fails(capsys, "advise", *prompts, "--group-size", str(10**12))


@pytest.mark.parametrize("sizes", ["8", ",".join(map(str, range(2, 20_002)))])
def test_a_reader_that_stops_reading_ends_the_command_quietly(sizes: str) -> None:
    command = [sys.executable, "-m", "fgrpo", "tail-miss", "--success-rate", ".3", "--rare-mass", ".03"]
    process = subprocess.Popen([*command, "--group-size", sizes], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (141, b"")


def commands(group: Any, name: str = "fgrpo") -> Iterator[str]:
    """Every name under which the help has a page."""
    yield name
    for word, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{name} {word}")


@pytest.mark.parametrize("name", [*commands(get_command(app))])
def test_every_help_shows_an_example(capsys: pytest.CaptureFixture[str], name: str) -> None:
    if name == "fgrpo train":
        pytest.importorskip("trl")
    assert main([*name.split()[1:], "--help"]) == 0
    assert re.search(r"Examples?:\s+fgrpo ", " ".join(capsys.readouterr().out.split()))


TYPED = ["sweep", "run", "--group-size", "2", "--config", "study.yaml"]


@pytest.mark.parametrize(
    ("message", "arguments", "words"),
    [
        ("group_size must be below steps, got 3", ["sweep", "run"], "--group-size must be below steps, got 3"),
        ("gamma must be at least 0: gamma = 0", ["advise"], "--gamma must be at least 0: gamma = 0"),
        ("x.csv: k must be 1: pass k", ["evaluate", "table"], "x.csv: --k must be 1: pass k"),
        ("use a/group_size.csv or 'group_size'", ["advise"], "use a/group_size.csv or 'group_size'"),
        ("learning_rate and group_size, as in the file", TYPED, "learning_rate and --group-size, as in the file"),
        ("steps must be above 0", TYPED, "steps must be above 0"),
        ("group_size must be whole", ["nothing"], "group_size must be whole"),
        ("group_size must be whole", [], "group_size must be whole"),
    ],
)
def test_options_are_named_as_they_are_typed(message: str, arguments: list[str], words: str) -> None:
    assert as_typed(message, get_command(app), arguments) == words
