"""How far many runs are: a bar on a terminal whose remaining time weighs each run by its cost."""

import math
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager


@contextmanager
def progress_bar(costs: Iterable[float], shown: bool) -> Generator[Callable[[float], None], None, None]:
    """A bar on stderr if that is a terminal; what it gives is called with the cost of each run that is finished.

    Args:
        costs: Of all the runs, in any unit.
        shown: False for no bar on a terminal either.
    """
    from tqdm import tqdm

    of_runs = list(costs)
    finished = 0
    # disable=None: silent when stderr is no terminal; smoothing=0: the remaining time is by the mean rate
    with tqdm(
        total=math.fsum(of_runs),
        bar_format="{percentage:3.0f}%|{bar}| {desc}{elapsed}<{remaining}",
        smoothing=0,
        disable=None if shown else True,
    ) as bar:

        def show(elapsed: float) -> None:
            rate = f"{finished / elapsed:.3g}" if elapsed > 0 else "?"
            bar.set_description_str(f"{finished}/{len(of_runs)} runs, {rate} run/s, ", refresh=False)

        def update(cost: float) -> None:
            nonlocal finished
            finished += 1
            if not bar.disable:
                show(bar.format_dict["elapsed"])
                bar.update(cost)

        show(0)
        yield update
