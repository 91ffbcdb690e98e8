import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from fgrpo.simulate import (
    RunConfig,
    batches,
    engines,
    load_results,
    paper_sweep,
    plan_sweep,
    run_sweep,
    simulate,
    sweep,
)
from fgrpo.simulate.progress import progress_bar
from fgrpo.simulate.store import load_plan
from fgrpo.simulate.sweep import PAPER_GROUP_SIZES, quick_sweep
from reference.simulation import simulate_or_fail

TINY = {"actions": 128, "correct": 10, "steps": 20}
# long enough to be interrupted, some seconds in all
SLOW = {"actions": 1280, "correct": 100, "steps": 1500}
SCRIPT = f"""
from fgrpo.simulate import paper_sweep, run_sweep
if __name__ == "__main__":
    run_sweep(paper_sweep(group_sizes=(8,), seeds=range(40), **{SLOW}), "@OUT@", workers=2, engine="reference")
"""


def tiny(**options):
    return paper_sweep(**{"group_sizes": (2, 8), "seeds": range(2), **TINY, **options})


def replace_engine(monkeypatch, run):
    other = dataclasses.replace(engines.ENGINES["reference"], run=run)
    monkeypatch.setitem(engines.ENGINES, "reference", other)


def runs(folder):
    return sorted(path.name for path in Path(folder).glob("runs/*"))


def test_the_papers_grid():
    configs = paper_sweep()
    assert len(set(configs)) == len(configs) == 17 * 2 * 4
    assert {one.group_size for one in configs} == {2**power for power in range(1, 18)} == set(PAPER_GROUP_SIZES)
    assert {one.gamma for one in configs} == {0.0, 1.0}
    assert {one.seed for one in configs} == {0, 1, 2, 3}
    assert {(one.steps, one.reading, one.policy.actions) for one in configs} == {(1000, "figure_matching", 128_000)}


def test_changes_apply_to_all_runs_and_iterators_are_used_once():
    configs = paper_sweep(
        "hu2025", group_sizes=iter((4, 16)), gammas=iter((0, 1)), seeds=iter((5, 6)), actions=99, correct=9
    )
    assert len(configs) == 8
    assert {(one.reading, one.policy.actions) for one in configs} == {("hu2025", 99)}
    with pytest.raises(ValueError, match="did you mean 'learning_rate'"):
        paper_sweep(lerning_rate=1)


def test_the_quick_grid_is_a_tenth():
    configs = quick_sweep()
    assert {(one.policy.actions, one.policy.correct, one.steps) for one in configs} == {(12_800, 1_000, 1000)}
    assert max(one.group_size for one in configs) == 16_384
    assert quick_sweep("hu2025")[0].reading == "hu2025"


def test_the_quick_grid_shows_the_three_regimes():
    final = {}
    for one in quick_sweep():
        if one.group_size in (2, 512, 16_384) and (one.gamma, one.seed) == (0.0, 0):
            trajectory = simulate(one)
            final[one.group_size] = trajectory.retained_mass[-1], trajectory.correct_mass[-1]
    assert final[2][0] > 0.9
    assert final[2][1] < 0.7
    assert final[512][0] < 0.1
    assert final[512][1] > 0.99
    assert final[16_384][0] > 0.97
    assert final[16_384][1] > 0.99


def test_results_do_not_depend_on_the_number_of_processes_and_duplicates_count_once(tmp_path):
    configs = tiny()
    alone = run_sweep([*configs, *configs[:3]], tmp_path / "alone", workers=1)
    two = run_sweep(iter(configs), tmp_path / "two", workers=2)
    pd.testing.assert_frame_equal(alone, two)
    pd.testing.assert_frame_equal(load_results(tmp_path / "two"), two)
    assert list(dict.fromkeys(alone["run_id"])) == [one.run_id for one in configs]
    assert len(alone) == 3 * len(configs)


def test_finished_runs_are_not_computed_again_and_long_ones_come_first(tmp_path, monkeypatch):
    computed = []

    def spy(configs):
        computed.extend(configs)
        return simulate_or_fail(configs)

    replace_engine(monkeypatch, spy)
    configs = [RunConfig.preset("figure_matching", group_size=n, **TINY) for n in (2, 8192, 64)]
    run_sweep(configs[:1], tmp_path, workers=1, engine="reference")
    both = run_sweep(configs, tmp_path, workers=1, engine="reference")
    assert [one.group_size for one in computed] == [2, 8192, 64]
    pd.testing.assert_frame_equal(run_sweep(configs, tmp_path), both)
    assert len(computed) == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_run_ends_the_sweep_promptly_and_keeps_what_is_finished(tmp_path, monkeypatch, workers):
    replace_engine(monkeypatch, simulate_or_fail)
    # in the order of cost; with two processes one sleeps while the other fails
    seeds = {0: 9, 1: 8, 13: 6, 2: 5} if workers == 1 else {0: 9, 1: 8, 14: 7, 13: 6, 2: 5, 3: 4}
    configs = [RunConfig.preset("figure_matching", group_size=2**n, seed=s, **TINY) for s, n in seeds.items()]
    started = time.monotonic()
    with pytest.raises(ArithmeticError, match="seed 13"):
        run_sweep(configs, tmp_path, workers=workers, engine="reference")
    assert time.monotonic() - started < 60
    finished = {one.seed for one in configs if f"{one.run_id}.parquet" in runs(tmp_path)}
    assert {0, 1} <= finished <= ({0, 1} if workers == 1 else {0, 1, 2, 3})
    assert children(os.getpid(), of_pool=True) == []
    monkeypatch.undo()
    assert set(run_sweep(configs, tmp_path, workers=1)["seed"]) == set(seeds)


