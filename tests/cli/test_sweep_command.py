"""fgrpo sweep run and status: what is computed, what is printed, and failures: one line, nothing lost."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fgrpo.cli import main
from fgrpo.simulate import engines, load_results, run_sweep, store, sweep_grid
from fgrpo.simulate.status import sweep_status
from fgrpo.simulate.store import ResultsFolder, load_plan

TINY = {"steps": 20, "actions": 128, "correct": 10}
OPTIONS = ["--steps", "20", "--actions", "128", "--correct", "10", "--workers", "1"]


def sweep(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["sweep", *map(str, arguments)])
    return (code, *capsys.readouterr())


def runs_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code, out, err = sweep(capsys, "run", *OPTIONS, *arguments)
    assert (code, err) == (0, "")
    return out


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code, out, err = sweep(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("fgrpo: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_no_command_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = sweep(capsys)
    assert code == 0
    assert "status" in out


def test_the_grid_is_that_of_the_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = runs_of(
        capsys,
        *("--group-size", "2,8", "--gamma", "0,1", "--learning-rate", "1e-3,1e-2", "--weight-decay", "0"),
        *("--optimizer", "adam,sgd", "--seeds", "2", "--set", "eps=1e-8", "--set", "betas=[0.8,0.9]"),
        *("--surrogate", "linear", "--advantage-scale", "std", "--weight", "constant", "--success-estimate", "shrunk"),
        *("--record-every", "5", "--out", tmp_path),
    )
    expected = sweep_grid(
        **TINY,
        **{"group_size": [2, 8], "gamma": [0, 1], "learning_rate": [1e-3, 1e-2], "optimizer": ["adam", "sgd"]},
        **{"seeds": 2, "betas": (0.8, 0.9), "surrogate": "linear", "advantage_scale": "std", "weight": "constant"},
        **{"success_estimate": "shrunk", "record_every": 5},
    )
    assert load_plan(tmp_path) == expected
    assert list(dict.fromkeys(load_results(tmp_path)["run_id"])) == [one.run_id for one in expected]
    assert "32 of 32 runs finished, 0 missing" in out
    assert len(out.splitlines()) == 4 + 1 + 1 + 16


def test_one_seed_or_several_by_themselves(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runs_of(capsys, "--group-size", "2", "--seed", "7", "--out", tmp_path)
    assert load_plan(tmp_path) == sweep_grid(**TINY, group_size=2, seed=7)
    runs_of(capsys, "--group-size", "2", "--seed", "7,9", "--out", tmp_path)
    assert load_plan(tmp_path) == sweep_grid(**TINY, group_size=2, seed=[7, 9])


def test_options_go_before_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(f"""
preset: hu2025
group_size: [2, 8]
seeds: 3
policy: {{actions: 128, correct: 10}}
update: {{learning_rate: [1e-3, 1e-2]}}
steps: 10
engine: reference
workers: 1
out: {tmp_path / "from_file"}
""")
    assert sweep(capsys, "run", "--config", file, "--quiet") == (0, "", "")
    whole = sweep_grid(
        preset="hu2025", group_size=[2, 8], seeds=3, actions=128, correct=10, learning_rate=[1e-3, 1e-2], steps=10
    )
    assert load_plan(tmp_path / "from_file") == whole
    assert set(load_results(tmp_path / "from_file")["engine"]) == {"reference"}
    options = ["--group-size", "4", "--seed", "1", "--learning-rate", "0.1", "--engine", "sparse"]
    assert sweep(capsys, "run", "--config", file, *options, "--out", tmp_path / "out", "--quiet")[0] == 0
    [only] = load_plan(tmp_path / "out")
    assert (only.group_size, only.seed, only.update.learning_rate, only.steps) == (4, 1, 0.1, 10)
    assert set(load_results(tmp_path / "out")["engine"]) == {"sparse"}


def test_a_dry_run_counts_and_computes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    grid = ["--group-size", "2,8", "--seeds", "3", "--engine", "reference", "--out", tmp_path / "new"]
    out = runs_of(capsys, *grid, "--dry-run")
    assert out.splitlines()[0] == "6 runs, 0 finished, 6 to compute"
    assert "6 with engine reference; on 1 process\n" in out
    assert "memory at most about" in out
    assert not (tmp_path / "new").exists()
    runs_of(capsys, *grid, "--group-size", "2")
    before = contents(tmp_path)
    plan = json.loads(runs_of(capsys, *grid, "--dry-run", "--json"))
    assert (plan["runs"], plan["finished"], plan["engines"]) == (6, 3, {"reference": 3})
    assert plan["bytes_needed"] == engines.ENGINES["reference"].bytes_needed(sweep_grid(**TINY, group_size=8)[0])
    assert contents(tmp_path) == before


def test_status_by_argument_or_option(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    closing = runs_of(capsys, "--group-size", "2,8", "--out", tmp_path)
    for arguments in ([tmp_path], ["--out", tmp_path]):
        assert sweep(capsys, "status", *arguments) == (0, closing, "")
    answer = json.loads(sweep(capsys, "status", tmp_path, "--json")[1])
    assert (answer["asked"], answer["finished"], answer["missing"], answer["damaged"]) == (2, 2, [], [])
    assert [row["group_size"] for row in answer["final"]] == [2, 8]
    assert json.loads(runs_of(capsys, "--group-size", "2,8", "--out", tmp_path, "--json")) == answer
    assert runs_of(capsys, "--group-size", "2,8", "--out", tmp_path, "--quiet") == ""
    assert "start a sweep" in fails(capsys, "status", tmp_path / "none")


def test_another_engines_runs_are_reused_and_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    grid = ["run", *OPTIONS, "--group-size", "2,8", "--out", tmp_path, "--quiet"]
    assert sweep(capsys, *grid, "--engine", "reference") == (0, "", "")
    assert sweep(capsys, *grid) == (0, "", "")
    assert sweep(capsys, *grid, "--device", "cpu") == (0, "", "")
    code, _, err = sweep(capsys, *grid, "--group-size", "2,8,4", "--engine", "sparse")
    assert code == 0
    assert err == "fgrpo: stored before, computed otherwise: 2 runs; --overwrite computes them again\n"
    assert sweep(capsys, *grid, "--engine", "sparse", "--overwrite") == (0, "", "")
    assert set(load_results(tmp_path)["engine"]) == {"sparse"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--group-size must be given, got none"),
        (["--group-size", "2,x"], "--group-size must be a whole number between 1 and 2147483647, got 'x'"),
        (["--group-size", "2147483648"], "--group-size must be a whole number between 1 and 2147483647"),
        (["--group-size", "2,,8"], "--group-size must be values separated by commas, got '2,,8'"),
        (["--group-size", ""], "--group-size must be one value or a list of them, got none"),
        (["--group-size", "2", "--seeds", "2", "--seed", "1"], "seeds must be given as a count or as themselves"),
        (["--group-size", "2", "--seeds", "0"], "seeds must be a whole number between 1 and"),
        (["--group-size", "2", "--set", "epz=1"], "did you mean 'eps'"),
        (["--group-size", "2", "--set", "eps"], "--set must be FIELD=VALUES, got 'eps'"),
        (["--group-size", "2", "--set", "gamma=1", "--gamma", "2"], "given once, got gamma twice"),
        (["--group-size", "2", "--weight", "focl"], "did you mean 'focal'"),
        (["--group-size", "2", "--engine", "spares"], "did you mean 'sparse'"),
        (["--group-size", "2", "--engine", "sparse", "--device", "tpu"], "device must be 'cpu' or 'cuda'"),
        (["--group-size", "2", "--workers", "0"], "workers must be a whole number"),
        (["--group-size", "2", "--scheduler", "nowhere"], "the scheduler must answer within 5 seconds, got 'nowhere'"),
        (["--group-size", "2", "--actions", "1000000000", "--engine", "reference"], "a run must fit in memory"),
        (["--config", "none.yaml"], "a file must exist, got none.yaml, which does not: check the path"),
        (["--group-sise", "2"], "No such option: --group-sise"),
        (["--group-sise", "2"], "try `fgrpo sweep run --help`"),
        (["--group-size", "2", "8", "32"], "lists are separated by commas without spaces, such as --group-size 2,8,32"),
        (["--group-size", "2", "--gamma", "nan"], "--gamma must be one real number, got 'nan': pass a focal exponent"),
        (["--group-size", "2", "--optimizer", "lion"], "got 'lion': pass one of them"),
        (["--group-size", "2", "--optimizer", "Adam"], "did you mean 'adam'?"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
) -> None:
    assert words in fails(capsys, "run", "--out", tmp_path, *arguments)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("enginee: sparse", "did you mean 'engine'"),
        ("engine: [sparse, torch]", "engine must be one name, got ['sparse', 'torch']"),
        ("workers: two", "workers must be a whole number"),
        ("out: [1]", "the results folder must be a path, got [1]"),
        ("gamma: [0", "a sweep file must be YAML"),
    ],
)
def test_a_bad_file_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(f"group_size: 2\nactions: 128\ncorrect: 10\n{line}\n")
    out = [] if line.startswith("out") else ["--out", tmp_path / "out"]
    assert words in fails(capsys, "run", "--config", file, *out)


def test_a_folder_of_another_kind_or_writer_is_one_line_and_stays(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = ["run", *OPTIONS, "--group-size", "2,8", "--out", tmp_path]
    assert sweep(capsys, *grid)[0] == 0
    before = contents(tmp_path)
    with ResultsFolder(tmp_path):
        assert "one writer at a time" in fails(capsys, *grid)
        assert sweep(capsys, "status", tmp_path)[0] == 0
    for name, value, words in (
        ("CONFIG_SCHEMA", 99, "configuration schema 2 (this is 99)"),
        ("versions", lambda: {"fgrpo_version": "7.1"}, "fgrpo version 0.1 (this is 7.1)"),
    ):
        monkeypatch.setattr(store, name, value)
        for arguments in (grid, [*grid, "--dry-run"], [*grid, "--overwrite"], ["status", tmp_path]):
            assert words in fails(capsys, *arguments)
        monkeypatch.undo()
    assert contents(tmp_path) == before


def test_a_damaged_run_is_named_and_computed_again_once_it_is_gone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    grid = ["run", *OPTIONS, "--group-size", "2,8", "--out", tmp_path]
    assert sweep(capsys, *grid)[0] == 0
    before = contents(tmp_path)
    path = tmp_path / "runs" / f"{load_plan(tmp_path)[1].run_id}.parquet"
    path.write_bytes(b"PAR1")
    assert f"got the damaged file {path}: delete it" in fails(capsys, *grid)
    code, out, _ = sweep(capsys, "status", tmp_path)
    assert code == 0
    assert f"damaged: {path}" in out
    path.unlink()
    assert sweep(capsys, *grid)[0] == 0
    assert contents(tmp_path) == before


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the fourth file is flushed: the plan and two runs are whole."""
    flushed: list[int] = []

    def flush(descriptor: int) -> None:
        flushed.append(descriptor)
        if len(flushed) == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    grid = ["run", *OPTIONS, "--group-size", "2,8,4,16", "--engine", "reference", "--out", tmp_path / "full"]
    monkeypatch.setattr(os, "fsync", flush)
    error = fails(capsys, *grid)
    assert "(No space left on device): free space or choose another folder" in error
    monkeypatch.undo()
    kept = contents(tmp_path / "full")
    assert len([name for name in kept if name.startswith("runs")]) == 2
    assert not [*(tmp_path / "full").rglob("*.tmp")]
    _whole_and_equal(capsys, grid, tmp_path, kept)


