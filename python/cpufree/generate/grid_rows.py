"""Rows of matrices on regular grids, any range of them by itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cpufree.matrix.rows import RowSlab, RowSource

_PIECE = 1 << 17  # rows that are made at a time: temporaries stay in caches


@dataclass(frozen=True)
class Term:
    """An entry of every row: the step along each axis to its column, and its value."""

    steps: tuple[int, ...]
    value: float


class GridRows(RowSource):
    """Each point of a C-ordered grid coupled to points nearby, those outside being left out.

    Parameters:
        shape: points along each axis; their product may exceed 2³¹.
        terms: the entries of a row, each with steps of its own.
    """

    def __init__(self, shape: tuple[int, ...], terms: list[Term]) -> None:
        self.grid = shape
        n = prod(shape)
        self.shape = (n, n)
        self.dtype = np.dtype(np.float64)
        strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]

        def offset(term: Term) -> int:
            return sum(step * stride for step, stride in zip(term.steps, strides, strict=True))

        # Steps longer than an axis lead nowhere; the others give columns in the order of offsets.
        there = [
            term
            for term in terms
            if all(abs(s) < m for s, m in zip(term.steps, shape, strict=True))
        ]
        self._terms = sorted(there, key=lambda term: term.steps)
        self._offsets = np.array([offset(term) for term in self._terms], dtype=np.int64)
        self._values = np.array([term.value for term in self._terms])

    def entries_before(self, row: int) -> int:
        """Return how many entries the rows before this one have."""
        point = self._point(row)
        return sum(self._points_before(term.steps, point) for term in self._terms)

    def _point(self, row: int) -> list[int]:
        """Return the coordinates of a point; along axis 0 they may be one too large."""
        point = []
        for size in reversed(self.grid[1:]):
            row, along = divmod(row, size)
            point.append(along)
        return [row, *reversed(point)]

    def _points_before(self, steps: tuple[int, ...], point: list[int]) -> int:
        """Return how many points before `point` stay in the grid by these steps: those of a box."""
        lows = [max(0, -step) for step in steps]
        sizes = [m - abs(step) for m, step in zip(self.grid, steps, strict=True)]
        count = 0
        for axis, along in enumerate(point):
            within = min(max(along - lows[axis], 0), sizes[axis])
            count += within * prod(sizes[axis + 1 :])
            if not 0 <= along - lows[axis] < sizes[axis]:
                break
        return count

    def rows(self, first: int, last: int, threads: int = 1) -> RowSlab:
        """Return rows [first, last)."""
        begin = self.entries_before(first)
        nnz = self.entries_before(last) - begin
        indptr = np.zeros(last - first + 1, dtype=np.int64)
        indices = np.empty(nnz, dtype=np.int64)
        data = np.empty(nnz)

        def make(row: int) -> None:
            end = min(row + _PIECE, last)
            start = self.entries_before(row) - begin
            lengths = self._fill(np.arange(row, end, dtype=np.int64), indices[start:], data[start:])
            np.cumsum(lengths, out=indptr[row - first + 1 : end - first + 1])
            indptr[row - first + 1 : end - first + 1] += start

        pieces = range(first, last, _PIECE)
        if threads == 1 or len(pieces) == 1:
            for row in pieces:
                make(row)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(make, pieces))
        return RowSlab.made(first, (indptr, indices, data), self.shape[0])

    def _fill(
        self, numbers: NDArray[np.int64], indices: NDArray[np.int64], data: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Write the entries of some rows where the arrays begin; return how many each row has."""
        present = self._present(numbers)
        columns = numbers[:, None] + self._offsets
        values = np.broadcast_to(self._values, columns.shape)
        if present.all():
            indices[: columns.size] = columns.ravel()
            data[: columns.size].reshape(columns.shape)[:] = values
            return np.full(numbers.size, self._offsets.size, dtype=np.int64)
        lengths: NDArray[np.int64] = present.sum(axis=1, dtype=np.int64)
        count = int(lengths.sum())
        indices[:count] = columns[present]
        data[:count] = values[present]
        return lengths

    def _present(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say which terms of which rows lie in the grid, (rows, terms)."""
        present = np.ones((numbers.size, self._offsets.size), dtype=np.bool_)
        rest = numbers
        for axis in range(len(self.grid) - 1, -1, -1):
            size = self.grid[axis]
            rest, along = (rest, rest) if axis == 0 else np.divmod(rest, size)
            inside = {
                step: (along >= -step) & (along < size - step)
                for step in {term.steps[axis] for term in self._terms} - {0}
            }
            for k, term in enumerate(self._terms):
                if term.steps[axis] != 0:
                    present[:, k] &= inside[term.steps[axis]]
        return present

    def whole(self) -> sp.csr_array:
        """Return the matrix, column numbers in 32 bits, which must suffice."""
        slab = self.rows(0, self.shape[0])
        arrays = (slab.data, slab.indices.astype(np.int32), slab.indptr.astype(np.int32))
        matrix = sp.csr_array(arrays, shape=self.shape)
        matrix.has_canonical_format = True
        return matrix


def laplacian_rows(shape: tuple[int, ...], weights: Sequence[float]) -> GridRows:
    """Minus the Laplacian: weights[a] to both neighbours along axis a, with zero walls."""
    terms = [Term((0,) * len(shape), sum(2.0 * weight for weight in weights))]
    for axis, weight in enumerate(weights):
        for step in (-1, 1):
            steps = tuple(step if a == axis else 0 for a in range(len(shape)))
            terms.append(Term(steps, -weight))
    return GridRows(shape, terms)


def box_rows(shape: tuple[int, ...], diagonal: float, beside: float) -> GridRows:
    """One value on the diagonal, and another to all points at most one step away on every axis."""
    every = itertools.product((-1, 0, 1), repeat=len(shape))
    return GridRows(shape, [Term(s, beside if any(s) else diagonal) for s in every])
