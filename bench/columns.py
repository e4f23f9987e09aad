"""Several right-hand sides: together, in one kernel that reads A once, as a block, and one by one.

Seconds are those of the kernels for one column, with Jacobi from zero: of one iteration, of a fixed
number of them; with `rtol`, of a whole solve, where a block takes fewer iterations.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from cpufree import Solver
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix

WAYS = {"together": "cg", "block": "auto", "cg one by one": "cg", "prcg one by one": "prcg"}


def timed(case: Case, solver: Solver, b: Any, way: str) -> dict[str, float]:
    """Return the seconds of the kernels for one column, or one iteration of it; and iterations."""
    how: dict[str, Any] = {
        "rtol": case.rtol,
        "maxiter": None if case.rtol else case.iterations,
        "method": WAYS[way],
        "columns": way if way in ("together", "block") else "one by one",
    }
    result = solver.solve(b, **how)
    if not case.rtol:
        return {"seconds": result.timings["kernel"] / result.iterations}
    if not result.converged:
        raise RuntimeError(f"{way}: {result.message}")
    each = 1 / case.columns
    return {"seconds": each * result.timings["kernel"], "iterations": each * result.iterations}


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.random.default_rng(case.columns).standard_normal((A.shape[0], case.columns))
    with Solver(A, engine=case.engine, pes=case.pes, pc="jacobi") as solver:
        case.facts["plan"] = {k: v for k, v in solver.plan.items() if not isinstance(v, list)}
        yield {way: partial(timed, case, solver, b, way) for way in WAYS}


BENCH = Bench(
    name="columns",
    set_up=set_up,
    axes={
        "matrix": (
            *("gen:poisson2d?nx=1024,ny=1024", "gen:poisson2d?nx=3000,ny=3000"),
            *("gen:poisson3d?nx=128,ny=128,nz=128", "gen:poisson3d?nx=200,ny=200,nz=200"),
            *("gen:flange_hex?r_out=64,t=9,pipe=24", "gen:thermal2d?m=1070"),
        ),
        "columns": (2, 4, 8),
        "engine": ("auto",),
        "pes": (1,),
        "iterations": (200,),
        "rtol": (0.0, 1e-8),
    },
    cpu={
        "matrix": (
            *("gen:poisson2d?nx=500,ny=500", "gen:poisson3d?nx=80,ny=80,nz=80"),
            "gen:flange_hex?r_out=40,t=8,pipe=20",
        ),
        "pes": (2,),
        "iterations": (60,),
    },
    quick={"matrix": ("gen:poisson3d?nx=24,ny=24,nz=24",), "iterations": (20,)},
    ours="together",
    unit="µs",
    shown=("iterations",),
    pause=0.02,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
