"""Small systems on the CPU engine: whole calls to a tolerance, with checks and set-up, and SciPy's.

--matrix takes files, too: --matrix FOLDER/*.mtx.gz.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

import cpufree
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import as_scipy, matrix, scipy_jacobi

LEAST_SECONDS = 0.02  # of calls that are timed together


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    theirs = as_scipy(A)
    ours = partial(cpufree.cg, A, b, rtol=case.rtol, engine="cpu_threads")
    result = cpufree.solve(A, b, rtol=case.rtol, engine="cpu_threads", pc="jacobi")
    if not result.converged:
        raise cpufree.CpufreeError(f"cpufree does not converge: {result.reason}")
    case.facts.update(iterations=result.iterations, residual=result.relative_residual)

    def repeated(call: Callable[[], object]) -> float:
        call()
        begin = time.perf_counter()
        call()
        loops = math.ceil(LEAST_SECONDS / max(1e-6, time.perf_counter() - begin))
        begin = time.perf_counter()
        for _ in range(loops):
            call()
        return (time.perf_counter() - begin) / loops

    yield {
        "cpufree": lambda: repeated(ours),
        "scipy": lambda: repeated(lambda: scipy_jacobi(theirs, try_both=False)(b, case.rtol)),
    }


BENCH = Bench(
    name="cpu-small",
    set_up=set_up,
    axes={
        "matrix": tuple(
            f"gen:poisson2d?nx={nx},ny={ny}"
            for nx, ny in ((10, 10), (15, 20), (25, 40), (50, 60), (100, 100))
        ),
        "rtol": (1e-8,),
    },
    quick={"matrix": ("gen:poisson2d?nx=10,ny=10", "gen:poisson2d?nx=25,ny=40")},
    ours="cpufree",
    pause=0.06,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
