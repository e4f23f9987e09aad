"""Copies of whole arrays within the kernel of a program, beside the same that the host asks for.

A step copies the halves of a to b, exchanged, and all rows of b but the first back to a, one row
up: four passes over memory, with a barrier of the grid behind either in the kernel, and in the
order of a stream for the host. As halves change places, no step begins before the one before it has
ended: of copies to neighbouring rows the compiler does several steps in one pass. Seconds of a
step, warm; on GPUs arrays exceed the L2 cache. On a CPU the host copies with NumPy.
"""

import ctypes
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import cpufree
from cpufree.bench.core.device_copy import find_cudart
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.errors import CpufreeError


@cpufree.program
def copies(a, b, steps):  # type: ignore[no-untyped-def]
    half = a.shape[0] // 2
    for _ in range(steps):
        b[:half, :] = a[half:, :]
        b[half:, :] = a[:half, :]
        a[:-1, :] = b[1:, :]


class OfHost:
    """Two arrays on the first GPU, and copies of them by the CUDA runtime."""

    def __init__(self, start: Any) -> None:
        self._runtime, self._start = ctypes.CDLL(find_cudart()), start
        self._row, self._bytes = start[0].nbytes, start.nbytes
        self._a, self._b = ctypes.c_void_p(), ctypes.c_void_p()
        for array in (self._a, self._b):
            self._ask("cudaMalloc", ctypes.byref(array), ctypes.c_size_t(self._bytes))

    def steps(self, count: int) -> float:
        """Return the seconds of so many steps; the first array has the start before them."""
        self._copy(self._a.value, self._start.ctypes.data, self._bytes)
        self._ask("cudaDeviceSynchronize")
        begin = time.perf_counter()
        for _ in range(count):
            a, b, half = self._a.value or 0, self._b.value or 0, self._bytes // 2
            self._copy(b, a + half, half)
            self._copy(b + half, a, half)
            self._copy(a, b + self._row, self._bytes - self._row)
        self._ask("cudaDeviceSynchronize")
        return time.perf_counter() - begin

    def first(self) -> Any:
        """Return the first array."""
        found = np.empty_like(self._start)
        self._copy(found.ctypes.data, self._a.value, self._bytes)
        self._ask("cudaDeviceSynchronize")
        return found

    def free(self) -> None:
        """Free both."""
        for array in (self._a, self._b):
            self._ask("cudaFree", array)

    def _copy(self, to: int | None, source: int | None, size: int) -> None:
        ends, whichever_way = (ctypes.c_void_p(to), ctypes.c_void_p(source)), 4
        self._ask("cudaMemcpyAsync", *ends, ctypes.c_size_t(size), whichever_way, None)

    def _ask(self, name: str, *arguments: Any) -> None:
        status = getattr(self._runtime, name)(*arguments)
        if status != 0:
            raise CpufreeError(f"{name} returned {status}")


class OfNumpy:
    """The same on a CPU by NumPy."""

    def __init__(self, start: Any) -> None:
        self._start, self._a, self._b = start, start.copy(), np.zeros_like(start)

    def steps(self, count: int) -> float:
        """Return the seconds of so many steps; the first array has the start before them."""
        self._a[:] = self._start
        begin = time.perf_counter()
        for _ in range(count):
            half = len(self._a) // 2
            self._b[:half], self._b[half:] = self._a[half:], self._a[:half]
            self._a[:-1] = self._b[1:]
        return time.perf_counter() - begin

    def first(self) -> Any:
        """Return the first array."""
        return self._a

    def free(self) -> None:
        """There is nothing to free."""


def after(steps: int, rows: int) -> Any:
    """Return which row of the start each row is after so many steps, of an even number of rows."""
    found = np.arange(rows)
    for _ in range(steps):
        found[:-1] = np.roll(found, rows // 2)[1:]
    return found


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    start = np.random.default_rng(1).standard_normal((case.n, case.n))
    case.facts.update(bytes=2 * start.nbytes + 2 * start[1:].nbytes)
    expected = start[after(case.steps, case.n)]
    by_host = OfHost(start) if case.engine == "cuda_p2p" else OfNumpy(start)

    def answer(who: str, found: Any, seconds: float) -> dict[str, Any]:
        if not np.array_equal(found, expected):
            raise CpufreeError(f"copies by {who} differ from what they should be")
        rate = case.facts["bytes"] * case.steps / seconds
        return {"seconds": seconds / case.steps, "bytes_per_second": rate}

    def ours() -> dict[str, Any]:
        a, b = start.copy(), np.zeros_like(start)
        copies.run((a, b, case.steps), engine=case.engine, pes=1)
        return answer("the kernel", a, copies.timings["kernel"])

    def host() -> dict[str, Any]:
        by_host.steps(case.steps)  # clocks go down while others prepare
        seconds = by_host.steps(case.steps)
        return answer("the host", by_host.first(), seconds)

    yield {"cpufree": ours, "host": host}
    by_host.free()


BENCH = Bench(
    name="copy-rate",
    set_up=set_up,
    axes={"n": (4096, 8192), "steps": (500,), "engine": ("cuda_p2p",)},
    cpu={"n": (512, 2048), "steps": (20,), "engine": ("cpu_threads",)},
    quick={"n": (128,), "steps": (3,)},
    ours="cpufree",
    unit="µs",
    shown=("bytes_per_second",),
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
