"""The binary cache, suffix .cpufree: a canonical CSR matrix that is memory-mapped, not parsed.

The format is specified in docs/input.md. Files appear under their name only when complete.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cpufree.entries import MAX_ROWS
from cpufree.errors import FileFormatError
from cpufree.problem import CsrMatrix
from cpufree.rows import RowSlab, RowSource

MAGIC = b"\x93CPUFREE"
VERSION = 1
HEADER_BYTES = 128
ALIGNMENT = 64
# magic, version, header bytes | rows, nnz | dtype code, reserved |
# offsets of indptr, indices, data, bytes of the file | CRC-32 of indptr, indices, data
_HEADER = struct.Struct("<8sIIQQIIQQQQIII")
_HEADER_CRC = struct.Struct("<I")
_DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f8"), 2: np.dtype("<f4")}
_INDPTR = np.dtype("<i8")
_INDICES = np.dtype("<i4")


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the name `path` when the block ends without an error.

    Until then, and whatever happens, a file of that name stays as it was.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            why = error.strerror or error
            raise FileFormatError(f"{path}: cannot be written: {why}", path) from error
        raise


def write_cache(path: str | os.PathLike[str], A: CsrMatrix) -> None:
    """Write A to a cache file.

    Raises:
        FileFormatError: the file cannot be written.
    """
    arrays: tuple[NDArray[Any], ...] = (
        A.indptr.astype(_INDPTR, copy=False),
        A.indices.astype(_INDICES, copy=False),
        A.data.astype(A.dtype.newbyteorder("<"), copy=False),
    )
    code = next(code for code, dtype in _DTYPES.items() if dtype == A.dtype)
    *offsets, size = _layout(A.shape[0], A.nnz, _DTYPES[code])
    checksums = [zlib.crc32(array.data) for array in arrays]
    header = _HEADER.pack(
        MAGIC, VERSION, HEADER_BYTES, A.shape[0], A.nnz, code, 0, *offsets, size, *checksums
    ).ljust(HEADER_BYTES - _HEADER_CRC.size, b"\0")
    with atomic_write(path) as file:
        file.write(header + _HEADER_CRC.pack(zlib.crc32(header)))
        for offset, array in zip(offsets, arrays, strict=True):
            file.seek(offset)
            file.write(array.data)
        file.truncate(size)


def read_cache(path: str | os.PathLike[str], verify: bool = True) -> CsrMatrix:
    """Return the matrix of a cache file, its arrays mapped read-only.

    The file must not be changed in place while the matrix is in use; `write_cache` never does.

    Args:
        path: the file.
        verify: check the checksums of the arrays too, which reads the whole file once.

    Raises:
        FileFormatError: not a cache file, of another version, truncated, or damaged.
        MatrixError: `verify` is off and the arrays are no CSR matrix.
    """
    arrays, checksums = _map_arrays(path)
    for name, array, checksum in zip(("indptr", "indices", "data"), arrays, checksums, strict=True):
        if verify and zlib.crc32(array.data) != checksum:
            raise _damaged(path, f"the checksum of {name} does not match")
    return CsrMatrix(*arrays)


class CachedRows(RowSource):
    """The rows of a cache file, read where they are wanted; the checksums of its arrays are not.

    The file must not be changed in place meanwhile.

    Raises:
        FileFormatError: not a cache file, of another version, truncated, or damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._indptr, self._indices, self._data = _map_arrays(path)[0]
        n = self._indptr.size - 1
        self.shape = (n, n)
        self.dtype = self._data.dtype
        if self._indptr[0] != 0 or self._indptr[-1] != self._indices.size:
            raise _damaged(path, "indptr does not run from 0 to the number of entries")

    def entries_before(self, row: int) -> int:
        """Return how many entries the rows before this one have."""
        return int(self._indptr[row])

    def rows(self, first: int, last: int, threads: int = 1) -> RowSlab:
        """Return rows [first, last); only their part of the file is read."""
        starts = np.array(self._indptr[first : last + 1])
        begin, end = int(starts[0]), int(starts[-1])
        if not 0 <= begin <= end <= self._indices.size or (starts[1:] < starts[:-1]).any():
            raise _damaged(self._path, f"indptr does not rise between rows {first} and {last}")
        indices = self._indices[begin:end].astype(np.int64)
        arrays = (starts - begin, indices, np.array(self._data[begin:end]))
        return RowSlab.made(first, arrays, self.shape[0])


