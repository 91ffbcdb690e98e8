import dataclasses
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fgrpo.simulate import RunConfig, batches, engine_reference, engines, simulate, simulate_many
from fgrpo.simulate.trajectory import MEASURES

TINY = {"actions": 128, "correct": 10, "steps": 20}
# options that simulate_many takes, too
MANY = {"engine", "device"}


def run(group_size=8, **changes):
    return RunConfig.preset("figure_matching", **{"group_size": group_size, **TINY, **changes})


def assert_same(one, other):
    assert one.config == other.config
    for name in MEASURES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.fixture
def sparse(monkeypatch):
    """A stand-in for the sparse engine that supports group sizes below 100 and says that it computed the run."""
    module = ModuleType("fgrpo.simulate.sparse")
    module.simulate_sparse = lambda config: dataclasses.replace(engine_reference.simulate(config), engine="sparse")
    module.supports = lambda config: config.group_size < 100
    module.bytes_needed = lambda config: config.group_size
    monkeypatch.setitem(sys.modules, "fgrpo.simulate.sparse", module)
    other = dataclasses.replace(engines.ENGINES["sparse"], modules=())
    monkeypatch.setitem(engines.ENGINES, "sparse", other)


@pytest.fixture
def only_reference(monkeypatch):
    for name in ("sparse", "torch"):
        other = dataclasses.replace(engines.ENGINES[name], modules=("no_such_module",))
        monkeypatch.setitem(engines.ENGINES, name, other)


def test_the_reference_engine_by_name():
    trajectory = simulate(run(), engine="reference", device="cpu", snapshots=(20,))
    assert (trajectory.engine, trajectory.device, trajectory.snapshots.shape) == ("reference", "cpu", (1, 128))
    assert_same(trajectory, engine_reference.simulate(run()))
    assert simulate(run(), engine="reference", logits=np.zeros(128)).start == "logits"


@pytest.mark.usefixtures("sparse")
def test_auto_takes_sparse_where_it_has_what_the_run_names_else_the_reference():
    assert simulate(run(8)).engine == "sparse"
    assert simulate(run(128)).engine == "reference"
    assert simulate(run(8), snapshots=(0,)).engine == "reference"
    assert simulate(run(8), device="cpu").engine == "sparse"
    assert [one.engine for one in simulate_many([run(128), run(8)])] == ["reference", "sparse"]
    with pytest.raises(ValueError, match=r"got importance_ratio, adam, none, focal, empirical: choose engine='ref"):
        simulate(run(128), engine="sparse")


@pytest.mark.usefixtures("only_reference")
def test_without_the_others_auto_is_the_reference_and_they_are_refused_in_one_line():
    assert simulate(run()).engine == "reference"
    for name in ("sparse", "torch"):
        with pytest.raises(
            ValueError, match=f"engine '{name}' needs .*got no no_such_module: choose engine='reference'"
        ):
            simulate(run(), engine=name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "spares"}, "engine must be one of .*got 'spares': did you mean 'sparse'"),
        ({"engine": None}, "engine must be one of"),
        (
            {"engine": "torch", "snapshots": (1,)},
            "engine 'torch' must take .*got snapshots, .*choose engine='reference'",
        ),
        ({"engine": "torch", "logits": [0.0]}, "engine 'torch' must take .*got logits"),
        ({"device": "gpu"}, "device must be 'cpu' or 'cuda', got 'gpu'"),
        ({"device": "cuda:x"}, "device must be 'cpu' or 'cuda'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options, message):
    calls = [simulate, *([lambda config, **options: simulate_many([config], **options)] if {*options} <= MANY else [])]
    for call in calls:
        with pytest.raises(ValueError, match=message) as refused:
            call(run(), **options)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("engine", ["auto", "torch", "reference"])
def test_a_gpu_that_is_not_there_is_refused_in_one_line(monkeypatch, engine):
    monkeypatch.setattr(engines, "cuda_available", lambda: False)
    for call in (simulate, lambda config, **options: simulate_many([run(), config], **options)):
        with pytest.raises(ValueError, match=r"device must be there, got 'cuda' and no CUDA GPU .*: pass 'cpu'"):
            call(run(), engine=engine, device="cuda")


def test_with_a_gpu_auto_is_torch_and_other_engines_take_no_gpu(monkeypatch):
    monkeypatch.setattr(engines, "cuda_available", lambda: True)
    for device in (None, "cuda", "cuda:1"):
        options = {} if device is None else {"device": device}
        assert engines.choose_engine(run(), "auto", options) == ("torch", options)
    with pytest.raises(ValueError, match=r"engine 'reference' must take .*got device"):
        simulate(run(), engine="reference", device="cuda")
    assert simulate(run(), device="cpu").device == "cpu"


def test_a_driver_without_torch_is_no_gpu(monkeypatch):
    monkeypatch.setattr(engines.ctypes, "CDLL", lambda name: None)
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert engines.cuda_available.__wrapped__() is False


def test_a_run_that_cannot_fit_in_memory_is_refused_before_it_starts(monkeypatch):
    huge = run(2, actions=2**31 - 1)
    monkeypatch.setattr(engines, "memory_in_bytes", lambda: 16 * 10**9)
    with pytest.raises(
        ValueError, match=r"needs 344 GB of 16 GB with engine 'reference': pass fewer actions"
    ) as refused:
        simulate(huge, engine="reference")
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="must fit in memory"):
        simulate_many([run(), huge], engine="reference")
    monkeypatch.setattr(engines, "memory_in_bytes", lambda: None)
    assert engines.choose_engine(huge, "reference", {}) == ("reference", {})


