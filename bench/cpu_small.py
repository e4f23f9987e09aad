"""Small systems: the whole call of cpufree.cg against that of SciPy's cg with Jacobi."""

from __future__ import annotations

import functools
import math
import random
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import cg as scipy_cg
from timing import interleave, paired, seconds, spread

import cpufree
from cpufree.bench.core.noise import compare

RTOL = 1e-8
Vector = npt.NDArray[np.float64]


def scipy_whole(A: sp.csr_array, b: Vector, count: list[int] | None = None) -> tuple[Vector, int]:
    """Solve by SciPy with Jacobi, making M included; count[0] becomes the number of iterations."""
    inverse = 1.0 / A.diagonal()
    M = LinearOperator(A.shape, matvec=lambda r: inverse * r, dtype=A.dtype)

    def step(x: Vector) -> None:
        assert count is not None
        count[0] += 1

    x, info = scipy_cg(A, b, rtol=RTOL, M=M, callback=None if count is None else step)
    return x, int(info)


def relative_residual(A: sp.csr_array, b: Vector, x: Vector) -> float:
    """Return the norm of b - A x over that of b."""
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))


def measure_small(
    name: str, A: sp.csr_array, rounds: int, least_seconds: float, rng: random.Random, pause: float
) -> dict[str, Any]:
    """Measure one system; return the raw times and what follows from them, ready for JSON.

    Calls are repeated until they take `least_seconds` together. Where one of the two does not
    converge, "left_out" says so and nothing is timed.
    """
    b = np.random.default_rng(rng.randrange(2**32)).standard_normal(A.shape[0])
    record: dict[str, Any] = {"name": name, "rows": A.shape[0], "nnz": A.nnz}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cpufree.CpufreeWarning)
        count = [0]
        x, info = scipy_whole(A, b, count)
        result = cpufree.solve(A, b, rtol=RTOL, engine="cpu_threads")
        record |= {
            "scipy_iterations": count[0],
            "iterations": result.iterations,
            "scipy_residual": relative_residual(A, b, x),
            "residual": relative_residual(A, b, result.x),
        }
        if info or not result.converged:
            return record | {"left_out": f"SciPy: info {info}; cpufree: {result.reason}"}
        calls = {
            "scipy": lambda: scipy_whole(A, b),
            "cpufree": lambda: cpufree.cg(A, b, rtol=RTOL, engine="cpu_threads"),
        }
        loops = {
            key: max(1, math.ceil(least_seconds / seconds(call))) for key, call in calls.items()
        }
        tasks = {key: functools.partial(seconds, calls[key], loops[key]) for key in calls}
        measured = interleave(tasks, rounds, rng, pause)
    ratios = paired(measured["cpufree"], measured["scipy"])
    return record | {
        "loops": loops,
        "raw": {"scipy_seconds": measured["scipy"], "cpufree_seconds": measured["cpufree"]},
        "derived": {
            "scipy_seconds": spread(measured["scipy"]),
            "cpufree_seconds": spread(measured["cpufree"]),
            "ratio_to_scipy": spread(ratios),
            "against_scipy": compare(measured["cpufree"], measured["scipy"]),
        },
    }