def test_a_result_that_cannot_be_written_ends_the_processes(tmp_path, monkeypatch):
    def full(self, trajectory):
        raise OSError(28, "cannot write")

    monkeypatch.setattr(sweep.ResultsFolder, "save", full)
    with pytest.raises(OSError, match="cannot write"):
        run_sweep(tiny(), tmp_path, workers=2)
    assert children(os.getpid(), of_pool=True) == []


def test_an_executor_computes_the_runs_and_stays_open(tmp_path):
    with ThreadPoolExecutor(2) as executor:
        table = run_sweep(tiny(), tmp_path / "threads", executor=executor)
        assert executor.submit(int).result() == 0
    pd.testing.assert_frame_equal(table, run_sweep(tiny(), tmp_path / "alone", workers=1))


def test_engine_and_device_are_columns(tmp_path):
    table = run_sweep(tiny()[:2], tmp_path, workers=1, engine="reference", device="cpu")
    assert set(table["engine"]) == {"reference"}
    assert set(table["device"]) == {"cpu"}


def test_an_engine_that_cannot_is_refused_before_the_first_run(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'sparse'"):
        run_sweep(tiny(), tmp_path, engine="spares")
    assert runs(tmp_path) == []


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_workers_must_be_a_positive_whole_number(tmp_path, workers):
    with pytest.raises(ValueError, match="workers must be a whole number"):
        run_sweep(tiny(), tmp_path, workers=workers)


def test_an_empty_sweep_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one run"):
        run_sweep([], tmp_path)


def test_progress_is_silent_without_a_terminal(tmp_path, capfd):
    run_sweep(tiny(), tmp_path, workers=1)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("progress", "shown"), [(True, True), (False, False)])
def test_progress_on_a_terminal_goes_to_stderr_with_a_rate(tmp_path, capsys, monkeypatch, progress, shown):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run_sweep(tiny(), tmp_path, workers=1, progress=progress)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("run/s" in err and "8/8 runs" in err) is shown


def test_the_remaining_time_weighs_each_run_by_its_cost(capsys, monkeypatch):
    """Of 10 units the first run had 6 in 60 seconds: 40 are left, though two of three runs are."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    now = [1000.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    with progress_bar([1, 6, 3], True) as finished:
        now[0] += 60
        finished(6)
    assert re.search(r" 60%\|.*\| 1/3 runs, 0.0167 run/s, 01:00<00:40", capsys.readouterr().err)


def test_a_runs_cost_is_about_its_time():
    """A sweep's costs are within a factor of 5 of one another's share of the time, by this project's measurements."""
    microseconds = {2: 2.8, 32: 19, 512: 70, 8192: 220, 131_072: 1150}  # mean over 12,800 and 128,000 actions
    sparse = engines.ENGINES["sparse"].cost
    shares = {n: sparse(RunConfig(n)) / time for n, time in microseconds.items()}
    assert max(shares.values()) / min(shares.values()) < 5
    for name in ("reference", "torch"):
        dense = engines.ENGINES[name].cost
        assert dense(RunConfig(2, steps=2000)) == 2 * dense(RunConfig(2))
        assert 2 < dense(RunConfig(131_072)) / dense(RunConfig(2)) < 4


def test_a_plan_says_what_would_be_computed_and_writes_nothing(tmp_path):
    plan = plan_sweep(tiny(), tmp_path / "none", workers=2, engine="reference")
    assert (plan.runs, plan.finished, plan.engines, plan.processes) == (8, 0, {"reference": 8}, 2)
    each = engines.ENGINES["reference"].bytes_needed(tiny()[-1])
    assert (plan.bytes_each, plan.bytes_needed) == (each, 2 * each)
    assert not (tmp_path / "none").exists()
    run_sweep(tiny()[:3], tmp_path, workers=1)
    plan = plan_sweep([*tiny(), tiny()[0]], tmp_path, workers=9)
    assert (plan.runs, plan.finished, plan.processes) == (8, 3, 5)
    assert plan_sweep(tiny(), tmp_path, overwrite=True).finished == 0
    nothing = plan_sweep(tiny()[:3], tmp_path)
    assert (nothing.finished, nothing.engines, nothing.processes, nothing.bytes_needed) == (3, {}, 0, 0)
    assert str(nothing) == "3 runs, 3 finished, 0 to compute"
    with pytest.raises(ValueError, match="did you mean 'sparse'"):
        plan_sweep(tiny(), tmp_path, engine="sparce")


