"""Benchmark of several right-hand sides: together, in one kernel that reads A once, and one by one.

    python bench/columns.py [--engine NAME] [--pes N] [--quick] [--out FILE.json]

For each matrix and each number of columns, a fixed number of iterations (rtol 0) with Jacobi from
zero: `together` by cg, `one by one` by cg and by prcg. All are warmed up once, then run once per
round in a new random order. Reported is the time of the kernels for one iteration of one column,
and the speed-up over the faster of the two that solve one by one, round by round.
"""

from __future__ import annotations

import datetime
import random
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from records import RESULTS, command_line, unused_name, write
from rich.console import Console
from timing import FEWEST_ROUNDS, interleave, judge, paired, spread

import cpufree
from cpufree import generate
from cpufree.bench.core.gpu_versions import gpu_versions
from cpufree.bench.core.machine import (
    CpuUse,
    describe_machine,
    describe_versions,
    source_state,
)
from cpufree.engines import gpus

SCHEMA = 1
COUNTS = (2, 4, 8)
TARGET = 1.5
TARGET_COLUMNS = 4
WAYS = {"together": "cg", "cg one by one": "cg", "prcg one by one": "prcg"}
CPU_CASES = {
    "poisson2d 500²": ("poisson2d?nx=500,ny=500", 100),
    "poisson3d 80³": ("poisson3d?nx=80,ny=80,nz=80", 60),
    "flange_hex": ("flange_hex?r_out=40,t=8,pipe=20", 40),
}
GPU_CASES = {
    "poisson2d 1024²": ("poisson2d?nx=1024,ny=1024", 400),
    "poisson2d 3000²": ("poisson2d?nx=3000,ny=3000", 200),
    "poisson3d 128³": ("poisson3d?nx=128,ny=128,nz=128", 400),
    "poisson3d 200³": ("poisson3d?nx=200,ny=200,nz=200", 200),
    "flange_hex": ("flange_hex?r_out=64,t=9,pipe=24", 200),
    "thermal2d": ("thermal2d?m=1070", 300),
}
QUICK_CASES = {"poisson3d 24³": ("poisson3d?nx=24,ny=24,nz=24", 20)}
tell = Console(stderr=True, highlight=False)


def timed(solver: cpufree.Solver, rights: np.ndarray, way: str, iterations: int) -> dict[str, Any]:
    """Return seconds of the kernels and of the call for one iteration of one column."""
    begin = time.perf_counter()
    result = solver.solve(
        rights,
        rtol=0.0,
        maxiter=iterations,
        method=WAYS[way],
        columns="together" if way == "together" else "one by one",
    )
    call = time.perf_counter() - begin
    return {
        "kernel": result.timings["kernel"] / result.iterations,
        "call": call / result.iterations,
        "iterations": [column.iterations for column in result.columns],
    }


def measure_case(
    name: str, solver: cpufree.Solver, iterations: int, rounds: int, rng: random.Random
) -> list[dict[str, Any]]:
    """Return what came of one matrix, a record for each number of columns."""
    found = []
    for count in COUNTS:
        rights = np.random.default_rng(count).standard_normal((solver.shape[0], count))
        tasks = {way: partial(timed, solver, rights, way, iterations) for way in WAYS}
        raw = interleave(tasks, rounds, rng, 0.02)
        kernel = {way: [run["kernel"] for run in runs] for way, runs in raw.items()}
        best = [min(pair) for pair in zip(*(kernel[way] for way in list(WAYS)[1:]), strict=True)]
        ratios = paired(best, kernel["together"])
        found.append(
            {
                "matrix": name,
                "columns": count,
                "iterations": iterations,
                "seconds": {way: spread(values) for way, values in kernel.items()},
                "speedup": spread(ratios),
                "target": judge(ratios, at_least=TARGET) if count == TARGET_COLUMNS else None,
                "plan": {k: v for k, v in solver.plan.items() if not isinstance(v, list)},
                "rows": solver.shape[0],
                "nnz": sum(solver.plan["nnz"]),
                "raw": raw,
            }
        )
        show(found[-1])
    return found


def show(line: dict[str, Any]) -> None:
    """Print one line of what was measured."""
    micros = {way: 1e6 * seconds["median"] for way, seconds in line["seconds"].items()}
    times = ", ".join(f"{way} {value:.1f}" for way, value in micros.items())
    speedup = line["speedup"]
    verdict = f", target {TARGET} {line['target']}" if line["target"] else ""
    tell.print(
        f"{line['matrix']}, {line['columns']} columns: µs per iteration and column: {times}; "
        f"speed-up {speedup['median']:.2f} ({speedup['min']:.2f} to {speedup['max']:.2f}){verdict}"
    )


def main(
    engine: Annotated[
        str, typer.Option(help="cpu_threads or cuda_p2p; default what auto is.")
    ] = "auto",
    pes: Annotated[int, typer.Option(help="PEs; 0: 2 on the CPU, one GPU.")] = 0,
    quick: Annotated[bool, typer.Option(help="A small matrix: does it work? No record.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Result; default bench/results/columns-<date>.json.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=FEWEST_ROUNDS, help="Repeats of everything.")] = 7,
    seed: Annotated[int, typer.Option(help="Of the order.")] = 1,
) -> None:
    """Compare right-hand sides together with one by one."""
    on_gpu = engine == "cuda_p2p" or (engine == "auto" and bool(gpus.find()))
    engine, pes = "cuda_p2p" if on_gpu else "cpu_threads", pes or (1 if on_gpu else 2)
    cases = QUICK_CASES if quick else GPU_CASES if on_gpu else CPU_CASES
    rng, use, lines = random.Random(seed), CpuUse(), []
    machine = describe_machine()
    for name, (spec, iterations) in cases.items():
        with cpufree.Solver(generate.from_spec(spec), engine=engine, pes=pes) as solver:
            machine["gpus"] = solver.device
            lines += measure_case(name, solver, iterations, rounds, rng)
    record = {
        "schema": SCHEMA,
        "benchmark": "columns",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command_line(),
        "source": source_state(),
        "machine": machine,
        "versions": {**describe_versions("c++"), **(gpu_versions() if on_gpu else {})},
        "others_share_of_cpu": use.others(),
        "settings": {"engine": engine, "pes": pes, "rounds": rounds, "seed": seed},
        "target": {"columns": TARGET_COLUMNS, "speedup": TARGET},
        "lines": lines,
    }
    if out is None and not quick:
        out = unused_name(RESULTS, "columns")
    if out is not None:
        write(record, out)
        tell.print(f"written: {out}")


if __name__ == "__main__":
    typer.run(main)
