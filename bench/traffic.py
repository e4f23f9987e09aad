"""Bytes that an iteration moves between a GPU and its memory, counted by the hardware.

    PYTHONPATH=build/gpu/python python bench/traffic.py [--out FILE.json] [MATRIX]...

Runs solves of two lengths under the profiler `ncu` and takes the difference, which is free of what
a solve moves once. Beside what was counted stands what the heads of cpufree/solvers/*cg.hpp say:
the matrix in the format in use, once, and the passes over vectors that are not on chip. The second
cache serves a part of that: the memory moves less where a matrix is small. Nothing is said of time,
which under a profiler means little.
"""

from __future__ import annotations

import csv
import datetime
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from gpu_machine import describe_gpus
from records import RESULTS, command_line, unused_name, write
from rich.console import Console

from cpufree.bench.core.machine import describe_machine, describe_versions, source_state
from cpufree.bench.core.work import PLAIN_PASSES
from cpufree.engines import gpus
from cpufree.errors import CpufreeError
from cpufree.matrix.load import as_csr
from cpufree.solvers.layout import Sharing

SCHEMA = 1
METHODS = ("cg", "prcg")
MATRICES = (
    "gen:poisson3d?nx=128,ny=128,nz=128",
    "gen:poisson3d?nx=200,ny=200,nz=200",
    "gen:geomech_tet?shape=48x48x48,seed=1",
    "gen:flange_hex?r_out=64,t=9,pipe=24",
)
SHORT, LONG = 20, 60  # iterations
LIMIT = 180.0  # seconds for one run under the profiler
METRICS = {
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
    "second_cache": "lts__t_bytes.sum",
}
# Passes over the private vectors, in the order in which they stay on chip (each_private).
PRIVATE_PASSES = (3, 2, 2)  # r, s, x
WORKER = Path(__file__).with_name("traffic_worker.py")
tell = Console(stderr=True, highlight=False, soft_wrap=True)


def predicted_bytes(rows: int, plan: dict[str, Any], method: str) -> float:
    """Return the bytes of an iteration: the matrix once, and what is left of the passes."""
    on_chip = sum(PRIVATE_PASSES[: plan["resident_vectors"]])
    matrix = 0.0 if plan["resident_matrix"] else float(plan["matrix_bytes"])
    return matrix + 8.0 * rows * (PLAIN_PASSES[method] - on_chip)


def parse_counts(text: str) -> dict[str, float]:
    """Return the counts of the solver's kernel from what ncu printed as CSV.

    Raises ValueError where there are none, or those of several kernels.
    """
    # The table, behind what others have printed.
    lines = text[text.find('"ID","') :].splitlines() if '"ID","' in text else []
    lines = [line for line in lines if line.startswith('"')]
    found: dict[str, float] = {}
    for row in csv.DictReader(lines):
        for name, metric in METRICS.items():
            if row["Metric Name"] == metric:
                if name in found:
                    raise ValueError("ncu saw more than one kernel of the solver")
                found[name] = float(row["Metric Value"].replace(",", ""))
    if found.keys() != METRICS.keys():
        raise ValueError("ncu counted nothing: " + " ".join(text.split()[-40:]))
    return found


def count(arrays: Path, method: str, iterations: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Return what a solve moves, and what the worker said."""
    profiler = ["ncu", "--csv", "--print-units", "base", "--clock-control", "none"]
    profiler += ["--kernel-name", "regex:^solve$", "--metrics", ",".join(METRICS.values())]
    worker = [sys.executable, str(WORKER), str(arrays), method, str(iterations)]
    ran = subprocess.run(
        [*profiler, *worker], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    said = [line for line in ran.stdout.splitlines() if line.startswith('{"iterations"')]
    if ran.returncode != 0 or not said:
        last = " ".join((ran.stdout + ran.stderr).split()[-60:])
        raise ValueError(f"ncu ended with {ran.returncode}: {last}")
    facts: dict[str, Any] = json.loads(said[-1])
    if facts["iterations"] != iterations:
        raise ValueError(f"the solve ended after {facts['iterations']} of {iterations} iterations")
    return parse_counts(ran.stdout), facts


def measure(source: str, folder: Path) -> list[dict[str, Any]]:
    """Return the bytes of an iteration by each method, counted and predicted."""
    matrix = as_csr(source)
    order = Sharing.of(matrix, 1, "auto", "auto").order
    arrays = folder / "arrays.npz"
    named: dict[str, Any] = {
        "indptr": matrix.indptr,
        "indices": matrix.indices,
        "data": matrix.data,
    }
    np.savez(arrays, **(named if order is None else {**named, "order": order}))
    found = []
    for method in METHODS:
        short, _ = count(arrays, method, SHORT)
        long, facts = count(arrays, method, LONG)
        each = {name: (long[name] - short[name]) / (LONG - SHORT) for name in METRICS}
        rows, plan = matrix.shape[0], facts["plan"]
        kept = ("matrix_bytes", "resident_vectors", "resident_matrix", "ring_slots", "block_halo")
        found.append(
            {
                "matrix": source,
                "rows": rows,
                "nonzeros": matrix.nnz,
                "method": method,
                "plan": {name: plan[name] for name in kept},
                "predicted_bytes": predicted_bytes(rows, plan, method),
                "bytes": each,
                "raw": {"short": short, "long": long},
            }
        )
    return found


def show(entry: dict[str, Any]) -> None:
    """Print one line."""
    memory = entry["bytes"]["read"] + entry["bytes"]["written"]
    predicted = entry["predicted_bytes"]
    typer.echo(
        f"{entry['matrix']:48s} {entry['method']:5s} memory {memory / 1e6:8.1f} MB, predicted "
        f"{predicted / 1e6:8.1f}: {memory / predicted:.3f}; second cache "
        f"{entry['bytes']['second_cache'] / 1e6:8.1f} MB"
    )


def main(
    matrices: Annotated[
        list[str] | None, typer.Argument(help="Paths, or gen:...", metavar="[MATRIX]...")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write. Default: bench/results.")
    ] = None,
) -> None:
    """Count the bytes of an iteration on one GPU."""
    if shutil.which("ncu") is None:
        tell.print("traffic: ncu was not found: put Nsight Compute's folder on PATH")
        raise typer.Exit(2)
    gpus.require_usable("cuda_p2p")
    path = out or unused_name(RESULTS, "traffic")
    systems: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    record = {
        "schema": SCHEMA,
        "benchmark": "traffic",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command_line(),
        "source": source_state(),
        "machine": describe_machine(),
        "versions": describe_versions("c++"),
        "gpus": describe_gpus("cuda_p2p"),
        "settings": {"iterations": [SHORT, LONG], "metrics": METRICS},
        "systems": systems,
        "failed": failed,
    }
    for source in matrices or MATRICES:
        try:
            with tempfile.TemporaryDirectory() as folder:
                systems += measure(source, Path(folder))
        except (CpufreeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
            failed[source] = str(error)
            tell.print(f"traffic: {source}: {error}")
        for entry in systems:
            if entry["matrix"] == source:
                show(entry)
        write(record, path)
    tell.print(f"written: {path}")
    raise typer.Exit(1 if failed else 0)


if __name__ == "__main__":
    try:
        typer.run(main)
    except CpufreeError as error:
        sys.exit(f"traffic.py: error: {error}")
