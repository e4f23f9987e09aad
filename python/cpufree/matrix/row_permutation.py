"""Permutations of the rows of a matrix that bring those of a part together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cpufree.matrix.problem import CsrMatrix

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowPermutation:
    """The sequence in which the rows of a matrix are stored.

    Part p has places `starts[p]` up to `starts[p + 1]`, shape (parts + 1,); at place k lies row
    `numbers[k]` of the matrix, shape (n,).
    """

    starts: Int64s
    numbers: Int32s

    @classmethod
    def of(cls, part: Int32s, parts: int, order: Int32s | None) -> RowPermutation:
        """Return that of a partition whose parts keep their rows in this sequence.

        `order` None: by their numbers.
        """
        sequence = np.arange(part.size, dtype=np.int32) if order is None else order
        sizes = np.bincount(part, minlength=parts)
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return cls(starts, sequence[np.argsort(part[sequence], kind="stable")])

    def problem(self) -> str:
        """Return what is wrong with it, "" if nothing is."""
        n = self.numbers.size
        if self.starts[0] != 0 or self.starts[-1] != n or (np.diff(self.starts) < 0).any():
            return f"its parts do not run from row 0 to row {n}"
        if n and (self.numbers.min() < 0 or self.numbers.max() >= n):
            return f"a row has a number that is not from 0 to {n - 1}"
        return "" if (np.bincount(self.numbers, minlength=n) == 1).all() else "a row is there twice"

    def part(self) -> Int32s:
        """Return the part vector: the number of its part for each row."""
        parts = np.empty(self.numbers.size, np.int32)
        sizes = np.diff(self.starts)
        parts[self.numbers] = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
        return parts

    def permuted(self, A: CsrMatrix) -> CsrMatrix:
        """Return A with its rows and columns in this sequence."""
        return _permuted(A, self.numbers)

    def restored(self, A: CsrMatrix) -> CsrMatrix:
        """Return the matrix whose rows and columns are numbered as before."""
        return _permuted(A, _inverse(self.numbers))


def _inverse(order: Int32s) -> Int32s:
    places = np.empty_like(order)
    places[order] = np.arange(order.size, dtype=order.dtype)
    return places


def _permuted(A: CsrMatrix, order: Int32s) -> CsrMatrix:
    """Return the matrix whose entry (i, j) is entry (order[i], order[j]) of A."""
    import scipy.sparse as sp  # a heavy import

    rows = A.to_scipy()[order]
    columns = _inverse(order)[rows.indices]
    matrix = sp.csr_array((rows.data, columns, rows.indptr), shape=A.shape)
    matrix.sort_indices()
    return CsrMatrix.well_formed(
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        matrix.data,
    )
