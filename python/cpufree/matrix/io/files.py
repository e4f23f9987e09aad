"""Files to read: that they are there, what their suffix says, and errors that name them."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from cpufree.errors import CpufreeError, FileFormatError, OutOfMemoryError, unreadable

PathLike = str | os.PathLike[str]

_ADVICE = {
    ".mat": "read it with scipy.io.loadmat and pass the array",
    ".csv": "a table of numbers is taken as a vector only; pass a matrix as a NumPy array",
    ".zip": "unpack the archive and name the .mtx file in it",
    ".h5": "read it with h5py and pass the matrix as a SciPy sparse one",
}
_IN_CONTAINER = re.compile(r"(.*?\.(?:tar\.gz|tgz|mat))#(.+)", re.IGNORECASE | re.DOTALL)


def split_part(path: PathLike) -> tuple[PathLike, str]:
    """Return a file, and what is named in it: A.mat#B is B in A.mat; "" where nothing is."""
    match = _IN_CONTAINER.fullmatch(os.fsdecode(path))
    if match is None or os.path.exists(path):
        return path, ""
    return match[1], match[2]


def suffix_of(path: PathLike, known: tuple[str, ...]) -> str:
    """Return the one of `known` that the name ends in, in whatever case."""
    name = os.fsdecode(path).lower()
    # The longest first: .mtx.gz before .gz.
    for suffix in sorted(known, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    advice = next((text for end, text in _ADVICE.items() if name.endswith(end)), None)
    raise FileFormatError(
        f"{path}: unknown suffix; known are {', '.join(known)}" + (f"; {advice}" if advice else ""),
        path,
    )


def check_file(
    path: PathLike, suffixes: tuple[str, ...], hint: Callable[[str], str] = lambda name: ""
) -> tuple[Path, str]:
    """Return the path and its suffix, once it is a file that can be read.

    `hint` returns advice for the name of a file that is missing.
    """
    file = regular_file(path, hint)
    return file, suffix_of(path, suffixes)


def regular_file(path: PathLike, hint: Callable[[str], str] = lambda name: "") -> Path:
    """Return the path, once it is a file that is not empty, whatever its suffix."""
    if not os.fspath(path):
        raise FileFormatError("the name of a file to read is empty", path)
    file = Path(os.fsdecode(path)).expanduser()
    try:
        status = file.stat()
    except (OSError, ValueError) as error:
        alike = [end for end in (".gz", ".bz2") if os.path.exists(f"{file}{end}")]
        advice = f"; there is {file.name}{alike[0]}" if alike else hint(os.fsdecode(path))
        why = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise unreadable(f"{path}: {why}{advice}", path, error) from None
    if stat.S_ISDIR(status.st_mode):
        raise FileFormatError(f"{path}: is a directory; name a file in it", path)
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError(
            f"{path}: is not a regular file (a pipe or device cannot be read "
            "twice); save it as a file first",
            path,
        )
    if status.st_size == 0:
        raise FileFormatError(f"{path}: the file is empty", path)
    return file


MARK = b"\xef\xbb\xbf"
"""What some programs write before a text in UTF-8."""
MAX_LINE = 1 << 20
"""Characters that a line of a text may have."""


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text; a file without line ends does not come as a whole.

    Raises:
        FileFormatError: a line is too long.
    """
    with open(path, encoding="latin-1") as file:
        number = 0
        while line := file.readline(MAX_LINE):
            line = line if number else line.removeprefix(MARK.decode("latin-1"))
            number += 1
            if len(line) == MAX_LINE:
                raise FileFormatError(
                    f"{path}: line {number}: longer than {MAX_LINE} characters; each number needs "
                    "its own line",
                    path,
                )
            yield line


@contextlib.contextmanager
def memory_for(what: object) -> Iterator[None]:
    """Turn a MemoryError into an OutOfMemoryError that names what there is no room for."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"{what}: not enough memory: {error}") from error


@contextlib.contextmanager
def reading(path: Path, suffix: str) -> Iterator[None]:
    """Turn whatever a reader raises on a bad file into a CpufreeError with the path."""
    try:
        with memory_for(path):
            yield
    except CpufreeError:
        raise
    except OSError as error:
        why = error.strerror or f"damaged: {error}"
        raise unreadable(f"{path}: cannot be read: {why}", path, error) from error
    except EOFError as error:
        raise FileFormatError(f"{path}: truncated: {error}", path) from error
    except Exception as error:  # the readers promise no particular set
        what = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
        raise FileFormatError(
            f"{path}: damaged, or not a {suffix} file as understood here: {what}", path
        ) from error


def compressed(file: IO[bytes], suffix: str) -> contextlib.AbstractContextManager[Any]:
    """Return a stream into `file` that compresses if the suffix says so."""
    if suffix.endswith(".gz"):
        # Neither name nor time in the header: the same matrix gives the same file.
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6)
    return contextlib.nullcontext(file)
