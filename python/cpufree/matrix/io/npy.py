"""NumPy's files (.npy): their headers are checked before NumPy allocates what they declare."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cpufree.errors import FileFormatError

# NumPy itself refuses to parse longer ones, but not to read them.
_MOST_HEADER = 1 << 16


def map_npy(path: Path) -> NDArray[Any]:
    """Return the array of a .npy file, mapped read-only.

    Raises:
        FileFormatError: an archive, or its header is too long.
        ValueError, OSError: whatever NumPy says.
    """
    with open(path, "rb") as stream:
        if stream.read(2) == b"PK":
            raise FileFormatError(f"{path}: an archive of arrays (.npz): give one, as .npy", path)
        stream.seek(0)
        declared_size(stream, str(path))
    return np.lib.format.open_memmap(path, mode="r")


def declared_size(stream: IO[bytes], name: str) -> tuple[int, int]:
    """Return how many numbers the header of a .npy stream announces, and bytes of each."""
    version = np.lib.format.read_magic(stream)
    digits = 2 if version == (1, 0) else 4
    length = int.from_bytes(stream.read(digits), "little")
    if length > _MOST_HEADER:
        raise FileFormatError(
            f"{name}: damaged: its header declares to be {length} bytes long, and at most "
            f"{_MOST_HEADER} are plausible",
            name,
        )
    stream.seek(np.lib.format.MAGIC_LEN)
    read = np.lib.format.read_array_header_1_0 if digits == 2 else _read_long_header
    shape, _, dtype = read(stream)
    return math.prod(shape), int(dtype.itemsize)


_read_long_header = np.lib.format.read_array_header_2_0
