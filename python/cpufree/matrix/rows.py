"""Matrices that no process holds: some consecutive rows of one, and where such rows come from."""

from __future__ import annotations

import bisect
import operator
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpufree.dtypes import float_type
from cpufree.errors import InvalidInputError, MatrixError
from cpufree.matrix.sparse import issparse

MOST_ROWS_OF_RANK = 2**31 - 2  # local rows have 32-bit numbers


class RowSlab:
    """Rows [first_row, first_row + m) of a square matrix with n rows, for the rank that owns them.

    Columns are numbered as in the whole matrix, in 64 bits: n may exceed 2³¹, m may not. All ranks
    of a program make one each and pass it to `cpufree.Solver` or `cpufree.solve`, with engine
    "nvshmem", "nccl" or "cpu_processes": rank 0 the first rows, rank 1 the next ones, and so on to
    the last. A rank may have no rows (m = 0).

    Parameters:
        first_row: number of the first of these rows in the matrix, from 0.
        rows: SciPy sparse, shape (m, n), whose column numbers may be int64; or the arrays
            (indptr, indices, data) of one in CSR format, shapes (m + 1,), (nnz,), (nnz,).
        n: rows of the whole matrix; needed for arrays alone.

    Nothing is copied where the arrays are int64, int64, and float64 or float32, and columns
    increase in each row. What the rows hold is checked when they are used; see `Solver`. Entries
    between rows of two ranks must be there in both of them, be they 0.

    Raises MatrixError for what is no sparse matrix, complex, or in contradiction with n.
    """

    def __init__(self, first_row: int, rows: Any, n: int | None = None) -> None:
        if issparse(rows):
            if n is not None and n != rows.shape[1]:
                raise MatrixError(f"n is {n}, but the rows have {rows.shape[1]} columns")
            n = int(rows.shape[1])
            csr = rows.tocsr()
            arrays = (csr.indptr, csr.indices, csr.data)
        else:
            arrays = _three_arrays(rows, n)
        try:
            self.first_row = operator.index(first_row)
            n = operator.index(n or 0)
        except TypeError:
            raise MatrixError(
                f"first_row is {first_row!r}, n is {n!r}: whole numbers are needed"
            ) from None
        self.indptr, self.indices, self.data = _canonical(*arrays, n)
        self.shape = (n, n)
        """Of the whole matrix, (n, n)."""

    @classmethod
    def made(cls, first_row: int, arrays: tuple[Any, Any, Any], n: int) -> RowSlab:
        """Return rows whose arrays are known to be as said above."""
        slab = cls.__new__(cls)
        slab.first_row, slab.shape = first_row, (n, n)
        slab.indptr, slab.indices, slab.data = arrays
        return slab

    @property
    def count(self) -> int:
        """Number of these rows, m."""
        return self.indptr.size - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        return self.data.dtype


class RowSource(ABC):
    """A matrix whose rows are read or made where they are wanted."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @abstractmethod
    def entries_before(self, row: int) -> int:
        """Return how many entries the rows before this one have; `row` up to n."""

    @abstractmethod
    def rows(self, first: int, last: int, threads: int = 1) -> RowSlab:
        """Return rows [first, last), in time and memory proportional to their entries."""

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return self.entries_before(self.shape[0])

    def range_of(self, part: int, parts: int) -> tuple[int, int]:
        """Return the rows [first, last) of one of several parts with about as many entries each.

        They are those of `partition.contiguous`: each cut is at the row nearest to its ideal.
        """
        return self._cut(part, parts), self._cut(part + 1, parts)

    def numbers(self, first: int, last: int) -> NDArray[np.intp] | None:
        """Return the numbers in the matrix of the rows that lie at [first, last).

        None: these, as they lie in the order of their numbers.
        """
        return None

    def note(self, parts: int) -> str:
        """Return what to report about a partition into N parts, "" for nothing."""
        return ""

    def _cut(self, part: int, parts: int) -> int:
        n = self.shape[0]
        if part in (0, parts):
            return n if part else 0
        ideal = self.nnz * part / parts
        row = bisect.bisect_left(range(n + 1), ideal, key=self.entries_before)
        row = min(max(row, 1), n)
        return row - (ideal - self.entries_before(row - 1) < self.entries_before(row) - ideal)


def rows_of_rank(source: RowSource, rank: int, ranks: int) -> tuple[int, int]:
    """Return the rows [first, last) of a source that one of several ranks takes.

    Raises InvalidInputError where they are too many for a rank.
    """
    first, last = source.range_of(rank, ranks)
    if last - first > MOST_ROWS_OF_RANK:
        raise InvalidInputError(
            f"rows {first} to {last - 1} of rank {rank} are too many: a rank can hold at most "
            "2^31 - 2 rows; use more ranks"
        )
    return first, last


def _three_arrays(rows: Any, n: int | None) -> tuple[Any, Any, Any]:
    if not isinstance(rows, (tuple, list)) or len(rows) != 3:
        kind = f"{type(rows).__module__}.{type(rows).__qualname__}"
        raise MatrixError(
            f"cannot take rows from {kind}: pass a SciPy sparse matrix of shape (m, n), or the "
            "arrays (indptr, indices, data)"
        )
    if n is None:
        raise MatrixError("n, the rows of the whole matrix, is needed beside arrays")
    indptr, indices, data = (np.asarray(array) for array in rows)
    for name, array, kinds in (("indptr", indptr, "iu"), ("indices", indices, "iu")):
        if array.dtype.kind not in kinds:
            raise MatrixError(f"{name} has dtype {array.dtype}; whole numbers are needed")
    if not indptr.ndim == indices.ndim == data.ndim == 1 or indptr.size == 0:
        raise MatrixError("indptr, indices and data must be 1-D, and indptr must not be empty")
    return indptr, indices, data


def _canonical(
    indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Return the arrays in their types, the columns of each row sorted and different."""
    dtype = float_type(data.dtype)
    start = np.ascontiguousarray(indptr, dtype=np.int64)
    consistent = start[0] == 0 and 0 <= start[-1] <= min(indices.size, data.size)
    if not consistent or (start[1:] < start[:-1]).any():
        raise MatrixError(
            "the CSR arrays are inconsistent: indptr must rise from 0 to at most the "
            f"{indices.size} indices and {data.size} values"
        )
    columns = np.ascontiguousarray(indices[: start[-1]], dtype=np.int64)
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(data[: start[-1]], dtype=dtype)
    if not _increase(start, columns):
        if columns.min() < 0 or columns.max() >= n:
            where = columns.min() if columns.min() < 0 else columns.max()
            raise MatrixError(f"there is a column {where}; columns run from 0 to {n - 1}")
        import scipy.sparse as sp  # a heavy import

        own = (values.copy(), columns.copy(), start.copy())  # summed in place
        matrix = sp.csr_array(own, shape=(start.size - 1, n))
        matrix.sum_duplicates()
        start, columns = (array.astype(np.int64) for array in (matrix.indptr, matrix.indices))
        values = matrix.data
    return start, columns, values


_PIECE = 1 << 22


def _increase(indptr: NDArray[np.int64], indices: NDArray[np.int64]) -> bool:
    """Say whether columns increase strictly within each row; a piece at a time, to save memory."""
    for first in range(0, indptr.size - 1, _PIECE):
        start = indptr[first : first + _PIECE + 1]
        columns = indices[start[0] : start[-1]]
        increases = columns[1:] > columns[:-1]
        begins = start[1:-1] - start[0]
        increases[begins[(begins > 0) & (begins < columns.size)] - 1] = True
        if not increases.all():
            return False
    return True