def test_the_runs_of_all_workers_must_fit_in_memory(tmp_path, monkeypatch):
    each = engines.ENGINES["reference"].bytes_needed(tiny()[-1])
    monkeypatch.setattr(batches, "memory_in_bytes", lambda: int(2.5 * each))
    monkeypatch.setattr(batches, "available_cores", lambda: 4)
    assert plan_sweep(tiny(), tmp_path, engine="reference").processes == 2
    message = r"fit in memory, got 3 workers that need .* GB of .* GB: pass fewer"
    for use in (plan_sweep, run_sweep):
        with pytest.raises(ValueError, match=message):
            use(tiny(), tmp_path, engine="reference", workers=3)
    assert runs(tmp_path) == []


def test_another_engines_runs_are_reused_unless_they_are_to_be_overwritten(tmp_path):
    first = run_sweep(tiny()[:2], tmp_path, workers=1, engine="reference")
    mixed = run_sweep(tiny()[:3], tmp_path, workers=1, engine="sparse")
    assert mixed.drop_duplicates("run_id")["engine"].tolist() == ["reference", "reference", "sparse"]
    pd.testing.assert_frame_equal(mixed.iloc[: len(first)], first)
    again = run_sweep(tiny()[:3], tmp_path, workers=1, engine="sparse", overwrite=True)
    assert set(again["engine"]) == {"sparse"}
    pd.testing.assert_frame_equal(again, run_sweep(tiny()[:3], tmp_path / "new", workers=1, engine="sparse"))


def test_an_overwrite_that_breaks_off_keeps_the_old_runs(tmp_path, monkeypatch):
    configs = [RunConfig.preset("figure_matching", group_size=8, seed=seed, **TINY) for seed in (0, 13)]
    before = run_sweep(configs, tmp_path, workers=1, engine="sparse")
    replace_engine(monkeypatch, simulate_or_fail)
    with pytest.raises(ArithmeticError):
        run_sweep(configs, tmp_path, workers=1, engine="reference", overwrite=True)
    monkeypatch.undo()
    mixed = run_sweep(configs, tmp_path, workers=1)
    assert mixed.drop_duplicates("run_id")["engine"].tolist() == ["reference", "sparse"]
    pd.testing.assert_frame_equal(mixed[mixed["seed"] == 13], before[before["seed"] == 13])


def test_the_plan_is_what_was_last_asked_for(tmp_path, monkeypatch):
    replace_engine(monkeypatch, simulate_or_fail)
    configs = [RunConfig.preset("figure_matching", group_size=8, seed=seed, **TINY) for seed in (13, 0)]
    with pytest.raises(ArithmeticError):
        run_sweep(configs, tmp_path, workers=1, engine="reference")
    assert load_plan(tmp_path) == configs
    with pytest.raises(ValueError, match="did you mean"):  # what cannot start is no plan
        run_sweep(tiny(), tmp_path, engine="sparce")
    assert load_plan(tmp_path) == configs
    run_sweep([configs[1], configs[1]], tmp_path, workers=1)
    assert load_plan(tmp_path) == configs[1:]


def children(pid, of_pool=False):
    """Living child processes; with `of_pool` only the pool's workers. Empty where there is no /proc."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
            command = status.with_name("cmdline").read_text()
        except OSError:  # ended meanwhile
            continue
        if int(parent) == pid and state != "Z" and (not of_pool or "spawn_main" in command):
            found.append(int(status.parent.name))
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_is_ended_from_outside_is_resumed(tmp_path, ending):
    out = tmp_path / "out"
    script = tmp_path / "sweep_script.py"
    script.write_text(SCRIPT.replace("@OUT@", str(out)))
    process = subprocess.Popen([sys.executable, str(script)], start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: any(name.endswith(".parquet") for name in runs(out)))
        workers = children(process.pid, of_pool=True)
        if ending == signal.SIGINT:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.kill()
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == -ending
    assert ("KeyboardInterrupt" in errors) is (ending == signal.SIGINT)
    wait_until(lambda: not any(map(alive, workers)), 10)

    configs = paper_sweep(group_sizes=(8,), seeds=range(40), **SLOW)
    stamps = {name: (out / "runs" / name).stat().st_mtime_ns for name in runs(out) if name.endswith(".parquet")}
    assert 0 < len(stamps) < len(configs)
    resumed = run_sweep(configs, out, workers=2)
    assert runs(out) == sorted(f"{one.run_id}.parquet" for one in configs)
    assert {name: (out / "runs" / name).stat().st_mtime_ns for name in stamps} == stamps
    assert resumed["run_id"].nunique() == len(configs)


@pytest.mark.parametrize("configs", [[1], RunConfig(8), None, 3])
def test_what_is_no_list_of_runs_is_refused_in_one_line(configs, tmp_path):
    with pytest.raises(ValueError, match="a sweep must be a list of RunConfig, got "):
        run_sweep(configs, tmp_path)


@pytest.mark.parametrize("out", [None, "a\0b"])
def test_what_is_no_folder_is_refused_in_one_line(out):
    with pytest.raises(ValueError, match="the results folder must be a path, got "):
        run_sweep([RunConfig(8)], out)
