"""A results folder: one parquet file per finished run, and one table of the runs last asked for.

A file appears whole or not at all. Each run's file carries its configuration, so that a finished run is recognised and
never computed again, and a file that is not what its name says is refused.
"""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fgrpo.simulate.config import CONFIG_SCHEMA, RunConfig
from fgrpo.simulate.files import TEMPORARY, write_atomically
from fgrpo.simulate.trajectory import Trajectory, versions

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RUNS = "runs"
SWEEP = "sweep.parquet"
LOCK = ".lock"


class ResultsFolder:
    """A results folder that this process alone writes to; use it as a context manager, which holds the folder's lock.

    Args:
        folder: Created if it does not exist.

    Raises:
        ValueError: On entry, if the path is a file, cannot be written to, is being written by another process, or holds
            runs of another configuration schema or another minor version of fgrpo.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        import filelock

        self.folder = Path(folder)
        self._lock = filelock.FileLock(self.folder / LOCK)

    def __enter__(self) -> Self:
        import filelock

        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"the results folder must be a folder, got the file {self.folder}: choose another --out")
        try:
            (self.folder / RUNS).mkdir(parents=True, exist_ok=True)
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            raise ValueError(
                f"a results folder has one writer at a time, got {self.folder} that another process is writing to: "
                "wait for it or choose another --out"
            ) from None
        except OSError as error:
            raise ValueError(
                f"the results folder must be writable, got {self.folder} ({error.strerror}): choose another --out"
            ) from None
        # whoever left these behind is gone, since this process holds the lock
        for left_over in (*self.folder.glob(f".*{TEMPORARY}"), *(self.folder / RUNS).glob(f".*{TEMPORARY}")):
            left_over.unlink()
        try:
            self._refuse_other_kind()
        except ValueError:
            self._lock.release()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def _refuse_other_kind(self) -> None:
        """One readable run speaks for all of them, since every writer refuses to mix."""
        import pyarrow.parquet as pq

        own = _kind(str(CONFIG_SCHEMA), versions()["fgrpo_version"])
        for path in sorted((self.folder / RUNS).glob("*.parquet")):
            try:
                kind = _kind_of(pq.read_schema(path).metadata or {})
            except (OSError, ValueError, KeyError):  # damaged, or no run at all: found out when it is asked for
                continue
            differing = [f"{name} {kind[name]} (this is {mine})" for name, mine in own.items() if kind[name] != mine]
            if differing:
                raise ValueError(
                    f"a results folder must hold runs of one kind, got {self.folder} with {' and '.join(differing)}: "
                    "choose another --out, or delete the folder"
                )
            return

    def path(self, config: RunConfig) -> Path:
        """Where the finished run is stored."""
        return self.folder / RUNS / f"{config.run_id}.parquet"

    def has(self, config: RunConfig) -> bool:
        """Whether the run is finished.

        Raises:
            ValueError: If its file is damaged or holds another run.
        """
        import pyarrow.parquet as pq

        path = self.path(config)
        if not path.exists():
            return False
        with _damage_reported(path):
            metadata = pq.read_schema(path).metadata or {}
        _refuse_other_run(path, metadata)
        return True

    def save(self, trajectory: Trajectory) -> None:
        """Stores a finished run.

        Raises:
            ValueError: If its start is not that of its configuration.
            OSError: If the disk is full or the folder has become unwritable; other finished runs stay as they are.
        """
        import pyarrow as pa

        if trajectory.start != "policy":
            raise ValueError(
                f"a stored run must start as its configuration says, got one that starts from {trajectory.start}: "
                "keep it yourself, for example with to_frame"
            )
        table = pa.Table.from_pandas(trajectory.to_frame(), preserve_index=False)
        provenance = {
            "fgrpo.config": trajectory.config.to_json(),
            "fgrpo.schema": str(CONFIG_SCHEMA),
            "fgrpo.engine": trajectory.engine,
            "fgrpo.device": trajectory.device,
            "fgrpo.versions": json.dumps(versions()),
        }
        _write(table.replace_schema_metadata({**table.schema.metadata, **provenance}), self.path(trajectory.config))

    def assemble(self, configs: Iterable[RunConfig]) -> "pd.DataFrame":
        """Writes the table of these finished runs, in this order, and returns it.

        Raises:
            ValueError: If a run's file is damaged or holds another run.
            OSError: If the table cannot be written.
        """
        import pandas as pd
        import pyarrow as pa

        frames = []
        for config in configs:
            path = self.path(config)
            table = _read(path)
            _refuse_other_run(path, table.schema.metadata or {})
            frames.append(table.to_pandas())
        sweep: pd.DataFrame = pd.concat(frames, ignore_index=True)
        _write(pa.Table.from_pandas(sweep, preserve_index=False), self.folder / SWEEP)
        return sweep


def _kind_of(metadata: dict[bytes, bytes]) -> dict[str, str]:
    """What must agree for runs to lie in one folder: the meaning of configurations, and the code that computes them."""
    stored = json.loads(metadata[b"fgrpo.versions"])["fgrpo_version"]
    # the first schema was not written down
    return _kind(metadata.get(b"fgrpo.schema", b"1").decode(), stored)


def _kind(schema: str, version: str) -> dict[str, str]:
    return {"configuration schema": schema, "fgrpo version": ".".join(version.split(".")[:2])}


def load_results(folder: str | os.PathLike[str]) -> "pd.DataFrame":
    """The table that the last finished sweep in `folder` wrote: one row per run and recorded step.

    Raises:
        ValueError: If there is none, or its file is damaged.
    """
    path = Path(folder) / SWEEP
    if not path.is_file():
        raise ValueError(
            f"a results folder must hold {SWEEP}, got {folder} without it: run a sweep with this --out first"
        )
    results: pd.DataFrame = _read(path).to_pandas()
    return results


def _read(path: Path) -> "pa.Table":
    import pyarrow.parquet as pq

    with _damage_reported(path):
        return pq.read_table(path, page_checksum_verification=True)


@contextmanager
def _damage_reported(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError):  # pyarrow raises either, depending on where the damage is
        raise ValueError(
            f"a results file must be whole parquet, got the damaged file {path}: "
            "delete it and run the sweep again, which computes only what is missing"
        ) from None


def _refuse_other_run(path: Path, metadata: dict[bytes, bytes]) -> None:
    try:
        stored = RunConfig.from_json(metadata.get(b"fgrpo.config", b"").decode()).run_id
    except ValueError:
        stored = "no readable configuration"
    if stored != path.stem:
        raise ValueError(
            f"a run's file must hold the configuration that its name says, got {stored} in {path}: "
            "delete it and run the sweep again, which computes only what is missing"
        )


def _write(table: "pa.Table", path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer: Any = pa.BufferOutputStream()
    pq.write_table(table, buffer, write_page_checksum=True)
    write_atomically(path, buffer.getvalue())
