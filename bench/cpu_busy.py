"""Benchmark of the CPU engine beside busy programs, and after a call of BLAS.

    python bench/cpu_busy.py [--out FILE.json] [--rounds N] [--quick]

For each system and number of busy programs: the whole solve (set up before) by cpufree with default
options, with one block, and by SciPy's cg with Jacobi, interleaved in random order.
"""

from __future__ import annotations

import datetime
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from cpu_small import scipy_whole
from records import RESULTS, command_line, unused_name, write
from rich.console import Console
from timing import interleave, paired, seconds, spread

import cpufree
from cpufree.bench.core.machine import describe_machine, describe_versions, source_state
from cpufree.extension import load_core

SYSTEMS = {
    "poisson2d 60²": "gen:poisson2d?nx=60,ny=60",
    "poisson2d 125²": "gen:poisson2d?nx=125,ny=125",
    "poisson2d 250²": "gen:poisson2d?nx=250,ny=250",
    "poisson2d 500²": "gen:poisson2d?nx=500,ny=500",
    "poisson3d 40³": "gen:poisson3d?nx=40,ny=40,nz=40",
    "flange_hex": "gen:flange_hex?r_out=20,t=4,pipe=10",
}
RTOL = 1e-8
SETTLE = 0.3  # seconds that busy programs have to begin
PAUSE = 0.02


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy_programs(count: int) -> Iterator[None]:
    """Run so many processes beside, each of which computes all the time."""
    context = multiprocessing.get_context("spawn")
    programs = [context.Process(target=_spin, daemon=True) for _ in range(count)]
    for program in programs:
        program.start()
    time.sleep(SETTLE if count else 0.0)
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.join()


def tasks_of(A: Any, b: Any, solvers: dict[str, cpufree.Solver]) -> dict[str, Callable[[], float]]:
    """Return what is measured of a system, by name: calls that return seconds."""

    def after_blas() -> float:
        M = np.ones((400, 400))
        _ = M @ M  # leaves threads of BLAS that spin for a while
        return seconds(lambda: solvers["auto"].solve(b, rtol=RTOL))

    return {
        "auto": lambda: seconds(lambda: solvers["auto"].solve(b, rtol=RTOL)),
        "one block": lambda: seconds(lambda: solvers["one block"].solve(b, rtol=RTOL)),
        "after BLAS": after_blas,
        "scipy": lambda: seconds(lambda: scipy_whole(A, b)),
    }


def measure(name: str, text: str, busy: int, rounds: int, rng: random.Random) -> dict[str, Any]:
    """Measure one system beside so many busy programs; return what is written of it."""
    A = cpufree.load_matrix(text)
    b = np.random.default_rng(rng.randrange(2**32)).standard_normal(A.shape[0])
    solvers = {
        "auto": cpufree.Solver(A, engine="cpu_threads"),
        "one block": cpufree.Solver(A, engine="cpu_threads", blocks=1),
    }
    with busy_programs(busy):
        times = interleave(tasks_of(A, b, solvers), rounds, rng, PAUSE)
    of_scipy = statistics.median(paired(times["auto"], times["scipy"]))
    return {
        "name": name,
        "rows": A.shape[0],
        "nnz": A.nnz,
        "busy_programs": busy,
        "seconds": {key: spread(values) for key, values in times.items()},
        "of_scipy": of_scipy,
        "of_one_block": statistics.median(paired(times["auto"], times["one block"])),
        "raw": times,
    }


def main(
    out: Annotated[Path | None, typer.Option(help="Default bench/results/cpu-busy-….json.")] = None,
    rounds: Annotated[int, typer.Option(min=5)] = 11,
    seed: Annotated[int, typer.Option()] = 1,
    quick: Annotated[bool, typer.Option(help="Two systems, no record unless --out.")] = False,
) -> None:
    """Measure all systems: alone, beside one busy program, beside one for each core."""
    rng, tell = random.Random(seed), Console(highlight=False)
    cores = load_core().available_cores()
    rows = []
    for name, text in list(SYSTEMS.items())[: 2 if quick else None]:
        for busy in sorted({0, 1, cores}):
            one = measure(name, text, busy, rounds, rng)
            rows.append(one)
            ms = {key: f"{1e3 * t['median']:8.2f}" for key, t in one["seconds"].items()}
            tell.print(
                f"{name:15} {busy} busy: auto {ms['auto']} ms, one block {ms['one block']}, after "
                f"BLAS {ms['after BLAS']}, SciPy {ms['scipy']}; {one['of_scipy']:.2f} of SciPy, "
                f"{one['of_one_block']:.2f} of one block"
            )
    path = out or (None if quick else unused_name(RESULTS, "cpu-busy"))
    if path is not None:
        record = {
            "schema": 1,
            "benchmark": "cpu-busy",
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": command_line(),
            "source": source_state(),
            "machine": describe_machine(),
            "versions": describe_versions("c++"),
            "settings": {"rounds": rounds, "seed": seed, "rtol": RTOL},
            "systems": rows,
        }
        write(record, path)
        tell.print(f"written: {path}")


if __name__ == "__main__":
    typer.run(main)
