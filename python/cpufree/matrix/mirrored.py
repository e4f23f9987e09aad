"""Symmetric patterns: where an entry is, its mirror image is stored, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cpufree.matrix.problem import CsrMatrix, convert, of_complex_rows

if TYPE_CHECKING:
    import scipy.sparse as sp


def with_symmetric_pattern(matrix: CsrMatrix) -> CsrMatrix:
    """Return a matrix with a structurally symmetric pattern: itself, where it has one.

    Explicit zeros without a mirror image are dropped; where the mirror image of another entry is
    missing, an explicit zero is put there.
    """
    # The caller may have changed what is in arrays that the matrix shares.
    statistics = matrix.statistics if matrix.entries_known() else matrix.inspect()
    if statistics.mirrored:
        return matrix
    if matrix.of_complex:
        rows = _with_mirrored_entries(matrix.given())
        return of_complex_rows(rows.indptr.astype(np.int64), rows.indices, rows.data).private()
    if not matrix.data.all():
        matrix = _without_zeros(matrix).private()
        if matrix.statistics.mirrored:
            return matrix
    return _with_mirrored_zeros(matrix).private()


def _without_zeros(A: CsrMatrix) -> CsrMatrix:
    keep = A.data != 0
    kept_before = np.concatenate(([0], np.cumsum(keep, dtype=np.int64)))
    return CsrMatrix.well_formed(kept_before[A.indptr], A.indices[keep], A.data[keep])


def _with_mirrored_zeros(A: CsrMatrix) -> CsrMatrix:
    """Add an explicit zero wherever only the mirror image is stored."""
    return convert(_with_mirror_images(A.to_scipy()))


def _with_mirrored_entries(A: sp.csr_array) -> sp.csr_array:
    """Return a complex matrix without explicit zeros but for those that mirror an entry."""
    A = A.copy()
    A.eliminate_zeros()
    rows = _with_mirror_images(A).tocsr()
    rows.sum_duplicates()
    return rows


def _with_mirror_images(A: sp.csr_array) -> sp.coo_array:
    import scipy.sparse as sp  # a heavy import

    coo = A.tocoo()
    rows = np.concatenate((coo.row, coo.col))
    columns = np.concatenate((coo.col, coo.row))
    values = np.concatenate((coo.data, np.zeros_like(coo.data)))
    return sp.coo_array((values, (rows, columns)), shape=A.shape)
