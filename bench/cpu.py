"""The CPU engine on large systems, against SciPy's cg with Jacobi and the speed of the memory.

Whole calls of a fixed number of iterations from zero, set up before. `GB/s`: the bytes of an
iteration over the time of the kernels; of plain CSR or of the format in use, whichever are fewer.
How everything is measured: docs/benchmarking.md.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from cpufree import Solver
from cpufree.bench.core.machine import caches, last_level_bytes
from cpufree.bench.core.triad import Triad, array_elements
from cpufree.bench.core.work import METHODS, count_bytes
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import as_scipy, iterating, matrix, scipy_jacobi
from cpufree.host import usable_cores


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    scipy, k = scipy_jacobi(as_scipy(A)), case.iterations
    setups = [Solver(A, engine="cpu_threads", pc="jacobi").setup_seconds for _ in range(2)]
    solver = Solver(A, engine="cpu_threads", pc="jacobi")
    case.facts["setup_seconds"] = [*setups, solver.setup_seconds]
    case.facts["matrix_bytes"] = solver.plan["matrix_bytes"]

    def ours(method: str, call: Any) -> dict[str, Any]:
        found: dict[str, Any] = call()
        count = count_bytes(A.shape[0], A.nnz, float(solver.plan["matrix_bytes"]), method)
        rate = min(count["csr"], count["format"]) / found["kernel"] / 1e9
        return {**found, "GB/s": rate}

    with Triad(case.elements, usable_cores()) as triad:

        def stream() -> dict[str, float]:
            seconds = triad.run()
            return {"seconds": seconds, "GB/s": triad.bytes_per_pass / seconds / 1e9}

        calls = {m: iterating(solver, b, k, whole=True, method=m) for m in METHODS}
        yield {
            **{m: partial(ours, m, call) for m, call in calls.items()},
            "scipy": lambda: {"seconds": scipy(b, 0.0, k) / k},
            "triad": stream,
        }


BENCH = Bench(
    name="cpu",
    set_up=set_up,
    axes={
        "matrix": {
            "poisson3d": "gen:poisson3d?nx=110,ny=110,nz=110",
            "poisson2d": "gen:poisson2d?nx=1024,ny=1024",
            "ecology2": "gen:ecology2?m=1001",
            "parabolic_fem": "gen:parabolic_fem?level=9",
            "thermal2d": "gen:thermal2d?m=1070",
            "heart": "gen:heart?m=140,mesh=bcc",
            "flange_hex": "gen:flange_hex?r_out=64,t=9,pipe=24",
        },
        "iterations": (100,),
        "elements": (array_elements(last_level_bytes(caches())),),
    },
    quick={
        "matrix": {
            "poisson3d": "gen:poisson3d?nx=32,ny=32,nz=32",
            "flange_hex": "gen:flange_hex?r_out=20,t=4,pipe=10",
        },
        "iterations": (20,),
        "elements": (2_000_000,),
    },
    ours="prcg",
    apart=("triad",),
    shown=("GB/s",),
    pause=0.06,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
