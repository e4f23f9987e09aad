"""Whether a kernel that waits hears of others of its GPU, here and under compute-sanitizer.

Usage: python bench/gpu_concurrent_kernels.py [--seconds S] [--out FILE]. A kernel waits for a word,
S seconds at most; another stream writes the word after it has been launched: by a kernel, or by a
copy from the host. A NIC that is a kernel beside the user's (the back end `block`) needs both.
Needs CuPy.
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

SOURCE = r"""
extern "C" __global__ void wait_for(volatile int* word, long long limit, int* seen) {
  const long long start = clock64();
  while (*word == 0 && clock64() - start < limit) {}
  *seen = *word;
}
extern "C" __global__ void write(volatile int* word, int value) { *word = value; }
"""


def measure(seconds: float) -> dict[str, dict[str, object]]:
    """Return for each writer whether the kernel saw its word, and after how many seconds."""
    cp = importlib.import_module("cupy")
    pinned = importlib.import_module("cupyx").empty_pinned((1,), "i4")
    pinned[0] = 1
    module = cp.RawModule(code=SOURCE)
    wait_for, write = module.get_function("wait_for"), module.get_function("write")
    limit = int(seconds * 1e3 * cp.cuda.Device(0).attributes["ClockRate"])
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
    found: dict[str, dict[str, object]] = {}
    for name, writes in (("kernel", kernel), ("copy", copy)):
        word[0] = seen[0] = 0
        cp.cuda.Device(0).synchronize()
        begin = time.perf_counter()
        with one:
            wait_for((1,), (1,), (word, limit, seen))
        writes()
        cp.cuda.Device(0).synchronize()
        found[name] = {"seen": bool(int(seen[0])), "seconds": time.perf_counter() - begin}
    return found


def main() -> int:
    """Measure twice, the second time under compute-sanitizer where it is found."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--once", action="store_true", help="print one measurement")
    given = parser.parse_args()
    if given.once:
        print("measured", json.dumps(measure(given.seconds)))
        return 0
    found: dict[str, object] = {"date": time.strftime("%Y-%m-%d"), "limit": given.seconds}
    call = [sys.executable, __file__, "--once", "--seconds", str(given.seconds)]
    befores: dict[str, list[str]] = {
        "alone": [],
        "memcheck": ["compute-sanitizer", "--tool", "memcheck"],
    }
    if shutil.which("compute-sanitizer") is None:
        print("compute-sanitizer is not on PATH: left out")
        del befores["memcheck"]
    for name, before in befores.items():
        limit = 20 * given.seconds + 60
        done = subprocess.run([*before, *call], capture_output=True, text=True, timeout=limit)
        lines = [line[9:] for line in done.stdout.splitlines() if line.startswith("measured ")]
        said = {"error": (done.stdout + done.stderr)[-400:]}
        found[name] = json.loads(lines[0]) if lines else said
        print(name, found[name])
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
