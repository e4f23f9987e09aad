"""Distributed programs of DaCe on GPUs, a step each, against the same stencil otherwise.

Usage: python bench/gpu_dace.py CASES [--seconds 60] [--out FILE.jsonl]

CASES is the folder that bench/dace_cases.py has written. Microseconds of a step are the difference
of a long and a short run over the steps between them, kernels alone, medians; all in one process,
one after the other. `without_roles`: all blocks wait for messages, then compute. `discrete` is the
same program of ranks driven by the host: a launch for each sweep, messages by copies between GPUs
or by kernels that store, CUDA graphs. `own` is the same update written for cpufree.program, on as
many GPUs, and `hosted` that driven by the host.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/python/support"))

import records
from dace_cases_files import points_of
from dace_grids import CASES, GRIDS, GRIDS_3D

import cpufree
from cpufree import env
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.hosted import HostedRun
from cpufree.compiler.ranks import routes
from cpufree.compiler.ranks.host_messages import WAYS
from cpufree.compiler.ranks.hosted import hosted_runner_of_ranks
from cpufree.compiler.ranks.on_gpu import gpu_runner_of_ranks
from cpufree.compiler.runner import Runner
from cpufree.engines import gpus
from cpufree.engines.watch import Watch
from cpufree.laps import Laps

REPEATS = 5
WAIT = 10.0


@cpufree.program
def jacobi_1d(A, B, steps):  # type: ignore[no-untyped-def]
    """The update of the case with this name."""
    for _t in range(1, steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


@cpufree.program
def jacobi_2d(A, B, steps):  # type: ignore[no-untyped-def]
    """The update of the case with this name."""
    for _t in range(1, steps):
        B[1:-1, 1:-1] = 0.2 * (
            A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]
        )
        A[1:-1, 1:-1] = 0.2 * (
            B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1]
        )


@cpufree.program
def heat_3d(A, B, steps):  # type: ignore[no-untyped-def]
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


def step_of(seconds: Callable[[int], float], least: int = 20) -> tuple[float, int]:
    """Return the microseconds of a step, from the seconds of runs of so many; and how many."""
    seconds(least)
    guess = max(1e-7, (seconds(least + 100) - seconds(least)) / 100)
    long = int(min(20_000, max(200, 0.05 / guess)))
    found = [1e6 * (seconds(least + long) - seconds(least)) / long for _ in range(REPEATS)]
    return statistics.median(found), long


def ranks_seconds(
    file: Path, name: str, ranks: int, points: Any, devices: list[int], roles: bool = True
) -> Any:
    """Return the seconds of a run, by steps; and of the compilation."""
    program = routes.from_json(file.read_text())
    begin = time.perf_counter()
    kernel = gpu_runner_of_ranks(program, devices, roles)
    compiled = time.perf_counter() - begin
    watch = Watch(None)
    of = CASES[name][0](points, 2)
    given = [Arguments(name, of(r, ranks)) for r in range(ranks)]
    data = {f.name: np.arange(f.shape[0]) for f in program.fields if f.role == "constant"}

    def seconds(steps: int) -> float:
        with watch:
            ran = kernel.run(given, data, {"TSTEPS": steps + 1}, WAIT, watch, Laps())
        return ran.seconds

    return seconds, compiled


def discrete_seconds(
    file: Path, name: str, ranks: int, points: Any, devices: list[int], way: str
) -> Callable[[int], float]:
    """Return the seconds of a run of ranks driven by the host, by steps."""
    program = routes.from_json(file.read_text())
    of = CASES[name][0](points, 2)
    given = [Arguments(name, of(r, ranks)) for r in range(ranks)]
    data = {f.name: np.arange(f.shape[0]) for f in program.fields if f.role == "constant"}
    made: dict[int, Runner] = {}

    def seconds(steps: int) -> float:
        scalars = {"TSTEPS": steps + 1}
        if steps not in made:
            made[steps] = hosted_runner_of_ranks(program, devices, scalars, way)
        return made[steps].run(given, data, scalars, WAIT, Watch(None), Laps()).seconds

    return seconds


def own_seconds(name: str, ranks: int, points: Any, devices: list[int]) -> Any:
    """Return the seconds of a run of cpufree.program, by steps; and those driven by the host."""
    grid = (
        (ranks,)
        if name == "jacobi_1d"
        else (GRIDS if name.startswith("jacobi_2d") else GRIDS_3D)[ranks]
    )
    shape = points if isinstance(points, tuple) else (points,)
    whole = tuple(n * g for n, g in zip(shape, grid, strict=True))
    arrays = [np.random.default_rng(k).standard_normal(whole) for k in (1, 2)]
    program = OWN[name]

    def seconds(steps: int) -> float:
        program.run((*arrays, steps + 1), engine="cuda_p2p", gpus=devices, wait_limit=WAIT)
        return float(program.timings["kernel"])

    def hosted(steps: int) -> float:
        return HostedRun(program, (*arrays, steps + 1), devices).run(WAIT)

    return seconds, hosted


def measure(file: Path, devices: list[int]) -> dict[str, Any]:
    """Return the record of a case."""
    name, ranks, points = points_of(file)
    places = [devices[r * min(len(devices), ranks) // ranks] for r in range(ranks)]
    record: dict[str, Any] = {"kind": "dace", "case": file.stem, "gpus": places}
    seconds, record["compile_seconds"] = ranks_seconds(file, name, ranks, points, places)
    record["us"], record["steps"] = step_of(seconds)
    plain, _ = ranks_seconds(file, name, ranks, points, places, roles=False)
    record["without_roles_us"], _ = step_of(plain)
    for way in WAYS[: 1 if ranks == 1 else 2]:
        try:
            by_host = discrete_seconds(file, name, ranks, points, places, way)
            record[f"discrete_{way}_us"], _ = step_of(by_host)
        except cpufree.CpufreeError as error:
            record[f"discrete_{way}_error"] = str(error)[:200]
    if ranks == 1 and name == "jacobi_1d":
        return record  # to subtract from that of two ranks
    own, hosted = own_seconds(name, ranks, points, sorted(set(places)))
    record["own_us"], _ = step_of(own)
    try:
        record["hosted_us"], _ = step_of(hosted)
    except cpufree.CpufreeError as error:
        record["hosted_error"] = str(error)[:200]
    return record


def head(devices: list[int]) -> dict[str, Any]:
    """Return what a record's first line says: where and when it was made."""
    there = [g for g in gpus.usable(gpus.find()) if g.index in devices]
    return {
        "kind": "header",
        "command": records.command_line(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "gpus": [g.name for g in there],
        "versions": {"cpufree": cpufree.__version__, "numpy": np.__version__},
    }


def main() -> None:
    """Measure what there is time for; write records, print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("gpu-dace.jsonl"))
    options = parser.parse_args()
    env.preset_shared_gpus()
    devices = [g.index for g in gpus.usable(gpus.find())][: options.gpus]
    end = time.monotonic() + options.seconds
    with options.out.open("w") as out:
        out.write(json.dumps(head(devices)) + "\n")
        files = [f for f in options.cases.glob("*.json") if not f.stem.startswith("halo")]
        for file in sorted(files, key=size_of):
            if time.monotonic() > end:
                print("left out for want of time:", file.stem)
                continue
            try:
                record = measure(file, devices)
            except Exception as error:
                record = {"kind": "failure", "case": file.stem, "error": repr(error)[:600]}
            out.write(json.dumps(record) + "\n")
            out.flush()
            print(line_of(record), flush=True)


def size_of(file: Path) -> tuple[int, str]:
    """Return what cases are sorted by: small ones first."""
    _, ranks, points = points_of(file)
    shape = points if isinstance(points, tuple) else (points,)
    return ranks * math.prod(shape), file.stem


def line_of(record: dict[str, Any]) -> str:
    """Return a record as a line of the table."""
    if record["kind"] == "failure":
        return f"{record['case']:34} {record['error'][:160]}"
    columns = (
        "us", "without_roles_us", "discrete_copies_us", "discrete_stores_us", "own_us", "hosted_us",
        "compile_seconds",
    )  # fmt: skip
    cells = [f"{record[k]:9.2f}" if k in record else "        -" for k in columns]  # fmt: skip
    return f"{record['case']:34} gpus {record['gpus']!s:14} " + " ".join(cells)


if __name__ == "__main__":
    main()
