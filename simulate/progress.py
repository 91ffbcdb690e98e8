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
        bar_format="{percentage:3.0f}%|{bar}| {desc}, {elapsed}<{remaining}",
        smoothing=0,
        disable=None if shown else True,
    ) as bar:
        bar.set_description_str(f"0/{len(of_runs)} runs")

        def update(cost: float) -> None:
            nonlocal finished
            finished += 1
            if not bar.disable:
                rate = finished / max(bar.format_dict["elapsed"], 1e-9)
                bar.set_description_str(f"{finished}/{len(of_runs)} runs, {rate:.3g} run/s", refresh=False)
                bar.update(cost)

        yield update
