"""Compiled programs against NumPy, numba and DaCe: same arrays, medians, ratios in one run.

Usage: python bench/programs.py [N] [STEPS]. Prints seconds and ratios; what is not installed is
left out. NumPy and numba run the same text, DaCe (its own code generator, where the program is one
of NPBench's) the same arithmetic.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python/support"))
sys.path.insert(0, str(Path(__file__).parent))

from dace_rival import dace_rivals

grids: Any = importlib.import_module("grid_programs")

REPEATS = 5


def cases(n: int, steps: int) -> dict[str, tuple[Any, ...]]:
    """Return arguments by the name of the program."""
    rng = np.random.default_rng(1)
    return {
        "jacobi_1d": (rng.random(n * n), rng.random(n * n), steps),
        "jacobi_2d": (rng.random((n, n)), rng.random((n, n)), steps),
        "fdtd_2d": (*(rng.random((n, n)) for _ in range(3)), rng.random(steps), steps),
        "shallow_water": (
            *(1 + 0.1 * rng.random((n, n)), np.zeros((n + 1, n)), np.zeros((n, n + 1))),
            *(9.81, 1e-3, steps),
        ),
        "batch_of_waves": (rng.random((n, n)), np.zeros((n, n)), 0.1, steps),
    }


def median(f: Callable[[], Any]) -> float:
    """Return the median of the seconds of a call, after one that warms up."""
    f()
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        f()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def main(arguments: list[str]) -> int:
    """Measure and print; return the exit status."""
    n = int(arguments[0]) if arguments else 1024
    steps = int(arguments[1]) if len(arguments) > 1 else 20
    has_numba = importlib.util.find_spec("numba") is not None
    ratios: dict[str, list[float]] = {"numpy": [], "numba": [], "dace": []}
    from_dace = dace_rivals()
    for name, given in cases(n, steps).items():
        program = getattr(grids, name)
        rivals: dict[str, Callable[..., Any]] = {"numpy": program.function}
        if has_numba:
            numba: Any = importlib.import_module("numba")
            rivals["numba"] = numba.njit(parallel=True)(program.function)
        if name in from_dace:
            rivals["dace"] = from_dace[name]
        arrays = grids.copies(given)
        ours = median(lambda p=program, a=arrays: p.run(a, engine="cpu_threads"))  # type: ignore[misc]
        line = f"{name:16s} {program.pes} PEs {ours:8.4f} s"
        for rival, f in rivals.items():
            arrays = grids.copies(given)
            seconds = median(lambda f=f, a=arrays: f(*a))  # type: ignore[misc]
            ratios[rival].append(seconds / ours)
            line += f"   {rival} {seconds:8.4f} s, {seconds / ours:5.2f} ×"
        print(line, flush=True)
    for rival, found in ratios.items():
        if found:
            mean = math.exp(statistics.fmean(map(math.log, found)))
            print(f"geometric mean against {rival}: {mean:.2f} ×")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