def test_a_limit_of_the_systems_is_one_line_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file may have 10,000 bytes: enough for the plan, too little for a run."""
    resource = pytest.importorskip("resource", reason="no limit of a file's size on this system")
    grid = ["run", *OPTIONS, "--group-size", "2,8", "--engine", "reference", "--out", tmp_path / "full"]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        error = fails(capsys, *grid)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "(File too large): free space or choose another folder" in error
    kept = contents(tmp_path / "full")
    assert [*kept] == ["plan.parquet"]
    _whole_and_equal(capsys, grid, tmp_path, kept)


def _whole_and_equal(capsys: pytest.CaptureFixture[str], grid: list[Any], tmp: Path, kept: dict[str, bytes]) -> None:
    """The same command goes on, keeps what there was, and ends where an undisturbed sweep ends."""
    assert sweep(capsys, *grid)[0] == 0
    run_sweep(load_plan(tmp / "full"), tmp / "undisturbed", workers=1, engine="reference")
    whole = contents(tmp / "full")
    assert kept.items() <= whole.items()
    assert whole == contents(tmp / "undisturbed")


def test_groups_of_one_are_warned_of_where_they_have_no_gradient(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    grid = ["run", *OPTIONS, "--group-size", "1,2", "--seeds", "2", "--quiet", "--out", tmp_path]
    line = "fgrpo: warning: N = 1 in 2 of 4 runs: a group of one rollout has advantage 0 and so never a gradient"
    code, out, err = sweep(capsys, *grid)
    assert (code, out, err.count("\n")) == (0, "", 1)
    assert err.startswith(line)
    results = load_results(tmp_path)
    assert (results[results["group_size"] == 1]["retained_mass"] == 1).all()
    # raw rewards, no advantages: a single rollout moves the policy
    assert sweep(capsys, *grid, "--surrogate", "linear_distinct") == (0, "", "")
    results = load_results(tmp_path)
    assert (results[(results["group_size"] == 1) & (results["step"] == 20)]["retained_mass"] < 1).all()


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_of(capsys, "--group-size", "2", "--out", tmp_path)
    known = sweep_status(tmp_path)
    undefined = replace(known, final=known.final.assign(retained_mass=float("nan")))
    monkeypatch.setattr("fgrpo.simulate.status.sweep_status", lambda folder: undefined)
    for arguments in (["run", *OPTIONS, "--group-size", "2", "--out", tmp_path], ["status", tmp_path]):
        code, out, err = sweep(capsys, *arguments, "--json")
        assert (code, err) == (0, "")
        [row] = json.loads(out, parse_constant=pytest.fail)["final"]
        assert row["retained_mass"] is None
        assert row["correct_mass"] > 0


def test_a_foreign_folder_is_refused_also_by_a_dry_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("mine")
    for options in ([], ["--dry-run"]):
        message = fails(capsys, "run", *OPTIONS, "--group-size", "2", "--out", tmp_path, *options)
        assert f"with the file index.md: choose another --out, such as {tmp_path / 'sweep'}" in message
    assert [path.name for path in tmp_path.iterdir()] == ["index.md"]


def test_one_run_is_one_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = runs_of(capsys, "--group-size", "2", "--out", tmp_path, "--dry-run")
    assert plan.startswith("1 run, 0 finished, 1 to compute\n")
    assert "on 1 process\n" in plan
    assert "1 of 1 run finished, 0 missing" in runs_of(capsys, "--group-size", "2", "--out", tmp_path)
