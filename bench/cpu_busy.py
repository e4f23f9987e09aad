"""The CPU engine beside busy programs and after a call of BLAS, against SciPy's cg with Jacobi.

Whole solves, set up before, with default options and with one block.
"""

import multiprocessing
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from cpufree import Solver
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import as_scipy, matrix, scipy_jacobi
from cpufree.host import usable_cores

SETTLE = 0.3  # seconds that busy programs have to begin


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy_programs(count: int) -> Iterator[None]:
    """Run so many processes beside, each of which computes all the time."""
    context = multiprocessing.get_context("spawn")
    programs = [context.Process(target=_spin, daemon=True) for _ in range(count)]
    for program in programs:
        program.start()
    time.sleep(SETTLE if count else 0.0)
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.join()


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    scipy = scipy_jacobi(as_scipy(A))
    usual = Solver(A, engine="cpu_threads")
    one_block = Solver(A, engine="cpu_threads", blocks=1)

    def whole(solver: Solver, after_blas: bool = False) -> float:
        if after_blas:  # its threads spin for a while
            _ = np.ones((400, 400)) @ np.ones((400, 400))
        begin = time.perf_counter()
        solver.solve(b, rtol=case.rtol)
        return time.perf_counter() - begin

    with busy_programs(case.busy):
        yield {
            "cpufree": lambda: whole(usual),
            "one block": lambda: whole(one_block),
            "after BLAS": lambda: whole(usual, after_blas=True),
            "scipy": lambda: scipy(b, case.rtol),
        }


BENCH = Bench(
    name="cpu-busy",
    set_up=set_up,
    axes={
        "matrix": {
            **{f"poisson2d {n}²": f"gen:poisson2d?nx={n},ny={n}" for n in (60, 125, 250, 500)},
            "poisson3d 40³": "gen:poisson3d?nx=40,ny=40,nz=40",
            "flange_hex": "gen:flange_hex?r_out=20,t=4,pipe=10",
        },
        "busy": tuple(sorted({0, 1, usable_cores()})),
        "rtol": (1e-8,),
    },
    quick={"matrix": {"poisson2d 60²": "gen:poisson2d?nx=60,ny=60"}},
    ours="cpufree",
    repeats=11,
    pause=0.02,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
