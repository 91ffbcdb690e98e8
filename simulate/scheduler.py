"""The workers of a dask.distributed scheduler as an executor, for machines that share a sweep."""

import asyncio
import logging
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from threading import Timer

from fgrpo.theory import _validation as check

SECONDS_TO_ANSWER = 5


@contextmanager
def scheduler_executor(
    address: str, *, seconds: float = SECONDS_TO_ANSWER, tell: Callable[[str], None] | None = None
) -> Generator[Executor, None, None]:
    """An executor in the style of concurrent.futures for `run_sweep` and `simulate_many`.

    A worker that dies is no loss: the scheduler gives its runs to another one. Workers may come and go; with none, the
    runs wait for the first.

    Args:
        address: Of the scheduler, such as "tcp://10.0.0.1:8786".
        seconds: How long it may take to answer, above 0.
        tell: Called once, from another thread, with a sentence if there is no worker after so many seconds.

    Raises:
        ValueError: If `distributed` is not installed, or no scheduler answers there; on leaving, if the scheduler went
            away meanwhile, or runs killed one worker after another.
    """
    if find_spec("distributed") is None:
        raise ValueError(
            f"a scheduler needs what is installed, got no distributed: {check.install('distributed')}, or leave it out"
        )
    from distributed import Client
    from distributed.scheduler import KilledWorker

    # what it logs about a lost connection stands in the error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        # a client that finds nobody would go on trying when the program ends; a thread of its own, as the caller's may
        # have an event loop already (a notebook)
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(asyncio.wait_for(_identity(address), seconds))).result()
    except Exception as error:  # whoever else listens there may answer anything
        raise ValueError(
            f"the scheduler must answer within {seconds:g} seconds, got {check.shown(address)}, which does not "
            f"({type(error).__name__}): start one with `dask scheduler` and pass the address that it prints"
        ) from None
    with Client(address, timeout=seconds, set_as_default=False) as client:

        def look_for_workers() -> None:
            # a scheduler that goes away meanwhile is the caller's error, not this thread's
            with suppress(Exception):
                if tell is not None and not client.scheduler_info()["workers"]:
                    tell(f"no worker at {address} yet, the runs wait for one: start it with `dask worker {address}`")

        look = Timer(seconds, look_for_workers)
        look.daemon = True
        look.start()
        try:
            yield client.get_executor()
        except CancelledError:
            raise ValueError(
                f"the scheduler must stay until the sweep is finished, got {address} that went away: what was finished "
                "is kept, start it again and repeat the command"
            ) from None
        except KilledWorker as error:
            raise ValueError(
                f"workers must survive a run, got {error.allowed_failures + 1} that died of the same one: give them "
                "more memory; what was finished is kept"
            ) from None
        finally:
            look.cancel()
            look.join(seconds)


async def _identity(address: str) -> None:
    from distributed.core import coerce_to_address, rpc
    from distributed.security import Security

    async with rpc(coerce_to_address(address), connection_args=Security().get_connection_args("client")) as scheduler:
        await scheduler.identity()
