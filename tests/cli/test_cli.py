"""The command line: what it prints, and that every failure is one line with exit code 2."""

import json
from pathlib import Path

import pytest

from fgrpo.cli import main


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
    assert lines[4] == "most tail misses per step at N = 3"


def test_tail_miss_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tail-miss", "--success-rate", "0.5", "--rare-mass", "0", "--group-size", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    row = {"group_size": 2, "active_probability": 0.5, "tail_miss_probability": 0.5}
    assert answer == {"peak_group_size": None, "rows": [row]}


@pytest.mark.parametrize(
    ("mu", "tau", "words"), [("0.5", "0.5", "no group size has"), ("0.5", "0", "a region of no mass")]
)
def test_tail_miss_without_a_peak(capsys: pytest.CaptureFixture[str], mu: str, tau: str, words: str) -> None:
    assert main(["tail-miss", "--success-rate", mu, "--rare-mass", tau]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "No such command"),
        (["tail-miss"], "--success-rate"),
        (["tail-miss", "--success-rate", "2", "--rare-mass", "0"], "success_rate must be between 0 and 1, got 2.0"),
        (["tail-miss", "--success-rate", "nan", "--rare-mass", "0"], "success_rate must be between 0 and 1, got nan"),
        (["tail-miss", "--success-rate", ".1", "--rare-mass", ".2"], "rare_mass must be at most success_rate"),
        (
            ["tail-miss", "--success-rate", ".1", "--rare-mass", ".1", "--group-size", "2,x"],
            "--group-size must be whole",
        ),
        (["tail-miss", "--success-rate", ".1", "--rare-mass", ".1", "--group-size", "-2"], "group_size must be 0 or"),
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


def test_figure_2_needs_no_results(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["figure", "2", "--out", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure_2.csv", "figure_2.pdf", "figure_2.png"]
    assert capsys.readouterr().out.splitlines()[0].endswith("figure_2.png")


def test_figure_4_without_results_says_how_to_get_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "run" in fails(capsys, "figure", "4", "--out", str(tmp_path))


def test_output_path_that_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    assert str(file) in fails(capsys, "reproduce", "--quick", "--out", str(file))
    assert file.read_text() == "kept"


def test_interruption_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fgrpo.reproduce.reproduce", interrupted)
    assert "interrupted" in fails(capsys, "reproduce")
