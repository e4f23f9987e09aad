"""Distributed programs of DaCe on GPUs, a step each, against the same stencil otherwise.

--folder: what dace_distributed.py has written where DaCe is installed. `without roles`: all
blocks wait for messages, then compute. `by host, ...`: the same program of ranks, a launch for each
sweep, messages by copies between GPUs or by kernels that store, CUDA graphs. `cpufree.program`: the
same update for our own front end, on as many GPUs, and `by host` that driven by the host. With
mpirun: `MPI by hand` (dace_mpi_rival.py) and, with --libraries, DaCe's own GPU code
(dace_gpu_build.py). Cases halo_columns compare who puts columns, whose points lie a row
apart: a thread, a warp, a block, all blocks, and as the compiler chooses; an exchange each.
"""

# The programs are written as people write them, without types.
# mypy: allow-untyped-defs, allow-untyped-calls

import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from dace_distributed import NAMES, points_of
from dace_grids import CASES, GRIDS, GRIDS_3D, halo_columns_of

import cpufree
from cpufree import env
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask
from cpufree.bench.declared.solving import Slope
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.hosted import HostedRun
from cpufree.compiler.ranks import routes
from cpufree.compiler.ranks.host_messages import WAYS
from cpufree.compiler.ranks.hosted import hosted_runner_of_ranks
from cpufree.compiler.ranks.layout import PUTS
from cpufree.compiler.ranks.on_gpu import gpu_runner_of_ranks
from cpufree.compiler.runner import Runner
from cpufree.engines import gpus
from cpufree.engines.watch import Watch
from cpufree.laps import Laps

WAIT = 10.0
MPI_LIMIT = 60.0  # seconds of a program of MPI
MPI = ("mpirun", "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "pml", "ob1")
# Seconds of a run of N steps; programs of DaCe count steps from 1.
Seconds = Callable[[int], float]


@cpufree.program
def jacobi_1d(A, B, steps):
    """The update of the case with this name."""
    for _t in range(1, steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


@cpufree.program
def jacobi_2d(A, B, steps):
    """The update of the case with this name."""
    for _t in range(1, steps):
        B[1:-1, 1:-1] = 0.2 * (
            A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]
        )
        A[1:-1, 1:-1] = 0.2 * (
            B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1]
        )


@cpufree.program
def heat_3d(A, B, steps):
    """The update of the case with this name."""
    for _t in range(1, steps):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, :-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A[1:-1, 1:-1, 1:-1] = (
            0.125 * (B[2:, 1:-1, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[:-2, 1:-1, 1:-1])
            + 0.125 * (B[1:-1, 2:, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, :-2, 1:-1])
            + 0.125 * (B[1:-1, 1:-1, 2:] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, 1:-1, :-2])
            + B[1:-1, 1:-1, 1:-1]
        )


OWN = {"jacobi_1d": jacobi_1d, "jacobi_2d": jacobi_2d, "heat_3d": heat_3d}
OWN["jacobi_2d_signals"] = jacobi_2d


def ranks_seconds(make: Callable[[dict[str, int]], Runner], program: Any, given: Any) -> Seconds:
    """Return the seconds of a run of ranks by its steps; `make(scalars)` makes the runner."""
    data = {f.name: np.arange(f.shape[0]) for f in program.fields if f.role == "constant"}

    def seconds(steps: int) -> float:
        scalars = {"TSTEPS": steps + 1}
        runner, watch = make(scalars), Watch(None)
        with watch:
            return runner.run(given, data, scalars, WAIT, watch, Laps()).seconds

    return seconds


def own_seconds(name: str, ranks: int, points: Any, devices: list[int]) -> tuple[Seconds, Seconds]:
    """Return the seconds of a run of cpufree.program, by steps; and those driven by the host."""
    grids = GRIDS_3D if name == "heat_3d" else GRIDS
    grid = (ranks,) if name == "jacobi_1d" else grids[ranks]
    shape = points if isinstance(points, tuple) else (points,)
    whole = tuple(n * g for n, g in zip(shape, grid, strict=True))
    arrays = [np.random.default_rng(k).standard_normal(whole) for k in (1, 2)]
    program = OWN[name]

    def seconds(steps: int) -> float:
        program.run((*arrays, steps + 1), engine="cuda_p2p", gpus=devices, wait_limit=WAIT)
        return float(program.timings["kernel"])

    def hosted(steps: int) -> float:
        return float(HostedRun(program, (*arrays, steps + 1), devices).run(WAIT))

    return seconds, hosted


