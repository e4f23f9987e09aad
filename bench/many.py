"""Many small systems at once: seconds of a system, against one call for each.

Matrices are D L D, L of Poisson's equation on a grid, D random: of one pattern, stacked, or on
grids of different shapes. A loop over `cpufree.solve`, and SciPy's and CuPy's cg with Jacobi, solve
the first systems alone; "block-diagonal" is one system of all, by `cpufree.solve`. All reach the
same relative residual, which is checked. "processor": seconds of all cores, to which other work on
the machine adds little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

import cpufree
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.errors import CpufreeError

RTOL = 1e-8
ALONE = 20  # systems that are solved one by one


def stacked(nx: int, ny: int, count: int) -> tuple[Any, np.ndarray]:
    """Return the pattern and the values of systems of one pattern."""
    L = cpufree.generate.poisson2d(nx=nx, ny=ny)
    D = np.random.default_rng(1).uniform(0.5, 2.0, (count, nx * ny))
    row = np.repeat(np.arange(nx * ny), np.diff(L.indptr))
    return L, L.data * D[:, row] * D[:, L.indices]


def matrices(n: int, count: int, different: bool) -> list[Any]:
    """Return systems of n rows each, of one pattern or of many."""
    shapes = [(nx, n // nx) for nx in range(2, n) if n % nx == 0 and nx * nx >= n] or [(n, 1)]
    found = []
    for k in range(count if different else 1):
        nx, ny = shapes[k % min(len(shapes), 4)]
        L, values = stacked(nx, ny, 1 if different else count)
        found += [sp.csr_array((row, L.indices, L.indptr), shape=L.shape) for row in values]
    return found


def checked(systems: list[Any], b: np.ndarray, x: Any) -> None:
    """Raise CpufreeError for a solution that does not meet the tolerance."""
    for A, v, y in zip(systems, b, x, strict=False):
        if not np.linalg.norm(v - A @ np.asarray(y)) <= 1.1 * RTOL * np.linalg.norm(v):
            raise CpufreeError("a solution does not meet the tolerance")


def by_scipy(A: Any, b: np.ndarray) -> np.ndarray:
    M = sp.diags_array(1.0 / A.diagonal())
    return np.asarray(scipy.sparse.linalg.cg(A, b, rtol=RTOL, M=M)[0])


def by_cupy(systems: list[Any], b: np.ndarray) -> Callable[[], Any]:
    """Return a loop over CuPy's cg, with matrices and vectors on the GPU."""
    import cupy
    import cupyx.scipy.sparse as csp
    import cupyx.scipy.sparse.linalg as csl

    there = [csp.csr_matrix(sp.csr_matrix(A)) for A in systems]
    inverse = [csp.diags(1.0 / cupy.asarray(A.diagonal())) for A in systems]
    right = cupy.asarray(b)

    def run() -> Any:
        x = [csl.cg(A, v, rtol=RTOL, M=M)[0] for A, v, M in zip(there, right, inverse, strict=True)]
        return [cupy.asnumpy(y) for y in x]

    return run


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    systems = matrices(case.n, case.count, case.patterns == "different")
    b = np.random.default_rng(2).standard_normal((case.count, case.n))
    few, on_gpu = systems[:ALONE], case.engine == "cuda_p2p"
    given: Any = systems
    if case.patterns == "one":
        first = systems[0]
        given = (first.indptr, first.indices, np.stack([A.data for A in systems]))

    def timed(count: int, function: Callable[[], Any]) -> Call:
        def call() -> dict[str, Any]:
            begin, processor = time.perf_counter(), time.process_time()
            x = function()
            seconds = time.perf_counter() - begin
            processor = time.process_time() - processor
            checked(systems, b, x)
            return {"seconds": seconds / count, "processor": processor / count}

        return call

    def diagonal() -> Any:
        A = sp.block_diag(systems, format="csr")
        x = cpufree.solve(A, b.ravel(), rtol=RTOL / 10, engine=case.engine, pc="jacobi").x
        return np.asarray(x).reshape(b.shape)

    def alone() -> Any:
        return [
            cpufree.solve(A, v, rtol=RTOL, engine=case.engine).x
            for A, v in zip(few, b, strict=False)
        ]

    calls = {
        "solve_many": timed(
            case.count, lambda: cpufree.solve_many(given, b, rtol=RTOL, engine=case.engine).x
        ),
        "loop": timed(len(few), alone),
        "SciPy": timed(len(few), lambda: [by_scipy(A, v) for A, v in zip(few, b, strict=False)]),
        "block-diagonal": timed(case.count, diagonal),
    }
    if on_gpu:
        calls["CuPy"] = timed(len(few), by_cupy(few, b[: len(few)]))
    yield calls


BENCH = Bench(
    name="many",
    set_up=set_up,
    axes={
        "patterns": ("one", "different"),
        "n": (1000,),
        "count": (1000,),
        "engine": ("cuda_p2p",),
    },
    cpu={"engine": ("cpu_threads",)},
    quick={"n": (100,), "count": (30,)},
    unit="s",
    shown=("processor",),
    repeats=3,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
