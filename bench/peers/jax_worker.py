"""Contender `jax`: the conjugate gradients of JAX, compiled, on one GPU or on the CPU.

Its loop and its scalars stay on the device until the answer is ready.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from problem_folder import (
    MOST_32_BIT,
    Problem,
    inverse_diagonal,
    jacobi_asked,
    one_gpu,
    read_limits,
    read_problem,
)

from cpufree.bench.worker import serve
from cpufree.errors import InvalidInputError, UnsupportedError

NOTES = [
    "iterations are counted by an untimed solve of the same compiled arithmetic",
    "its recursive residual is not returned: residual is that of b - A x",
    "stops at once on NaN, without a word",
]


class Jax:
    """`jax.scipy.sparse.linalg.cg` under jit; Jacobi as a function."""

    name = "jax"

    def __init__(self) -> None:
        self._solve: Any = None
        self._matrix: Any = None
        self._inverse: Any = None
        self._b: Any = None
        self._counting: Any = None
        self._placed: Callable[[], Any] = contextlib.nullcontext

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Bring the system to the device, choose a product, compile; return facts."""
        self.close()
        number, jacobi = one_gpu(options, "JAX's cg"), jacobi_asked(options)
        problem = read_problem(folder)
        if len(problem.data) > MOST_32_BIT:
            raise UnsupportedError("JAX's sparse matrices have 32-bit indices: too many nonzeros")
        jax = self._import()
        begin = time.perf_counter()
        # For this process only; without it doubles silently become floats.
        jax.config.update("jax_enable_x64", True)
        # BCOO and BCSR then go to cuSPARSE; without a GPU it changes nothing.
        with contextlib.suppress(AttributeError):  # not an option of all versions
            jax.config.update("jax_bcoo_cusparse_lowering", True)
        device = self._device(jax, number)
        self._placed = lambda: jax.default_device(device)
        with self._placed():
            inverse = inverse_diagonal(problem) if jacobi else None
            chosen, products, failed = self._prepare(jax, problem, inverse)
        return {
            "versions": {"jax": jax.__version__, "device": str(device.device_kind)},
            "kind": f"compiled loop on one device ({device.platform})",
            "gpus": [number] if device.platform == "gpu" else [],
            "pes": 1,
            "staging": "none",
            "spmv": chosen,
            "spmv_seconds": products,
            "spmv_failed": failed,
            "preconditioner": "jacobi" if jacobi else "none",
            "compile_seconds": self._compile_seconds,
            "setup_seconds": time.perf_counter() - begin,
            "notes": NOTES,
        }

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve from zero; return seconds, iterations, reason, and the norm of b - A x."""
        limits = read_limits(request, ("cg",), "JAX")
        if self._solve is None:
            raise InvalidInputError("nothing is loaded: a solve needs a load before it")
        rtol, most = self._scalar(limits.rtol), np.int64(limits.most)
        given = (self._matrix, self._inverse, self._b, rtol, most)
        with self._placed():
            begin = time.perf_counter()
            x = self._solve(*given).block_until_ready()
            seconds = time.perf_counter() - begin
            done, converged = self._count(limits.rtol, limits.most)
            residual = float(np.linalg.norm(self._residual(self._matrix, self._b, x)))
        if request.get("save"):
            np.save(request["save"], np.asarray(x))
        finite = bool(np.isfinite(residual))
        return {
            "seconds": seconds,
            "iterations": done,
            "reason": limits.reason(done, converged, finite),
            "residual": residual if finite else None,
            "split": None,
        }

    def close(self) -> None:
        """Free the memory of the device."""
        self._solve = self._matrix = self._inverse = self._b = self._counting = None
        self._counts: dict[tuple[float, int], tuple[int, bool]] = {}

    def _import(self) -> Any:
        try:
            importlib.import_module("jax.scipy.sparse.linalg")
            return importlib.import_module("jax")
        except ImportError as error:
            raise UnsupportedError(f"needs JAX: pip install 'jax[cuda13]' ({error})") from None

    def _device(self, jax: Any, number: int) -> Any:
        devices = jax.devices()
        if devices[0].platform == "cpu":
            return devices[0]
        if number >= len(devices):
            raise UnsupportedError(f"GPU {number} is asked for; JAX sees {len(devices)}")
        return devices[number]

    def _prepare(
        self, jax: Any, problem: Problem, inverse: Any
    ) -> tuple[str, dict[str, float], dict[str, str]]:
        """Choose the product, compile the solve, run it once; return the choice and its reasons."""
        jax_products = importlib.import_module("jax_products")
        self._b = jax.numpy.asarray(problem.b)
        self._inverse = None if inverse is None else jax.numpy.asarray(inverse)
        found = jax_products.candidates(problem)
        chosen, seconds, failed = jax_products.fastest(found, self._b)
        product, self._matrix = found[chosen]
        self._scalar = problem.data.dtype.type
        given = (self._matrix, self._inverse, self._b, self._scalar(0), np.int64(3))
        begin = time.perf_counter()
        self._solve = jax.jit(_cg(jax, product)).lower(*given).compile()
        self._compile_seconds = time.perf_counter() - begin
        self._solve(*given).block_until_ready()
        self._residual = jax.jit(lambda matrix, b, x: b - product(matrix, x))
        self._calls = 0

        def counted(matrix: Any, x: Any) -> Any:
            jax.debug.callback(self._called)
            return product(matrix, x)

        self._counting = jax.jit(_cg(jax, counted))
        self._effects = jax.effects_barrier
        return chosen, seconds, failed

    def _called(self) -> None:
        self._calls += 1

    def _count(self, rtol: float, most: int) -> tuple[int, bool]:
        """Return the iterations of a solve, and whether it ended before the last one allowed.

        A solve that needs exactly the last one allowed counts as converged only if a solve with
        one more allowed stops there too.
        """
        if (rtol, most) not in self._counts:
            done = self._iterations(rtol, most + 1)
            self._counts[rtol, most] = min(done, most), done <= most
        return self._counts[rtol, most]

    def _iterations(self, rtol: float, most: int) -> int:
        self._calls = 0
        given = (self._matrix, self._inverse, self._b, self._scalar(rtol), np.int64(most))
        self._counting(*given).block_until_ready()
        self._effects()
        return self._calls - 1  # one product for the first residual


def _cg(jax: Any, product: Any) -> Any:
    """Return solve(matrix, inverse, b, rtol, most) -> x, to be compiled."""

    def solve(matrix: Any, inverse: Any, b: Any, rtol: Any, most: Any) -> Any:
        M = None if inverse is None else lambda r: inverse * r
        cg = jax.scipy.sparse.linalg.cg
        return cg(lambda x: product(matrix, x), b, tol=rtol, atol=0.0, maxiter=most, M=M)[0]

    return solve


if __name__ == "__main__":
    serve(Jax())
