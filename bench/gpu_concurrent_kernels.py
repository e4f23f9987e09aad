"""Whether a kernel that waits hears of others of its GPU, here and under compute-sanitizer.

A kernel waits for a word, for so many seconds at most; another stream writes the word after it has
been launched: by a kernel, or by a copy from the host. A NIC that is a kernel beside the user's
(the back end `block`) needs both. Needs CuPy.
"""

import importlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask

SOURCE = r"""
extern "C" __global__ void wait_for(volatile int* word, long long limit, int* seen) {
  const long long start = clock64();
  while (*word == 0 && clock64() - start < limit) {}
  *seen = *word;
}
extern "C" __global__ void write(volatile int* word, int value) { *word = value; }
"""


def measure(writer: str, limit: float) -> dict[str, object]:
    """Return whether the kernel saw the word of a writer, and after how many seconds."""
    cp = importlib.import_module("cupy")
    pinned = importlib.import_module("cupyx").empty_pinned((1,), "i4")
    pinned[0] = 1
    module = cp.RawModule(code=SOURCE)
    wait_for, write = module.get_function("wait_for"), module.get_function("write")
    ticks = int(limit * 1e3 * cp.cuda.Device(0).attributes["ClockRate"])
    word, seen = cp.zeros(1, "i4"), cp.zeros(1, "i4")
    one, other = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)

    def copy() -> None:
        to_device = cp.cuda.runtime.memcpyHostToDevice
        cp.cuda.runtime.memcpyAsync(word.data.ptr, pinned.ctypes.data, 4, to_device, other.ptr)

    def kernel() -> None:
        with other:
            write((1,), (1,), (word, 1))

    kernel()  # both are loaded before one waits for the other
    wait_for((1,), (1,), (word, 0, seen))
    word[0] = seen[0] = 0
    cp.cuda.Device(0).synchronize()
    begin = time.perf_counter()
    with one:
        wait_for((1,), (1,), (word, ticks, seen))
    {"kernel": kernel, "copy": copy}[writer]()
    cp.cuda.Device(0).synchronize()
    return {"seconds": time.perf_counter() - begin, "seen": bool(int(seen[0]))}


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    words = [sys.executable, __file__, "--once", case.writer, str(case.limit)]
    tool, most = ["compute-sanitizer", "--tool", "memcheck"], 20 * case.limit + 60
    yield {"alone": partial(ask, words, most), "memcheck": partial(ask, [*tool, *words], most)}


BENCH = Bench(
    name="concurrent-kernels",
    set_up=set_up,
    axes={"writer": ("kernel", "copy"), "limit": (5.0,)},
    unit="s",
    shown=("seen",),
    cold=True,
    repeats=1,
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        print(json.dumps(measure(sys.argv[2], float(sys.argv[3]))), flush=True)
    else:
        raise SystemExit(main(BENCH, __doc__))
