"""Matrices of CuPy and PyTorch in compressed rows that stay on their GPU.

Neither library is imported: an array of either proves that it is loaded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cpufree.device_arrays import address, contiguous, cuda_device, layout, library_of
from cpufree.matrix.entries import MAX_ROWS


@dataclass(frozen=True)
class GpuCsr:
    """A square matrix in compressed rows on a GPU. Whether it is well formed, its GPU finds out."""

    n: int
    nnz: int
    dtype: np.dtype[Any]
    """float64 or float32."""
    device: int
    indptr: Any
    """Arrays of the library: int32 or int64 (n+1,), int32 (nnz,), dtype (nnz,), without gaps."""
    indices: Any
    data: Any

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (self.n, self.n)

    def addresses(self) -> tuple[int, int, bool, int, int, bool, int]:
        """Return rows, where they begin, in 64 bits?, columns, values, float32?, device."""
        wide = layout(self.indptr)[1] == "int64"
        pointers = (address(self.indptr), wide, address(self.indices), address(self.data))
        return (self.n, *pointers, self.dtype == np.float32, self.device)


class GridEntries(Protocol):
    """Tells the entries of single rows of a matrix on a grid."""

    def entries_before(self, row: int) -> int:
        """Return how many entries the rows before this one have."""

    def entries_of(
        self, rows: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return how many entries each of the rows has, columns and values, row after row."""


@dataclass(frozen=True)
class GridCsr:
    """A matrix on a grid, which GPUs can make: each point is coupled to points some steps away."""

    n: int
    nnz: int
    dtype: np.dtype[Any]
    grid: tuple[int, ...]
    """Points along each of at most three axes, the last one running fastest."""
    terms: list[tuple[tuple[int, ...], float]]
    """Steps and values of the entries of a row, in the order of their columns."""
    entries: GridEntries
    device: None = None
    """Any."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (self.n, self.n)

    def in_three_axes(self) -> tuple[list[int], list[list[int]], list[float]]:
        """Return points along three axes, and steps and values of the entries of a row."""
        missing = [0] * (3 - len(self.grid))
        steps = [missing + list(step) for step, _ in self.terms]
        return [1] * len(missing) + list(self.grid), steps, [value for _, value in self.terms]

    def cuts(self, pes: int) -> list[int]:
        """Return where the rows of each PE begin, and the end of the last one.

        Each is at the row nearest to equal numbers of nonzeros, where consecutive rows of a matrix
        in memory are cut as well.
        """
        before, cuts = self.entries.entries_before, [0]
        for pe in range(1, pes):
            ideal = self.nnz * pe / pes
            row = min(max(bisect_left(range(self.n + 1), ideal, key=before), 1), self.n)
            cuts.append(row - (ideal - before(row - 1) < before(row) - ideal))
        return [*cuts, self.n]

    def steps_apart(self, axes: Sequence[int] | None = None) -> list[tuple[int, int]]:
        """Return for each entry of a row how many rows its column is away, and how many have it.

        Args:
            axes: from the one that runs slowest to the fastest; None: as they are.
        """
        axes = range(len(self.grid)) if axes is None else axes
        strides = {a: prod(self.grid[b] for b in axes[k + 1 :]) for k, a in enumerate(axes)}
        return [
            (
                sum(along * strides[axis] for axis, along in enumerate(steps)),
                prod(m - abs(along) for m, along in zip(self.grid, steps, strict=True)),
            )
            for steps, _ in self.terms
        ]

    def mean_distance(self, axes: Sequence[int] | None = None) -> float:
        """Return the mean of |row - column|; `axes` as `steps_apart` takes them."""
        return sum(abs(away) * count for away, count in self.steps_apart(axes)) / self.nnz


def gpu_csr(A: Any) -> GpuCsr | None:
    """Return A as it lies on its GPU; None where it is no such matrix, or of other types."""
    arrays = _arrays(A)
    if arrays is None or len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        return None
    indptr, indices, data = arrays
    devices = {cuda_device(array) for array in arrays}
    n = int(A.shape[0])
    if len(devices) != 1 or not 0 < n <= MAX_ROWS:
        return None
    device = devices.pop()
    kinds = [layout(array)[1] for array in arrays]
    if device is None or device < 0 or kinds[0] not in ("int32", "int64"):
        return None
    if kinds[1] == "int64" and library_of(indices) == "torch":
        indices = indices.int()  # of a matrix with fewer columns
    elif kinds[1] != "int32":
        return None
    if kinds[2] not in ("float32", "float64") or layout(indptr)[0] != (n + 1,):
        return None
    if layout(indices)[0] != layout(data)[0]:
        return None
    indptr, indices, data = (contiguous(array) for array in (indptr, indices, data))
    return GpuCsr(n, layout(data)[0][0], np.dtype(kinds[2]), device, indptr, indices, data)


def _arrays(A: Any) -> tuple[Any, Any, Any] | None:
    """Return the arrays of a matrix in compressed rows of one of these libraries."""
    home = library_of(A)
    if home in ("cupy", "cupyx") and getattr(A, "format", "") == "csr":
        return A.indptr, A.indices, A.data
    if home == "torch" and str(getattr(A, "layout", "")) == "torch.sparse_csr":
        return A.crow_indices(), A.col_indices(), A.values()
    return None
