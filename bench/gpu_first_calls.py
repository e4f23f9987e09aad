"""How long first and later calls of a program on a GPU take: a part of bench/gpu_programs.py."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from cpufree import env

FIRST = """
import sys, time, json, numpy as np
sys.path[:0] = json.loads(sys.argv[1])
import grid_programs as grids
a, b = np.ones((1000, 1000)), np.ones((1000, 1000))
calls = []
for _ in range(3):
    begin = time.perf_counter()
    grids.jacobi_2d.run((a, b, 10), engine="cuda_p2p", pes=1)
    calls.append({"seconds": time.perf_counter() - begin, **grids.jacobi_2d.timings})
print(json.dumps(calls))
"""


def measure_first_calls() -> Iterator[Any]:
    """Yield the seconds of first and later calls, with an empty cache of kernels and a full one."""
    with tempfile.TemporaryDirectory() as cache:
        environment = env.with_kernel_cache(cache)
        for what in ("empty cache", "cache of another process"):
            command = [sys.executable, "-c", FIRST, json.dumps(sys.path)]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=60
            )
            calls = json.loads(done.stdout) if done.returncode == 0 else done.stderr[-500:]
            yield {"kind": "first calls", "what": what, "calls": calls}
