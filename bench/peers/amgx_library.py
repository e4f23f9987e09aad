"""AmgX through its C interface: libamgxsh.so, on one GPU.

Found where the loader looks, or as CPUFREE_AMGX says. The calls are those of AmgX's reference
manual; doubles, 32-bit indices.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from cpufree.errors import CpufreeError, UnsupportedError

VARIABLE = "CPUFREE_AMGX"
MODE = 8193  # dDDI: on the device, matrices and vectors of doubles, indices of 32 bits
STATUS = ("converged", "failed", "diverged", "not converged")
_OUTER = (
    "config_version=2, solver(main)=PCG, main:max_iters=10000, main:convergence=RELATIVE_INI, "
    "main:tolerance={rtol}, main:norm=L2, main:monitor_residual=1"
)
_CYCLE = (
    ", main:preconditioner(amg)=AMG, amg:cycle=V, amg:max_iters=1, amg:smoother(smooth)={smoother}"
    ", amg:coarse_solver=DENSE_LU_SOLVER, amg:min_coarse_rows=32"
)
_OF_AGGREGATES = _CYCLE + ", amg:algorithm=AGGREGATION, amg:selector={selector}"
CONFIGURATIONS = {
    "aggregation by 8": _OUTER
    + _OF_AGGREGATES.format(smoother="BLOCK_JACOBI", selector="SIZE_8")
    + ", amg:presweeps=1, amg:postsweeps=1",
    "aggregation by 2": _OUTER
    + _OF_AGGREGATES.format(smoother="BLOCK_JACOBI", selector="SIZE_2")
    + ", amg:presweeps=0, amg:postsweeps=3",
    "classical": _OUTER
    + _CYCLE.format(smoother="JACOBI_L1")
    + ", amg:algorithm=CLASSICAL, amg:selector=PMIS, amg:interpolator=D2"
    + ", amg:presweeps=1, amg:postsweeps=1",
}
"""Of preconditioned conjugate gradients; {rtol} is filled in."""


class AmgxError(CpufreeError):
    """A call of AmgX failed."""


class Amgx:
    """AmgX's functions, initialised once in a process.

    Raises:
        UnsupportedError: there is no library.

    Examples:
        >>> amgx = Amgx()
        >>> found = amgx.solve(A, b, CONFIGURATIONS["classical"], rtol=1e-8)
        >>> found["iterations"], found["setup_seconds"], found["solve_seconds"]
    """

    def __init__(self, library: str | None = None) -> None:
        name = library or os.environ.get(VARIABLE) or ctypes.util.find_library("amgxsh")
        try:
            if name is None:
                raise OSError("the loader does not find it")
            self._calls = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise UnsupportedError(
                f"needs AmgX's libamgxsh.so: build AmgX, and name it with {VARIABLE} ({error})"
            ) from None
        self._call("initialize")

    def solve(self, A: Any, b: np.ndarray, configuration: str, rtol: float) -> dict[str, Any]:
        """Solve A x = b from x = 0 on the first GPU.

        A: sparse, (n, n); b: (n,). Returns x (n,), iterations, reason, and seconds of upload,
        set-up and solve.

        Raises:
            AmgxError: a call failed; it says which and why.
        """
        rows = sp.csr_matrix(A, dtype=np.float64)
        rows.sort_indices()
        b = np.ascontiguousarray(b, np.float64)
        made: list[tuple[str, ctypes.c_void_p]] = []
        try:
            return self._solve(rows, b, configuration.format(rtol=rtol), made)
        finally:
            for kind, handle in reversed(made):
                self._call(f"{kind}_destroy", handle)

    def _solve(
        self, rows: Any, b: np.ndarray, configuration: str, made: list[tuple[str, ctypes.c_void_p]]
    ) -> dict[str, Any]:
        mode, n = ctypes.c_int(MODE), ctypes.c_int(len(b))
        config = self._make(made, "config", ctypes.c_char_p(configuration.encode()))
        device = ctypes.c_int(0)
        one = (ctypes.c_void_p(None), ctypes.c_int(1), ctypes.byref(device))
        resources = self._make(made, "resources", config, *one)
        matrix = self._make(made, "matrix", resources, mode)
        rhs, solution = (self._make(made, "vector", resources, mode) for _ in range(2))
        solver = self._make(made, "solver", resources, mode, config)
        single = ctypes.c_int(1)
        arrays = (rows.indptr.astype(np.int32), rows.indices.astype(np.int32), rows.data)
        begin = time.perf_counter()
        self._call(
            "matrix_upload_all",
            *(matrix, n, ctypes.c_int(rows.nnz), single, single),
            *(_address(array) for array in arrays),
            ctypes.c_void_p(None),
        )
        self._call("vector_upload", rhs, n, single, _address(b))
        self._call("vector_set_zero", solution, n, single)
        uploaded = time.perf_counter()
        self._call("solver_setup", solver, matrix)
        ready = time.perf_counter()
        self._call("solver_solve_with_0_initial_guess", solver, rhs, solution)
        x = np.empty_like(b)
        self._call("vector_download", solution, _address(x))
        end = time.perf_counter()
        done, status = ctypes.c_int(), ctypes.c_int()
        self._call("solver_get_iterations_number", solver, ctypes.byref(done))
        self._call("solver_get_status", solver, ctypes.byref(status))
        return {
            "x": x,
            "iterations": done.value,
            "reason": STATUS[status.value],
            "upload_seconds": uploaded - begin,
            "setup_seconds": ready - begin,
            "solve_seconds": end - ready,
            "seconds": end - begin,
        }

    def _make(
        self, made: list[tuple[str, ctypes.c_void_p]], kind: str, *given: Any
    ) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call(f"{kind}_create", ctypes.byref(handle), *given)
        made.append((kind, handle))
        return handle

    def _call(self, name: str, *given: Any) -> None:
        code = int(getattr(self._calls, f"AMGX_{name}")(*given))
        if code == 0:
            return
        words = ctypes.create_string_buffer(4096)
        self._calls.AMGX_get_error_string(ctypes.c_int(code), words, ctypes.c_int(len(words)))
        raise AmgxError(f"AMGX_{name} failed: {words.value.decode(errors='replace')} ({code})")


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
