"""What operations on words cost between copies of a stream: copies from one GPU to another.

A copy engine as a NIC waits for a word, copies, and writes words
(cpufree/triggered/nics/copy_engine). Here copies are queued behind a gate, with such operations
between them, on one stream or four; the time of a copy is that of all over their number. Needs CuPy
and two GPUs that reach one another.
"""

import ctypes
import importlib
import time
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main

SIZES = (8 << 20, 1 << 20, 4096)
COPIES, SLOTS = 32, 16
WAIT, WRITE = "cuStreamWaitValue64_v2", "cuStreamWriteValue64_v2"
COPY_WORD = "a word by a copy"
GATE = 2048  # bytes from the beginning of the host's words


class Driver:
    """The calls of CUDA's driver that are measured, and memory for them."""

    def __init__(self) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        self.library = ctypes.CDLL("libcuda.so.1")
        for name in (WAIT, WRITE):
            getattr(self.library, name).argtypes = [
                ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint,
            ]  # fmt: skip
        self.library.cuMemcpyDtoDAsync_v2.argtypes = [
            ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p,
        ]  # fmt: skip
        runtime = self.cupy.cuda.runtime
        for gpu in (1, 0):
            runtime.setDevice(gpu)
            runtime.deviceEnablePeerAccess(1 - gpu)
        self.source, self.here = runtime.malloc(SIZES[0] * SLOTS), runtime.malloc(4096)
        self.host = int(runtime.hostAlloc(4096, 0))
        runtime.memset(self.here, 0, 4096)
        runtime.setDevice(1)
        self.target, self.there = runtime.malloc(SIZES[0] * SLOTS), runtime.malloc(4096)
        runtime.setDevice(0)
        runtime.deviceSynchronize()

    def copy(self, stream: int, to: int, source: int, size: int) -> None:
        self._check(self.library.cuMemcpyDtoDAsync_v2(to, source, size, stream), "a copy")

    def word(self, stream: int, kind: str, address: int, value: int = 0) -> None:
        if kind == COPY_WORD:
            return self.copy(stream, address, self.here + 1024, 8)
        self._check(getattr(self.library, kind)(stream, address, value, 0), kind)
        return None

    @staticmethod
    def _check(status: int, what: str) -> None:
        if status:
            raise RuntimeError(f"{what} failed with status {status}")


driver = cache(Driver)


def one_copy(streams: list[Any], before: list[Any], after: list[Any], size: int) -> float:
    """Return seconds of a copy, with operations before each, and after."""
    cuda = driver()
    gate = ctypes.c_uint64.from_address(cuda.host + GATE)
    gate.value = 0
    for stream in streams:
        cuda.word(stream.ptr, WAIT, cuda.host + GATE, 1)
    for number in range(COPIES):
        stream, place = streams[number % len(streams)].ptr, number % SLOTS * size
        for what in before:
            cuda.word(stream, *what)
        cuda.copy(stream, cuda.target + place, cuda.source + place, size)
        for what in after:
            cuda.word(stream, *what)
    time.sleep(0.003)
    start = time.perf_counter()
    gate.value = 1
    for stream in streams:
        stream.synchronize()
    return (time.perf_counter() - start) / COPIES


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    cuda = driver()
    here, there, host = cuda.here, cuda.there, cuda.host
    streams = [cuda.cupy.cuda.Stream(non_blocking=True) for _ in range(case.streams)]
    between: dict[str, tuple[list[Any], list[Any]]] = {
        "nothing": ([], []),
        "a wait": ([(WAIT, here)], []),
        "a write here": ([], [(WRITE, here)]),
        "a write to the host": ([], [(WRITE, host)]),
        "a write to the other GPU": ([], [(WRITE, there)]),
        "writes here and to the host": ([], [(WRITE, here), (WRITE, host)]),
        COPY_WORD: ([], [(COPY_WORD, there)]),
    }
    yield {name: partial(one_copy, streams, *of, case.size) for name, of in between.items()}


BENCH = Bench(
    name="stream-words",
    set_up=set_up,
    axes={"size": SIZES, "streams": (1, 4)},
    ours="nothing",
    unit="µs",
    repeats=9,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
