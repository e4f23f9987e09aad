"""What an iteration of systems takes on GPUs that no other record has: constants of a machine file.

By each method, without preconditioner, solves of two lengths: the difference is that of iterations.
Poisson's equation on small squares is all on chip, where nearly nothing is to be moved
(docs/model.md).
"""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from cpufree import Solver
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import Slope, matrix

METHODS = ("cg", "prcg", "pipecg")
PLAN = ("blocks", "threads", "block_halo", "matrix_bytes", "halo", "halo_values", "imbalance",
        "resident_vectors")  # fmt: skip


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    with Solver(A, engine=case.engine, pes=case.pes, pc="none") as solver:
        case.facts["plan"] = {key: solver.plan.get(key) for key in PLAN}

        def seconds(method: str, iterations: int) -> float:
            result = solver.solve(b, rtol=0.0, maxiter=iterations, method=method)
            if result.iterations < iterations:
                raise RuntimeError(f"{method} ended after {result.iterations} of {iterations}")
            return result.timings["kernel"]

        yield {m: Slope(partial(seconds, m), short=20, most=case.iterations) for m in METHODS}


BENCH = Bench(
    name="iterations",
    set_up=set_up,
    axes={
        "matrix": tuple(f"gen:poisson2d?nx={side},ny={side}" for side in (128, 256, 400)),
        "pes": (1, 2),
        "iterations": (200,),
        "engine": ("cuda_p2p",),
    },
    cpu={"engine": ("cpu_threads",), "pes": (1,)},
    quick={"matrix": ("gen:poisson2d?nx=64,ny=64",), "iterations": (40,)},
    unit="µs",
    repeats=9,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
