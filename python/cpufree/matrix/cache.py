"""The binary cache, suffix .cpufree: a canonical CSR matrix that is memory-mapped, not parsed.

The format is specified in docs/input.md.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpufree.errors import FileFormatError
from cpufree.matrix.checksum import crc32
from cpufree.matrix.entries import MAX_ROWS
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.real_form import is_real_form
from cpufree.matrix.row_permutation import RowPermutation
from cpufree.matrix.rows import RowSlab, RowSource
from cpufree.output_file import write_file

MAGIC = b"\x93CPUFREE"
VERSION = 1
VERSION_WITH_PARTS = 2
"""Of files whose rows lie by parts: readers that do not know of them must refuse them."""
HEADER_BYTES = 128
ALIGNMENT = 64
# magic, version, header bytes | rows, nnz | dtype code, reserved |
# offsets of indptr, indices, data, bytes of the file | CRC-32 of indptr, indices, data
_HEADER = struct.Struct("<8sIIQQIIQQQQIII")
# Version 2: CRC-32 of starts, numbers | number of parts | offsets of starts, numbers.
_PARTS = struct.Struct("<IIIQQ")
_HEADER_CRC = struct.Struct("<I")
_DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f8"), 2: np.dtype("<f4")}
OF_COMPLEX = 2
"""Added to the code of the type where rows are real and imaginary parts of complex ones."""
_INT64 = np.dtype("<i8")
_INT32 = np.dtype("<i4")


def write_cache(
    path: str | os.PathLike[str], A: CsrMatrix, permutation: RowPermutation | None = None
) -> None:
    """Write A to a cache file.

    `permutation`: where its rows are to lie; None: as they are numbered.

    Raises:
        FileFormatError: the file cannot be written.
    """
    if A.of_complex and permutation is not None:
        raise FileFormatError(
            f"{path}: parts of a complex matrix are not written; leave the parts out", path
        )
    B = A if permutation is None else permutation.permuted(A)
    arrays: list[NDArray[Any]] = [
        B.indptr.astype(_INT64, copy=False),
        B.indices.astype(_INT32, copy=False),
        B.data.astype(B.dtype.newbyteorder("<"), copy=False),
    ]
    parts = 0
    if permutation is not None:
        parts = permutation.starts.size - 1
        arrays.append(np.ascontiguousarray(permutation.starts, dtype=_INT64))
        arrays.append(np.ascontiguousarray(permutation.numbers, dtype=_INT32))
    code = next(code for code, dtype in _DTYPES.items() if dtype == A.dtype)
    *offsets, size = _Header(A.shape[0], A.nnz, _DTYPES[code], parts).layout()
    checksums = [crc32(array.data) for array in arrays]
    code += OF_COMPLEX if A.of_complex else 0
    version = VERSION_WITH_PARTS if parts else VERSION
    header = _HEADER.pack(
        MAGIC, version, HEADER_BYTES, A.shape[0], A.nnz, code, 0, *offsets[:3], size, *checksums[:3]
    )
    if parts:
        header += _PARTS.pack(*checksums[3:], parts, *offsets[3:])
    header = header.ljust(HEADER_BYTES - _HEADER_CRC.size, b"\0")
    with write_file(path) as file:
        file.write(header + _HEADER_CRC.pack(zlib.crc32(header)))
        for offset, array in zip(offsets, arrays, strict=True):
            file.seek(offset)
            file.write(array.data)
        file.truncate(size)


def read_cache(path: str | os.PathLike[str], verify: bool = True) -> CsrMatrix:
    """Return the matrix of a cache file, its arrays mapped read-only.

    The file must not be changed in place while the matrix is in use; `write_cache` never does. Of a
    file whose rows lie by parts, the matrix is a copy, with its rows as they are numbered.

    Args:
        path: the file.
        verify: check the checksums of the arrays too, which reads the whole file once.

    Raises:
        FileFormatError: not a cache file, of another version, truncated, or damaged.
        MatrixError: `verify` is off and the arrays are no CSR matrix.
    """
    header, arrays = _map_arrays(path)
    for (name, _, _), array, checksum in zip(
        header.arrays(), arrays, header.checksums, strict=True
    ):
        if verify and crc32(array.data) != checksum:
            raise _damaged(path, f"the checksum of {name} does not match")
    indptr, indices, data = arrays[:3]
    A = CsrMatrix(indptr, indices, data, header.of_complex)
    if header.of_complex and not is_real_form(indptr, indices, data):
        raise _damaged(path, "its rows are not those of a complex matrix")
    return _permutation(path, arrays).restored(A) if header.parts else A


def read_parts(path: str | os.PathLike[str]) -> NDArray[np.int32]:
    """Return the part of each row of a matrix in a cache file whose rows lie by parts.

    Raises:
        FileFormatError: as of `read_cache`, or the rows of the file lie as they are numbered.
    """
    header, arrays = _map_arrays(path)
    if not header.parts:
        raise FileFormatError(
            f"{path} holds no partition: 'cpufree convert --parts N' makes files that do", path
        )
    return _permutation(path, arrays).part()


def _permutation(path: str | os.PathLike[str], arrays: list[NDArray[Any]]) -> RowPermutation:
    """Return where the rows lie, once that is known to be in order."""
    found = RowPermutation(arrays[3], arrays[4])
    problem = found.problem()
    if problem:
        raise _damaged(path, problem)
    return found


class CachedRows(RowSource):
    """The rows of a cache file, read where they are wanted; the checksums of its arrays are not.

    The file must not be changed in place meanwhile.

    Raises:
        FileFormatError: not a cache file, of another version, truncated, or damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        header, arrays = _map_arrays(path)
        self._indptr, self._indices, self._data = arrays[:3]
        self.parts = header.parts
        """In how many parts the rows lie; 0: as they are numbered."""
        n = self._indptr.size - 1
        if header.of_complex:
            raise FileFormatError(
                f"{path}: rows by themselves are read of real matrices only", str(path)
            )
        self.shape = (n, n)
        self.dtype = self._data.dtype
        if self._indptr[0] != 0 or self._indptr[-1] != self._indices.size:
            raise _damaged(path, "indptr does not run from 0 to the number of entries")
        if self.parts:
            self._starts, self._numbers = arrays[3].tolist(), arrays[4]
            if (
                self._starts[0] != 0
                or self._starts[-1] != n
                or self._starts != sorted(self._starts)
            ):
                raise _damaged(path, f"its parts do not run from row 0 to row {n}")

    def entries_before(self, row: int) -> int:
        """Return how many entries the rows before this one have."""
        return int(self._indptr[row])

    def range_of(self, part: int, parts: int) -> tuple[int, int]:
        """Return the rows of one of several parts: of those of the file, if there are as many."""
        if parts == self.parts:
            return self._starts[part], self._starts[part + 1]
        return super().range_of(part, parts)

    def numbers(self, first: int, last: int) -> NDArray[np.intp] | None:
        """Return the numbers of the rows that lie at [first, last); None: these."""
        if not self.parts:
            return None
        own = self._numbers[first:last].astype(np.intp)
        rising = np.sort(own)
        if own.size and (rising[0] < 0 or rising[-1] >= self.shape[0] or not np.diff(rising).all()):
            raise _damaged(self._path, f"rows {first} to {last - 1} have wrong numbers")
        return own

    def note(self, parts: int) -> str:
        """Return what to report about a partition into N parts, "" for nothing."""
        if self.parts in (0, parts):
            return ""
        return (
            f"{self._path} has its rows in {self.parts} parts, not in {parts}: they are cut again "
            "where they lie, which may cost a larger halo; 'cpufree convert --parts "
            f"{parts}' makes a file that fits"
        )

    def rows(self, first: int, last: int, threads: int = 1) -> RowSlab:
        """Return rows [first, last); only their part of the file is read."""
        starts = np.array(self._indptr[first : last + 1])
        begin, end = int(starts[0]), int(starts[-1])
        if not 0 <= begin <= end <= self._indices.size or (starts[1:] < starts[:-1]).any():
            raise _damaged(self._path, f"indptr does not rise between rows {first} and {last}")
        indices = self._indices[begin:end].astype(np.int64)
        arrays = (starts - begin, indices, np.array(self._data[begin:end]))
        return RowSlab.made(first, arrays, self.shape[0])


