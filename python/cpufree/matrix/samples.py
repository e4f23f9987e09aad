"""Rows in some places of a matrix, on the host, wherever the matrix lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpufree.device_arrays import copy_to_host
from cpufree.matrix.gpu_csr import GpuCsr
from cpufree.matrix.problem import CsrMatrix

ROWS, PLACES = 4096, 16
"""How many rows are looked at, and in how many places they lie."""


@dataclass(frozen=True)
class RowSample:
    """Consecutive rows of a matrix."""

    first: int
    indptr: NDArray[np.int64]
    """Where the rows begin in these arrays, and where the last one ends."""
    indices: NDArray[np.int32]
    data: NDArray[Any]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The row of each entry."""
        rows = np.arange(self.first, self.first + self.indptr.size - 1)
        return np.repeat(rows, np.diff(self.indptr))


def sample(A: CsrMatrix | GpuCsr) -> list[RowSample]:
    """Return rows in some places of A: the same ones for matrices of one size."""
    n = A.shape[0]
    each = min(n, ROWS) // PLACES or 1
    places = np.linspace(0, max(0, n - each), PLACES).astype(np.int64)
    return [_rows(A, int(first), min(n, int(first) + each)) for first in places]


def _rows(A: CsrMatrix | GpuCsr, first: int, end: int) -> RowSample:
    def here(name: str, begin: int, stop: int) -> NDArray[Any]:
        array = getattr(A, name)[begin:stop]
        return array if isinstance(array, np.ndarray) else copy_to_host(array, f"A.{name}")

    starts = here("indptr", first, end + 1).astype(np.int64)
    entries = int(starts[0]), int(starts[-1])
    return RowSample(first, starts - starts[0], here("indices", *entries), here("data", *entries))


def unknowns_of_a_node(rows: list[RowSample], n: int) -> int:
    """Return how many rows in succession are likely to be one node, of n rows: 3, 2 or 1.

    They are told by their columns, which are the same, as in most of these rows.
    """
    marks = [_marks(some) for some in rows]
    for each in (3, 2):
        nodes = alike = 0
        for some, mark in zip(rows, marks, strict=True) if n % each == 0 and n > each else ():
            begin = -some.first % each
            starts = np.arange(begin, mark.size - each, each)
            same = np.ones(starts.size, bool)
            for k in range(1, each):
                same &= mark[starts] == mark[starts + k]
            nodes += starts.size
            alike += int(np.count_nonzero(same & (mark[starts] != mark[starts + each])))
        if 2 * alike > nodes:
            return each
    return 1


def _marks(some: RowSample) -> NDArray[np.uint64]:
    """Return a number for each row, the same for rows with the same columns, and hardly else."""
    mixed = (some.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    marks: NDArray[np.uint64] = sums[some.indptr[1:]] - sums[some.indptr[:-1]]
    return marks
