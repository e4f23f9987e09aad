"""The contender `scipy`: scipy.sparse.linalg.cg as a user would call it, with the faster BLAS.

Its product runs on one core. Dot products use a BLAS, whose threads help with long vectors, and
hold up short ones, and everything where other programs take cores: what is faster is tried.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
from scipy.sparse.linalg import cg
from threadpoolctl import threadpool_limits

from cpufree.bench.core.problem_folder import read_arrays
from cpufree.errors import InvalidInputError, UnsupportedError

TRIALS, TRIAL_ITERATIONS = 3, 5


class ScipyContender:
    """Solves on the CPU."""

    name = "scipy"

    def __init__(self) -> None:
        self._A: Any = None
        self._b: Any = None
        self._M: Any = None
        self._threads: int | None = None  # of the BLAS; None: as it comes

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Take the matrix with 32-bit indices, in which SciPy is fastest."""
        if int(options["pes"]) != 1:
            raise UnsupportedError("SciPy's cg runs on one PE")
        begin = time.perf_counter()
        a = read_arrays(folder)
        indptr = np.array(a.indptr, np.int32 if a.indptr[-1] < 2**31 else np.int64)
        n = indptr.size - 1
        self._A = sp.csr_array((np.array(a.data), np.array(a.indices), indptr), shape=(n, n))
        self._b = np.array(a.b)
        jacobi = options["preconditioner"] == "jacobi"
        self._M = sp.diags_array(1.0 / self._A.diagonal()) if jacobi else None
        self._threads = min((None, 1), key=self._trial)
        return {
            "versions": {"scipy": scipy.__version__, "numpy": np.__version__},
            "kind": "scipy.sparse.linalg.cg",
            "pes": 1,
            "staging": "none",
            "device": "cpu",
            "spmv": "SciPy's CSR, one core",
            "blas_threads": self._threads or "all",
            "setup_seconds": time.perf_counter() - begin,
        }

    def _trial(self, threads: int | None) -> float:
        """Return the seconds of a few iterations with N threads of the BLAS."""
        seconds = []
        with threadpool_limits(threads, user_api="blas"):
            for _ in range(TRIALS):
                begin = time.perf_counter()
                cg(self._A, self._b, rtol=0.0, atol=0.0, maxiter=TRIAL_ITERATIONS, M=self._M)
                seconds.append(time.perf_counter() - begin)
        return min(seconds)

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve. The residual is b - A x, computed after the clock has been stopped."""
        if self._A is None:
            raise InvalidInputError("solve was asked for before load")
        if request["method"] != "cg" or request.get("variant", "full") != "full":
            raise UnsupportedError("SciPy has cg only, without variants")
        exact = request.get("iterations")
        steps = 0

        def count(_: Any) -> None:
            nonlocal steps
            steps += 1

        rtol = 0.0 if exact else float(request["rtol"])
        most = int(exact or request["max_iterations"])
        stop = {"rtol": rtol, "atol": 0.0, "maxiter": most}
        with threadpool_limits(self._threads, user_api="blas"):
            begin = time.perf_counter()
            x, info = cg(self._A, self._b, M=self._M, callback=count, **stop)
            seconds = time.perf_counter() - begin
        if request.get("save"):
            np.save(request["save"], x)
        reached = "CONVERGED_ITS" if exact and steps == exact else "DIVERGED_ITS"
        return {
            "seconds": seconds,
            "iterations": steps,
            "reason": reached if info else "CONVERGED_RTOL",
            "residual": float(np.linalg.norm(self._b - self._A @ x)),
            "split": None,
        }

    def close(self) -> None:
        """Free the matrix."""
        self._A = self._b = self._M = None
