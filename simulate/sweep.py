"""Many runs: the paper's grid, a quick one, and their computation on several processes into a results folder."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import closing
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from fgrpo.simulate._checks import whole_number
from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.engine_reference import simulate
from fgrpo.simulate.store import ResultsFolder
from fgrpo.simulate.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd

PAPER_GROUP_SIZES = tuple(2**power for power in range(1, 18))

# measured: one draw takes about as long as two actions of a step
ACTIONS_PER_DRAW = 2


def paper_sweep(
    preset: str = "figure_matching",
    *,
    group_sizes: Iterable[int] = PAPER_GROUP_SIZES,
    gammas: Iterable[float] = (0.0, 1.0),
    seeds: Iterable[int] = range(4),
    **changes: Any,
) -> list[RunConfig]:
    """The runs behind the paper's simulation figure (Figure 4 in v1, Figure 2 in v2): 17 x 2 x 4 by default.

    Args:
        preset: Update rule, see RunConfig.preset.
        group_sizes: Values of N.
        gammas: Focal exponents.
        seeds: Seeds.
        changes: Other fields of RunConfig, PolicyConfig or UpdateConfig, the same for all runs.

    Raises:
        ValueError: If the preset or a field is unknown, or a value is invalid.
    """
    seeds, gammas = tuple(seeds), tuple(gammas)
    return [
        RunConfig.preset(preset, **{**changes, "group_size": group_size, "gamma": gamma, "seed": seed})
        for group_size in group_sizes
        for gamma in gammas
        for seed in seeds
    ]


def quick_sweep(preset: str = "figure_matching") -> list[RunConfig]:
    """A tenth of the paper's actions, group sizes 2 to 16384, two seeds: about 20 CPU seconds.

    It shows the same three regimes with the default preset at gamma = 0: retained mass above .87 at N <= 8, below 1/2
    at N = 16 to 2048 (at 4096 seeds differ), and again above .97, now with correct mass above .99, at N >= 8192.

    Source: this project.
    """
    return paper_sweep(preset, group_sizes=PAPER_GROUP_SIZES[:14], seeds=range(2), actions=12_800, correct=1_000)


def run_sweep(
    configs: Iterable[RunConfig],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    progress: bool = True,
) -> "pd.DataFrame":
    """Computes the runs that `out` does not hold yet, stores each when it is finished, and returns the table of all.

    The table does not depend on `workers`. After an interruption or an error, finished runs stay stored and the next
    call computes the rest.

    Args:
        configs: Runs; equal ones are computed once and appear once in the table, in the order of their first place.
        out: Results folder, created if missing.
        workers: Processes; None for one per available core. With 1 the runs take place in this process.
        progress: Whether to show a progress bar on stderr, if that is a terminal.

    Raises:
        ValueError: If there are no runs, workers < 1, or the folder cannot be used (see ResultsFolder).
        OSError: If a result cannot be written.
    """
    from tqdm import tqdm

    distinct = list(dict.fromkeys(configs))
    if not distinct:
        raise ValueError("a sweep must have at least one run, got none: pass a list of RunConfig")
    if workers is not None:
        workers = whole_number("workers", workers, "pass the number of processes, or nothing for all cores", minimum=1)
    with ResultsFolder(out) as results:
        pending = sorted((one for one in distinct if not results.has(one)), key=_cost, reverse=True)
        processes = min(workers or _available_cores(), len(pending))
        finished = (simulate(one) for one in pending) if processes <= 1 else _in_processes(pending, processes)
        # closing: an error in this loop must end the processes now, not when the generator is collected
        # disable=None: silent when stderr is no terminal
        with closing(finished), tqdm(total=len(pending), unit="run", disable=None if progress else True) as bar:
            for trajectory in finished:
                results.save(trajectory)
                bar.update()
        return results.assemble(distinct)


def _cost(config: RunConfig) -> int:
    return config.steps * (config.policy.actions + ACTIONS_PER_DRAW * config.group_size)


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_processes(configs: list[RunConfig], processes: int) -> Generator[Trajectory, None, None]:
    """Trajectories as they are finished; however the caller leaves, no process stays behind."""
    context = multiprocessing.get_context("spawn")
    # No process but this one holds the sending end. The workers exit when it closes: at the end of this function, and
    # also when this process is killed and cannot tell them.
    worker_end, lifeline = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(processes, context, initializer=_start_worker, initargs=(worker_end,))
    try:
        running = {executor.submit(simulate, config) for config in configs}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            # what is finished is handed over before an error ends the sweep
            yield from (future.result() for future in done if not future.exception())
            for future in done:
                future.result()
    finally:
        lifeline.close()
        executor.shutdown(cancel_futures=True)
        worker_end.close()


def _start_worker(worker_end: Connection) -> None:
    # Ctrl-C reaches every process of the terminal; the parent alone answers it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(worker_end,), daemon=True).start()


def _exit_with_parent(worker_end: Connection) -> None:
    worker_end.poll(None)
    os._exit(1)
