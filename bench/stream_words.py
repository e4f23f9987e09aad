"""What operations on words cost between copies of a stream: copies from one GPU to another.

Usage: python bench/stream_words.py OUT.json (needs CuPy and two GPUs that reach one another)

A copy engine as a NIC waits for a word, copies, and writes words (cpufree/triggered/nics/copy_engine). Here
copies are queued behind a gate, with such operations between them, on one stream or four; the time
of a copy is that of all over their number.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
import time
from typing import Any

SIZES = (8 << 20, 1 << 20, 4096)
COPIES, SLOTS, ROUNDS = 32, 16, 9
WAIT, WRITE = "cuStreamWaitValue64_v2", "cuStreamWriteValue64_v2"
COPY_WORD = "a word by a copy"
cupy: Any = importlib.import_module("cupy")
GATE = 2048  # bytes from the beginning of the host's words


class Driver:
    """The calls of CUDA's driver that are measured, and memory for them."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        for name in (WAIT, WRITE):
            getattr(self.library, name).argtypes = [
                ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint,
            ]  # fmt: skip
        self.library.cuMemcpyDtoDAsync_v2.argtypes = [
            ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p,
        ]  # fmt: skip
        runtime = cupy.cuda.runtime
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
            raise SystemExit(f"{what} failed with status {status}")


def one_copy(
    driver: Driver, streams: list[Any], between: tuple[list[Any], list[Any]], size: int
) -> float:
    """Return seconds of a copy; `between`: operations before each, and after."""
    gate = driver.host + GATE
    ctypes.c_uint64.from_address(gate).value = 0
    for stream in streams:
        driver.word(stream.ptr, WAIT, gate, 1)
    for number in range(COPIES):
        stream, place = streams[number % len(streams)].ptr, number % SLOTS * size
        for what in between[0]:
            driver.word(stream, *what)
        driver.copy(stream, driver.target + place, driver.source + place, size)
        for what in between[1]:
            driver.word(stream, *what)
    time.sleep(0.003)
    start = time.perf_counter()
    ctypes.c_uint64.from_address(gate).value = 1
    for stream in streams:
        stream.synchronize()
    return (time.perf_counter() - start) / COPIES


def main() -> None:
    """Measure, print and write all."""
    driver = Driver()
    here, there, host = driver.here, driver.there, driver.host
    variants = {
        "nothing": ([], []),
        "a wait": ([(WAIT, here)], []),
        "a write here": ([], [(WRITE, here)]),
        "a write to the host": ([], [(WRITE, host)]),
        "a write to the other GPU": ([], [(WRITE, there)]),
        "writes here and to the host": ([], [(WRITE, here), (WRITE, host)]),
        "a word by a copy": ([], [(COPY_WORD, there)]),
    }
    rows = []
    for size in SIZES:
        for count in (1, 4):
            streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]
            for name, between in variants.items():
                seconds = sorted(one_copy(driver, streams, between, size) for _ in range(ROUNDS))
                median = seconds[ROUNDS // 2]
                rows.append({"size": size, "streams": count, "between": name, "seconds": median})
                print(f"{size:9d} B, {count} streams, {name:28s} {1e6 * median:7.2f} us a copy")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
