"""Preconditioners inside the kernel: iterations and seconds to a tolerance, beside Jacobi.

Seconds are those of the kernels; the set-up, which has the factors, stands beside them. It is the
second one of a process, when kernels are there.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cpufree import Solver
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix, told

# Those by which it is decided which preconditioners stay.
SYSTEMS = (
    *("gen:poisson3d?nx=128,ny=128,nz=128", "gen:poisson2d?nx=2000,ny=2000"),
    *("gen:flange_hex", "gen:heart", "suite:paper18/consph-like"),
    *("suite:paper18/thermomech_dM-like", "suite:paper18/tmt_sym-like"),
    *("suite:paper18/bmwcra_1-like", "suite:paper18/G3_circuit-like"),
)
CHOICES: dict[str, dict[str, Any]] = {
    "jacobi": {"pc": "jacobi"},
    "chebyshev": {"pc": "chebyshev"},
    "block_jacobi": {"pc": "block_jacobi"},
    "fsai": {"pc": "fsai"},
    "fsai-2": {"pc": "fsai", "pc_level": 2},
    "amg": {"pc": "amg"},
}
KEPT = ("factor_entries", "factor_bytes", "matrix_bytes")


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.ones(A.shape[0])

    def solve(name: str, solver: Solver) -> dict[str, Any]:
        method = "cg" if name == "amg" else case.method  # the only one that it is for
        result = solver.solve(b, rtol=case.rtol, method=method, maxiter=case.maxiter)
        more = {"setup_seconds": solver.setup_seconds}
        more["factor_seconds"] = result.timings.get("setup_system_factors", 0.0)
        return {**told(result), **more, **{key: solver.plan.get(key) for key in KEPT}}

    with contextlib.ExitStack() as stack:
        solvers: dict[str, Solver] = {}

        def call(name: str) -> dict[str, Any]:
            if name not in solvers:
                with Solver(A, engine=case.engine, pes=case.pes, **CHOICES[name]) as first:
                    solve(name, first)
                one = Solver(A, engine=case.engine, pes=case.pes, **CHOICES[name])
                solvers[name] = stack.enter_context(one)
            return solve(name, solvers[name])

        yield {name: lambda name=name: call(name) for name in CHOICES}  # type: ignore[misc]


BENCH = Bench(
    name="preconditioners",
    set_up=set_up,
    axes={
        "matrix": SYSTEMS,
        "pes": (1,),
        "engine": ("auto",),
        "rtol": (1e-8,),
        "method": ("prcg",),
        "maxiter": (200_000,),
    },
    quick={"matrix": ("gen:poisson2d?nx=40,ny=40",)},
    ours="jacobi",
    shown=("iterations", "setup_seconds", "reason"),
    repeats=5,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
