"""What a trace costs: solves with all records, of one iteration in ten, phases only, and none.

Seconds are those of the kernels for one iteration, of a fixed number of iterations of prcg with
Jacobi from zero. A record costs what all of them add to an iteration, over the number that the
busiest block writes in one (`records`, of the facts).
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from cpufree import Solver
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix
from cpufree.trace.asked import Recording
from cpufree.trace.records import Kind, Trace

ALL = Recording().options()
WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "phases": {**ALL, "trace": {**ALL["trace"], "kinds": 1 << Kind.PHASE}},
    "one in ten": Recording(every=10).options(),
    "all": ALL,
}


def run(system: Any, b: Any, way: str, iterations: int) -> Any:
    """Return the outcome of a solve."""
    options = {"method": "prcg", "pc": "jacobi", "rtol": 0.0, "maxiter": iterations}
    return system.solve(b, None, None, {**options, **WAYS[way]}, None)


def timed(system: Any, b: Any, way: str, iterations: int) -> float:
    """Return the seconds of the kernels for one iteration."""
    outcome = run(system, b, way, iterations)
    return float(outcome["seconds"]) / int(outcome["iterations"])


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    with Solver(A, engine=case.engine, pes=case.pes, pc="jacobi") as solver:
        system = solver._matrix.layout.opened()
        trace = Trace.of_core(run(system, b, "all", case.iterations)["trace"], {})
        case.facts["records"] = int(trace.tracks[:, 3].max()) / case.iterations
        yield {way: partial(timed, system, b, way, case.iterations) for way in WAYS}


BENCH = Bench(
    name="trace",
    set_up=set_up,
    axes={
        "matrix": ("gen:poisson2d?nx=512,ny=512",),
        "engine": ("cuda_p2p",),
        "pes": (1, 2),
        "iterations": (400,),
    },
    cpu={
        "matrix": ("gen:poisson2d?nx=512,ny=512",),
        "engine": ("cpu_threads",),
        "pes": (1, 2),
        "iterations": (100,),
    },
    quick={"matrix": ("gen:poisson2d?nx=64,ny=64",), "iterations": (20,)},
    ours="none",
    unit="µs",
    pause=0.02,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
