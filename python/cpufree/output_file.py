"""The one way in which this package writes a file that a user asked for.

A regular file appears under its name when it is complete: until then, and whatever happens, the old
one stays as it was. It is written under a random name beside its target, which no other user can
have prepared, and keeps the mode and, where that is permitted, the owner of the file that it
replaces. Where the name is a symbolic link, the file to which it leads is replaced, and the link
stays. Pipes and devices are written into.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from cpufree.errors import FileFormatError

PathLike = str | os.PathLike[str]

READER_LIMIT = 60.0
"""Seconds for which a pipe may have no reader."""
# Names for what is open already: a new file beside it would not be the one that is meant.
_OPEN_ALREADY = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


class Draft:
    """An empty file beside its target, which becomes the target when it is complete.

    Raises:
        OSError: none can be made there.
    """

    def __init__(self, path: PathLike) -> None:
        self._target = Path(os.path.realpath(path))
        self._old = _status(self._target)
        if self._old is not None and not stat.S_ISREG(self._old.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or device, not a regular file")
        self.name = str(self._target.with_name(f".cpufree-{secrets.token_hex(8)}.tmp"))
        """Where to write until then."""
        mode = 0o666 if self._old is None else stat.S_IMODE(self._old.st_mode)
        os.close(os.open(self.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode | stat.S_IWUSR))

    def finish(self) -> None:
        """Give the file the name of its target."""
        if self._old is not None:
            with contextlib.suppress(PermissionError):
                os.chown(self.name, self._old.st_uid, self._old.st_gid)
            os.chmod(self.name, stat.S_IMODE(self._old.st_mode))
        os.replace(self.name, self._target)

    def discard(self) -> None:
        """Remove what has been written, if it is still there."""
        with contextlib.suppress(OSError):
            os.unlink(self.name)


@contextlib.contextmanager
def write_file(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the name `path` when the block ends without an error.

    Raises:
        FileFormatError: it cannot be written, also where the block raises OSError.
    """
    try:
        if _is_stream(path):
            with tempfile.TemporaryFile() as file:
                yield file
                file.seek(0)
                _pour(file, path)
            return
        draft = Draft(path)
        try:
            with open(draft.name, "r+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.finish()
        except BaseException:
            draft.discard()
            raise
    except OSError as error:
        why = error.strerror or error
        raise FileFormatError(f"{path}: cannot be written: {why}", path) from error


def write_text(path: PathLike, text: str) -> None:
    """Write a text in UTF-8, as `write_file` does."""
    with write_file(path) as file:
        file.write(text.encode())


def require_writable(path: PathLike) -> None:
    """Raise OSError where `write_file` could not write a file; leaves everything as it is.

    Permissions are not enough: no user can make a file in /proc, though its mode lets root write.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if not _is_stream(path):
        Draft(path).discard()


def takes_place_of_file(path: PathLike) -> bool:
    """Whether the name is that of a regular file, or of none yet: not of a pipe or device."""
    return not _is_stream(path)


def _status(path: PathLike) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except ValueError as error:  # a NUL byte
        raise OSError(errno.EINVAL, str(error)) from None


def _is_stream(path: PathLike) -> bool:
    """Whether a name is that of a pipe, a device, or something that this process has open."""
    status = _status(path)
    if status is None or stat.S_ISDIR(status.st_mode):
        return False
    return not stat.S_ISREG(status.st_mode) or os.fsdecode(path).startswith(_OPEN_ALREADY)


def _pour(file: IO[bytes], path: PathLike) -> None:
    """Write a complete file into a pipe or device."""
    end = time.monotonic() + READER_LIMIT
    while True:
        try:
            # Without O_NONBLOCK, opening a pipe without a reader would wait forever.
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
            break
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > end:
                raise OSError(error.errno, "the pipe has no reader") from None
            time.sleep(0.02)
    os.set_blocking(descriptor, True)
    with open(descriptor, "wb") as stream:
        shutil.copyfileobj(file, stream, 1 << 20)
