"""What benchmarks of solves have in common."""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from cpufree.bench.cg.problems import cases
from cpufree.bench.declared.declaration import Case
from cpufree.errors import CpufreeError
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.solvers.result import Result
from cpufree.solvers.solver import Solver


@lru_cache(maxsize=1)
def _kept(source: str) -> CsrMatrix:
    return as_csr(cases([source])[0].source)


def matrix(case: Case) -> CsrMatrix:
    """Return the matrix of a case: a path, gen:NAME?key=value, or suite:NAME/MATRIX.

    Its size goes to the record. The matrix is kept until another one is asked for, so the first
    axis should be `matrix`.
    """
    A = _kept(case.matrix)
    case.facts.update(rows=A.shape[0], nnz=A.nnz)
    return A


def iterating(
    solver: Solver, b: Any, iterations: int, whole: bool = False, **how: Any
) -> Callable[[], dict[str, Any]]:
    """Return a contender: a fixed number of iterations, seconds of one.

    They are those of the kernels, or of the `whole` call.
    """

    def call() -> dict[str, Any]:
        begin = time.perf_counter()
        result = solver.solve(b, rtol=0.0, maxiter=iterations, **how)
        passed = time.perf_counter() - begin
        if result.iterations < iterations:
            raise CpufreeError(
                f"the solve ended after {result.iterations} of {iterations} iterations "
                f"({result.reason}): ask for fewer"
            )
        kernel = result.timings["kernel"] / iterations
        return {"seconds": passed / iterations if whole else kernel, "kernel": kernel}

    return call


def as_scipy(A: CsrMatrix) -> Any:
    """Return a matrix as SciPy's, with the 32-bit indices with which it is fastest."""
    from scipy.sparse import csr_array

    parts = (np.array(A.data), A.indices.astype(np.int32), A.indptr.astype(np.int32))
    return csr_array(parts, shape=A.shape)


def scipy_jacobi(matrix: Any, try_both: bool = True) -> Callable[..., float]:
    """Return a solve by SciPy's cg with Jacobi: `solve(b, rtol, maxiter)` returns its seconds.

    Jacobi is a `LinearOperator`, or the diagonal matrix where a trial finds that faster here.
    """
    from scipy.sparse import dia_array
    from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg

    inverse = 1.0 / matrix.diagonal()
    M: Any = LinearOperator(matrix.shape, matvec=lambda r: inverse * r, dtype=matrix.dtype)
    if try_both:

        def applied(form: Any) -> float:
            operator, r = aslinearoperator(form), np.ones(matrix.shape[0])
            return min(timeit.repeat(lambda: operator.matvec(r), number=1, repeat=5))

        M = min(M, dia_array((inverse[np.newaxis], [0]), shape=matrix.shape), key=applied)

    def solve(b: Any, rtol: float, maxiter: int | None = None) -> float:
        begin = time.perf_counter()
        _, info = cg(matrix, b, rtol=rtol, maxiter=maxiter, M=M)
        if info and rtol:
            raise CpufreeError(f"SciPy's cg does not converge: info {info}")
        return time.perf_counter() - begin

    return solve


def summary(result: Result) -> dict[str, Any]:
    """Return what a record says of a solve."""
    return {
        "seconds": result.timings["kernel"],
        "method": result.method,
        "iterations": result.iterations,
        "reason": str(result.reason),
        "residual": result.relative_residual,
    }


def median_of(slope: Slope, times: int) -> Callable[[], dict[str, Any]]:
    """Return a contender: one call that warms up, then the median and the least of so many.

    For benchmarks whose other contenders are processes that do the same in one call.
    """

    def call() -> dict[str, Any]:
        slope()
        found = [slope() for _ in range(times)]
        seconds = [one["seconds"] for one in found]
        return {**found[0], "seconds": statistics.median(seconds), "least": min(seconds)}

    return call


class Slope:
    """A contender: seconds of one step, the difference of a long and a short run over its steps.

    What a run takes however short it is drops out. The long run's steps are chosen by the first
    call, so that they take `lasting` seconds.
    """

    def __init__(
        self,
        seconds: Callable[[int], float],
        short: int = 20,
        most: int = 20_000,
        lasting: float = 0.05,
    ) -> None:
        """`seconds(steps)` runs N steps and returns what they take."""
        self._seconds, self._short, self._most, self._lasting = seconds, short, most, lasting
        self._steps = 0

    def __call__(self) -> dict[str, Any]:
        """Return the seconds of a step, and how many the difference is of."""
        if not self._steps:
            self._seconds(self._short)
            few = min(100, self._most)
            each = (self._seconds(self._short + few) - self._seconds(self._short)) / few
            self._steps = min(self._most, max(200, int(self._lasting / max(each, 1e-7))))
        more = self._seconds(self._short + self._steps) - self._seconds(self._short)
        return {"seconds": more / self._steps, "steps": self._steps}
