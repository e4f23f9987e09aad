"""Matrices that scipy.sparse.save_npz wrote."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from cpufree.errors import FileFormatError
from cpufree.matrix.io.npy import declared_size

# Deflate yields at most this many bytes for one.
_DEFLATE_LIMIT = 1032
_FLOAT_BYTES = 8


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
            _check_member(path, archive, member)
    return sp.load_npz(path)


def _check_member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    with archive.open(member) as stream:
        count, itemsize = declared_size(stream, f"{path}: {member.filename}")
    most = _DEFLATE_LIMIT * member.compress_size
    # What deflate cannot yield is not there, whatever the directory says.
    available = min(member.file_size, most)
    declared = count * itemsize
    if declared > available:
        raise FileFormatError(
            f"{path}: damaged: {member.filename} declares {declared} "
            f"bytes but holds at most {available}",
            path,
        )
    # Values of one byte become numbers of eight. In blocks and diagonals no indices go with them,
    # so that a small file could hold any number of them.
    if member.filename == "data.npy" and count * _FLOAT_BYTES > most:
        raise FileFormatError(
            f"{path}: its {count} values would take {count * _FLOAT_BYTES} bytes, which a file of "
            f"{path.stat().st_size} bytes should not make of itself; if they are meant, save with "
            "scipy.sparse.save_npz(..., compressed=False), or as float64",
            path,
        )
