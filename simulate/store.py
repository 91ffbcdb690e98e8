"""A results folder: one parquet file per finished run, and the plan and the table of the runs last asked for.

A file appears whole or not at all. Each run's file carries its configuration, so that a finished run is recognised and
never computed again, and a file that is not what its name says is refused. Each file carries a digest of what it holds,
which every reader verifies: a flipped bit is noticed, wherever it is.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fgrpo.simulate.config import CONFIG_SCHEMA, RunConfig
from fgrpo.simulate.files import TEMPORARY, lock_for_writing, write_atomically
from fgrpo.simulate.trajectory import Trajectory, versions
from fgrpo.theory._validation import shown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RUNS = "runs"
SWEEP = "sweep.parquet"
PLAN = "plan.parquet"
FIGURE_SUFFIXES = {".png", ".pdf", ".csv"}
"""What a figure consists of, as fgrpo.figures.save_figure writes it."""

_DIGEST = b"fgrpo.digest"


class ResultsFolder:
    """A results folder that this process alone writes to; use it as a context manager, which holds the folder's lock.

    Args:
        folder: Created if it does not exist.

    Raises:
        ValueError: If it is no path; on entry, if the path is a file, cannot be written to, is being written by another
            process, has files of other things and no sweep, or holds runs of another configuration schema or another
            minor version of fgrpo; if a folder bears the name of its table or plan.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = _folder(folder)
        self._verified: dict[RunConfig, pd.DataFrame] = {}

    def __enter__(self) -> Self:
        self._refuse_wrong_paths()
        self._lock = lock_for_writing(self.folder, RUNS)
        # whoever left these behind is gone, since this process holds the lock
        for left_over in (*self.folder.glob(f".*{TEMPORARY}"), *(self.folder / RUNS).glob(f".*{TEMPORARY}")):
            if not left_over.is_dir():  # a folder is none of ours
                left_over.unlink()
        try:
            self._refuse_other_kind()
        except ValueError:
            self._lock.release()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def check(self) -> None:
        """Refuses what entering would refuse, another writer aside, and needs no lock."""
        self._refuse_wrong_paths()
        self._refuse_other_kind()

    def _refuse_wrong_paths(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"the results folder must be a folder, got the file {self.folder}: choose another --out")
        for name in (SWEEP, PLAN):
            if (self.folder / name).is_dir():
                raise ValueError(f"{name} must be a file, got the folder {self.folder / name}: rename it")
        self._refuse_foreign()

    def _refuse_foreign(self) -> None:
        """A folder of other things, unless a sweep is there already: its runs would end up among documents or weights.

        Hidden files, folders and figures are no reason: figures may have been drawn here before the first sweep.
        """
        runs = self.folder / RUNS
        if any((self.folder / name).exists() for name in (SWEEP, PLAN)) or any(runs.glob("*.parquet")):
            return
        visible = [path for path in sorted(self.folder.glob("[!.]*")) if path.is_file()]
        suffixes: dict[str, set[str]] = {}
        for path in visible:
            suffixes.setdefault(path.stem, set()).add(path.suffix)
        foreign = [*(path for path in visible if suffixes[path.stem] != FIGURE_SUFFIXES), *runs.glob("[!.]*")]
        if foreign:
            raise ValueError(
                f"a results folder must be new, empty or a sweep's, got {self.folder} with the file "
                f"{foreign[0].relative_to(self.folder)}: choose another --out, such as {self.folder / 'sweep'}"
            )

    def _refuse_other_kind(self) -> None:
        """One readable run speaks for all of them, since every writer refuses to mix."""
        import pyarrow.parquet as pq

        for path in sorted((self.folder / RUNS).glob("*.parquet")):
            try:
                metadata = pq.read_schema(path).metadata
                kind = _kind_of(metadata)
                if _DIGEST in metadata:  # earlier kinds have none
                    _read(path)
            except Exception:  # damaged, or no run at all: found out when it is asked for
                continue
            _refuse_unless_own(kind, self.folder)
            return

    def path(self, config: RunConfig) -> Path:
        """Where the finished run is stored."""
        return self.folder / RUNS / f"{config.run_id}.parquet"

    def has(self, config: RunConfig) -> bool:
        """Whether the run is finished.

        Raises:
            ValueError: If its file is damaged or holds another run.
        """
        path = self.path(config)
        if not path.exists():
            return False
        self._verified[config] = read_run(path, config)
        return True

    def keep_plan(self, configs: Iterable[RunConfig]) -> None:
        """Writes down which runs are asked for, for `load_plan`.

        Raises:
            OSError: If it cannot be written.
        """
        import pyarrow as pa

        plan = pa.table({"config": [config.to_json() for config in configs]})
        write_table(plan.replace_schema_metadata(_own_provenance()), self.folder / PLAN)

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
            "fgrpo.engine": trajectory.engine,
            "fgrpo.device": trajectory.device,
        }
        table = table.replace_schema_metadata({**table.schema.metadata, **_own_provenance(), **provenance})
        self._verified[trajectory.config] = write_table(table, self.path(trajectory.config))

    def assemble(self, configs: Iterable[RunConfig]) -> "pd.DataFrame":
        """Writes the table of these finished runs, in this order, and returns it.

        Raises:
            ValueError: If a run's file is damaged or holds another run.
            OSError: If the table cannot be written.
        """
        import pandas as pd
        import pyarrow as pa

        frames = [
            self._verified[config] if config in self._verified else read_run(self.path(config), config)
            for config in configs
        ]
        sweep: pd.DataFrame = pd.concat(frames, ignore_index=True)
        write_table(pa.Table.from_pandas(sweep, preserve_index=False), self.folder / SWEEP)
        return sweep


