"""A sweep's files are the same bytes however they came about: workers, order, kills, clusters."""

import asyncio
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import LocalCluster
from distributed.scheduler import KilledWorker

from fgrpo.simulate import pool, run_sweep, simulate_many, sweep_grid
from fgrpo.simulate.scheduler import scheduler_executor

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "cluster.md"
GRID = {"group_size": [2, 8, 512], "gamma": [0, 1], "seeds": 4, "steps": 60, "actions": 1280, "correct": 100}

# One process that imports everything once and forks a sweep for each kill: before the fork nothing has started threads.
KILLED = f"""
import os, random, signal, sys, time
from pathlib import Path
import filelock, pandas, pyarrow.parquet, tqdm
from fgrpo.simulate import engine_reference, run_sweep, sweep_grid
configs, out, chance = sweep_grid(**{GRID}), Path(sys.argv[1]), random.Random(1)
for _ in range(5):
    goal = len([*out.glob("runs/*.parquet")]) + chance.randrange(4)
    pid = os.fork()
    if not pid:
        run_sweep(configs, out, workers=1, engine="reference")
        os._exit(0)
    while len([*out.glob("runs/*.parquet")]) < goal:
        time.sleep(.001)
    time.sleep(chance.uniform(0, .06))
    os.kill(pid, signal.SIGKILL)
    print(os.WTERMSIG(os.waitpid(pid, 0)[1]), len([*out.glob("runs/*.parquet")]))
"""


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone")
    run_sweep(sweep_grid(**GRID), out, workers=1, engine="reference")
    return contents(out)


def test_five_kills_change_no_byte(tmp_path, expected):
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", KILLED, str(out)], check=True, capture_output=True, text=True)
    signals, finished = zip(*(map(int, line.split()) for line in done.stdout.splitlines()), strict=True)
    assert signals == (9,) * 5
    assert finished == tuple(sorted(finished))
    assert 0 < finished[-1] < len(sweep_grid(**GRID))
    run_sweep(sweep_grid(**GRID), out, workers=1, engine="reference")
    assert contents(out) == expected


@pytest.mark.parametrize("engine", ["sparse", "torch"])
def test_workers_parts_and_order_change_no_byte(tmp_path, engine):
    """Of the engines that compute many runs at once or in compiled code; the reference engine has the other tests."""
    configs = sweep_grid(**{**GRID, "seeds": 2})
    run_sweep(configs, tmp_path / "alone", workers=1, engine=engine, device="cpu")
    run_sweep(configs, tmp_path / "two", workers=2, engine=engine, device="cpu")
    for part in (configs[::-3], configs[1::2], configs):
        run_sweep(part, tmp_path / "parts", workers=1, engine=engine, device="cpu")
    alone = contents(tmp_path / "alone")
    assert len(alone) == len(configs) + 2
    assert contents(tmp_path / "two") == alone
    assert contents(tmp_path / "parts") == alone


def test_parts_from_several_folders_are_put_together_by_copying(tmp_path, expected):
    whole = tmp_path / "whole"
    for seed in range(4):
        grid = {**GRID, "seed": seed}
        del grid["seeds"]
        out = tmp_path / str(seed)
        run_sweep(sweep_grid(**grid), out, workers=1, engine="reference")
        (whole / "runs").mkdir(parents=True, exist_ok=True)
        for path in out.glob("runs/*.parquet"):
            (whole / "runs" / path.name).write_bytes(path.read_bytes())
    # an engine that there is not would be refused if a run were left to compute
    run_sweep(sweep_grid(**GRID), whole, engine="reference", device="cpu")
    assert contents(whole) == expected


@contextmanager
def dask_cluster(folder):
    """Address of a scheduler and its two workers, each a process of its own."""
    dask = [sys.executable, "-m", "dask"]
    here = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    scheduler = subprocess.Popen([*dask, "scheduler", *here], stderr=subprocess.PIPE, text=True)
    processes = [scheduler]
    try:
        address = None
        while address is None:
            line = scheduler.stderr.readline()
            assert line
            address = re.search(r"Scheduler at:\s+(tcp://\S+)", line)
        threading.Thread(target=scheduler.stderr.read, daemon=True).start()
        worker = [*dask, "worker", address[1], "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        processes += [
            subprocess.Popen([*worker, "--local-directory", str(folder)], stderr=subprocess.DEVNULL) for _ in range(2)
        ]
        yield address[1], processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
        scheduler.stderr.close()