@dataclass(frozen=True)
class _Header:
    """What the header of a file says."""

    rows: int
    nnz: int
    dtype: np.dtype[Any]
    parts: int
    """0: the rows lie as they are numbered."""
    of_complex: bool = False
    checksums: tuple[int, ...] = ()

    def arrays(self) -> list[tuple[str, np.dtype[Any], int]]:
        """Return names, types and lengths of the arrays."""
        arrays: list[tuple[str, np.dtype[Any], int]] = [
            ("indptr", _INT64, self.rows + 1),
            ("indices", _INT32, self.nnz),
            ("data", self.dtype, self.nnz),
        ]
        if self.parts:
            arrays += [("starts", _INT64, self.parts + 1), ("numbers", _INT32, self.rows)]
        return arrays

    def layout(self) -> list[int]:
        """Return the offsets of the arrays, and the size of the file, in bytes."""
        ends = [HEADER_BYTES]
        for _, dtype, count in self.arrays():
            ends.append(-(-(ends[-1] + dtype.itemsize * count) // ALIGNMENT) * ALIGNMENT)
        return ends


def _map_arrays(path: str | os.PathLike[str]) -> tuple[_Header, list[NDArray[Any]]]:
    """Return the header, and the arrays, mapped read-only."""
    with open(path, "rb") as file:
        raw_header = file.read(HEADER_BYTES)
        header = _parse_header(path, raw_header, os.fstat(file.fileno()).st_size)
        raw = np.memmap(file, dtype=np.uint8, mode="r")
    arrays: list[NDArray[Any]] = []
    for offset, (_, kind, count) in zip(header.layout(), header.arrays(), strict=False):
        arrays.append(np.asarray(raw[offset : offset + count * kind.itemsize]).view(kind))
    return header, arrays


def _damaged(path: str | os.PathLike[str], what: str) -> FileFormatError:
    return FileFormatError(
        f"{path}: the cache file is damaged: {what}. Make it again from its source.", path
    )


def _parse_header(path: str | os.PathLike[str], header: bytes, actual: int) -> _Header:
    """Check a header against itself and the size of the file, and return what it says."""
    if not header.startswith(MAGIC):
        raise FileFormatError(f"{path}: not a cpufree cache file (its first bytes differ)", path)
    if len(header) < HEADER_BYTES:
        raise _damaged(path, f"it is truncated, {actual} bytes long")
    _, version, length, rows, nnz, code, _, *rest = _HEADER.unpack_from(header)
    # The version comes first: later ones may checksum otherwise.
    if version not in (VERSION, VERSION_WITH_PARTS):
        raise FileFormatError(
            f"{path}: cache format version {version}; this cpufree reads versions {VERSION} and "
            f"{VERSION_WITH_PARTS}. Make the file again from its source.",
            path,
        )
    checked = HEADER_BYTES - _HEADER_CRC.size
    if _HEADER_CRC.unpack_from(header, checked)[0] != zlib.crc32(header[:checked]):
        raise _damaged(path, "the checksum of the header does not match")
    parts, offsets, size, checksums = 0, rest[:3], rest[3], rest[4:]
    if version == VERSION_WITH_PARTS:
        *more, parts, first, second = _PARTS.unpack_from(header, _HEADER.size)
        offsets, checksums = [*offsets, first, second], [*checksums, *more]
        if not 1 <= parts <= MAX_ROWS:
            raise _damaged(path, "the header holds values out of range")
    of_complex = code > OF_COMPLEX
    code -= OF_COMPLEX if of_complex else 0
    if length != HEADER_BYTES or code not in _DTYPES or not 1 <= rows <= MAX_ROWS:
        raise _damaged(path, "the header holds values out of range")
    found = _Header(rows, nnz, _DTYPES[code], parts, of_complex, tuple(checksums))
    layout = found.layout()
    if [*offsets, size] != layout:
        raise _damaged(path, "the offsets in the header are inconsistent")
    if actual != size:
        how = "truncated" if actual < size else "too long"
        raise _damaged(path, f"it is {how}, {actual} bytes instead of {size}")
    return found
