"""DaCe's own MPI code for its samples jacobi_1d and jacobi_2d against cpufree.dace, on CPUs.

DaCe needs mpi4py and a C++ compiler. It compiles as the sample does, and runs under mpirun; the
unmodified program runs by `cpufree.dace`, a thread for each rank. Microseconds of a step.
"""

import importlib
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask
from cpufree.bench.declared.solving import Slope

REPEATS = 5
LIMIT = 150.0  # seconds of DaCe's program, compiling included


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


def under_mpi(name: str, points: int, steps: int) -> None:
    """Measure DaCe's code in a rank of mpirun; rank 0 prints the answer."""
    from dace.codegen.compiler import load_precompiled_sdfg
    from dace.transformation.dataflow import MapFusionVertical
    from mpi4py import MPI

    from cpufree.dace.graph.frontend import _without_limits

    comm, module = MPI.COMM_WORLD, sample(name)
    with _without_limits():
        graph = getattr(module, f"{name}_dist").to_sdfg(simplify=True)
        graph.apply_transformations_repeated([MapFusionVertical])
        graph.simplify()
    if comm.Get_rank() == 0:
        run = graph.compile()
    folder = comm.bcast(str(Path(graph.build_folder).resolve()) if comm.Get_rank() == 0 else None)
    if comm.Get_rank() > 0:
        run = load_precompiled_sdfg(folder)

    def seconds(count: int) -> float:
        given = arguments(module, comm.Get_rank(), comm.Get_size(), points, count)
        comm.Barrier()
        begin = time.perf_counter()
        run(**given)
        comm.Barrier()
        return time.perf_counter() - begin

    seconds(2)
    found = [(seconds(2 + steps) - seconds(2)) / steps for _ in range(REPEATS)]
    if comm.Get_rank() == 0:
        print(json.dumps({"seconds": statistics.median(found)}), flush=True)


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    import cpufree.dace

    module, ranks = sample(case.sample), case.ranks
    program = cpufree.dace.compile(getattr(module, f"{case.sample}_dist"))

    def seconds(steps: int) -> float:
        given = [arguments(module, r, ranks, case.points, steps) for r in range(ranks)]
        program.run_ranks(lambda r, n: given[r], ranks, engine="cpu_threads")
        return float(program.timings["kernel"])

    words = ["mpirun", "--oversubscribe", "-np", str(ranks), sys.executable, __file__, "--mpi"]
    words += [case.sample, str(case.points), str(case.steps)]
    yield {"cpufree": Slope(seconds, short=2), "dace": partial(ask, words, LIMIT)}


BENCH = Bench(
    name="dace-cpu",
    set_up=set_up,
    axes={
        "sample": ("jacobi_1d", "jacobi_2d"),
        "points": (512,),
        "ranks": (2,),
        "steps": (400,),
    },
    quick={"points": (128,), "steps": (20,)},
    ours="cpufree",
    unit="µs",
    repeats=5,
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--mpi"]:
        under_mpi(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        raise SystemExit(main(BENCH, __doc__))
