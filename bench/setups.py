"""Set-ups on an engine that runs already: of a SciPy matrix, of CuPy's, unchecked, by the host.

Behind each set-up come two solves of 50 iterations; the record has the bits of the residual,
seconds of an iteration, the set-up in iterations, and seconds of the second solve without its
kernel. With CuPy, "upload" is a copy of the matrix, and "vectors" one of b and x, through pinned
memory.
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
        solver = cpufree.Solver(A, **where)
        seconds = time.perf_counter() - begin
    finally:
        core.System = LAID_OUT
    with solver:
        for _ in range(2):
            result = solver.solve(b, rtol=1e-30, maxiter=50, method="prcg")
        iteration = result.timings["per_iteration"]
        return {
            "seconds": seconds,
            "timings": solver._matrix.setup_timings,
            "why": solver._matrix.layout.why,
            "bits": result.relative_residual.hex(),
            "per_iteration": iteration,
            "iterations": seconds / iteration,
            "without_kernel": result.timings["solve"] - result.timings["kernel"],
        }


class Pinned:
    """Copies of arrays to the GPU and, of those that come back, to the host, in pinned memory."""

    def __init__(self, there: tuple[Any, ...], back: tuple[Any, ...] = ()) -> None:
        self.cupy, cupyx = (importlib.import_module(name) for name in ("cupy", "cupyx"))
        arrays = [*there, *back]
        self.host = [cupyx.empty_pinned(a.shape, a.dtype) for a in arrays]
        for pinned, array in zip(self.host, arrays, strict=True):
            pinned[...] = array
        self.device = [self.cupy.asarray(pinned) for pinned in self.host]
        self.sent = len(there)

    def __call__(self) -> float:
        """Return the seconds that they take."""
        stream = self.cupy.cuda.Stream.null
        stream.synchronize()
        begin = time.perf_counter()
        for k, (host, device) in enumerate(zip(self.host, self.device, strict=True)):
            if k < self.sent:
                device.set(host)
            else:
                device.get(out=host, blocking=False)
        stream.synchronize()
        return time.perf_counter() - begin


def on_gpu(A: Any) -> Any:
    """Return a matrix of CuPy's, and a right-hand side."""
    cupy, csp = (importlib.import_module(name) for name in ("cupy", "cupyx.scipy.sparse"))
    arrays = tuple(cupy.asarray(a) for a in (A.data, A.indices, A.indptr.astype(np.int32)))
    return csp.csr_matrix(arrays, shape=A.shape), cupy.ones(A.shape[0])


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A, where = matrix(case), {"engine": case.engine, "pes": case.pes}
    small, b = cpufree.generate.poisson2d(nx=200, ny=200), np.ones(A.shape[0])
    with cpufree.Solver(small, **where) as solver:  # contexts and kernels
        solver.solve(np.ones(small.shape[0]))
    calls: dict[str, Call] = {
        "host": partial(set_up_once, A, where, b, LAID_OUT),
        "not checked": partial(set_up_once, A, {**where, "check": False}, b, LAID_OUT),
        "by the host": partial(set_up_once, A, where, b, by_host),
    }
    if case.engine == "cuda_p2p" and case.pes == 1 and importlib.util.find_spec("cupy"):
        given, ones = on_gpu(A)
        calls["gpu"] = partial(set_up_once, given, where, ones, LAID_OUT)
        calls["upload"] = Pinned((A.indptr, A.indices, A.data))
        calls["vectors"] = Pinned((b,), (b,))
    yield calls


BENCH = Bench(
    name="setups",
    set_up=set_up,
    axes={
        "matrix": (
            *("gen:poisson3d?nx=128,ny=128,nz=128", "gen:poisson3d?nx=200,ny=200,nz=200"),
            *("gen:poisson2d?nx=2000,ny=2000", "gen:lognormal3d?nx=128,ny=128,nz=128"),
            "gen:flange_hex?r_out=96,t=12,pipe=58,wall=12",
            *("gen:powergrid?width=198,height=478", "gen:ecology2?m=1000"),
        ),
        "pes": (1, 2),
        "engine": ("cuda_p2p",),
    },
    cpu={
        "engine": ("cpu_threads",),
        "pes": (1,),
        "matrix": ("gen:poisson3d?nx=100,ny=100,nz=100",),
    },
    quick={"matrix": ("gen:flange_hex?r_out=10,t=3,pipe=4",)},
    ours="host",
    shown=("iterations", "without_kernel", "bits"),
    repeats=5,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