def _map_arrays(
    path: str | os.PathLike[str],
) -> tuple[list[NDArray[Any]], tuple[int, int, int]]:
    """Return indptr, indices and data, mapped read-only, and their checksums."""
    with open(path, "rb") as file:
        header = file.read(HEADER_BYTES)
        actual = os.fstat(file.fileno()).st_size
        rows, nnz, dtype, checksums = _parse_header(path, header, actual)
        raw = np.memmap(file, dtype=np.uint8, mode="r")
    *offsets, _ = _layout(rows, nnz, dtype)
    kinds: tuple[np.dtype[Any], ...] = (_INDPTR, _INDICES, dtype)
    arrays: list[NDArray[Any]] = []
    for offset, count, kind in zip(offsets, (rows + 1, nnz, nnz), kinds, strict=True):
        arrays.append(np.asarray(raw[offset : offset + count * kind.itemsize]).view(kind))
    return arrays, checksums


def _layout(rows: int, nnz: int, dtype: np.dtype[Any]) -> tuple[int, int, int, int]:
    """Return the offsets of indptr, indices and data, and the size of the file, in bytes."""
    ends = [HEADER_BYTES]
    for size in (_INDPTR.itemsize * (rows + 1), _INDICES.itemsize * nnz, dtype.itemsize * nnz):
        ends.append(-(-(ends[-1] + size) // ALIGNMENT) * ALIGNMENT)
    return ends[0], ends[1], ends[2], ends[3]


def _damaged(path: str | os.PathLike[str], what: str) -> FileFormatError:
    return FileFormatError(
        f"{path}: the cache file is damaged: {what}. Make it anew from its source.", path
    )


def _parse_header(
    path: str | os.PathLike[str], header: bytes, actual: int
) -> tuple[int, int, np.dtype[Any], tuple[int, int, int]]:
    """Check a header against itself and the size of the file; return rows, nnz, dtype, CRCs."""
    if not header.startswith(MAGIC):
        raise FileFormatError(f"{path}: not a cpufree cache file (its first bytes differ)", path)
    if len(header) < HEADER_BYTES:
        raise _damaged(path, f"it is truncated, {actual} bytes long")
    _, version, length, rows, nnz, code, _, *rest = _HEADER.unpack_from(header)
    # The version comes first: later ones may checksum otherwise.
    if version != VERSION:
        raise FileFormatError(
            f"{path}: cache format version {version}; this cpufree reads version {VERSION}. "
            "Make the file anew from its source.",
            path,
        )
    checked = HEADER_BYTES - _HEADER_CRC.size
    if _HEADER_CRC.unpack_from(header, checked)[0] != zlib.crc32(header[:checked]):
        raise _damaged(path, "the checksum of the header does not match")
    if length != HEADER_BYTES or code not in _DTYPES or not 1 <= rows <= MAX_ROWS:
        raise _damaged(path, "the header holds values out of range")
    layout = _layout(rows, nnz, _DTYPES[code])
    if tuple(rest[:4]) != layout:
        raise _damaged(path, "the offsets in the header are inconsistent")
    if actual != layout[-1]:
        how = "truncated" if actual < layout[-1] else "too long"
        raise _damaged(path, f"it is {how}, {actual} bytes instead of {layout[-1]}")
    return rows, nnz, _DTYPES[code], (rest[4], rest[5], rest[6])
