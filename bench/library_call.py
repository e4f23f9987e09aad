"""What a call of libcpufree takes beyond its kernel, against Python's `Solver.solve`.

The matrix is that of a time step of diffusion on a grid, set up once; each call is a whole
solve, with the same options, so that their bits are the same, which is checked. As in a time loop,
a solver is called several times in a row; seconds are those of a call on average, less those from
the launch of the kernel to its end, which are in the column "kernel".
libcpufree is called through ctypes, which adds a microsecond or two;
`cmake --build build/python --target cpufree_solver` builds it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import cpufree
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.errors import CpufreeError, UnsupportedError
from cpufree.extension import BUILD_FOLDER

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.library.called import NUMBERS, Handle

RTOL = 1e-8
IN_A_ROW = 10


def timed(solve: Callable[[], tuple[float, Any]], expected: Any) -> Call:
    """Return a call of a function that returns the seconds of its kernel, and x."""

    def call() -> dict[str, Any]:
        kernels = 0.0
        begin = time.perf_counter()
        for _ in range(IN_A_ROW):
            kernel, x = solve()
            kernels += kernel
        seconds = time.perf_counter() - begin
        if expected.tobytes() != np.asarray(x).tobytes():
            raise CpufreeError("the bits of two solves differ")
        return {"seconds": (seconds - kernels) / IN_A_ROW, "kernel": kernels / IN_A_ROW}

    return call


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    library = BUILD_FOLDER / "libcpufree.so"
    if not library.exists():
        raise UnsupportedError(f"{library} is missing: the head of this file says how to build it")
    A = cpufree.generate.poisson2d(nx=case.side, ny=case.side)
    A = (A + 4.0 * sp.eye_array(case.side**2)).tocsr()
    b, x = np.ones(case.side**2), np.empty(case.side**2)
    on_gpu = case.engine == "cuda_p2p"
    blocks = 0 if on_gpu else 1
    engine = NUMBERS["CPUFREE_CUDA_P2P" if on_gpu else "CPUFREE_CPU_THREADS"]
    handle = Handle(library, A, engine=engine, blocks=blocks)
    run = handle.prepared(b, x, rtol=RTOL)
    explicit: Any = {"engine": case.engine, "pes": 1, "pc": "jacobi", "reorder": False}
    with cpufree.Solver(A, **explicit, blocks=blocks or "auto") as solver:

        def by_python() -> tuple[float, Any]:
            result = solver.solve(b, rtol=RTOL, method="cg")
            return result.timings["kernel"], result.x

        def by_library() -> tuple[float, Any]:
            return run().seconds, x

        _, expected = by_python()
        yield {"libcpufree": timed(by_library, expected), "Python": timed(by_python, expected)}
    handle.close()


BENCH = Bench(
    name="library_call",
    set_up=set_up,
    axes={"side": (100,), "engine": ("cuda_p2p",)},
    cpu={"engine": ("cpu_threads",)},
    quick={"side": (20,)},
    unit="µs",
    shown=("kernel",),
    repeats=100,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
