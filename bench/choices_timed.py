"""Seconds to an answer with each choice of PEs and with "auto": set-up and solve of A x = 1.

All in one process in which CUDA runs. The CPU is a choice up to two million nonzeros. Matrices are
those of suites that differ, small ones first.
"""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from cpufree import Solver
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix, summary
from cpufree.engines import gpus
from cpufree.generate.suites import suite
from cpufree.matrix.problem import CsrMatrix

CPU_MOST = 2_000_000  # nonzeros up to which the CPU is measured, where "auto" may choose it


def timed(A: CsrMatrix, where: dict[str, Any], rtol: float) -> dict[str, Any]:
    """Set up and solve once; return seconds and what was done."""
    b = np.ones(A.shape[0])
    begin = time.perf_counter()
    with Solver(A, pc="jacobi", **where) as solver:
        made = time.perf_counter()
        result = solver.solve(b, rtol=rtol, maxiter=30_000)
        end = time.perf_counter()
    if not result.converged:
        raise RuntimeError(f"no answer: {result.reason}")
    phases = {name: t for name, t in solver._matrix.setup_timings.items() if t > 1e-4}
    found = {"engine": result.engine, "pes": result.pes, "why": result.why, "timings": phases}
    return {**summary(result), **found, "seconds": end - begin, "set_up": made - begin}


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    on_gpus = case.engine == "auto" and bool(gpus.usable(gpus.find()))
    places: dict[str, dict[str, Any]] = {"auto": {"engine": case.engine}}
    for pes in map(int, case.pes.split(",")):
        engine = "cuda_p2p" if on_gpus else "cpu_threads"
        places[f"{pes} PEs"] = {"engine": engine, "pes": pes}
    if on_gpus and A.nnz <= CPU_MOST:
        places["CPU"] = {"engine": "cpu_threads"}
    yield {name: partial(timed, A, where, case.rtol) for name, where in places.items()}


def suites(*names: str) -> dict[str, str]:
    """Return the systems of suites by name, small ones first; what is the same in two, once."""
    entries = {e.spec: (e.nnz, f"{name}-{e.name}") for name in names for e in suite(name)}
    by_size = sorted(entries.items(), key=lambda one: one[1])
    return {name: f"gen:{spec}" for spec, (_, name) in by_size}


BENCH = Bench(
    name="choices",
    set_up=set_up,
    axes={
        "matrix": suites("paper18", "structured"),
        "pes": ("1,2",),
        "engine": ("auto",),
        "rtol": (1e-8,),
    },
    cpu={"matrix": suites("paper18-small", "structured-small")},
    quick={"matrix": ("gen:poisson2d?nx=40,ny=40",)},
    ours="auto",
    shown=("iterations", "engine", "pes"),
    repeats=5,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
