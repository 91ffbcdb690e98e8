"""Jobs on several processes, or on an executor: results as they are finished, and nothing left behind."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

Result = TypeVar("Result")


def run_jobs(
    jobs: Sequence[Callable[[], Result]], processes: int, executor: Executor | None
) -> Generator[Result, None, None]:
    """Results in the order in which they are finished; however the caller leaves, no job and no process stays behind.

    Args:
        jobs: What to compute; to leave this process they must be picklable.
        processes: Processes to start if there is no executor; with 1 the jobs take place in this process, in order.
        executor: Any executor in the style of concurrent.futures; it is not shut down.
    """
    if executor is not None:
        yield from _on(executor, jobs)
    elif processes <= 1:
        yield from (job() for job in jobs)
    else:
        with _own_processes(processes) as own:
            yield from _on(own, jobs)


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _on(executor: Executor, jobs: Sequence[Callable[[], Result]]) -> Generator[Result, None, None]:
    running: set[Future[Result]] = {executor.submit(job) for job in jobs}
    try:
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            # what is finished is handed over before an error ends everything
            yield from (future.result() for future in done if not future.exception())
            for future in done:
                future.result()
    finally:
        for future in running:
            future.cancel()


@contextmanager
def _own_processes(processes: int) -> Generator[Executor, None, None]:
    context = multiprocessing.get_context("spawn")
    # No process but this one holds the sending end. The workers exit when it closes: at the end of this function, and
    # also when this process is killed and cannot tell them.
    worker_end, lifeline = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(processes, context, initializer=_start_worker, initargs=(worker_end,))
    try:
        yield executor
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
