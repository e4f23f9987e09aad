"""Residuals in extended precision."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def residual_norm(A: sp.csr_array, b: np.ndarray, x: np.ndarray) -> float:
    """Return the norm of b - A x; all rows have entries."""
    products = A.data.astype(np.longdouble) * x.astype(np.longdouble)[A.indices]
    rest = b.astype(np.longdouble) - np.add.reduceat(products, A.indptr[:-1])
    return float(np.sqrt(rest @ rest))