def _own_provenance() -> dict[str, str]:
    return {"fgrpo.schema": str(CONFIG_SCHEMA), "fgrpo.versions": json.dumps(versions())}


def _refuse_unless_own(kind: dict[str, str], folder: Path) -> None:
    own = _kind(str(CONFIG_SCHEMA), versions()["fgrpo_version"])
    differing = [f"{name} {kind[name]} (this is {mine})" for name, mine in own.items() if kind[name] != mine]
    if differing:
        raise ValueError(
            f"a results folder must hold runs of one kind, got {folder} with {' and '.join(differing)}: "
            "choose another --out, or delete the folder"
        )


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
    path = _folder(folder) / SWEEP
    if not path.is_file():
        raise ValueError(
            f"a results folder must hold the file {SWEEP}, got {folder} without it: run a sweep with this --out first"
        )
    results, _ = _read(path)
    return results


def load_plan(folder: str | os.PathLike[str]) -> list[RunConfig]:
    """The runs that were last asked for in `folder`, finished or not; needs no lock.

    Raises:
        ValueError: If there is no plan, its file is damaged, or it is of another configuration schema or another minor
            version of fgrpo.
    """
    path = _folder(folder) / PLAN
    if not path.is_file():
        raise ValueError(
            f"a sweep's folder must hold the file {PLAN}, got {folder} without it: start a sweep with this --out first"
        )
    plan, metadata = _read(path)
    _refuse_unless_own(_kind_of(metadata), Path(folder))
    return [RunConfig.from_json(config) for config in plan["config"]]


def _folder(value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or "\0" in os.fspath(value):
        raise ValueError(f"the results folder must be a path, got {shown(value)}: pass for example 'results'")
    return Path(value)


def _read(path: Path) -> "tuple[pd.DataFrame, dict[bytes, bytes]]":
    """The table in a file that this module wrote, and its metadata."""
    import pyarrow.parquet as pq

    try:
        # half the time of read_table
        table = pq.ParquetFile(path, page_checksum_verification=True).read(use_threads=False)
        frame, metadata = table.to_pandas(use_threads=False), table.schema.metadata
        if metadata[_DIGEST].decode() != _digest(frame, metadata):
            raise ValueError("a changed file that is still parquet")
    except Exception:  # pyarrow and pandas raise almost anything, depending on where the damage is
        raise ValueError(
            f"a results file must be as it was written, got the damaged file {path}: "
            "delete it and run the sweep again, which computes only what is missing"
        ) from None
    return frame, metadata


def _digest(frame: "pd.DataFrame", metadata: dict[bytes, bytes]) -> str:
    """SHA-256 over names, types and values of the columns, and over what this package wrote into the metadata."""
    digest = hashlib.sha256()

    def add(content: bytes) -> None:
        digest.update(len(content).to_bytes(8, "little") + content)

    for name, column in frame.items():
        add(f"{name} {column.dtype}".encode())
        values = column.to_numpy()
        add(json.dumps(values.tolist()).encode() if values.dtype == object else values.tobytes())
    for key in sorted(metadata):
        if key.startswith(b"fgrpo.") and key != _DIGEST:
            add(key)
            add(metadata[key])
    return digest.hexdigest()


def read_run(path: Path, config: RunConfig) -> "pd.DataFrame":
    """The table of the finished run that the file shall hold.

    Raises:
        ValueError: If the file is damaged or holds another run.
    """
    frame, metadata = _read(path)
    text = metadata.get(b"fgrpo.config", b"").decode()
    if text != config.to_json():  # written with other fields, of which the new ones have their defaults, or another run
        try:
            stored = RunConfig.from_json(text).run_id
        except ValueError:
            stored = "no readable configuration"
        if stored != config.run_id:
            raise ValueError(
                f"a run's file must hold the configuration that its name says, got {stored} in {path}: "
                "delete it and run the sweep again, which computes only what is missing"
            )
    return frame


def write_table(table: "pa.Table", path: Path) -> "pd.DataFrame":
    """Writes a table with the digest of its content into its metadata; what a reader gets."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = table.schema.metadata
    # of what a reader gets, which differs from what was given in how it writes NaN
    frame: pd.DataFrame = table.to_pandas()
    digest = _digest(frame, metadata).encode()
    table = table.replace_schema_metadata({**metadata, _DIGEST: digest})
    buffer: Any = pa.BufferOutputStream()
    pq.write_table(table, buffer, write_page_checksum=True)
    write_atomically(path, buffer.getvalue())
    return frame
