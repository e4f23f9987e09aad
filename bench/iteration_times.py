"""What an iteration of systems takes on GPUs that no benchmark record has.

    PYTHONPATH=build/gpu/python python bench/iteration_times.py --out times.jsonl [--pes 1,2] [A]...

By each method, solves of two lengths one behind the other: the difference is that of iterations,
and what is left over is the launch. Without A: Poisson's equation on squares, all of it on chip,
where nearly nothing is to be moved. These are constants of a machine file (docs/model.md). A line
for each system and method, written at once.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from cpufree.engines import gpus
from cpufree.errors import CpufreeError
from cpufree.extension import load_gpu_core
from cpufree.matrix.load import as_csr
from cpufree.solvers.layout import Sharing

METHODS = ("cg", "prcg", "pipecg")
SMALL = tuple(f"gen:poisson2d?nx={side},ny={side}" for side in (128, 256, 400))
SHORT, LONG, REPEATS = 50, 250, 9
FEW_ENTRIES = 5_000_000
"""Beyond which solves have a fifth of the iterations."""
WAIT_LIMIT = 20.0
PLAN = ("blocks", "threads", "block_halo", "matrix_bytes", "halo", "halo_values", "imbalance",
        "resident_vectors")  # fmt: skip


def measure(source: str, matrix: Any, pes: int, listed: list[str]) -> Iterator[dict[str, Any]]:
    """Yield what iterations and launches take, by method."""
    lengths = (SHORT, LONG) if matrix.nnz < FEW_ENTRIES else (SHORT // 5, LONG // 5)
    sharing = Sharing.of(matrix, pes, "auto", "auto")
    system = load_gpu_core().System(
        matrix.indptr, matrix.indices, matrix.data, sharing.part, sharing.order, pes=pes, blocks=0,
        engine="cuda_p2p", gpus=list(range(pes)),
    )  # fmt: skip
    b = np.random.default_rng(1).standard_normal(matrix.shape[0])
    for method in METHODS:
        seconds: dict[int, list[float]] = {count: [] for count in lengths}
        for repeat in range(REPEATS + 1):
            for count, times in seconds.items():
                options = {"method": method, "pc": "none", "rtol": 0.0, "atol": 0.0,
                           "maxiter": count, "wait_limit": WAIT_LIMIT}  # fmt: skip
                outcome = system.solve(b, None, None, options, None)
                if outcome["iterations"] != count:
                    raise ValueError(f"{method} ended after {outcome['iterations']} of {count}")
                if repeat:  # the first one loads kernels
                    times.append(outcome["seconds"])
        short, long = (statistics.median(times) for times in seconds.values())
        each = (long - short) / (lengths[1] - lengths[0])
        plan: dict[str, Any] = {**system.plan()}
        yield {
            "kind": "iteration", "system": source, "rows": matrix.shape[0], "nnz": matrix.nnz,
            "pes": pes, "method": method, "iteration_seconds": each,
            "rest_seconds": short - lengths[0] * each, "gpus": listed[:pes],
            "plan": {key: plan[key] for key in PLAN},
        }  # fmt: skip


def main(
    out: Annotated[Path, typer.Option(help="The record, JSON lines.")],
    systems: Annotated[
        list[str] | None, typer.Argument(help="Paths, or gen:...", metavar="[A]...")
    ] = None,
    pes: Annotated[str, typer.Option(help="Numbers of GPUs.")] = "1,2",
) -> None:
    """Measure iterations."""
    listed = [one.name for one in gpus.find()]
    gpus.require_usable("cuda_p2p")
    with out.open("w", encoding="utf-8") as file:
        for source in systems or SMALL:
            begin = time.monotonic()
            matrix = as_csr(source)
            print(f"{source}: made in {time.monotonic() - begin:.1f} s", flush=True)
            for count in map(int, pes.split(",")):
                begin = time.monotonic()
                for line in measure(source, matrix, count, listed):
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                    print(f"  {count} GPUs: {line['method']:7s}"
                          f"{line['iteration_seconds'] * 1e6:8.2f} us an iteration, "
                          f"{line['rest_seconds'] * 1e6:6.1f} us beside", flush=True)  # fmt: skip
                print(f"  {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    try:
        typer.run(main)
    except CpufreeError as error:
        sys.exit(f"iteration_times.py: error: {error}")
