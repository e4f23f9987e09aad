"""One thing changed at a time in CG in one kernel: sums, halos, products, memory.

Variants are kernels of cg.cuh, compiled by nvcc where they run; none is part of the package. Beside
them cpufree's own cg and pipecg, whose rows are compressed slices and whose blocks wait for their
neighbours alone: variants say what a choice costs in one plain kernel, not how fast cpufree is.

All do as many iterations, once and twice; the difference counts, warm, its median.

- `cg flags`, `cg grid_sync`: sums by packets of all blocks, or by the barrier of the grid.
- `cg gets`: values of other GPUs one by one, by blocking loads; on one GPU there are none.
- `cg merge`: products by merge paths instead of lanes of a row, of which each has as many entries.
- `cg only products`, `dots`, `updates`, `sums`: one part of an iteration by itself. Of the first
  three no block waits for another one; `sums` are the exchanges alone, of which an iteration has
  three. What the whole takes beyond their sum is waiting for the slowest block; dots are partly
  hidden in it, as `cg` makes one of them in its product and one in its updates.
- `cg managed`: `cg flags` in managed memory, on one GPU alone: pages of several would move to and
  fro.
- `pipecg flags`, `pipecg one block`: sums by all blocks, or by one that has no rows.
- `pipecg no sums`: `pipecg flags` without its sums; it solves nothing. The barrier behind the new
  operand is left, so the difference is what the sums take beyond one barrier of an iteration, not
  what all waiting takes.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cpufree
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask, compiled
from cpufree.bench.declared.solving import Slope, iterating, matrix, median_of

SOURCE = Path(__file__).with_suffix(".cu")
VARIANTS = ("cg flags", "cg grid_sync", "cg gets", "cg merge", "cg managed")
PIPELINED = ("pipecg flags", "pipecg one block", "pipecg no sums")
PARTS = ("cg only products", "cg only dots", "cg only updates", "cg only sums")
RUN_LIMIT = 120.0


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = matrix(case)
    b = np.random.default_rng(1).uniform(-1.0, 1.0, A.shape[0])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arrays = {"first": A.indptr.astype(np.int32), "column": A.indices.astype(np.int32)}
        for key, array in {**arrays, "value": A.data.astype(np.float64), "b": b}.items():
            np.asarray(array).tofile(folder / f"{key}.bin")
        program = compiled(SOURCE, case.architecture)

        def variant(called: str) -> Callable[[], dict[str, Any]]:
            memory = "managed" if called == "cg managed" else "device"
            what = "cg flags" if called == "cg managed" else called
            numbers = [str(n) for n in (case.pes, case.iterations, case.inside)]
            return lambda: ask([program, name, what, *numbers, memory], RUN_LIMIT)

        found: dict[str, Call] = {one: variant(one) for one in (*VARIANTS, *PIPELINED, *PARTS)}
        if case.pes > 1:
            del found["cg managed"]
        with cpufree.Solver(A, engine="cuda_p2p", pes=case.pes, pc="none") as solver:
            for method in ("cg", "pipecg"):
                found[f"cpufree {method}"] = median_of(ours(solver, b, case, method), case.inside)
            yield found


def ours(solver: cpufree.Solver, b: Any, case: Case, method: str) -> Slope:
    """Return cpufree's iterations: seconds of one, as those of variants out of two lengths."""

    def seconds(count: int) -> float:
        each = iterating(solver, b, count, method=method)()["seconds"]
        return float(each * count)

    return Slope(seconds, short=case.iterations, most=case.iterations)


BENCH = Bench(
    name="cg-ablations",
    set_up=set_up,
    axes={
        "matrix": (
            "gen:poisson3d?nx=64,ny=64,nz=64",
            "suite:paper18/hood-like",
            "suite:paper18/bmwcra_1-like",
        ),
        "pes": (1,),
        "iterations": (25,),
        "inside": (9,),
        "architecture": ("sm_90",),
    },
    quick={"matrix": ("gen:poisson2d?nx=100,ny=100",)},
    ours="cg flags",
    unit="µs",
    cold=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
