"""Large systems on the CPU engine: time per iteration against SciPy's cg, and against the triad."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cases import Case
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.sparse.linalg import cg as scipy_cg
from timing import interleave, judge, paired, seconds, spread

import cpufree
from cpufree.bench.core.noise import compare
from cpufree.bench.core.triad import Triad
from cpufree.bench.core.work import METHODS, count_bytes

ROWS_OF_TARGET = 1_000_000  # the targets are set for matrices from here on
MOST_OF_SCIPY = 0.6
LEAST_OF_TRIAD = 0.7
SETUPS = 3

Vector = npt.NDArray[np.float64]


def scipy_jacobi(A: sp.csr_array) -> tuple[Any, dict[str, Any]]:
    """Return the faster form of Jacobi's M for SciPy, and how long each takes to apply."""
    inverse = 1.0 / A.diagonal()
    forms = {
        "linear_operator": LinearOperator(A.shape, matvec=lambda r: inverse * r, dtype=A.dtype),
        "diagonal_matrix": sp.dia_array((inverse[np.newaxis], [0]), shape=A.shape),
    }
    r = np.ones(A.shape[0])
    applied = {}
    for name, form in forms.items():
        operator = aslinearoperator(form)
        operator.matvec(r)
        applied[name] = min(seconds(functools.partial(operator.matvec, r)) for _ in range(5))
    best = min(applied, key=lambda name: applied[name])
    return forms[best], {"used": best, "apply_seconds": applied}


def solve_task(
    solver: cpufree.Solver, b: Vector, method: str, iterations: int
) -> Callable[[], tuple[float, float]]:
    """Return a task that solves and returns the seconds of the whole call and of the kernels."""

    def task() -> tuple[float, float]:
        results: list[cpufree.Result] = []
        wall = seconds(
            lambda: results.append(solver.solve(b, rtol=0.0, maxiter=iterations, method=method))
        )
        if results[0].iterations != iterations:
            raise RuntimeError(
                f"{method} ended after {results[0].iterations} of {iterations} iterations "
                f"({results[0].reason}): time fewer iterations of this matrix"
            )
        return wall, results[0].timings["kernel"]

    return task


def measure_large(
    case: Case, A: sp.csr_array, triad: Triad, rounds: int, rng: random.Random, pause: float
) -> dict[str, Any]:
    """Measure one matrix; return the raw times and what follows from them, ready for JSON."""
    k = case.iterations
    b = np.random.default_rng(rng.randrange(2**32)).standard_normal(A.shape[0])
    M, jacobi = scipy_jacobi(A)
    setups = []
    for _ in range(SETUPS):  # the first one warms up
        solver = cpufree.Solver(A, engine="cpu_threads")
        setups.append(solver.setup_seconds)
    tasks: dict[str, Callable[[], tuple[float, float]]] = {
        method: solve_task(solver, b, method, k) for method in METHODS
    }
    tasks["scipy"] = lambda: (seconds(lambda: scipy_cg(A, b, rtol=0.0, maxiter=k, M=M)), 0.0)
    tasks["triad"] = lambda: (triad.run(), 0.0)
    measured = interleave(tasks, rounds, rng, pause)
    raw = {
        "setup_seconds": setups,
        "triad_pass_seconds": [wall for wall, _ in measured["triad"]],
        "scipy_seconds": [wall for wall, _ in measured["scipy"]],
        "methods": {
            method: {
                "wall_seconds": [wall for wall, _ in measured[method]],
                "kernel_seconds": [kernel for _, kernel in measured[method]],
            }
            for method in METHODS
        },
    }
    rows, nnz = A.shape[0], A.nnz
    record: dict[str, Any] = {
        "name": case.name,
        "spec": case.spec,
        "rows": rows,
        "nnz": nnz,
        "iterations": k,
        "blocks": solver.plan["pes"] * solver.plan["blocks"],
        "why": solver.solve(b, maxiter=0).why,
        "matrix_bytes": float(solver.plan["matrix_bytes"]),
        "scipy_jacobi": jacobi,
        "raw": raw,
    }
    record["derived"] = derive(record, triad.bytes_per_pass)
    return record


def derive(record: dict[str, Any], triad_bytes: int) -> dict[str, Any]:
    """Return what follows from the raw times of a record."""
    k, raw = record["iterations"], record["raw"]
    methods = {method: derive_method(record, triad_bytes, method) for method in METHODS}
    return {
        "scipy_seconds_per_iteration": spread([t / k for t in raw["scipy_seconds"]]),
        "triad_bytes_per_second": spread([triad_bytes / t for t in raw["triad_pass_seconds"]]),
        "setup_seconds": spread(raw["setup_seconds"]),
        "methods": methods,
    }


def derive_method(record: dict[str, Any], triad_bytes: int, method: str) -> dict[str, Any]:
    """Return times, ratios to SciPy, fractions of the triad and verdicts of one method.

    The ratio to SciPy is that of whole calls. The fraction of the triad is the time that the triad
    allows for the bytes, over the time of the kernels; `fraction_of_triad` is for the smaller count
    of bytes, that of plain CSR or of the format in use, and so the harder one to reach.
    """
    k, raw = record["iterations"], record["raw"]
    wall, kernel = (raw["methods"][method][name] for name in ("wall_seconds", "kernel_seconds"))
    count = count_bytes(record["rows"], record["nnz"], record["matrix_bytes"], method)
    fractions = {
        name: [
            count[name] * (pass_seconds / triad_bytes) / (time / k)
            for pass_seconds, time in zip(raw["triad_pass_seconds"], kernel, strict=True)
        ]
        for name in ("csr", "format")
    }
    hardest = fractions["csr" if count["csr"] <= count["format"] else "format"]
    ratios = paired(wall, raw["scipy_seconds"])
    judged = record["rows"] >= ROWS_OF_TARGET
    saved = spread([(s - t) / k for s, t in zip(raw["scipy_seconds"], kernel, strict=True)])
    setup = spread(raw["setup_seconds"])["median"]
    return {
        "bytes_per_iteration": count,
        "seconds_per_iteration": spread([t / k for t in kernel]),
        "wall_seconds_per_iteration": spread([t / k for t in wall]),
        "ratio_to_scipy": spread(ratios),
        "kernel_ratio_to_scipy": spread(paired(kernel, raw["scipy_seconds"])),
        "fraction_of_triad": spread(hardest),
        "fraction_of_triad_csr": spread(fractions["csr"]),
        "fraction_of_triad_format": spread(fractions["format"]),
        "setup_in_scipy_iterations": setup / (spread(raw["scipy_seconds"])["median"] / k),
        "iterations_to_earn_setup": setup / saved["median"] if saved["median"] > 0 else None,
        "against_scipy": compare(wall, raw["scipy_seconds"]),
        "target_scipy": judge(ratios, at_most=MOST_OF_SCIPY) if judged else "not judged",
        "target_triad": judge(hardest, at_least=LEAST_OF_TRIAD) if judged else "not judged",
    }
