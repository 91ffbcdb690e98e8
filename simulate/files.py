"""Files that appear whole or not at all, and folders with one writer at a time."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"
TEMPORARY = ".tmp"


def lock_for_writing(folder: Path, *within: str) -> "BaseFileLock":
    """Makes a results folder, with the folders `within` it, and takes the lock that all of its writers take.

    Returns:
        The lock, held until its `release`.

    Raises:
        ValueError: If another process holds it, or the folder cannot be written to: one line with the way out.
    """
    import filelock

    lock = filelock.FileLock(folder / LOCK)
    try:
        for made in (folder, *(folder / name for name in within)):
            made.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise ValueError(
            f"a results folder has one writer at a time, got {folder} that another process is writing to: "
            "wait for it or choose another --out"
        ) from None
    except OSError as error:
        raise ValueError(
            f"the results folder must be writable, got {folder} ({error.strerror}): choose another --out"
        ) from None
    return lock


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file, or leaves what was there: a temporary file in the same folder, flushed to disk, then renamed.

    Raises:
        OSError: If the folder cannot be written or the disk is full: one line that names the folder, with the errno.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot write {path.name} into {path.parent} ({error.strerror}): free space or choose another folder",
        ) from error
    finally:
        with contextlib.suppress(OSError):  # where there is no folder there is no file
            temporary.unlink(missing_ok=True)
