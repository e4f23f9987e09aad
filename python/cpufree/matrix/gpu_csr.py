"""Matrices of CuPy and PyTorch in compressed rows that stay on their GPU.

Neither library is imported: an array of either proves that it is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cpufree.device_arrays import (
    address,
    contiguous,
    cuda_device,
    gradient_advice,
    layout,
    library_of,
)
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
    if gradient_advice(A, "A"):
        return None  # where it is copied to the host it is refused
    if home in ("cupy", "cupyx") and getattr(A, "format", "") == "csr":
        return A.indptr, A.indices, A.data
    if home == "torch" and str(getattr(A, "layout", "")) == "torch.sparse_csr":
        return A.crow_indices(), A.col_indices(), A.values()
    return None
