"""The tiny-world experiment for a few updates: records against the exact evaluator, resuming, failures, the command."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fgrpo import experiment_jobs
from fgrpo.cli import main
from fgrpo.experiment_jobs import BASES, RUNS, Job, run_experiment
from fgrpo.llm.experiment.arms import ARMS
from fgrpo.llm.experiment.protocol import EVALUATION, GROUP, Protocol
from fgrpo.llm.experiment.recorder import Records
from fgrpo.llm.experiment.run import run_arm
from fgrpo.llm.tiny_world.exact import exact_policy
from fgrpo.llm.tiny_world.model import build_model
from fgrpo.llm.tiny_world.modes import answer_modes
from fgrpo.llm.tiny_world.task import SUMS, correct_completions, prompts

SHORT = Protocol(seeds=1, steps=4, evaluate_every=1, pretraining_steps=40)
PAIR = [ARMS["grpo_n8"], ARMS["focal_g1_n8"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experiment")


@pytest.fixture(scope="module")
def runs(folder: Path) -> pd.DataFrame:
    return run_experiment(PAIR, SHORT, folder, workers=1, write=lambda line: None)


def test_records_are_those_of_the_policies(runs: pd.DataFrame) -> None:
    """Groups against the evaluations around them, and the closed form written out."""
    exact = runs[runs["table"] == EVALUATION].set_index(["arm", "step", "prompt"])
    groups = runs[runs["table"] == GROUP]
    assert len(exact) == 2 * 5 * 16
    assert len(groups) == 2 * 4 * 8
    for _, group in groups.iterrows():
        at = (group["arm"], group["step"], group["prompt"])
        after = exact.loc[(at[0], at[1] + 1, at[2])]
        mu, tau = group["success_rate"], group["rare_mass"]
        assert mu == pytest.approx(exact.loc[at, "correct_mass"], rel=1e-5)
        assert tau == pytest.approx(exact.loc[at, "rare_mass"], rel=1e-5)
        assert group["correct_mass_change"] == pytest.approx(after["correct_mass"] - mu, abs=1e-5)
        miss = (1 - tau) ** 8 - (mu - tau) ** 8 - (1 - mu) ** 8
        assert group["tail_miss_probability"] == pytest.approx(miss, rel=1e-9)
        rate = group["empirical_success_rate"]
        assert rate * 8 == int(rate * 8)
        assert group["is_active"] == (0 < rate < 1)
        assert group["focal_weight"] == (1.0 if group["arm"] == "grpo_n8" else 1 - rate)
    first = exact.xs(0, level="step")
    assert first["retained_mass"].to_numpy() == pytest.approx(1.0)
    assert exact.xs(4, level="step")["kl"].min() > 0
    assert exact["rollouts"].groupby(level="step").first().tolist() == [0, 64, 128, 192, 256]
    start = first.loc["grpo_n8"]["correct_mass"], first.loc["focal_g1_n8"]["correct_mass"]
    assert (start[0] == start[1]).all()
    drawn = groups[groups["step"] == 0].set_index(["arm", "prompt"])["empirical_success_rate"]
    assert (drawn["grpo_n8"] == drawn["focal_g1_n8"]).all()  # paired: same prompts and rollouts until weights differ
    assert set(groups[groups["step"] == 0]["prompt"]) | set(groups[groups["step"] == 1]["prompt"]) == set(prompts())


def test_records_leave_the_run_as_it_is(runs: pd.DataFrame, folder: Path) -> None:
    bare = Protocol(seeds=1, steps=4, evaluate_every=4, pretraining_steps=40, tail_miss_updates=0)
    again = run_arm(ARMS["focal_g1_n8"], 0, bare, folder / BASES)
    last = [
        table.query("table == 'evaluation' and step == 4 and arm == 'focal_g1_n8'")["correct_mass"].to_numpy()
        for table in (runs, again)
    ]
    assert (last[0] == last[1]).all()


def test_groups_by_hand() -> None:
    """Rollouts that are made up: what is a tail miss, and which mass was not sampled."""
    modes, model = answer_modes(0), build_model(0)
    records = Records(ARMS["grpo_n2"], modes, [0], 10)
    total, row = 6, 0
    answers = list(correct_completions(total))
    rare = next(text for text in answers if modes.rare_PA[row][int(text[:2])])
    common = next(text for text in answers if modes.common_PA[row][int(text[:2])])
    cases = [((rare, "999"), False), ((common, "999"), True), ((common, common), False), (("999", "12"), False)]
    completions = [text for texts, _ in cases for text in texts]
    rewards = np.array([float(text in answers) for text in completions])
    records.generation(model, 3, ["a06:"] * 4, completions, rewards, np.array([1.0, 0.5, 0.0, 1.0]))
    policy = exact_policy(model, ["a06:"])
    probability = {text: float(policy.correct_PA[0][int(text[:2])]) for text in answers}
    for group, (texts, is_miss) in zip(records.groups, cases, strict=True):
        assert group["is_tail_miss"] == is_miss
        left = sum(p for text, p in probability.items() if text not in texts)
        assert group["unsampled_correct_mass"] == pytest.approx(left, rel=1e-6)
        assert "correct_mass_change" not in group
    assert [group["focal_weight"] for group in records.groups] == [1.0, 0.5, 0.0, 1.0]
    other = exact_policy(build_model(1), prompts())
    records.close_changes(other)
    after = {text: float(other.correct_PA[SUMS.index(total)][int(text[:2])]) for text in answers}
    change = sum(after.values()) - sum(probability.values())
    assert records.groups[0]["correct_mass_change"] == pytest.approx(change, rel=1e-4)
    assert records.groups[0]["unsampled_mass_change"] == pytest.approx(
        change - after[rare] + probability[rare], rel=1e-4
    )


def test_finished_runs_are_kept_and_a_failure_is_named(
    runs: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {path: path.stat().st_mtime_ns for path in (folder / RUNS).iterdir()}
    assert len(files) == 2
    original = Job.__call__
    called = []

    def failing(job: Job) -> Any:
        called.append(job.title)
        return (job, "OSError: disk full") if job.arm.name == "grpo_n2" else original(job)

    monkeypatch.setattr(Job, "__call__", failing)
    lines: list[str] = []
    arms = [ARMS["grpo_n2"], *PAIR, ARMS["low_lr"]]
    with pytest.raises(
        ValueError, match=r"got failures of grpo_n2, seed 0 \(OSError: disk full\): the others are kept"
    ):
        run_experiment(arms, SHORT, folder, workers=1, write=lines.append)
    assert lines[0] == "2 of 4 runs were done before"
    assert sorted(called) == ["grpo_n2, seed 0", "low_lr, seed 0"]
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert len(list((folder / RUNS).iterdir())) == 3
    assert Job(ARMS["low_lr"], 0, SHORT, folder).path.exists()


def test_an_error_inside_a_run_becomes_its_outcome(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr("fgrpo.llm.experiment.run.run_arm", broken)
    job, problem = Job(ARMS["kl"], 0, SHORT, folder)()
    assert problem == "RuntimeError: no memory"
    assert not job.path.exists()


def test_files_are_named_by_what_decides_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(ARMS["kl"], 0, SHORT, folder)
    others = [
        Job(ARMS["kl"], 1, SHORT, folder),
        Job(ARMS["entropy"], 0, SHORT, folder),
        Job(ARMS["kl"], 0, Protocol(steps=5), folder),
    ]
    assert len({job.path, *(other.path for other in others)}) == 4
    assert (
        Job(ARMS["kl"], 0, Protocol(seeds=9, steps=4, evaluate_every=1, pretraining_steps=40), folder).path == job.path
    )
    before = job.path
    monkeypatch.setattr(experiment_jobs, "_digest_of_code", lambda: "other")
    assert job.path != before


def test_a_killed_experiment_goes_on_and_a_broken_file_is_made_again(runs: pd.DataFrame, folder: Path) -> None:
    code = (
        "from pathlib import Path; from fgrpo.experiment_jobs import run_experiment\n"
        "from fgrpo.llm.experiment.arms import ARMS; from fgrpo.llm.experiment.protocol import Protocol\n"
        "short = Protocol(seeds=1, steps=4, evaluate_every=1, pretraining_steps=40)\n"
        "run_experiment([ARMS['sgd'], ARMS['focal_sgd']], short, Path(__import__('sys').argv[1]), workers=1)"
    )
    first, second = (Job(ARMS[name], 0, SHORT, folder).path for name in ("sgd", "focal_sgd"))
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + 300
        while not first.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert first.exists()
    assert not second.exists()
    written = first.stat().st_mtime_ns
    second.write_bytes(first.read_bytes()[:1000])  # as no atomic write would leave it
    lines: list[str] = []
    table = run_experiment([ARMS["sgd"], ARMS["focal_sgd"]], SHORT, folder, workers=1, write=lines.append)
    assert lines == ["1 of 2 runs were done before", "1 of 1: focal_sgd, seed 0"]
    assert first.stat().st_mtime_ns == written
    assert set(table["arm"]) == {"sgd", "focal_sgd"}


def test_command_writes_report_numbers_figure_and_table(
    runs: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, Any] = {}

    def done(arms: Any, protocol: Protocol, out: Path, **options: Any) -> pd.DataFrame:
        seen.update(arms=[arm.name for arm in arms], protocol=protocol, **options)
        out.mkdir(exist_ok=True)
        return runs

    monkeypatch.setattr(experiment_jobs, "run_experiment", done)
    words = [
        "experiment",
        "tiny-world",
        "--seeds",
        "1",
        "--steps",
        "4",
        "--arms",
        "focal_g1_n8",
        "--out",
        str(tmp_path),
    ]
    assert main(words) == 0
    names = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert names == ["report.md", "numbers.json", "runs.parquet", "tiny_world.png", "tiny_world.pdf", "tiny_world.csv"]
    assert all((tmp_path / name).stat().st_size > 0 for name in names)
    assert seen["arms"] == ["grpo_n8", "focal_g1_n8"]
    assert (seen["protocol"].seeds, seen["protocol"].steps) == (1, 4)
    assert main([*words, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["primary"]["verdict"] == "undetermined"
    assert content["tail_miss"][0]["groups"] == 32
    assert len(pd.read_parquet(tmp_path / "runs.parquet")) == len(runs)
    for bad, message in (
        (["--arms", "nothing"], "fgrpo: --arms, if neither core nor all, must be one of grpo_n8, "),
        (["--seeds", "0"], "fgrpo: --seeds must be"),
    ):
        assert main(["experiment", "tiny-world", *bad]) == 2
        assert capsys.readouterr().err.startswith(message)


def test_workers_must_be_one_or_more(folder: Path) -> None:
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        run_experiment(PAIR, SHORT, folder, workers=0)
