"""Other solvers on a GPU, for scale: what an iteration takes where the CPU drives it."""

from __future__ import annotations

import importlib
import inspect
import time
from typing import Any

from cases import scipy_form
from gpu_solves import Matrix

ITERATIONS = 200


def measure_peer(name: str, matrix: Matrix, device: int, rounds: int) -> dict[str, Any]:
    """Return the raw seconds of solves of a fixed number of iterations, without preconditioner."""
    seconds, version = PEERS[name](matrix, device, rounds)
    return {
        "name": matrix.case.name,
        "solver": name,
        "version": version,
        "rows": matrix.csr.shape[0],
        "nnz": int(matrix.csr.nnz),
        "iterations": ITERATIONS,
        "seconds": seconds,
    }


def cupy_cg(matrix: Matrix, device: int, rounds: int) -> tuple[list[float], str]:
    """Run the conjugate gradients of CuPy: discrete kernels, launched one by one."""
    cupy: Any = importlib.import_module("cupy")
    sparse: Any = importlib.import_module("cupyx.scipy.sparse")
    linalg: Any = importlib.import_module("cupyx.scipy.sparse.linalg")
    # The name of the relative tolerance has changed between versions.
    named = "rtol" if "rtol" in inspect.signature(linalg.cg).parameters else "tol"
    limits = {named: 0.0, "atol": 0.0, "maxiter": ITERATIONS}
    seconds = []
    with cupy.cuda.Device(device):
        A = sparse.csr_matrix(scipy_form(matrix.csr.to_scipy()))
        b = cupy.asarray(matrix.b)
        for _ in range(rounds + 1):
            calls: list[int] = []
            cupy.cuda.Device(device).synchronize()
            begin = time.perf_counter()
            linalg.cg(A, b, **limits, callback=lambda x, calls=calls: calls.append(0))
            cupy.cuda.Device(device).synchronize()
            seconds.append(time.perf_counter() - begin)
            if len(calls) != ITERATIONS:
                raise RuntimeError(f"CuPy's cg ended after {len(calls)} of {ITERATIONS} iterations")
    return seconds[1:], str(cupy.__version__)  # the first one warms up


PEERS = {"cupyx cg": cupy_cg}
