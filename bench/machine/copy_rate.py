"""Copies of whole arrays within the kernel of a program, beside copies that the host asks for.

A step copies a to b, and all rows of b but the first back to a, one row up: four passes over
memory, with a barrier of the grid behind each copy. Seconds of a step; `share` is that of the rate
of the host's copies. On a CPU the host copies with NumPy.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import cpufree
from cpufree.bench.core.rates import measure_rate
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main


@cpufree.program
def copies(a, b, steps):  # type: ignore[no-untyped-def]
    for _ in range(steps):
        b[:, :] = a
        a[:-1, :] = b[1:, :]


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    start = np.random.default_rng(1).standard_normal((case.n, case.n))
    moved = 2 * start.nbytes + 2 * start[1:].nbytes
    case.facts.update(bytes=moved)
    gpus = (0,) if case.engine == "cuda_p2p" else None
    best = max(measure_rate(gpus, 1).get("bytes_per_second", ()), default=0.0)
    expected = start[np.minimum(np.arange(case.n) + case.steps, case.n - 1)]

    def ours() -> dict[str, Any]:
        a, b = start.copy(), np.zeros_like(start)
        copies.run((a, b, case.steps), engine=case.engine, pes=1)
        if not np.array_equal(a, expected):
            raise RuntimeError("the kernel's copies differ from NumPy's")
        seconds = copies.timings["kernel"] / case.steps
        return {"seconds": seconds, "share": moved / seconds / best if best else None}

    def host() -> dict[str, Any]:
        if case.engine == "cuda_p2p":
            return {"seconds": moved / best if best else 0.0}
        a, b = start.copy(), np.zeros_like(start)
        begin = time.perf_counter()
        b[:] = a
        a[:-1] = b[1:]
        return {"seconds": time.perf_counter() - begin}

    yield {"cpufree": ours, "host": host}


BENCH = Bench(
    name="copy-rate",
    set_up=set_up,
    axes={"n": (1024, 4096, 8192), "steps": (50,), "engine": ("cuda_p2p",)},
    cpu={"n": (512, 2048), "steps": (20,), "engine": ("cpu_threads",)},
    quick={"n": (128,), "steps": (3,)},
    ours="cpufree",
    unit="µs",
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
