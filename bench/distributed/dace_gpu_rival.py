"""DaCe's own GPU code for distributed programs, on GPUs: what dace_gpu_build.py has compiled.

Usage: mpirun -np RANKS python bench/distributed/dace_gpu_rival.py LIBRARIES CASE, as gpu_dace.py
does. A CASE is NAME-RANKS-POINTS, of dace_distributed.py. Each process has a GPU to itself, MPI
reaches only memory of the host (dace_mpi_staging.c). Seconds of a step are the difference of a long
and a short run over the steps between them, medians. Values are compared with plain NumPy's, which
the compiler for GPUs rounds otherwise.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
RANKS = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))
# DaCe's code takes the first GPU that it sees.
_VISIBLE = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(RANKS)))).split(",")
os.environ["CUDA_VISIBLE_DEVICES"] = _VISIBLE[RANK % len(_VISIBLE)]

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/python/support/dace"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np  # noqa: E402
from dace_distributed import points_of  # noqa: E402
from dace_grids import CASES, GRIDS, whole_of  # noqa: E402

REPEATS = 5
PROC_NULL = -2  # Open MPI's
_TYPES = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "double *": ctypes.c_void_p}


class Library:
    """A program of DaCe's, compiled."""

    def __init__(self, folder: Path, name: str) -> None:
        told = json.loads((folder / f"{name}.json").read_text())
        self.arguments = {k: told[k] for k in ("init", "program")}
        self.so = ctypes.CDLL(str(folder / f"{name}.so"))
        full = told["name"]
        self.init = getattr(self.so, f"__dace_init_{full}")
        self.init.restype = ctypes.c_void_p
        self.program = getattr(self.so, f"__program_{full}")
        self.exit = getattr(self.so, f"__dace_exit_{full}")
        self.so.bench_wtime.restype = ctypes.c_double

    def _given(self, function: str, given: dict[str, Any]) -> list[Any]:
        made = []
        for kind, name in self.arguments[function]:
            value = given[name]
            value = value.ctypes.data if isinstance(value, np.ndarray) else value
            made.append(_TYPES[kind](value))
        return made

    def begin(self, given: dict[str, Any]) -> Any:
        """Return a handle."""
        handle = self.init(*self._given("init", given))
        if not handle:
            raise RuntimeError("DaCe's program does not begin")
        return ctypes.c_void_p(handle)

    def seconds(self, handle: Any, given: dict[str, Any]) -> float:
        """Run, and return the seconds until all ranks have ended."""
        self.so.bench_barrier()
        begin = float(self.so.bench_wtime())
        self.program(handle, *self._given("program", given))
        self.so.bench_barrier()
        return float(self.so.bench_wtime()) - begin


def arguments(name: str, points: Any) -> dict[str, Any]:
    """Return what this rank calls the program with."""
    given = CASES[name][0](points, 2)(RANK, RANKS)
    neighbours = ("nn", "ns", "nw", "ne")
    return {**given, **{n: PROC_NULL for n in neighbours if given.get(n, 0) < 0}}


def error_of(name: str, points: Any, given: dict[str, Any], steps: int) -> float:
    """Return how far this rank's values are from plain NumPy's."""
    wanted = CASES[name][1](points, steps, RANKS)[0]
    grid = (RANKS,) if name == "jacobi_1d" else GRIDS[RANKS]
    part = given["lA"][(slice(1, -1),) * given["lA"].ndim]
    blank = [np.full(given["lA"].shape, np.nan) for _ in range(RANKS)]
    blank[RANK] = given["lA"]
    found = whole_of(blank, grid)
    mine = ~np.isnan(found)
    assert mine.sum() == part.size
    return float(np.max(np.abs(found[mine] - wanted[mine])))


def measure(library: Library, case: str) -> dict[str, Any]:
    """Return the record of a case."""
    name, _, points = points_of(case)
    given = arguments(name, points)
    handle = library.begin(given)
    record: dict[str, Any] = {}
    # One rank of jacobi_1d takes its last ghost for a point: for its time only.
    if given["lA"].size < 1 << 21 and (name, RANKS) != ("jacobi_1d", 1):
        library.seconds(handle, {**given, "TSTEPS": 8})
        record["error"] = error_of(name, points, given, 8)
        if not record["error"] < 1e-12:
            raise RuntimeError(f"{case}: wrong by {record['error']}")
    steps = 20 if given["lA"].size > 1 << 22 else 100
    times = []
    for _ in range(REPEATS):
        few, many = (library.seconds(handle, {**given, "TSTEPS": k + 1}) for k in (2, 2 + steps))
        times.append((many - few) / steps)
    record["seconds"], record["steps"] = statistics.median(times), steps
    library.exit(handle)
    return record


def main() -> None:
    """Measure a case; rank 0 prints the answer."""
    libraries, case = sys.argv[1:]
    record = measure(Library(Path(libraries), points_of(case)[0]), case)
    if RANK == 0:
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
