"""Residuals in extended precision."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def residual_norm(A: sp.csr_array, b: np.ndarray, x: np.ndarray) -> float:
    """Return the norm of b - A x."""
    products = A.data.astype(np.longdouble) * x.astype(np.longdouble)[A.indices]
    rest = b.astype(np.longdouble)
    filled = np.flatnonzero(np.diff(A.indptr))  # rows without entries have no sum
    if filled.size:
        rest[filled] -= np.add.reduceat(products, A.indptr[filled])
    return float(np.sqrt(rest @ rest))
