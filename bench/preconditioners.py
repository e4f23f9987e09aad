"""Preconditioners inside the kernel: iterations and seconds to a tolerance, beside Jacobi.

    python bench/preconditioners.py [--pes 1,2] [--rtol 1e-8] [--out FILE.json] [SYSTEM]...

SYSTEM: a file, files:FOLDER, gen:NAME?key=value, or suite:NAME. Each
is set up once for each preconditioner, and solved with b = ones in rounds, one solve for each
preconditioner, in an order that is drawn anew. Seconds are those of the kernels, medians over the
rounds; the set-up, which has the factors, is told beside them.
"""

from __future__ import annotations

import contextlib
import datetime
import random
import statistics
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from gpu_machine import describe_gpus
from records import RESULTS, command_line, unused_name, write
from rich.console import Console

import cpufree
from cpufree.bench.cg.problems import cases
from cpufree.bench.core.machine import describe_machine, describe_versions, source_state
from cpufree.errors import CpufreeError
from cpufree.extension import load_core
from cpufree.matrix.load import as_csr, load_matrix

SCHEMA = 1
SYSTEMS = ("gen:flange_hex", "gen:heart")
CHOICES: dict[str, dict[str, Any]] = {
    "jacobi": {"pc": "jacobi"},
    "chebyshev": {"pc": "chebyshev"},
    "block_jacobi": {"pc": "block_jacobi"},
    "fsai": {"pc": "fsai"},
    "fsai-2": {"pc": "fsai", "pc_level": 2},
}
tell = Console(stderr=True, highlight=False, soft_wrap=True)


def measure(
    A: Any, names: list[str], pes: int, how: dict[str, Any], rounds: int, seed: int
) -> dict[str, Any]:
    """Return what each preconditioner needs for a system on so many PEs."""
    matrix = as_csr(A)
    b = np.ones(matrix.shape[0])
    found: dict[str, Any] = {"rows": matrix.shape[0], "nnz": matrix.nnz, "pes": pes}
    with contextlib.ExitStack() as stack:
        solvers = {
            name: stack.enter_context(cpufree.Solver(matrix, pes=pes, **CHOICES[name]))
            for name in names
        }
        results: dict[str, list[Any]] = {name: [] for name in names}
        order = random.Random(seed)
        for _ in range(rounds):
            for name in order.sample(names, len(names)):
                results[name].append(solvers[name].solve(b, **how))
        for name, solver in solvers.items():
            last = results[name][-1]
            plan = solver.plan
            found[name] = {
                "reason": str(last.reason),
                "method": last.method,
                "iterations": last.iterations,
                "relative_residual": last.relative_residual,
                "seconds": [result.timings["kernel"] for result in results[name]],
                "median_seconds": statistics.median(r.timings["kernel"] for r in results[name]),
                "setup_seconds": solver.setup_seconds,
                "factor_seconds": last.timings.get("setup_system_factors", 0.0),
                "factor_entries": plan["factor_entries"],
                "factor_bytes": plan["factor_bytes"],
                "matrix_bytes": plan["matrix_bytes"],
            }
    return found


def show(name: str, found: dict[str, Any], names: list[str]) -> None:
    """Print a system's results, each beside the first one's."""
    first = found[names[0]]
    tell.print(f"{name}: {found['rows']} rows, {found['nnz']} nonzeros, {found['pes']} PEs")
    for key in names:
        one = found[key]
        fewer = first["iterations"] / max(1, one["iterations"])
        faster = first["median_seconds"] / one["median_seconds"]
        tell.print(
            f"  {key:<13}{one['iterations']:>7} iterations ({fewer:4.2f}x fewer)"
            f"{one['median_seconds'] * 1e3:>11.3f} ms ({faster:4.2f}x faster)"
            f"   set-up {one['setup_seconds']:.2f} s   {one['reason']}"
        )


def main(
    systems: Annotated[list[str] | None, typer.Argument(metavar="[SYSTEM]...")] = None,
    pes: Annotated[str, typer.Option(metavar="LIST", help="Numbers of PEs.")] = "1",
    rtol: Annotated[float, typer.Option(help="Tolerance.")] = 1e-8,
    method: Annotated[str, typer.Option(help="Method.")] = "prcg",
    pc: Annotated[str, typer.Option(metavar="LIST", help=", ".join(CHOICES))] = "all",
    rounds: Annotated[int, typer.Option(min=1, help="Solves of each.")] = 5,
    maxiter: Annotated[int, typer.Option(min=1, help="Most iterations.")] = 200_000,
    seed: Annotated[int, typer.Option(help="Of the order of solves.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Default: a new file in bench/results.")] = None,
) -> None:
    """Measure."""
    names = list(CHOICES) if pc == "all" else pc.split(",")
    if unknown := [name for name in names if name not in CHOICES]:
        raise typer.BadParameter(f"{unknown[0]}: choose from {', '.join(CHOICES)}")
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "preconditioners",
        "command": command_line(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "versions": describe_versions("c++"),
        "source": source_state(),
        "gpus": describe_gpus("cuda_p2p" if load_core().gpus() else "cpu_threads"),
        "rtol": rtol,
        "method": method,
        "results": [],
    }
    path = out or unused_name(RESULTS, "preconditioners")
    how = {"rtol": rtol, "method": method, "maxiter": maxiter}
    for case in cases(systems or list(SYSTEMS)):
        name, A = case.name, load_matrix(case.source)
        for count in (int(word) for word in pes.split(",")):
            try:
                found = measure(A, names, count, how, rounds, seed)
            except CpufreeError as error:
                tell.print(f"{name}, {count} PEs: {error}", style="red")
                record["results"].append({"name": name, "pes": count, "error": str(error)})
            else:
                show(name, found, names)
                record["results"].append({"name": name, **found})
            write(record, path)
    print(path)


if __name__ == "__main__":
    typer.run(main)
