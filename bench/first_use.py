"""What is compiled when it is first used: seconds of the first call, and of later ones.

Of a solve, of iterations on a grid, and of a program, in processes of their own: one that finds no
kernels on disk, one that finds those of the first, and one that keeps none. All must have the same
bits, and the solve the right answer.
"""

import json
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import cpufree
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask

LIMIT = 240.0  # seconds of a process
Run = Callable[[], np.ndarray]


def solve(n: int, where: dict[str, Any]) -> Run:
    """Return a solve of Poisson's equation; it fails where the answer is wrong."""
    A = cpufree.generate.poisson3d(nx=n, ny=n, nz=n)
    exact = np.sin(np.arange(A.shape[0]))
    b, solver = A @ exact, cpufree.Solver(A, pc="jacobi", **where)

    def run() -> np.ndarray:
        result = solver.solve(b, rtol=1e-10)
        if not result.converged or np.abs(result.x - exact).max() > 1e-6:
            raise RuntimeError(f"the answer is wrong: {result.reason}")
        return np.asarray(result.x)

    return run


def grid(n: int, where: dict[str, Any]) -> Run:
    """Return iterations on a grid."""
    u = np.random.default_rng(1).random((4 * n, 4 * n))
    return lambda: np.asarray(cpufree.stencil.jacobi(u, 100, **where).u)


def program(n: int, where: dict[str, Any]) -> Run:
    """Return a call of a compiled program."""
    import program_rivals  # noqa: F401  (it knows where the programs lie)
    from grid_programs import jacobi_2d  # type: ignore[import-not-found]

    def run() -> np.ndarray:
        a = np.random.default_rng(1).random((16 * n, 16 * n))
        b = a.copy()
        jacobi_2d.run((a, b, 10), **where)
        return a

    return run


KINDS = {"solve": solve, "grid": grid, "program": program}


def worker(what: str, n: int, engine: str, pes: int) -> dict[str, Any]:
    """Make three calls; return the seconds of each, and a checksum."""
    run, seconds = KINDS[what](n, {"engine": engine, "pes": pes}), []
    for _ in range(3):
        begin = time.perf_counter()
        values = run()
        seconds.append(time.perf_counter() - begin)
    bits = zlib.crc32(np.ascontiguousarray(values).tobytes())
    return {"seconds": seconds[0], "second": seconds[1], "third": seconds[2], "bits": bits}


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    words = [sys.executable, __file__, "--worker", case.what, str(case.n), case.engine]
    bits: set[int] = set()

    def call(cache: str) -> dict[str, Any]:
        answer = ask([*words, str(case.pes)], LIMIT, CPUFREE_KERNEL_CACHE=cache)
        bits.add(answer["bits"])
        files = [f.stat().st_size for f in Path(cache).glob("*.kernel")] if cache != "off" else []
        return {**answer, "kernels": len(files), "bytes": sum(files)}

    with tempfile.TemporaryDirectory() as folder:
        yield {
            "none on disk": partial(call, folder),
            "on disk": partial(call, folder),
            "not kept": partial(call, "off"),
        }
    if len(bits) > 1:
        raise RuntimeError("processes have other bits than one another")


BENCH = Bench(
    name="first-use",
    set_up=set_up,
    axes={"what": tuple(KINDS), "pes": (1,), "n": (64,), "engine": ("cuda_p2p",)},
    cpu={"engine": ("cpu_threads",)},
    quick={"n": (8,)},
    unit="s",
    shown=("second", "third", "kernels", "bytes"),
    cold=True,
    ordered=True,
    strict=True,
    repeats=1,
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        kind, size, on, count = sys.argv[2:]
        print(json.dumps(worker(kind, int(size), on, int(count))), flush=True)
    else:
        raise SystemExit(main(BENCH, __doc__))
