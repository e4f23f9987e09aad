"""Jacobi's iterations in two dimensions: rows kept on chip, edges by clusters, one kernel or two.

Variants are one kernel of jacobi.cuh, compiled by nvcc where it runs; it is no part of the package.
Beside it cpufree's own, which does several iterations for each pass over memory (time tiles).

- `kept N`: each block keeps N rows of its slab in shared memory over all iterations (PERKS, Zhang
  et al. 2023); `kept 0` keeps none. Where the grid fits, all rows are kept. `bytes_per_second`:
  what other rows have through memory, which says how far `kept 0` is from the rate of a copy.
- `cluster N`: blocks of a cluster of N exchange edges by their shared memory, others by memory and
  flags; `flags, as cluster N` has as many blocks and no clusters.
- `two kernels`: four slabs belong to a kernel of their own, on a stream of its own.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

import cpufree
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask, compiled
from cpufree.bench.declared.solving import Slope, median_of

SOURCE = Path(__file__).with_suffix(".cu")
RUN_LIMIT = 120.0
ROOM = 227 * 1024
"""Bytes of shared memory of a block."""


def kept(side: int) -> tuple[int, ...]:
    """Return numbers of rows to keep: none, half of what fits, what fits or is there."""
    most = min(ROOM // (4 * side), -(-side // 120))
    return tuple(dict.fromkeys((0, max(1, most // 2), most)))


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    side, found = case.side, {}
    program = compiled(SOURCE, case.architecture)

    def variant(slabs: int, rows: int, cluster: int, kernels: int) -> Call:
        form = (side, side, slabs, rows, cluster, kernels, case.iterations, case.inside)
        return lambda: ask([program, *map(str, form)], RUN_LIMIT)

    most = kept(side)[-1]
    for rows in kept(side):
        found[f"kept {rows}"] = variant(0, rows, 1, 1)
    found["two kernels"] = variant(0, most, 1, 2)
    for cluster in (2, 4, 8) if 4 * side * (most + 4) <= ROOM else ():
        found[f"cluster {cluster}"] = variant(0, most, cluster, 1)
        found[f"flags, as cluster {cluster}"] = variant(-cluster, most, 1, 1)
    found["cpufree"] = median_of(ours(side, case.iterations), case.inside)
    yield found


def ours(side: int, iterations: int) -> Slope:
    """Return cpufree's iterations: seconds of one, as those of variants out of two lengths."""
    grid = np.zeros((side, side), np.float32)
    grid[0] = 1.0

    def seconds(count: int) -> float:
        return cpufree.stencil.jacobi(grid, count, engine="cuda_p2p", pes=1).seconds

    return Slope(seconds, short=iterations, most=iterations)


BENCH = Bench(
    name="jacobi-ablations",
    set_up=set_up,
    axes={
        "side": (1024, 2048, 8192),
        "iterations": (200,),
        "inside": (9,),
        "architecture": ("sm_90",),
    },
    quick={"side": (1024,)},
    ours="kept 0",
    unit="µs",
    cold=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
