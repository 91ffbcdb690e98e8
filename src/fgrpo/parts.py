"""Parts of a long computation in a folder, so that an interrupted one goes on where it was."""

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fgrpo.simulate.files import lock_for_writing, write_atomically
from fgrpo.theory._validation import shown

if TYPE_CHECKING:
    import pyarrow as pa

Settings = Mapping[str, Any]

_SETTINGS = "settings.json"


class Parts:
    """A folder of finished parts, each of which appears whole or not at all; a context manager that holds its lock.

    Args:
        folder: Where; created if it does not exist.
        settings: What the parts depend on, as JSON has it. A folder with other settings is refused.
        overwrite: Whether to begin anew instead, whatever is there.

    Raises:
        ValueError: On entry, if the folder holds parts of other settings, cannot be written to, or another process
            writes to it.

    Source: this project.
    """

    def __init__(self, folder: Path, settings: Settings, *, overwrite: bool = False) -> None:
        self.folder, self.settings, self.overwrite = folder, settings, overwrite

    def __enter__(self) -> Self:
        self._lock = lock_for_writing(self.folder)
        try:
            self._begin()
        except (ValueError, OSError):
            self._lock.release()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def _begin(self) -> None:
        path = self.folder / _SETTINGS
        if self.overwrite:
            for left_over in self.folder.glob("*.parquet"):
                left_over.unlink()
        elif path.exists():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                raise ValueError(f"{str(path)!r} must be JSON, got damage: pass --overwrite to begin anew") from None
            refuse_other_settings(found, self.settings, f"unfinished results in {str(self.folder)!r}")
        write_atomically(path, json.dumps(self.settings).encode())

    def has(self, name: str) -> bool:
        """Whether the part of this name is finished."""
        return self._path(name).is_file()

    def save(self, name: str, table: "pa.Table") -> None:
        """Store a part.

        Raises:
            OSError: If the disk is full; other parts stay as they are.
        """
        write_parquet(table, self._path(name))

    def read(self, name: str) -> "pa.Table":
        """A stored part.

        Raises:
            ValueError: If its file is damaged.
        """
        return read_parquet(self._path(name))

    def discard(self) -> None:
        """Remove the folder: what it was for is finished."""
        self._lock.release()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"


def write_parquet(table: "pa.Table", path: Path) -> None:
    """Write a table whole or not at all.

    Raises:
        OSError: If the folder cannot be written or the disk is full.
    """
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    write_atomically(path, buffer.getvalue())


def read_parquet(path: Path) -> "pa.Table":
    """A table from a file.

    Raises:
        ValueError: If it does not exist or is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise ValueError(f"a parquet file must exist, got {str(path)!r}: check the path")
    try:
        return pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError):
        raise ValueError(f"{str(path)!r} must be parquet, got damage: delete it, and it is computed again") from None


def refuse_other_settings(found: Any, wanted: Settings, what: str) -> None:
    """Raise unless what was found was made with the settings that are wanted; the message names the first that differs.

    Raises:
        ValueError: If a setting differs.
    """
    known = found if isinstance(found, dict) else {}
    differing = [name for name in wanted if json.loads(json.dumps(wanted[name])) != known.get(name)]
    if differing:
        name = differing[0]
        raise ValueError(
            f"{what} must have the same settings, got {name} {shown(known.get(name))} there and {shown(wanted[name])} "
            "now: choose another --out, or pass --overwrite"
        )


def file_digest(path: str | os.PathLike[str]) -> str:
    """16 hexadecimal digits of a file's content.

    Raises:
        ValueError: If it cannot be read.
    """
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise ValueError(f"data must be a readable file, got {str(path)!r}: {error.strerror}") from None


def model_label(model: str) -> str:
    """A name for the files about a model: its folder's, of a checkpoint with that of its run."""
    folders = [part for part in Path(model).parts if part not in ("/", ".", "..")]
    kept = folders[-2:] if folders and folders[-1].startswith("checkpoint-") else folders[-1:]
    return re.sub(r"[^\w.-]", "_", "_".join(kept)) or "model"
