"""A lock on an open file: one process at a time has it, and it ends with that process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

PROC = Path("/proc")
# What file systems without locks say.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


def lock(file: int) -> bool:
    """Lock the file of a descriptor until that is closed; return whether there are locks here.

    Raises BlockingIOError where another process has it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def holder(path: Path) -> int | None:
    """Return the number of another process that has a file open for writing; None: not known."""
    wanted = os.stat(path)
    for folder in PROC.glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        # Processes end meanwhile, and those of others show nothing.
        with contextlib.suppress(OSError, ValueError):
            for entry in (folder / "fd").iterdir():
                if os.path.samestat(os.stat(entry), wanted) and _writes(folder, entry.name):
                    return int(folder.name)
    return None


def _writes(folder: Path, descriptor: str) -> bool:
    """Return whether a descriptor of a process, which /proc has in a folder, is for writing."""
    for line in (folder / "fdinfo" / descriptor).read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            return int(value, 8) & os.O_ACCMODE != os.O_RDONLY
    return False
