"""Facts about a matrix that matter to a solver: rows, bandwidth, diagonal, range of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpufree.matrix.distinct import distinct_values
from cpufree.matrix.problem import CsrMatrix


def matrix_info(matrix: CsrMatrix) -> dict[str, Any]:
    """Return plain facts about a square CSR matrix, ready for JSON.

    Keys: rows, nnz, dtype, bytes (of the CSR arrays); row_min, row_mean, row_max (entries per row);
    empty_rows; bandwidth (max |i - j|) and mean_distance (mean |i - j|); diagonal_missing,
    diagonal_min, diagonal_max (None without diagonal entries); dominant_rows (rows in which
    |a_ii| ≥ sum of the other |a_ij|); value_min, value_max (of the nonzero magnitudes, None when
    there are none); distinct_values (by their bits); stored_zeros (entries that are 0).
    """
    A = matrix.given()
    n = A.shape[0]
    lengths = np.diff(A.indptr)
    rows = np.repeat(np.arange(n, dtype=np.int32), lengths)
    distance = np.abs(rows - A.indices)
    magnitude = np.abs(A.data).astype(np.float64)
    diagonal = A.data[distance == 0].real
    row_sum = np.bincount(rows, magnitude, minlength=n)
    diagonal_magnitude = np.bincount(rows[distance == 0], np.abs(diagonal), minlength=n)
    nonzero = magnitude[magnitude > 0]
    arrays = (matrix.indptr[:: 2 if matrix.of_complex else 1], A.indices, A.data)
    return {
        "rows": n,
        "nnz": int(A.nnz),
        "dtype": str(A.dtype),
        "bytes": sum(array.nbytes for array in arrays),
        "row_min": int(lengths.min()) if n else 0,
        "row_mean": float(A.nnz / n) if n else 0.0,
        "row_max": int(lengths.max(initial=0)),
        "empty_rows": int(np.count_nonzero(lengths == 0)),
        "bandwidth": int(distance.max(initial=0)),
        "mean_distance": float(distance.mean()) if distance.size else 0.0,
        "diagonal_missing": n - diagonal.size,
        "diagonal_min": float(diagonal.min()) if diagonal.size else None,
        "diagonal_max": float(diagonal.max()) if diagonal.size else None,
        # A little slack: the two sums of a row are not added in the same order.
        "dominant_rows": int(np.count_nonzero(2 * diagonal_magnitude >= row_sum * (1 - 1e-12))),
        "value_min": float(nonzero.min()) if nonzero.size else None,
        "value_max": float(nonzero.max()) if nonzero.size else None,
        "distinct_values": distinct_values(matrix.data),
        "stored_zeros": int(A.nnz) - nonzero.size - int(np.count_nonzero(np.isnan(magnitude))),
    }
