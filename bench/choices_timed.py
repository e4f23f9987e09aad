"""Seconds to an answer with each choice of PEs and with "auto", in one process in which CUDA runs.

    python bench/choices_timed.py FILE... [--pes 1,2] [--rounds 3] [--engine E] [--cpu-most NNZ]

Each matrix is read once. A line of JSON is printed for each round and choice: seconds of the set-up
and of a solve of A x = 1 to 1e-8, what was chosen, and why. The first round loads kernels and is to
be left aside. The CPU is a choice up to --cpu-most nonzeros. A matrix whose solve does not
converge is left: no choice has an answer for it. `bench/gpu_time.py` runs this for the matrices of
suites.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import cpufree
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix

app = typer.Typer(add_completion=False)
RTOL = 1e-8
MOST = 30_000  # iterations


def timed(A: CsrMatrix, where: dict[str, Any]) -> dict[str, Any]:
    """Set up and solve once; return seconds and what was done."""
    b = np.ones(A.shape[0])
    begin = time.perf_counter()
    with cpufree.Solver(A, **where) as solver:
        made = time.perf_counter()
        result = solver.solve(b, rtol=RTOL, maxiter=MOST)
        end = time.perf_counter()
    found: dict[str, Any] = {}
    found |= {"seconds": end - begin, "set_up": made - begin, "iterations": result.iterations}
    found |= {"converged": bool(result.converged), "method": result.method, "pes": result.pes}
    phases = {name: t for name, t in solver._matrix.setup_timings.items() if t > 1e-4}
    return found | {"engine": result.engine, "why": result.why, "timings": phases}


@app.command()
def main(
    files: list[Path],
    pes: str = "1,2",
    rounds: int = 3,
    engine: str = "cuda_p2p",
    cpu_most: Annotated[int, typer.Option(help="Nonzeros for which the CPU is a choice.")] = 0,
) -> None:
    """Measure all choices in random order, a round after the other, of a matrix after the other."""
    auto: dict[str, Any] = {} if engine == "cuda_p2p" else {"engine": engine}
    places = {"auto": auto}
    places |= {f"{count} PEs": {"engine": engine, "pes": int(count)} for count in pes.split(",")}
    for file in files:
        A = as_csr(file)
        more = {"CPU": {"engine": "cpu_threads"}} if A.nnz <= cpu_most else {}
        measure(file.stem, A, {**places, **more}, rounds)


def measure(name: str, A: CsrMatrix, places: dict[str, dict[str, Any]], rounds: int) -> None:
    """Print the lines of a matrix."""
    facts = {"kind": "choice", "case": name, "rows": A.shape[0], "nnz": A.nnz}
    for number in range(rounds):
        order = random.Random(number).sample(list(places), len(places))
        for choice in order:
            try:
                found = timed(A, places[choice])
            except cpufree.CpufreeError as error:
                found = {"kind": "failure", "error": str(error)[:300]}
            print(json.dumps({**facts, "choice": choice, "round": number, **found}), flush=True)
            if found.get("converged") is False:
                return


if __name__ == "__main__":
    app()
