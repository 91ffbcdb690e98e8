"""The runs of the tiny-world experiment as jobs on several processes: each leaves a file, and is never done twice."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from fgrpo.llm.experiment.arms import Arm
from fgrpo.llm.experiment.protocol import Protocol
from fgrpo.simulate.files import write_atomically
from fgrpo.simulate.pool import available_cores, run_jobs
from fgrpo.theory import _validation as check

if TYPE_CHECKING:
    import pandas as pd

RUNS, BASES = "runs", "bases"
_DECIDING = ("torch", "transformers", "trl")  # whose versions decide a run, beside the code
_CODE = ("experiment/recorder.py", "experiment/run.py", "tiny_world/*.py", "config.py", "groups.py", "trainer.py")


@dataclass(frozen=True)
class Job:
    """One run: an arm and a seed; it writes its table and returns what went wrong, None if nothing did."""

    arm: Arm
    seed: int
    protocol: Protocol
    folder: Path

    @property
    def title(self) -> str:
        """The arm and the seed."""
        return f"{self.arm.name}, seed {self.seed}"

    @property
    def path(self) -> Path:
        """The file of its table; the name has a digest of all that decides the run."""
        deciding = {
            "arm": self.arm.training_settings(),
            "protocol": self.protocol.training_settings(),
            "code": _digest_of_code(),
            "versions": {name: version(name) for name in _DECIDING},
        }
        digest = hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:12]
        return self.folder / RUNS / f"{self.arm.name}-{self.seed}-{digest}.parquet"

    def __call__(self) -> tuple["Job", str | None]:
        """Run, write, and say what went wrong: an error here must not take the other runs with it."""
        try:
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            import torch

            from fgrpo.llm.experiment.run import run_arm

            torch.set_num_threads(1)
            content = BytesIO()
            run_arm(self.arm, self.seed, self.protocol, self.folder / BASES).to_parquet(content, index=False)
            write_atomically(self.path, content.getvalue())
        except Exception as error:  # whatever it is, it is named in one line
            return self, f"{type(error).__name__}: {error}"
        return self, None


def run_experiment(
    arms: Sequence[Arm],
    protocol: Protocol,
    folder: Path,
    *,
    workers: int | None = None,
    overwrite: bool = False,
    write: Callable[[str], object] = print,
) -> "pd.DataFrame":
    """Train every arm with every seed, or take what an earlier call has left.

    Args:
        arms: The arms.
        protocol: Seeds and settings.
        folder: Where base models and the tables of finished runs are kept.
        workers: Processes; default: one per core.
        overwrite: Whether finished runs are done again.
        write: What takes a line of progress.

    Returns:
        The rows of all runs.

    Raises:
        ValueError: If the extra llm is missing, workers is below 1, or runs failed: after all others, with their names.
        OSError: If the folder cannot be written.

    Source: this project.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}: leave it out for one per core")
    for needed in ("torch", "trl"):
        if find_spec(needed) is None:
            raise ValueError(f"the experiment needs the extra llm, got no module {needed}: {check.install('llm')}")
    (folder / RUNS).mkdir(parents=True, exist_ok=True)
    jobs = [Job(arm, seed, protocol, folder) for arm in arms for seed in range(protocol.seeds)]
    # the longest first, so that none is left over at the end; seeds in turn, so that processes make different bases
    jobs.sort(key=lambda job: -job.arm.group_size)
    missing = [job for job in jobs if overwrite or _read(job.path) is None]
    if len(missing) < len(jobs):
        write(f"{len(jobs) - len(missing)} of {len(jobs)} runs were done before")
    failed: list[str] = []
    finished = run_jobs(missing, min(workers or available_cores(), max(1, len(missing))), None)
    try:
        for count, (job, problem) in enumerate(finished, start=1):
            write(f"{count} of {len(missing)}: {job.title}" + (f" failed: {problem}" if problem else ""))
            if problem:
                failed.append(f"{job.title} ({problem})")
    except BrokenProcessPool:
        raise ValueError(
            "every process of the experiment must live to its end, got one that was killed: finished runs are kept, "
            "start again, with fewer --workers if memory ran out"
        ) from None
    if failed:
        raise ValueError(f"all runs must succeed, got failures of {'; '.join(failed)}: the others are kept, run again")
    return _joined(jobs)


def _joined(jobs: Sequence[Job]) -> "pd.DataFrame":
    import pandas as pd

    return pd.concat([_read(job.path) for job in jobs], ignore_index=True)


def _read(path: Path) -> "pd.DataFrame | None":
    """The table of a finished run; None where there is none, or a file that is none (it is made again)."""
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except (FileNotFoundError, ValueError):  # pyarrow's complaint is a ValueError
        return None


def _digest_of_code() -> str:
    import fgrpo.llm

    root = Path(fgrpo.llm.__file__).parent
    files = sorted(path for pattern in _CODE for path in root.glob(pattern))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]
