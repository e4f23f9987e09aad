"""Multigrid on CPUs: set-up and solve to a tolerance, beside Jacobi and PyAMG.

    python bench/multigrid.py [--pes 1] [--rtol 1e-8] [--rounds 3] [--out FILE.json] [SYSTEM]...

SYSTEM: a name of SYSTEMS, the suite amg12-small (at most 300 000 rows), or a specification of a
generator. PyAMG's smoothed aggregation is taken with the same near-null space and tolerance and the
better of two settings of strength, as preconditioner of its conjugate gradients; it is left out
where it is not installed. The right-hand side is random with a fixed seed. Seconds are those of the
clock and of processors, medians over rounds, in each of which contenders take turns.
"""

from __future__ import annotations

import datetime
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from records import RESULTS, command_line, unused_name, write
from rich.console import Console

import cpufree
from cpufree.bench.core.machine import describe_machine, describe_versions, source_state
from cpufree.generate import generate, parse_spec, with_coordinates
from cpufree.matrix.load import as_csr
from cpufree.solvers.near_nullspace import ModesGiven

SCHEMA = 1
SYSTEMS = {
    "poisson3d": "poisson3d?nx=64,ny=64,nz=64",
    "poisson2d": "poisson2d?nx=500,ny=500",
    "lognormal": "lognormal3d?nx=48,ny=48,nz=48",
    "anisotropic": "poisson3d?nx=48,ny=48,nz=48,weights=1x1x0.001",
    "thermal2d": "thermal2d",
    "heart": "heart",
    "graph": "delaunay3d",
    "flange_hex": "flange_hex?r_out=24,t=4,pipe=14",
    "geomodel_hex": "geomodel_hex",
    "beam": "geomodel_hex?ex=9,ey=9,ez=96,contrast=1.0",
}
STRENGTHS = (0.0, 0.08)  # of PyAMG's symmetric measure
tell = Console(stderr=True, highlight=False, soft_wrap=True)


def system(spec: str) -> tuple[Any, Any]:
    """Return a matrix and the coordinates of its nodes, if it has several unknowns a node."""
    name, params = parse_spec(spec)
    if name.endswith("_hex"):
        return with_coordinates(name, **params)
    return generate(name, **params), None


def ours(A: Any, b: Any, pc: str, points: Any, pes: int, rtol: float) -> dict[str, Any]:
    """Solve once with cpufree."""
    given = {"coordinates": points} if pc == "amg" and points is not None else {}
    with cpufree.Solver(A, pc=pc, pes=pes, engine="cpu_threads", **given) as solver:
        result = solver.solve(b, rtol=rtol)
        return {"iterations": result.iterations, "reason": str(result.reason), "x": result.x}


def pyamg(A: Any, b: Any, points: Any, theta: float, rtol: float) -> dict[str, Any]:
    """Solve once with PyAMG's smoothed aggregation."""
    import scipy.sparse as sp
    from pyamg.aggregation import smoothed_aggregation_solver
    from pyamg.krylov import cg

    modes = None
    matrix = sp.csr_matrix(A)
    if points is not None:
        found = ModesGiven(coordinates=points).of(as_csr(A))
        modes = None if found is None else found.vectors
        matrix = matrix.tobsr((3, 3))
    levels = smoothed_aggregation_solver(matrix, B=modes, strength=("symmetric", {"theta": theta}))
    residuals: list[float] = []
    M = levels.aspreconditioner(cycle="V")
    x, info = cg(matrix, b, tol=rtol, maxiter=1000, M=M, residuals=residuals)
    reason = "converged" if info == 0 else "not converged"
    return {"iterations": len(residuals) - 1, "reason": reason, "x": x}


def timed(work: Callable[[], dict[str, Any]], A: Any, b: Any) -> dict[str, Any]:
    """Return what a contender has found, its error, and its seconds."""
    wall, processors = time.perf_counter(), time.process_time()
    found = work()
    spent = {
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processors,
    }
    x = found.pop("x")
    return {**found, **spent, "error": float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))}


def measure(spec: str, pes: int, rtol: float, rounds: int) -> dict[str, Any]:
    """Return what each contender needs for a system."""
    A, points = system(spec)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    contenders: dict[str, Callable[[], dict[str, Any]]] = {
        pc: partial(ours, A, b, pc, points, pes, rtol) for pc in ("amg", "jacobi")
    }
    if importlib.util.find_spec("pyamg") is not None:
        for theta in STRENGTHS:
            contenders[f"pyamg {theta}"] = partial(pyamg, A, b, points, theta, rtol)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            runs[name].append(timed(work, A, b))
    found: dict[str, Any] = {"system": spec, "rows": A.shape[0], "nnz": A.nnz, "pes": pes}
    for name, every in runs.items():
        medians = {
            key: statistics.median(run[key] for run in every)
            for key in ("seconds", "processor_seconds")
        }
        found[name] = {**every[-1], **medians}
    return found


def show(found: dict[str, Any]) -> None:
    """Print a system's results."""
    tell.print(f"{found['system']}: {found['rows']} rows, {found['nnz']} nonzeros")
    for name, one in found.items():
        if isinstance(one, dict):
            tell.print(
                f"  {name:<12}{one['iterations']:>6} iterations {one['seconds']:>8.3f} s, of "
                f"processors {one['processor_seconds']:>8.3f} s   {one['reason']}"
            )


def main(
    systems: Annotated[list[str] | None, typer.Argument(metavar="[SYSTEM]...")] = None,
    pes: Annotated[int, typer.Option(min=1, help="PEs of cpufree.")] = 1,
    rtol: Annotated[float, typer.Option(help="Tolerance.")] = 1e-8,
    rounds: Annotated[int, typer.Option(min=1, help="Times each is run.")] = 3,
    out: Annotated[Path | None, typer.Option(help="Default: a new file in bench/results.")] = None,
) -> None:
    """Measure."""
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "multigrid",
        "command": command_line(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "versions": describe_versions("c++"),
        "source": source_state(),
        "rtol": rtol,
        "rounds": rounds,
        "load_before": os.getloadavg()[0],
        "results": [],
    }
    if importlib.util.find_spec("pyamg") is not None:
        import pyamg as rival

        record["versions"]["pyamg"] = rival.__version__
    measure("poisson2d?nx=20,ny=20", pes, rtol, 1)  # what is compiled, or imported, once
    path = out or unused_name(RESULTS, "amg-cpu")
    for name in systems or list(SYSTEMS):
        found = measure(SYSTEMS.get(name, name), pes, rtol, rounds)
        show(found)
        record["results"].append({"name": name, **found})
        write(record, path)
    print(path)


if __name__ == "__main__":
    typer.run(main)
