"""Systems with long rows for tests of the engine on GPUs, and how these solve them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import cpufree


def solve(system: Any, b: Any, method: str, pc: str, **options: Any) -> Any:
    """Return the outcome."""
    options = {"method": method, "pc": pc, "rtol": 1e-9, "maxiter": 20_000, **options}
    return system.solve(b, None, None, options, None)


def hex_beam() -> sp.csr_array:
    """Return a matrix with long rows, all alike, whose values differ."""
    A = cpufree.generate.poisson3d(14, 13, 40)
    scale = sp.diags_array(1.0 + np.random.default_rng(3).random(A.shape[0]))
    return sp.csr_array(scale @ (A @ A) @ scale)


def three_unknowns(alike: bool) -> sp.csr_array:
    """Return a matrix whose columns come in runs of three; its values are few, or all differ."""
    A = cpufree.generate.poisson3d(9, 8, 25)
    scale = sp.diags_array(1.0 + np.random.default_rng(4).random(A.shape[0]))
    grid = A if alike else scale @ (A @ A) @ scale
    return sp.csr_array(sp.kron(grid, np.eye(3) + 0.2 * np.outer([1, 2, 3], [1, 2, 3])))
