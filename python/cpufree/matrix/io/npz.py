"""Matrices that scipy.sparse.save_npz wrote."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from cpufree.errors import FileFormatError

# Deflate yields at most this many bytes for one.
_DEFLATE_LIMIT = 1032


def read_npz(path: Path) -> Any:
    """Read what scipy.sparse.save_npz wrote, after a look at the sizes that it declares."""
    with zipfile.ZipFile(path) as archive:
        names = {member.filename for member in archive.infolist()}
        if "format.npy" not in names:
            raise FileFormatError(
                f"{path}: holds {', '.join(sorted(names)) or 'nothing'}, but no "
                "sparse matrix: write it with scipy.sparse.save_npz",
                path,
            )
        for member in archive.infolist():
            with archive.open(member) as stream:
                declared = _declared_bytes(stream)
            # What deflate cannot yield is not there, whatever the directory says.
            available = min(member.file_size, _DEFLATE_LIMIT * member.compress_size)
            if declared > available:
                raise FileFormatError(
                    f"{path}: damaged: {member.filename} declares {declared} "
                    f"bytes but holds at most {available}",
                    path,
                )
    return sp.load_npz(path)


def _declared_bytes(stream: IO[bytes]) -> int:
    """Return the number of bytes that the header of a .npy stream announces."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    return math.prod(shape) * int(dtype.itemsize)
