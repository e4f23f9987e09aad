"""What single stores cost: bandwidth by their width, flags by distance, what a block waits for.

- `widths` (Ismayilov 2023): stores of 1 to 16 bytes by all threads of a GPU, side by side or each
  in a sector of 32 bytes of its own, into memory that exceeds the L2 cache, or that does not.
- `flags` (Groves et al. 2020): half a round trip of a flag between two warps of a block in shared
  memory, two blocks of one multiprocessor, of two, two blocks of a cluster in their shared memory.
- `calls` (Groves et al. 2020): a block's stores of a message until its threads go on, and the fence
  of a thread behind them, each by itself.

With two PEs stores go to the second GPU, and flags between the two (`peer`).
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask, compiled

SOURCE = Path(__file__).with_suffix(".cu")
RUN_LIMIT = 60.0
WIDTHS, SECTOR = (1, 2, 4, 8, 16), 32
FAR, NEAR = 1 << 29, 1 << 23
"""Bytes: more than the L2 cache has, and less."""
FLAGS = ("warps", "block", "blocks", "cluster")
MESSAGES = (8, 1 << 16, 1 << 20)


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    program, last = compiled(SOURCE, case.architecture), str(case.inside)

    def told(*words: object, of: int = 0) -> Callable[[], dict[str, Any]]:
        def call() -> dict[str, Any]:
            found = ask([program, *map(str, words), last], RUN_LIMIT)
            return {**found, "bytes_per_second": of / found["seconds"]} if of else found

        return call

    found: dict[str, Call] = {}
    if case.what == "widths":
        for size, where in ((FAR, "memory"), (NEAR, "cache")):
            for width in WIDTHS:
                side = ("widths", width, width, case.pes, size)
                found[f"{width} B, {where}"] = told(*side, of=size)
        for width in WIDTHS:
            apart = ("widths", width, SECTOR, case.pes, FAR)
            found[f"{width} B apart, memory"] = told(*apart, of=FAR // SECTOR * width)
    elif case.what == "flags":
        for where in FLAGS if case.pes == 1 else ("peer",):
            found[where] = told("flags", where, case.pes, case.rounds)
    else:
        for size in MESSAGES:
            for what in ("stores", "fence"):
                found[f"{what}, {size} B"] = told("calls", what, case.pes, size)
    yield found


BENCH = Bench(
    name="stores",
    set_up=set_up,
    axes={
        "what": {"widths": "widths", "flags": "flags", "calls": "calls"},
        "pes": (1,),
        "rounds": (1000,),
        "inside": (9,),
        "architecture": ("sm_90",),
    },
    quick={"inside": (2,), "rounds": (50,)},
    unit="µs",
    shown=("bytes_per_second",),
    cold=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
