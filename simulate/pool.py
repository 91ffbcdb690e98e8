"""Jobs on several processes, or on an executor: results as they are finished, and nothing left behind."""

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

from fgrpo.simulate.trajectory import versions

Result = TypeVar("Result")


def run_jobs(
    jobs: Sequence[Callable[[], Result]], processes: int, executor: Executor | None
) -> Generator[Result, None, None]:
    """Results in the order in which they are finished; however the caller leaves, no job and no process stays behind.

    Args:
        jobs: What to compute; to leave this process they must be picklable.
        processes: Processes to start if there is no executor; with 1 the jobs take place in this process, in order.
        executor: Any executor in the style of concurrent.futures; it is not shut down.

    Raises:
        ValueError: If a worker has other versions of what results depend on.
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
    here = versions()
    running = {executor.submit(_with_versions, here, job) for job in jobs}
    try:
        for future in as_completed(running):
            running.discard(future)  # what is handed over is not kept in memory
            if _failed(future):
                # what else is finished is handed over before the error ends everything
                yield from (other.result() for other in running if other.done() and not _failed(other))
            yield future.result()
    finally:
        for future in running:
            future.cancel()


def _failed(future: Future[Result]) -> bool:
    return future.cancelled() or future.exception() is not None


def _with_versions(expected: dict[str, str], job: Callable[[], Result]) -> Result:
    """The job's result, from where it is computed by what its results are stored as computed by."""
    if (found := versions()) != expected:
        raise ValueError(
            f"workers must have the versions of the caller, {_words(expected)}, got {_words(found)} on "
            f"{socket.gethostname()}: install the same there"
        )
    return job()


def _words(found: dict[str, str]) -> str:
    return ", ".join(f"{name.removesuffix('_version')} {version}" for name, version in found.items())


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
