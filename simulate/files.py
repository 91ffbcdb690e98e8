"""Files that appear whole or not at all."""

import contextlib
import os
from pathlib import Path

TEMPORARY = ".tmp"


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