PEAKS = """
import ctypes
from pathlib import Path
from fgrpo.simulate import RunConfig, simulate
from fgrpo.simulate.engines import ENGINES

def resident(line):
    return 1024 * int(Path("/proc/self/status").read_text().split(line)[1].split()[0])

def run(engine, **changes):
    small = {"group_size": 8, "actions": 1000, "correct": 100, "steps": 2, "record_every": 1}
    config = RunConfig.preset("figure_matching", **{**small, **changes})
    simulate(config, engine=engine, device="cpu")
    return ENGINES[engine].bytes_needed(config)

many_draws = {"group_size": 2**20}
dense = {"actions": 400_000}, {"actions": 400_000, "correct": 300_000}, many_draws
many_rows = {"actions": 1_000_000, "correct": 900_000, "group_size": 2**16, "steps": 10}
sparse = many_rows, {"actions": 10**6, "group_size": 10**6}, {"actions": 128_000, "group_size": 2**17}, many_draws
for engine, cases in {"reference": dense, "torch": dense, "sparse": sparse}.items():
    run(engine)
    for changes in cases:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts over
        before = resident("VmRSS:")
        needed = run(engine, **changes)
        print(engine, needed, resident("VmHWM:") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells and resets the peak")
def test_the_memory_that_a_run_is_said_to_need_is_within_a_factor_of_two_of_its_peak():
    printed = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True).stdout
    assert len(printed.splitlines()) == 10
    for line in printed.splitlines():
        _, needed, peak = line.split()
        assert 0.5 < int(needed) / int(peak) < 2.0, line


@pytest.mark.parametrize("engine", ["reference", "sparse", "torch"])
def test_each_engine_refuses_what_it_cannot_hold(engine):
    huge = run(2**30, actions=2**31 - 1, correct=2**30)
    for call in (simulate, lambda config, **options: simulate_many([run(), config], **options)):
        with pytest.raises(ValueError, match=rf"must fit in memory, got .* GB with engine '{engine}': pass") as refused:
            call(huge, engine=engine, device="cpu")
        assert "\n" not in str(refused.value)


def test_no_more_processes_than_fit_in_memory(monkeypatch):
    started = []

    def run_jobs(jobs, processes, executor):
        started.append(processes)
        yield from (job() for job in jobs)

    monkeypatch.setattr(batches, "run_jobs", run_jobs)
    monkeypatch.setattr(batches, "available_cores", lambda: 3)
    configs, needed = [run(seed=seed) for seed in range(4)], engine_reference.bytes_needed(run())
    for memory, processes in ((None, 3), (10 * needed, 3), (2.5 * needed, 2), (needed, 1)):
        monkeypatch.setattr(batches, "memory_in_bytes", lambda memory=memory: memory and int(memory))
        assert len(list(batches.run_all(configs, engine="reference"))) == 4
        assert started[-1] == processes


def test_memory_is_what_the_system_says():
    # MemTotal stands first, in KiB
    total = int(Path("/proc/meminfo").read_text().split()[1])
    assert engines.memory_in_bytes() == pytest.approx(1024 * total, rel=0.01)


@pytest.mark.parametrize("call", [simulate, lambda config: simulate_many([run(), config])])
def test_what_is_no_run_is_refused_in_one_line(call):
    with pytest.raises(ValueError, match=r"a run must be a RunConfig, got 8: pass RunConfig\(group_size=\.\.\.\)"):
        call(8)


def test_more_rollouts_than_can_be_counted_are_refused():
    with pytest.raises(
        ValueError, match="group_size must be a whole number between 1 and 2147483647, got 2147483648: "
    ):
        run(2**31)


@pytest.mark.parametrize(
    "how", [{}, {"workers": 2}, {"executor": ThreadPoolExecutor(2)}], ids=["here", "two", "threads"]
)
def test_many_runs_come_in_their_order_whatever_computes_them(how):
    configs = [run(2), run(512), run(8, seed=3), run(2), run(64)]
    many = simulate_many(iter(configs), engine="reference", **how)
    assert [one.config for one in many] == configs
    for one, config in zip(many, configs, strict=True):
        assert_same(one, engine_reference.simulate(config))


def test_no_runs_are_no_trajectories():
    assert simulate_many([]) == []


@pytest.mark.parametrize("workers", [0, 1.5, None])
def test_workers_must_be_a_whole_number(workers):
    if workers is not None:
        with pytest.raises(ValueError, match="workers must be a whole number"):
            simulate_many([run()], workers=workers)


def test_equal_runs_are_computed_once(monkeypatch):
    computed = []

    def spy(configs):
        computed.extend(configs)
        return [engine_reference.simulate(one) for one in configs]

    monkeypatch.setitem(engines.ENGINES, "reference", dataclasses.replace(engines.ENGINES["reference"], run=spy))
    simulate_many([run(), run(), run(2)], engine="reference")
    assert sorted(one.group_size for one in computed) == [2, 8]
