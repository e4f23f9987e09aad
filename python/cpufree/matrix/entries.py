"""Structural statistics of a CSR matrix, by the compiled core on all cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpufree.errors import MatrixError
from cpufree.extension import load_core

MAX_ROWS = 2**31 - 1
"""Largest number of rows: row and column numbers are 32-bit integers."""


@dataclass(frozen=True)
class EntryStatistics:
    """Properties of all entries of a matrix."""

    mirrored: bool
    """Where there is an entry (i, j), there is one (j, i). The rest is of those that have both."""
    symmetric: bool
    """The values of both are equal."""
    asymmetry: float
    """Largest |a_ij - a_ji| / sqrt(|a_ii a_jj|), infinite where an entry a_ii is missing."""
    finite: bool
    positive_diagonal: bool
    """Every row has a diagonal entry, above 0."""

    def solvable(self, dtype: str) -> bool:
        """Return whether solvers take a matrix of entries of this type, as far as they show it."""
        sound = self.mirrored and self.finite and self.positive_diagonal
        return sound and self.asymmetry <= symmetry_tolerance(dtype)

    @classmethod
    def of(cls, indptr: Any, indices: Any, data: Any) -> EntryStatistics:
        """Return those of a matrix whose arrays are rows, columns increasing in each."""
        return cls(**load_core().inspect(indptr, indices, data))


def symmetry_tolerance(dtype: str) -> float:
    """Return the largest |a_ij - a_ji| / sqrt(|a_ii a_jj|) that passes as rounding."""
    return float(load_core().symmetry_tolerance(dtype == "float32"))


def in_64_bits(indptr: Any) -> NDArray[np.int64]:
    """Return where rows begin as a contiguous array of int64."""
    if indptr.dtype == np.int32 and indptr.ndim == 1 and indptr.flags.c_contiguous:
        wide: NDArray[np.int64] = load_core().widened(indptr)
        return wide
    return np.ascontiguousarray(indptr, dtype=np.int64)


def are_rows(indptr: Any, indices: Any) -> bool:
    """Say whether arrays are the rows of a square matrix, columns increasing in each.

    False also for arrays that are not contiguous, or of other types than int64 (indptr), int32 and
    int64 (indices): they have not been checked.
    """
    fit = indptr.dtype == np.int64 and indices.dtype in (np.int32, np.int64)
    fit = fit and indptr.ndim == indices.ndim == 1 and 1 < indptr.size <= MAX_ROWS + 1
    fit = fit and indptr.flags.c_contiguous and indices.flags.c_contiguous
    return bool(fit) and bool(load_core().are_rows(indptr, indices))


def check_bounds(indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any]) -> None:
    """Refuse arrays that would lead compiled code out of bounds."""
    n = indptr.size - 1
    problem = None
    if not indptr.ndim == indices.ndim == data.ndim == 1:
        problem = "indptr, indices and data must be 1-D"
    elif n < 1 or n > MAX_ROWS:
        problem = f"indptr has {n + 1} elements, it must have n + 1 with n from 1 to {MAX_ROWS}"
    elif indptr[0] != 0:
        problem = f"indptr[0] is {indptr[0]}, it must be 0"
    elif (indptr[1:] < indptr[:-1]).any():
        row = int(np.argmax(indptr[1:] < indptr[:-1]))
        problem = f"indptr decreases after row {row}, from {indptr[row]} to {indptr[row + 1]}"
    elif indptr[-1] > min(indices.size, data.size):
        problem = (
            f"indptr promises {indptr[-1]} entries, but there are {indices.size} indices "
            f"and {data.size} values"
        )
    elif indptr[-1] > 0:
        used = indices[: indptr[-1]]
        if used.min() < 0 or used.max() >= n:
            k = int(np.argmax((used < 0) | (used >= n)))
            row = int(np.searchsorted(indptr, k, side="right")) - 1
            problem = f"row {row} has column {used[k]}; columns run from 0 to {n - 1}"
    if problem:
        raise MatrixError(f"the CSR arrays are inconsistent: {problem}")


def columns_increase(indptr: NDArray[np.int64], indices: NDArray[Any]) -> bool:
    """Say whether columns increase strictly within each row."""
    increases = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    increases[starts[(starts > 0) & (starts < indices.size)] - 1] = True
    return bool(increases.all())
