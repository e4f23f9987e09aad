"""Multigrid: set-up and solve to a tolerance, beside Jacobi, pc="auto" and other libraries.

On CPUs the suite amg12-small, at most 300 000 rows, on GPUs amg12; a random right-hand side.
Rivals: PyAMG's smoothed aggregation, with the same near-null space, the better of two settings of
strength; PETSc's GAMG and hypre, on one core, with the same coordinates; on a GPU AmgX, from arrays
of the host. What is not installed fails with that reason.
"amg updated" has levels of the same pattern already, and recomputes their numbers.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from cpufree import Solver
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.generate import generate, parse_spec, suite, with_coordinates
from cpufree.matrix.load import as_csr
from cpufree.multigrid.near_nullspace import ModesGiven

sys.path.insert(0, str(Path(__file__).parent / "peers"))
import petsc_multigrid
from amgx_library import CONFIGURATIONS, Amgx

LARGE = {e.name: e.spec for e in suite("amg12")}
SMALL = {e.name.removesuffix("-small"): e.spec for e in suite("amg12-small")}
STRENGTHS = (0.0, 0.08)  # of PyAMG's symmetric measure


def system(spec: str) -> tuple[Any, Any]:
    """Return a matrix and the coordinates of its nodes, if it has several unknowns a node."""
    name, params = parse_spec(spec)
    if name.endswith("_hex"):
        return with_coordinates(name, **params)
    return generate(name, **params), None


def solver_of(A: Any, points: Any, case: Case, pc: str) -> Solver:
    """Set a system up with cpufree."""
    given = {"coordinates": points} if pc != "jacobi" and points is not None else {}
    return Solver(A, pc=pc, pes=case.pes, engine=case.engine, **given)


def solved(solver: Solver, b: Any, case: Case) -> dict[str, Any]:
    """Solve; `setup_seconds` are those of the set-up or the update before."""
    result = solver.solve(b, rtol=case.rtol)
    found = {"x": result.x, "iterations": result.iterations, "reason": str(result.reason)}
    found["pc"] = result.pc
    return {**found, "setup_seconds": solver.setup_seconds}


def ours(A: Any, b: Any, points: Any, case: Case, pc: str) -> dict[str, Any]:
    """Set up and solve with cpufree."""
    with solver_of(A, points, case, pc) as solver:
        return solved(solver, b, case)


def updated(solver: Solver, A: Any, b: Any, case: Case) -> dict[str, Any]:
    """Compute the numbers of levels that are there again, and solve."""
    solver.update(A, reuse="pattern")
    return solved(solver, b, case)


def pyamg(A: Any, b: Any, points: Any, case: Case, theta: float) -> dict[str, Any]:
    """Set up and solve with PyAMG's smoothed aggregation."""
    aggregation, krylov = (import_module(f"pyamg.{name}") for name in ("aggregation", "krylov"))
    modes, rows = None, sp.csr_matrix(A)
    if points is not None:
        found = ModesGiven(coordinates=points).of(as_csr(A))
        modes = None if found is None else found.vectors
        rows = rows.tobsr((3, 3))
    begin = time.perf_counter()
    levels = aggregation.smoothed_aggregation_solver(
        rows, B=modes, strength=("symmetric", {"theta": theta})
    )
    setup = time.perf_counter() - begin
    residuals: list[float] = []
    M = levels.aspreconditioner(cycle="V")
    x, info = krylov.cg(rows, b, tol=case.rtol, maxiter=1000, M=M, residuals=residuals)
    reason = "converged" if info == 0 else "not converged"
    return {"x": x, "iterations": len(residuals) - 1, "reason": reason, "setup_seconds": setup}


@cache
def library() -> Amgx:
    """Return AmgX, started once."""
    return Amgx()


def amgx(A: Any, b: Any, case: Case, configuration: str) -> dict[str, Any]:
    """Solve with AmgX on a GPU; its own seconds: upload, set-up and solve."""
    return library().solve(A, b, CONFIGURATIONS[configuration], case.rtol)


def petsc(A: Any, b: Any, points: Any, case: Case, name: str) -> dict[str, Any]:
    """Set up and solve with PETSc's conjugate gradients."""
    return petsc_multigrid.solve(A, b, name, case.rtol, points)


def timed(A: Any, b: Any, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what a contender has found, its residual, and its seconds and those of processors."""
    wall, processors = time.perf_counter(), time.process_time()
    found = work()
    spent = {"seconds": time.perf_counter() - wall}
    spent["processor_seconds"] = time.process_time() - processors
    x = found.pop("x")
    return {**spent, **found, "residual": float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))}


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A, points = system(case.matrix)
    case.facts.update(rows=A.shape[0], nnz=A.nnz)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    given = (A, b, points, case)
    works = {pc: partial(ours, *given, pc) for pc in ("amg", "jacobi", "auto")}
    works |= {f"pyamg {theta}": partial(pyamg, *given, theta) for theta in STRENGTHS}
    works |= {name: partial(petsc, *given, name) for name in petsc_multigrid.PRECONDITIONERS}
    if case.engine == "cuda_p2p":
        works |= {f"amgx {name}": partial(amgx, A, b, case, name) for name in CONFIGURATIONS}
    with solver_of(A, points, case, "amg") as solver:
        works["amg updated"] = partial(updated, solver, A, b, case)
        yield {name: partial(timed, A, b, work) for name, work in works.items()}


BENCH = Bench(
    name="multigrid",
    set_up=set_up,
    axes={"matrix": LARGE, "pes": (1,), "rtol": (1e-8,), "engine": ("cuda_p2p",)},
    cpu={"matrix": SMALL, "engine": ("cpu_threads",)},
    quick={"matrix": {"poisson2d": "poisson2d?nx=60,ny=60", "beam": "geomodel_hex?ex=3,ey=3,ez=9"}},
    ours="amg",
    unit="s",
    shown=("setup_seconds", "iterations", "processor_seconds", "reason"),
    repeats=3,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
