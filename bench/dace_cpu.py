"""DaCe's own MPI code for its samples jacobi_1d and jacobi_2d against cpufree.dace, on CPUs.

Usage: python bench/dace_cpu.py [--sample jacobi_2d] [--ranks 2] [--points 512] [--steps 400]
       [--out FILE.json]

DaCe needs mpi4py and a C++ compiler. It compiles as the sample does, and runs under mpirun; then
the unmodified program runs by `cpufree.dace`, a thread for each rank. Microseconds of a step are
the difference of a long and a short run over the steps between them, medians.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

REPEATS = 5


def sample(name: str) -> Any:
    """Return a sample of DaCe's as a module."""
    import dace

    folder = Path(dace.__file__).resolve().parents[1] / "samples/distributed"
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def arguments(module: Any, rank: int, size: int, n: int, steps: int) -> dict[str, Any]:
    """Return the arguments of a rank, as the sample computes them."""
    if module.__name__ == "jacobi_1d":
        A, B = module.init_data(n, np.float64)
        return {"A": A, "B": B, "TSTEPS": steps, "N": n, "lN": n // size,
                "rank": rank, "size": size}  # fmt: skip
    px, py = module.grid[size]
    pi, pj = rank // py, rank % py
    A, B = module.init_data(n, np.float64)
    nobody = -2  # Open MPI's MPI_PROC_NULL
    beside = {
        "nn": (pi - 1) * py + pj if pi else nobody,
        "ns": (pi + 1) * py + pj if pi + 1 < px else nobody,
        "nw": pi * py + pj - 1 if pj else nobody,
        "ne": pi * py + pj + 1 if pj + 1 < py else nobody,
    }
    ends = zip(("noff", "soff", "woff", "eoff"), beside.values(), strict=True)
    offsets = {name: int(peer < 0) for name, peer in ends}
    sizes = {"lNx": n // px, "lNy": n // py, "Px": px, "Py": py, "pi": pi, "pj": pj}
    return {"A": A, "B": B, "TSTEPS": steps, "rank": rank, "size": size,
            **sizes, **beside, **offsets}  # fmt: skip


def medians(call: Any, steps: int) -> float:
    """Return the microseconds of a step."""
    call(2)
    found = []
    for _ in range(REPEATS):
        times = [call(k) for k in (2, steps)]
        found.append(1e6 * (times[1] - times[0]) / (steps - 2))
    return float(statistics.median(found))


def of_dace(options: argparse.Namespace) -> None:
    """Under mpirun: measure DaCe's code; rank 0 prints."""
    from mpi4py import MPI

    from cpufree.dace.graph.frontend import _without_limits

    comm, module = MPI.COMM_WORLD, sample(options.sample)
    from dace.codegen.compiler import load_precompiled_sdfg
    from dace.transformation.dataflow import MapFusionVertical

    graph = None
    with _without_limits():
        graph = getattr(module, f"{options.sample}_dist").to_sdfg(simplify=True)
        graph.apply_transformations_repeated([MapFusionVertical])
        graph.simplify()
    if comm.Get_rank() == 0:
        run = graph.compile()
    folder = comm.bcast(str(Path(graph.build_folder).resolve()) if comm.Get_rank() == 0 else None)
    if comm.Get_rank() > 0:
        run = load_precompiled_sdfg(folder)

    def call(steps: int) -> float:
        given = arguments(module, comm.Get_rank(), comm.Get_size(), options.points, steps)
        comm.Barrier()
        begin = time.perf_counter()
        run(**given)
        comm.Barrier()
        return float(time.perf_counter() - begin)

    us = medians(call, options.steps)
    if comm.Get_rank() == 0:
        print("US", us)


def of_cpufree(options: argparse.Namespace) -> float:
    """Return the microseconds of a step by cpufree.dace."""
    import cpufree.dace

    module = sample(options.sample)
    program = cpufree.dace.compile(getattr(module, f"{options.sample}_dist"))

    def call(steps: int) -> float:
        ranks = options.ranks
        given = [arguments(module, r, ranks, options.points, steps) for r in range(ranks)]
        program.run_ranks(lambda r, n: given[r], ranks, engine="cpu_threads")
        return float(program.timings["kernel"])

    return medians(call, options.steps)


def main() -> None:
    """Measure both; print and write the record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", choices=("jacobi_1d", "jacobi_2d"), default="jacobi_2d")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--points", type=int, default=512)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--mpi", action="store_true", help="measure DaCe's code, under mpirun")
    options = parser.parse_args()
    if options.mpi:
        of_dace(options)
        return
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(options.ranks)]
    command += [sys.executable, __file__, "--mpi", "--points", str(options.points),
                "--sample", options.sample]  # fmt: skip
    done = subprocess.run([*command, "--steps", str(options.steps)], capture_output=True, text=True,
                          timeout=150)  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("US ")]
    record = {
        "kind": "dace_cpu",
        "machine": platform.processor() or platform.machine(),
        "sample": options.sample,
        "ranks": options.ranks,
        "points": options.points,
        "steps": options.steps,
        "cpufree_us": of_cpufree(options),
        "dace_us": float(lines[0].split()[1]) if lines else None,
        "dace_error": "" if lines else done.stderr[-1500:],
    }
    print(json.dumps(record, indent=1))
    if options.out:
        options.out.write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
