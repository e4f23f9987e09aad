"""Matrices of grids, and the same with rows in random order."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix


def grid(m: int, n: int) -> CsrMatrix:
    """Return the 5-point matrix of an m × n grid."""
    line = [sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(k, k)) for k in (m, n)]
    return as_csr(sp.kronsum(line[1], line[0], format="csr"))


def shuffled(A: CsrMatrix, seed: int = 1) -> CsrMatrix:
    """Return A with its rows and columns in random order."""
    order = np.random.default_rng(seed).permutation(A.shape[0])
    return as_csr(A.to_scipy()[order][:, order])
