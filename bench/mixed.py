"""Mixed precision: seconds of a solve to 1e-10, beside the same solve in double precision.

"double" and "mixed" have one Solver each, on the same PEs, and solve in turns for the same
right-hand side. "processor": seconds of all cores, to which other work on the machine adds little.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cpufree import Solver
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix, summary
from cpufree.generate import suite

LARGEST = sorted(suite("paper18"), key=lambda entry: entry.nnz)[-6:]


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.random.default_rng(0).standard_normal(A.shape[0])

    def solve(solver: Solver) -> dict[str, Any]:
        processor = time.process_time()
        result = solver.solve(b, rtol=case.rtol, method=case.method, maxiter=case.maxiter)
        more: dict[str, Any] = {"processor": time.process_time() - processor}
        more["replacements"] = result.counts["replacements"]
        more["true_residual"] = result.relative_residual
        more["matrix_bytes"] = solver.plan["matrix_bytes"]
        return {**summary(result), **more}

    with contextlib.ExitStack() as stack:
        calls: dict[str, Call] = {}
        for name, precision in (("double", None), ("mixed", "mixed")):
            one = Solver(A, engine=case.engine, pes=case.pes, pc=case.pc, precision=precision)
            solver = stack.enter_context(one)
            solve(solver)  # kernels are compiled
            calls[name] = lambda solver=solver: solve(solver)  # type: ignore[misc]
        yield calls


BENCH = Bench(
    name="mixed",
    set_up=set_up,
    axes={
        "matrix": tuple(f"suite:paper18/{entry.name}" for entry in LARGEST),
        "method": ("prcg",),
        "pc": ("jacobi",),
        "pes": (1,),
        "engine": ("cuda_p2p",),
        "rtol": (1e-10,),
        "maxiter": (20000,),
    },
    cpu={
        "engine": ("cpu_threads",),
        "matrix": tuple(f"suite:paper18-small/{entry.name}-small" for entry in LARGEST),
    },
    quick={"matrix": ("gen:thermal2d?m=40",)},
    unit="s",
    shown=("iterations", "processor"),
    repeats=3,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
