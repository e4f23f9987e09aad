"""The contender `scipy`: scipy.sparse.linalg.cg as a user would call it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
from scipy.sparse.linalg import cg

from ..errors import InvalidInputError, UnsupportedError
from .problem_folder import read_arrays


class ScipyContender:
    """Solves on the CPU: the product by SciPy on one core, the rest by NumPy."""

    name = "scipy"

    def __init__(self) -> None:
        self._A: Any = None
        self._b: Any = None
        self._M: Any = None

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
        return {
            "versions": {"scipy": scipy.__version__, "numpy": np.__version__},
            "kind": "scipy.sparse.linalg.cg",
            "pes": 1,
            "staging": "none",
            "spmv": "SciPy's CSR, one core",
            "setup_seconds": time.perf_counter() - begin,
        }

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
        begin = time.perf_counter()
        x, info = cg(self._A, self._b, rtol=rtol, atol=0.0, maxiter=most, M=self._M, callback=count)
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