def test_a_killed_dask_worker_loses_nothing_and_a_lost_scheduler_is_one_line(tmp_path, expected):
    out, left = tmp_path / "out", []

    def kill_after(process, runs):
        while len([*out.glob("runs/*.parquet")]) < runs:
            time.sleep(0.01)
        process.kill()
        left.append(len(configs) - len([*out.glob("runs/*.parquet")]))

    configs = sweep_grid(**GRID)
    with dask_cluster(tmp_path) as (address, [scheduler, first, _]):
        killer = threading.Thread(target=kill_after, args=(first, 3))
        killer.start()
        with scheduler_executor(address) as executor:
            run_sweep(configs, out, executor=executor, engine="reference")
        killer.join()
        assert left[0] > 0
        assert contents(out) == expected

        with pytest.raises(ValueError, match="got 4 that died of the same one"), scheduler_executor(address):
            raise KilledWorker("run", None, 3)

        configs += sweep_grid(**{**GRID, "steps": 90})
        killer = threading.Thread(target=kill_after, args=(scheduler, 26))
        killer.start()
        with (
            pytest.raises(ValueError, match=f"got {address} that went away: what was finished is kept"),
            scheduler_executor(address) as executor,
        ):
            run_sweep(configs, out, executor=executor, engine="reference")
        killer.join()
    kept = contents(out)
    assert len(kept) >= 26 + 2
    assert {name: kept[name] for name in expected if name.startswith("runs")}.items() <= expected.items()


@pytest.mark.parametrize(
    ("address", "kind"), [("tcp://127.0.0.1:1", "TimeoutError"), ("nothing", "ValueError"), ("x://y", "ValueError")]
)
def test_a_scheduler_that_does_not_answer_is_one_line_soon(address, kind):
    started = time.monotonic()
    message = f"must answer within 0.5 seconds, got '{address}', which does not .{kind}.: start one with `dask schedu"
    with pytest.raises(ValueError, match=message), scheduler_executor(address, seconds=0.5):
        pass
    assert time.monotonic() - started < 10


def test_a_scheduler_is_asked_from_a_notebook_too():
    async def cell():  # code that runs within an event loop
        with scheduler_executor("tcp://127.0.0.1:1", seconds=0.5):
            pass

    with pytest.raises(ValueError, match=r"which does not \(TimeoutError\)"):
        asyncio.run(cell())


def test_a_scheduler_without_workers_is_said_once():
    with LocalCluster(n_workers=0, protocol="tcp", dashboard_address=None) as cluster:
        heard = []
        with scheduler_executor(cluster.scheduler_address, seconds=0.5, tell=heard.append):
            deadline = time.monotonic() + 10
            while not heard and time.monotonic() < deadline:
                time.sleep(0.05)
        address = cluster.scheduler_address
        assert heard == [f"no worker at {address} yet, the runs wait for one: start it with `dask worker {address}`"]
        with scheduler_executor(address, seconds=5, tell=heard.append):  # left before it looks
            pass
        assert len(heard) == 1


def test_no_distributed_says_what_to_install(monkeypatch):
    monkeypatch.setattr("fgrpo.simulate.scheduler.find_spec", lambda name: None)
    with (
        pytest.raises(ValueError, match=r"got no distributed: pip install .*\[distributed\]'"),
        scheduler_executor(""),
    ):
        pass


def test_a_worker_with_other_versions_is_refused(monkeypatch):
    def versions():
        here = threading.current_thread() is threading.main_thread()
        return {"fgrpo_version": "1.0" if here else "1.1", "numpy_version": "2.0"}

    monkeypatch.setattr(pool, "versions", versions)
    message = "must have the versions of the caller, fgrpo 1.0, numpy 2.0, got fgrpo 1.1, numpy 2.0 on .*: install"
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match=message):
        simulate_many(sweep_grid(group_size=2, steps=2, actions=9, correct=2), executor=executor)


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", HOW_TO.read_text(), flags=re.S)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_of_the_how_to_runs_where_its_packages_are(code, tmp_path):
    compile(code, "cluster.md", "exec")
    if "jobqueue" in code or "kubernetes" in code:  # they need a cluster
        return
    script = tmp_path / "how_to.py"
    script.write_text(code)
    subprocess.run([sys.executable, "-W", "error", str(script)], check=True, cwd=tmp_path, timeout=120)
    assert len([*tmp_path.glob("results/*/sweep.parquet")]) == 1


def test_shell_of_the_how_to_is_valid():
    assert len(blocks("bash")) == 4
    for code in blocks("bash"):
        subprocess.run(["bash", "-n"], input=code, check=True, text=True)
