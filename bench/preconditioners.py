"""Preconditioners inside the kernel: iterations and seconds to a tolerance, beside Jacobi.

    python bench/preconditioners.py [--pes 1,2] [--rtol 1e-8] [--out FILE.json] [SYSTEM]...

SYSTEM: a file, files:FOLDER, gen:NAME?key=value, or suite:NAME; by default, those by which it is
decided which preconditioners stay. Each is set up some times for each preconditioner, once more
before that counts, so that kernels are there, and solved with b = ones in rounds, one solve for
each preconditioner, in an order that is drawn anew. Seconds of solves are those of the kernels;
all are medians. The end tells, for each preconditioner, on which systems set-up and one solve
together are sooner than the first one's, and on which the solve alone is.
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
from cpufree.text import counted

SCHEMA = 2
SYSTEMS = (
    *("gen:poisson3d?nx=128,ny=128,nz=128", "gen:poisson2d?nx=2000,ny=2000"),
    *("gen:flange_hex", "gen:heart", "suite:paper18/consph-like"),
    *("suite:paper18/thermomech_dM-like", "suite:paper18/tmt_sym-like"),
    *("suite:paper18/bmwcra_1-like", "suite:paper18/G3_circuit-like"),
)
SETUPS = 3  # of each, besides the first
CHOICES: dict[str, dict[str, Any]] = {
    "jacobi": {"pc": "jacobi"},
    "chebyshev": {"pc": "chebyshev"},
    "block_jacobi": {"pc": "block_jacobi"},
    "fsai": {"pc": "fsai"},
    "fsai-2": {"pc": "fsai", "pc_level": 2},
}
tell = Console(stderr=True, highlight=False, soft_wrap=True)


def set_up(A: Any, pes: int, name: str, how: dict[str, Any]) -> tuple[Any, list[float]]:
    """Return a Solver with a preconditioner, and the seconds of set-ups; kernels are loaded."""
    seconds: list[float] = []
    while True:
        solver = cpufree.Solver(A, pes=pes, **CHOICES[name])
        seconds.append(solver.setup_seconds)
        if len(seconds) > SETUPS:
            return solver, seconds[1:]
        if len(seconds) == 1:
            solver.solve(np.ones(A.shape[0]), **{**how, "maxiter": 1})
        solver.close()


def measure(
    A: Any, names: list[str], pes: int, how: dict[str, Any], rounds: int, seed: int
) -> dict[str, Any]:
    """Return what each preconditioner needs for a system on so many PEs."""
    matrix = as_csr(A)
    b = np.ones(matrix.shape[0])
    found: dict[str, Any] = {"rows": matrix.shape[0], "nnz": matrix.nnz, "pes": pes}
    with contextlib.ExitStack() as stack:
        solvers, setups = {}, {}
        for name in names:
            solver, setups[name] = set_up(matrix, pes, name, how)
            solvers[name] = stack.enter_context(solver)
        results: dict[str, list[Any]] = {name: [] for name in names}
        order = random.Random(seed)
        for _ in range(rounds):
            for name in order.sample(names, len(names)):
                results[name].append(solvers[name].solve(b, **how))
        for name, solver in solvers.items():
            found[name] = facts_of(solver, results[name], setups[name])
    return found


def facts_of(solver: Any, results: list[Any], setups: list[float]) -> dict[str, Any]:
    """Return what the solves with a preconditioner, and its set-ups, have shown."""
    last, plan = results[-1], solver.plan
    seconds = [result.timings["kernel"] for result in results]
    solve, setup = statistics.median(seconds), statistics.median(setups)
    return {
        "reason": str(last.reason),
        "converged": last.converged,
        "method": last.method,
        "iterations": last.iterations,
        "relative_residual": last.relative_residual,
        "seconds": seconds,
        "median_seconds": solve,
        "setups": setups,
        "setup_seconds": setup,
        "total_seconds": setup + solve,
        "factor_seconds": last.timings.get("setup_system_factors", 0.0),
        "factor_entries": plan["factor_entries"],
        "factor_bytes": plan["factor_bytes"],
        "matrix_bytes": plan["matrix_bytes"],
    }


def verdicts(results: list[dict[str, Any]], names: list[str]) -> dict[str, dict[str, list[str]]]:
    """Return the systems on which each preconditioner is sooner than the first, by what counts."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in names[1:]:
        sooner: dict[str, list[str]] = {"total_seconds": [], "median_seconds": []}
        for one in results:
            if "error" in one or not one[name]["converged"]:
                continue
            for key, systems in sooner.items():
                if not one[names[0]]["converged"] or one[name][key] < one[names[0]][key]:
                    systems.append(f"{one['name']}, {counted(one['pes'], 'PE')}")
        found[name] = sooner
    return found


def show_verdicts(record: dict[str, Any], names: list[str]) -> None:
    """Print on which systems preconditioners pay."""
    for name, sooner in record["sooner"].items():
        for key, what in (("total_seconds", "set-up and solve"), ("median_seconds", "solve alone")):
            systems = "; ".join(sooner[key]) or "no system"
            tell.print(f"{name}, {what}, sooner than {names[0]} on: {systems}")


def show(name: str, found: dict[str, Any], names: list[str]) -> None:
    """Print a system's results, each beside the first one's."""
    first = found[names[0]]
    tell.print(
        f"{name}: {found['rows']} rows, {found['nnz']} nonzeros, {counted(found['pes'], 'PE')}"
    )
    for key in names:
        one = found[key]
        fewer = first["iterations"] / max(1, one["iterations"])
        faster = first["median_seconds"] / one["median_seconds"]
        tell.print(
            f"  {key:<13}{one['iterations']:>7} iterations ({fewer:4.2f}x fewer)"
            f"{one['median_seconds'] * 1e3:>11.3f} ms ({faster:4.2f}x faster)"
            f"   set-up {one['setup_seconds']:.3f} s, both {one['total_seconds']:.3f} s"
            f"   {one['reason']}"
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
                tell.print(f"{name}, {counted(count, 'PE')}: {error}", style="red")
                record["results"].append({"name": name, "pes": count, "error": str(error)})
            else:
                show(name, found, names)
                record["results"].append({"name": name, **found})
            record["sooner"] = verdicts(record["results"], names)
            write(record, path)
    show_verdicts(record, names)
    print(path)


if __name__ == "__main__":
    typer.run(main)