def kept(make: Callable[[], Runner]) -> Callable[[dict[str, int]], Runner]:
    """Return what makes a runner once, whatever the scalars are."""
    made: list[Runner] = []

    def runner(scalars: dict[str, int]) -> Runner:
        made[:] = made or [make()]
        return made[0]

    return runner


def by_mpi(case: Case, ranks: int, name: str) -> dict[str, Call]:
    """Return the contenders that are programs of MPI."""
    if shutil.which(MPI[0]) is None:
        return {}
    run = [*MPI, "-np", str(ranks), sys.executable]
    here, found = Path(__file__).parent, dict[str, Call]()
    if name == "jacobi_2d" and ranks > 1 and importlib.util.find_spec("mpi4py"):
        words = [*run, str(here / "dace_mpi_rival.py"), case.program]
        found["MPI by hand"] = partial(ask, words, MPI_LIMIT)
    if case.libraries and (Path(case.libraries) / f"{name}.so").exists():
        words = [*run, str(here / "dace_gpu_rival.py"), case.libraries, case.program]
        found["DaCe's GPU code"] = partial(ask, words, MPI_LIMIT)
    return found


def exchanges(program: Any, ranks: int, points: Any, devices: list[int]) -> Iterator[Any]:
    """Yield who may put columns; the columns are compared behind each run."""
    given = [Arguments("halo_columns", halo_columns_of(points, 2)(r, ranks)) for r in range(ranks)]

    def exchange(step: Slope, way: str) -> dict[str, Any]:
        found = step()
        for name in ("lA", "lB"):
            left, right = (a.arrays[name] for a in given)
            np.testing.assert_array_equal(left[1:-1, -1], right[1:-1, 1], err_msg=f"{way}, {name}")
            np.testing.assert_array_equal(right[1:-1, 0], left[1:-1, -2], err_msg=f"{way}, {name}")
        return {**found, "seconds": found["seconds"] / 2}  # a step has two

    for way in PUTS[1:] + PUTS[:1]:
        make = partial(gpu_runner_of_ranks, program, devices, puts=way)
        yield way, partial(exchange, Slope(ranks_seconds(kept(make), program, given)), way)


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    env.preset_shared_gpus()
    devices = [g.index for g in gpus.require_usable()][: case.gpus]
    name, ranks, points = points_of(case.program)
    program = routes.from_json((Path(case.folder) / f"{case.program}.json").read_text())
    places = [devices[r * min(len(devices), ranks) // ranks] for r in range(ranks)]
    case.facts["places"] = places
    if name == "halo_columns":
        yield dict(exchanges(program, ranks, points, places))
        return
    given = [Arguments(name, CASES[name][0](points, 2)(r, ranks)) for r in range(ranks)]

    def ranked(make: Callable[[dict[str, int]], Runner]) -> Call:
        return Slope(ranks_seconds(make, program, given))

    def discrete(way: str) -> Call:
        made: dict[int, Runner] = {}  # graphs are of N steps

        def runner(scalars: dict[str, int]) -> Runner:
            steps = scalars["TSTEPS"]
            if steps not in made:
                made[steps] = hosted_runner_of_ranks(program, places, scalars, way)
            return made[steps]

        return ranked(runner)

    calls = {
        "ours": ranked(kept(lambda: gpu_runner_of_ranks(program, places))),
        "without roles": ranked(kept(lambda: gpu_runner_of_ranks(program, places, False))),
        **{f"by host, {way}": discrete(way) for way in WAYS[: 1 if ranks == 1 else 2]},
        **by_mpi(case, ranks, name),
    }
    if (name, ranks) != ("jacobi_1d", 1):  # that one is there to be subtracted from two ranks
        own, hosted = own_seconds(name, ranks, points, sorted(set(places)))
        calls |= {"`cpufree.program`": Slope(own), "by host": Slope(hosted)}
    yield calls


BENCH = Bench(
    name="dace",
    set_up=set_up,
    axes={"program": NAMES, "folder": ("cases",), "libraries": ("",), "gpus": (2,)},
    ours="ours",
    unit="µs",
    repeats=5,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
