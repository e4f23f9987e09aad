"""The iterations that parts of a matrix let expect, which "auto" chooses by, and those taken.

Solves are by cg with Jacobi on the CPU, b = 1. `by rows`: what the number of rows alone says.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import cpufree
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix
from cpufree.engines.expected import by_parts
from cpufree.engines.partition_gain import gain_on
from cpufree.generate.suites import suite


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.ones(A.shape[0])

    def taken() -> dict[str, Any]:
        how = {"method": "cg", "pc": "jacobi", "engine": "cpu_threads", "maxiter": 50_000}
        result = cpufree.solve(A, b, rtol=case.rtol, **how)  # type: ignore[arg-type]
        if not result.converged:
            raise RuntimeError(f"no answer: {result.reason}")
        return {"iterations": result.iterations}

    def expected() -> dict[str, Any]:
        begin = time.perf_counter()
        found = by_parts(A, case.rtol, None, 1).iterations
        return {"iterations": found, "seconds": time.perf_counter() - begin}

    def by_rows() -> dict[str, Any]:
        return {"iterations": gain_on("cuda_p2p").iterations(A.shape[0])}

    yield {"taken": taken, "expected": expected, "by rows": by_rows}


BENCH = Bench(
    name="expected-iterations",
    set_up=set_up,
    axes={
        "matrix": {one.name: f"gen:{one.spec}" for one in suite("paper18-small")},
        "rtol": (1e-8,),
    },
    quick={"matrix": ("gen:poisson2d?nx=40,ny=40",)},
    ours="taken",
    value="iterations",
    unit="iterations",
    cold=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
