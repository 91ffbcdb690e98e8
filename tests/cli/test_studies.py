"""fgrpo sweep compare, readings, zone: small runs from the command line, resumed, refused in one line."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from fgrpo.cli import main
from fgrpo.simulate import paper_sweep, run_sweep
from fgrpo.simulate.grid import read_grid
from fgrpo.simulate.readings import SENTENCES

COMPARE = ("sweep", "compare", "--group-size", "2,4", "--gamma", "1", "--seeds", "2", "--steps", "4", "--workers", "1")
READINGS = (
    *("sweep", "readings", "--reading", "figure_matching;p, Adam", "--group-size", "2,4,8", "--seeds", "2"),
    *("--steps", "4", "--actions", "60", "--correct", "20", "--workers", "1"),
)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_compare_runs_prints_and_draws(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = ("--out", str(tmp_path))
    text = answer(capsys, *COMPARE, *out)
    assert "N = 4: M_ret (retained_mass) at matched rollouts" in text
    for arm in ("baseline", "focal 1", "low learning rate 1", "constant scale 1"):
        assert f"\n{arm}" in text
    assert text.splitlines()[-3:] == [str(tmp_path / f"comparison.{suffix}") for suffix in ("png", "pdf", "csv")]
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    assert len(files) == 2 * 2 * 4
    table = pd.DataFrame(json.loads(answer(capsys, *COMPARE, *out, "--json")))
    # floats as text and back
    pd.testing.assert_frame_equal(table, pd.read_csv(tmp_path / "comparison.csv"), check_dtype=False, rtol=1e-12)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()} == files  # none run again
    at_the_end = table[(table["progress"] == "rollouts") & (table["level"] == 4 * 4) & (table["group_size"] == 4)]
    sweep = pd.read_parquet(tmp_path / "sweep.parquet")
    last = sweep[(sweep["step"] == 4) & (sweep["group_size"] == 4) & (sweep["gamma"] == 1)]
    [focal] = at_the_end[(at_the_end["kind"] == "focal") & (at_the_end["outcome"] == "retained_mass")]["mean"]
    assert focal == pytest.approx(last["retained_mass"].mean(), rel=1e-12)


@pytest.mark.parametrize("command", [COMPARE, READINGS])
def test_groups_of_one_are_warned_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise ValueError("stop")

    monkeypatch.setattr(f"fgrpo.studies.{command[1]}", stop)
    sizes = command[command.index("--group-size") + 1]
    assert main([f"1,{sizes}" if word == sizes else word for word in command]) == 2
    assert re.match(r"fgrpo: warning: N = 1 in \d+ of \d+ runs: .*\nfgrpo: stop\n$", capsys.readouterr().err)
    assert main(command) == 2
    assert capsys.readouterr().err == "fgrpo: stop\n"


def test_readings_run_print_and_draw(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = ("--out", str(tmp_path))
    text = answer(capsys, *READINGS, *out)
    assert text.split("\n")[0].split() == ["reading", *(word for n in "248" for word in ("N", "=", n)), *SENTENCES]
    assert text.split("\n")[2].startswith("figure_matching")
    assert text.split("\n")[3].startswith("p, Adam")
    assert (tmp_path / "readings.png").is_file()
    table = pd.DataFrame(json.loads(answer(capsys, *READINGS, *out, "--json")))
    assert list(table["group_size"]) == [2, 4, 8] * 2
    quiet = answer(capsys, *READINGS, *out, "--quiet")
    assert "readings.png" not in quiet


def test_zone_reads_the_sweep_in_the_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    varied = {"group_sizes": (2, 4), "gammas": (0,), "seeds": range(2), "actions": 60, "correct": 20}
    runs = [run for rate in (0.01, 0.1) for run in paper_sweep(**varied, steps=20, learning_rate=rate)]
    run_sweep(runs, tmp_path, workers=1)
    text = answer(capsys, "sweep", "zone", "--steps", "10,20", "--out", str(tmp_path))
    assert text.startswith("learning rate 0.01, T 10: zone N = ")
    assert (tmp_path / "zone.csv").is_file()
    table = pd.DataFrame(json.loads(answer(capsys, "sweep", "zone", "--steps", "20", "--out", str(tmp_path), "--json")))
    assert list(table["step"]) == [20] * 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", "--gamma", "0,1"), "--gamma must be at least one focal exponent above 0, got 0, 1"),
        (("compare", "--gamma", "x"), "--gamma must be numbers separated by commas"),
        (("compare", "--group-size", "2.5"), "--group-size must be whole numbers"),
        (("compare", "--preset", "figure"), "did you mean 'figure_matching'"),
        (("compare", "--success-estimate", "empiric"), "did you mean 'empirical'"),
        (("compare", "--seeds", "1"), "an interval needs at least 2 seeds, got 1"),
        (("compare", "--seeds", "0"), "an interval needs at least 2 seeds, got 0"),
        (("compare", "--against", "focal 3"), "--against must be one of 'baseline', 'focal 0.1'"),
        (("readings", "--reading", "ratio"), "reading must be one of"),
        (("readings", "--group-size", "2,4"), "the sentences speak of small, middle and large N, got 2 of them"),
        (("readings", "--seeds", "-1"), "an interval needs at least 2 seeds, got 0"),
        (("zone",), "a results folder must hold the file sweep.parquet"),
        (("zone", "--steps", "a"), "--steps must be whole numbers"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert words in complaint(capsys, "sweep", *arguments, "--out", str(tmp_path))
    assert not list(tmp_path.glob("*"))  # said before anything is run


STUDIES = sorted((Path(__file__).parents[2] / "docs" / "studies").glob("*.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_stored_studies_can_be_run_as_they_say(capsys: pytest.CaptureFixture[str], tmp_path: Path, path: Path) -> None:
    run, zone = re.findall(r"^# fgrpo (.*)$", path.read_text(), flags=re.M)
    asked = [str(path) if word == f"docs/studies/{path.name}" else word for word in run.split()]
    folder = asked[asked.index("--out") + 1]
    asked[asked.index("--out") + 1] = str(tmp_path)
    plan = json.loads(answer(capsys, *asked, "--dry-run", "--json"))
    assert plan["runs"] >= 16
    # the zone is asked for where the sweep lies, at steps that are recorded
    assert zone.split()[zone.split().index("--out") + 1] == folder
    values, _ = read_grid(path, ())
    steps = zone.split()[zone.split().index("--steps") + 1].split(",")
    assert all(int(step) % values["record_every"] == 0 for step in steps)
    assert int(steps[-1]) == values["steps"]
