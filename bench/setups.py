"""Set-ups on GPUs that run already: of a SciPy matrix, of CuPy's, unchecked, laid out by the host.

Behind the last round each solves 50 iterations: the bits of its residual, and microseconds.
"""

import importlib
import importlib.util
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

import cpufree
from cpufree import _core
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix

LAID_OUT: Any = _core.System


def by_host(*given: Any) -> Any:
    """Lay a system out on the host, whatever would be chosen."""
    *first, tuning, team = given
    return LAID_OUT(*first, {**tuning, "layout": 0}, team)


def set_up_once(A: Any, where: dict[str, Any], b: Any, system: Any) -> dict[str, Any]:
    """Set up, and solve a little; return seconds of the set-up and of its parts."""
    core: Any = _core
    core.System = system
    try:
        begin = time.perf_counter()
        solver = cpufree.Solver(A, pc="jacobi", **where)
        seconds = time.perf_counter() - begin
    finally:
        core.System = LAID_OUT
    with solver:
        result = solver.solve(b, rtol=1e-30, maxiter=50, method="prcg")
        return {
            "seconds": seconds,
            "timings": solver._matrix.setup_timings,
            "why": solver._matrix.layout.why,
            "bits": result.relative_residual.hex(),
            "per_iteration": result.timings["per_iteration"],
        }


def on_gpu(A: Any) -> Any:
    """Return a matrix of CuPy's, None where CuPy is not installed."""
    if importlib.util.find_spec("cupy") is None:
        return None
    cupy, csp = (importlib.import_module(name) for name in ("cupy", "cupyx.scipy.sparse"))
    arrays = tuple(cupy.asarray(a) for a in (A.data, A.indices, A.indptr.astype(np.int32)))
    return csp.csr_matrix(arrays, shape=A.shape), cupy.ones(A.shape[0])


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A, where = matrix(case), {"engine": case.engine, "pes": case.pes}
    small, b = cpufree.generate.poisson2d(nx=200, ny=200), np.ones(A.shape[0])
    with cpufree.Solver(small, pc="jacobi", **where) as solver:  # contexts and kernels
        solver.solve(np.ones(small.shape[0]))
    calls: dict[str, Call] = {
        "host": partial(set_up_once, A, where, b, LAID_OUT),
        "not checked": partial(set_up_once, A, {**where, "check": False}, b, LAID_OUT),
        "by the host": partial(set_up_once, A, where, b, by_host),
    }
    if case.engine == "cuda_p2p" and case.pes == 1 and (given := on_gpu(A)):
        calls["gpu"] = partial(set_up_once, given[0], where, given[1], LAID_OUT)
    yield calls


BENCH = Bench(
    name="setups",
    set_up=set_up,
    axes={
        "matrix": (
            *("gen:poisson3d?nx=200,ny=200,nz=200", "gen:geomodel_hex?ex=112,ey=112,ez=112"),
            "gen:flange_hex?r_out=96,t=12,pipe=58,wall=12",
        ),
        "pes": (1, 2),
        "engine": ("cuda_p2p",),
    },
    cpu={"engine": ("cpu_threads",), "pes": (1,)},
    quick={"matrix": ("gen:flange_hex?r_out=10,t=3,pipe=4",)},
    ours="host",
    shown=("bits",),
    repeats=5,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
