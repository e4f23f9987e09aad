"""Preconditioners inside the kernel: iterations and seconds to a tolerance, beside Jacobi.

What is compared is the whole: set-up and solve. The set-up, which has the factors, is the second
one of a process, when kernels are there. Below the table it says on which systems each is sooner
than Jacobi, and than multigrid. `--contenders jacobi fsai amg` leaves the others out.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from cpufree import Solver
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix, summary

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
        more["kernel"] = result.timings["kernel"]
        more["whole"] = solver.setup_seconds + result.timings["solve"]
        parts = ("setup_system_inverse", "setup_system_factors")  # by GPUs, and cut into slices
        more["factor_seconds"] = sum(result.timings.get(part, 0.0) for part in parts)
        return {**summary(result), **more, **{key: solver.plan.get(key) for key in KEPT}}

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


def _names(systems: Sequence[str]) -> str:
    return f" ({', '.join(systems)})" if systems else ""


def won(found: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> Iterator[str]:
    """Yield for each preconditioner where it is sooner than others, set-up and solve together.

    What has not converged has lost; where the other one has not, it is won by who has.
    """

    def whole(case: str, name: str) -> float:
        lines = found[case].get(name, ())
        done = all(str(line["reason"]).startswith("CONVERGED") for line in lines)
        return median(line["whole"] for line in lines) if lines and done else math.inf

    for name in CHOICES:
        there = [case for case in found if name in found[case]]
        for other in ("jacobi", "amg"):
            both = [case for case in there if other in found[case]]
            if name != other and both:
                sooner = [case for case in both if whole(case, name) < whole(case, other)]
                yield (
                    f"{name} is sooner than {other} on {len(sooner)} of {len(both)}{_names(sooner)}"
                )


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
    value="whole",
    shown=("iterations", "kernel", "setup_seconds", "reason"),
    closing=won,
    repeats=5,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
