"""Many runs: the paper's grid, a quick one, and their computation on several processes into a results folder."""

import os
from collections.abc import Iterable
from concurrent.futures import Executor
from contextlib import closing
from typing import TYPE_CHECKING, Any

from fgrpo.simulate._checks import whole_number
from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.engines import run_all
from fgrpo.simulate.store import ResultsFolder
from fgrpo.theory._validation import shown

if TYPE_CHECKING:
    import pandas as pd

PAPER_GROUP_SIZES = tuple(2**power for power in range(1, 18))


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
    engine: str = "auto",
    device: str | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = True,
) -> "pd.DataFrame":
    """Computes the runs that `out` does not hold yet, stores each when it is finished, and returns the table of all.

    The table does not depend on `workers`. After an interruption or an error, finished runs stay stored and the next
    call computes the rest, with its own engine if another is asked for: the columns engine and device say which.

    Args:
        configs: Runs; equal ones are computed once and appear once in the table, in the order of their first place.
        out: Results folder, created if missing.
        engine: See `simulate`; "auto" chooses for each run.
        device: See `simulate`.
        workers: Processes; None for one per available core. With 1 the runs take place in this process, and on a CUDA
            GPU always.
        executor: Any executor in the style of concurrent.futures that shall compute the runs instead.
        progress: Whether to show a progress bar on stderr, if that is a terminal.

    Raises:
        ValueError: If there are no runs or what is given is none, workers < 1, the engine cannot compute a run (see
            `simulate`), or the folder cannot be used (see ResultsFolder).
        OSError: If a result cannot be written.
    """
    from tqdm import tqdm

    distinct = _distinct_runs(configs)
    if not distinct:
        raise ValueError("a sweep must have at least one run, got none: pass a list of RunConfig")
    if workers is not None:
        workers = whole_number("workers", workers, "pass the number of processes, or nothing for all cores", minimum=1)
    with ResultsFolder(out) as results:
        pending = [one for one in distinct if not results.has(one)]
        finished = run_all(pending, engine=engine, device=device, workers=workers, executor=executor)
        # closing: an error in this loop must end the processes now, not when the generator is collected
        # disable=None: silent when stderr is no terminal
        with closing(finished), tqdm(total=len(pending), unit="run", disable=None if progress else True) as bar:
            for trajectory in finished:
                results.save(trajectory)
                bar.update()
        return results.assemble(distinct)


def _distinct_runs(configs: Any) -> list[RunConfig]:
    runs = list(configs) if isinstance(configs, Iterable) else None
    if runs is None or not all(isinstance(one, RunConfig) for one in runs):
        got = shown(configs if runs is None else runs)
        raise ValueError(f"a sweep must be a list of RunConfig, got {got}: put a single one into a list")
    return list(dict.fromkeys(runs))
