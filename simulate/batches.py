"""Many runs: which are computed together, by which engine, in how many processes, within the memory that is there."""

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from fgrpo.simulate._checks import whole_number
from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.engines import ENGINES, choose_engine, given, known_run, memory_in_bytes, torch_device
from fgrpo.simulate.pool import available_cores, run_jobs
from fgrpo.simulate.trajectory import Trajectory


def simulate_many(
    configs: Iterable[RunConfig],
    *,
    engine: str = "auto",
    device: str | None = None,
    workers: int = 1,
    executor: Executor | None = None,
) -> list[Trajectory]:
    """Runs many configurations; their trajectories, in the order of the configurations.

    Each is the one that `simulate` returns, bit for bit on a CPU, whatever the workers and whatever else is run.

    Args:
        configs: Runs; equal ones are computed once.
        engine: As for `simulate`; "auto" chooses for each run.
        device: As for `simulate`.
        workers: Processes, fewer where the runs would not fit in memory together; with 1 the runs take place in this
            process, and on a CUDA GPU always.
        executor: Any executor in the style of concurrent.futures that shall compute the runs; `workers` then means
            nothing.

    Raises:
        ValueError: As `simulate` does, before the first run.
    """
    asked = list(configs)
    finished = run_all(asked, engine=engine, device=device, workers=workers, executor=executor)
    with closing(finished):
        of = {trajectory.config: trajectory for trajectory in finished}
    return [of[config] for config in asked]


def run_all(
    configs: Iterable[RunConfig],
    *,
    engine: str = "auto",
    device: str | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
) -> Generator[Trajectory, None, None]:
    """Trajectories of the distinct configurations as they are finished, the longest runs first; see `simulate_many`."""
    batches = planned_batches(configs, engine=engine, device=device)
    processes = processes_for(batches, workers)
    jobs: list[Callable[[], list[Trajectory]]] = []
    on_gpu: list[Callable[[], list[Trajectory]]] = []
    for batch in batches:
        # processes that share a GPU would only wait for one another
        (on_gpu if batch.on_gpu and executor is None else jobs).append(batch.job)
    if processes > 1 and executor is None:
        for prepare in {ENGINES[batch.engine].prepare for batch in batches}:
            if prepare is not None:
                prepare()
    for finished, number in ((on_gpu, 1), (jobs, processes)):
        with closing(run_jobs(finished, number, executor)) as results:
            for result in results:
                yield from result


@dataclass(frozen=True)
class Batch:
    """Runs that are computed by one call of an engine.

    Attributes:
        engine: Its name.
        device: Where, if that was asked for.
        configs: The runs.
    """

    engine: str
    device: str | None
    configs: tuple[RunConfig, ...]

    @property
    def job(self) -> Callable[[], list[Trajectory]]:
        """Computes the runs; picklable."""
        return partial(ENGINES[self.engine].run, list(self.configs), **given(device=self.device))

    @property
    def on_gpu(self) -> bool:
        """Whether the runs take place on a CUDA GPU."""
        return self.engine == "torch" and torch_device(self.device) != "cpu"

    @property
    def bytes_needed(self) -> int:
        """Memory that the runs take at most, about."""
        return sum(map(ENGINES[self.engine].bytes_needed, self.configs))

    @property
    def cost(self) -> float:
        """How long the longest run takes, in units that all engines share, about."""
        return max(map(ENGINES[self.engine].cost, self.configs))


def planned_batches(configs: Iterable[RunConfig], *, engine: str = "auto", device: str | None = None) -> list[Batch]:
    """How `run_all` shares out the distinct configurations, the longest runs of each engine first.

    Raises:
        ValueError: As `simulate` does.
    """
    chosen: dict[tuple[str, str | None], list[RunConfig]] = {}
    for config in map(known_run, dict.fromkeys(configs)):
        name, options = choose_engine(config, engine, given(device=device))
        chosen.setdefault((name, options.get("device")), []).append(config)
    batches = []
    for (name, where), runs in chosen.items():
        runs.sort(key=ENGINES[name].cost, reverse=True)
        batches += [Batch(name, where, tuple(part)) for part in ENGINES[name].batches(runs, **given(device=where))]
    return sorted(batches, key=lambda batch: batch.cost, reverse=True)


def processes_for(batches: Sequence[Batch], workers: int | None) -> int:
    """Processes that compute the batches on a CPU: `workers`, or one per core, fewer if their runs need more memory.

    Raises:
        ValueError: If workers < 1, or so many do not fit in memory.
    """
    if workers is not None:
        workers = whole_number("workers", workers, "pass the number of processes, or nothing for all cores", minimum=1)
    batches = [batch for batch in batches if not batch.on_gpu]
    processes, memory = min(workers or available_cores(), len(batches)), memory_in_bytes()
    while memory is not None and processes > 1 and (needed := memory_of(batches, processes)) > memory:
        if workers is not None:
            raise ValueError(
                f"the runs of all workers must fit in memory, got {processes} workers that need {needed / 1e9:.3g} GB "
                f"of {memory / 1e9:.3g} GB: pass fewer"
            )
        processes -= 1
    return processes


def memory_of(batches: Sequence[Batch], processes: int) -> int:
    """Bytes that the largest batches, one in each process, take at most, about, the program itself aside."""
    return sum(sorted((batch.bytes_needed for batch in batches), reverse=True)[:processes])
