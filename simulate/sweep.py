"""Many runs: the paper's grid, a quick one, and their computation on several processes into a results folder."""

import os
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fgrpo.simulate.batches import memory_of, planned_batches, processes_for, run_all
from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.engines import ENGINES
from fgrpo.simulate.grid import sweep_grid
from fgrpo.simulate.progress import progress_bar
from fgrpo.simulate.store import ResultsFolder
from fgrpo.simulate.summary import counted
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
        changes: Other fields of RunConfig, PolicyConfig or UpdateConfig, or lists of their values, see `sweep_grid`.

    Raises:
        ValueError: If the preset or a field is unknown, or a value is invalid.
    """
    return sweep_grid(**changes, preset=preset, group_size=group_sizes, gamma=gammas, seed=seeds)


def quick_sweep(preset: str = "figure_matching") -> list[RunConfig]:
    """A tenth of the paper's actions, group sizes 2 to 16384, two seeds: about 20 CPU seconds.

    It shows the same three regimes with the default preset at gamma = 0: retained mass above .87 at N <= 8, below 1/2
    at N = 16 to 2048 (at 4096 seeds differ), and again above .97, now with correct mass above .99, at N >= 8192.

    Source: this project.
    """
    return paper_sweep(preset, group_sizes=PAPER_GROUP_SIZES[:14], seeds=range(2), actions=12_800, correct=1_000)


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep would compute.

    Attributes:
        runs: Number of distinct runs.
        finished: Of them, how many the folder holds already.
        engines: Number of runs to be computed, by engine.
        processes: Processes that would compute them.
        bytes_each: Memory that the largest batch of runs takes at most, about, the program itself aside.
        bytes_needed: Likewise, all processes together.
    """

    runs: int
    finished: int
    engines: dict[str, int]
    processes: int
    bytes_each: int
    bytes_needed: int

    def __str__(self) -> str:
        """Some lines for a reader."""
        engines = "; ".join(f"{runs} with engine {name}" for name, runs in self.engines.items())
        lines = [f"{counted(self.runs, 'run')}, {self.finished} finished, {self.runs - self.finished} to compute"]
        if engines:
            lines.append(f"{engines}; on {counted(self.processes, 'process')}" if self.processes else engines)
            each, together = (f"{needed / 1e6:.3g} MB" for needed in (self.bytes_each, self.bytes_needed))
            lines.append(f"memory at most about {each} each, {together} together, beside the program itself")
        return "\n".join(lines)


def plan_sweep(
    configs: Iterable[RunConfig],
    out: str | os.PathLike[str],
    *,
    engine: str = "auto",
    device: str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
) -> SweepPlan:
    """What `run_sweep` would compute, with the same arguments; nothing is computed, written or locked.

    Raises:
        ValueError: As `run_sweep` does.
    """
    distinct, results = _distinct_runs(configs), ResultsFolder(out)
    results.check()
    pending = [one for one in distinct if overwrite or not results.has(one)]
    batches = planned_batches(pending, engine=engine, device=device)
    engines: Counter[str] = Counter()
    for batch in batches:
        engines[batch.engine] += len(batch.configs)
    processes = processes_for(batches, workers)
    return SweepPlan(
        runs=len(distinct),
        finished=len(distinct) - len(pending),
        engines=dict(engines),
        processes=processes,
        bytes_each=memory_of(batches, 1),
        bytes_needed=memory_of(batches, processes),
    )


def run_sweep(
    configs: Iterable[RunConfig],
    out: str | os.PathLike[str],
    *,
    engine: str = "auto",
    device: str | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> "pd.DataFrame":
    """Computes the runs that `out` does not hold yet, stores each when it is finished, and returns the table of all.

    The table does not depend on `workers` or `executor`. After an interruption or an error, finished runs stay stored
    and the next call computes the rest. A run is what its configuration says: one that another engine computed is
    finished too, and reused; the columns engine and device say which it was.

    Args:
        configs: Runs; equal ones are computed once and appear once in the table, in the order of their first place.
        out: Results folder, created if missing.
        engine: See `simulate`; "auto" chooses for each run.
        device: See `simulate`.
        workers: Processes; None for one per available core, fewer where their runs would not fit in memory. With 1 the
            runs take place in this process, and on a CUDA GPU always.
        executor: Any executor in the style of concurrent.futures that shall compute the runs instead.
        overwrite: Whether to compute finished runs again; each is replaced when its new result is there.
        progress: Whether to show a progress bar on stderr, if that is a terminal.

    Raises:
        ValueError: If there are no runs or what is given is none, workers < 1 or too many for the memory, the engine
            cannot compute a run (see `simulate`), the folder cannot be used (see ResultsFolder), or a worker of the
            executor has other versions of what results depend on.
        OSError: If a result cannot be written.
    """
    distinct = _distinct_runs(configs)
    with ResultsFolder(out) as results:
        pending = [one for one in distinct if overwrite or not results.has(one)]
        batches = planned_batches(pending, engine=engine, device=device)
        processes_for(batches, workers)
        results.keep_plan(distinct)
        cost = {one: ENGINES[batch.engine].cost(one) for batch in batches for one in batch.configs}
        finished = run_all(pending, engine=engine, device=device, workers=workers, executor=executor)
        # closing: an error in this loop must end the processes now, not when the generator is collected
        with closing(finished), progress_bar(cost.values(), progress) as show:
            for trajectory in finished:
                results.save(trajectory)
                show(cost[trajectory.config])
        return results.assemble(distinct)


def _distinct_runs(configs: Any) -> list[RunConfig]:
    runs = list(configs) if isinstance(configs, Iterable) else None
    if runs is None or not all(isinstance(one, RunConfig) for one in runs):
        got = shown(configs if runs is None else runs)
        raise ValueError(f"a sweep must be a list of RunConfig, got {got}: put a single one into a list")
    if not runs:
        raise ValueError("a sweep must have at least one run, got none: pass a list of RunConfig")
    return list(dict.fromkeys(runs))
