"""Contender `cupy`: the conjugate gradients of CuPy on one GPU, kernels launched one by one."""

from __future__ import annotations

import importlib
import inspect
import time
from pathlib import Path
from typing import Any

import numpy as np
from problem_folder import (
    MOST_32_BIT,
    inverse_diagonal,
    jacobi_asked,
    one_gpu,
    read_limits,
    read_problem,
)

from cpufree.bench.worker import serve
from cpufree.errors import InvalidInputError, UnsupportedError

NOTES = [
    "iterations are counted by its callback",
    "its recursive residual is not returned: residual is that of b - A x",
    "the CPU looks at the residual in every iteration",
]


class Cupy:
    """`cupyx.scipy.sparse.linalg.cg` on a CSR matrix; Jacobi as a LinearOperator."""

    name = "cupy"

    def __init__(self) -> None:
        self._given: tuple[Any, Any, Any] | None = None

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Bring the system to the GPU and warm up its kernels; return facts."""
        self.close()
        number, jacobi = one_gpu(options, "CuPy's cg"), jacobi_asked(options)
        problem = read_problem(folder)
        if len(problem.data) > MOST_32_BIT:
            raise UnsupportedError("CuPy's sparse matrices have 32-bit indices: too many nonzeros")
        begin = time.perf_counter()
        self._import()
        self._device = self._cupy.cuda.Device(number)
        with self._device:
            put = self._cupy.asarray
            csr = (put(problem.data), put(problem.indices), put(problem.indptr.astype(np.int32)))
            A = self._sparse.csr_matrix(csr, shape=(problem.rows, problem.rows))
            b = put(problem.b)
            M = self._jacobi(put(inverse_diagonal(problem))) if jacobi else None
            self._given = A, b, M
            self._run(rtol=0.0, most=3)
        return {
            "versions": self._versions(),
            "kind": "host-driven, one GPU",
            "gpus": [number],
            "pes": 1,
            "staging": "none",
            "spmv": "cuSPARSE CSR (cupyx.scipy.sparse.csr_matrix @ x)",
            "preconditioner": "jacobi" if jacobi else "none",
            "setup_seconds": time.perf_counter() - begin,
            "notes": NOTES,
        }

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve from zero; return seconds, iterations, reason, and the norm of b - A x."""
        limits = read_limits(request, ("cg",), "CuPy")
        if self._given is None:
            raise InvalidInputError("nothing is loaded: a solve needs a load before it")
        with self._device:
            x, info, done, seconds = self._run(limits.rtol, limits.most)
            finite = bool(self._cupy.isfinite(x).all())
            A, b, _ = self._given
            residual = float(self._cupy.linalg.norm(b - A @ x))
            if request.get("save"):
                np.save(request["save"], self._cupy.asnumpy(x))
        reason = limits.reason(done, info == 0, finite)
        answer = {"seconds": seconds, "iterations": done, "reason": reason}
        return {**answer, "residual": residual if finite else None, "split": None}

    def close(self) -> None:
        """Free the memory of the GPU."""
        if self._given is not None:
            self._given = None
            with self._device:
                self._cupy.get_default_memory_pool().free_all_blocks()

    def _import(self) -> None:
        try:
            self._cupy: Any = importlib.import_module("cupy")
            self._sparse: Any = importlib.import_module("cupyx.scipy.sparse")
            self._linalg: Any = importlib.import_module("cupyx.scipy.sparse.linalg")
        except ImportError as error:
            raise UnsupportedError(f"needs CuPy: pip install cupy-cuda13x ({error})") from None
        try:
            count = self._cupy.cuda.runtime.getDeviceCount()
        except Exception as error:
            raise UnsupportedError(f"CuPy finds no GPU: {error}") from None
        if not count:
            raise UnsupportedError("CuPy finds no GPU")

    def _jacobi(self, inverse: Any) -> Any:
        shape = (len(inverse), len(inverse))
        return self._linalg.LinearOperator(shape, lambda r: inverse * r, dtype=inverse.dtype)

    def _run(self, rtol: float, most: int) -> tuple[Any, int, int, float]:
        """Return x, CuPy's info, the iterations done and the seconds, device-synchronised."""
        if self._given is None:
            raise InvalidInputError("nothing is loaded: a solve needs a load before it")
        A, b, M = self._given
        # The name of the relative tolerance has changed between versions.
        named = "rtol" if "rtol" in inspect.signature(self._linalg.cg).parameters else "tol"
        done = 0

        def count(_: Any) -> None:
            nonlocal done
            done += 1

        given = {named: rtol, "atol": 0.0, "maxiter": most, "M": M, "callback": count}
        self._device.synchronize()
        begin = time.perf_counter()
        x, info = self._linalg.cg(A, b, **given)
        self._device.synchronize()
        return x, info, done, time.perf_counter() - begin

    def _versions(self) -> dict[str, str]:
        runtime = self._cupy.cuda.runtime.runtimeGetVersion()
        return {"cupy": str(self._cupy.__version__), "cuda_runtime": str(runtime)}


if __name__ == "__main__":
    serve(Cupy())
