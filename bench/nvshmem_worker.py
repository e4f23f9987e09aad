"""One process of bench/nvshmem.py, which starts it:

    python bench/nvshmem_worker.py '{"engine": "nvshmem", "pes": 8, ...}'
    cpufree run -n 8 python bench/nvshmem_worker.py '{...}'

Solves each system by each method, and has rank 0 write what was found. What it imports, and when,
is part of what is measured.
"""

from __future__ import annotations

import time

BEGAN = time.time()  # before anything is imported

import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import cpufree  # noqa: E402
from cpufree import distributed as ranks  # noqa: E402


def solver_of(asked: dict[str, Any], A: Any) -> cpufree.Solver:
    """Return a Solver on the engine that is asked for; in several processes each has one PE."""
    alone = asked["engine"] in ("cuda_p2p", "cpu_threads")
    return cpufree.Solver(A, engine=asked["engine"], pes=asked["pes"] if alone else "auto")


def solve_all(asked: dict[str, Any], solver: Any, matrix: str) -> list[dict[str, Any]]:
    """Return the seconds of an iteration of each solve, by each method."""
    b = np.ones(solver.shape[0])
    rows = []
    for method in asked["methods"]:
        results = [
            solver.solve(b, method=method, rtol=0.0, maxiter=asked["iterations"], wait_limit=20.0)
            for _ in range(1 + asked["solves"])
        ][1:]
        rows.append(
            {
                "matrix": matrix,
                "method": method,
                "iterations": results[0].iterations,
                "reason": str(results[0].reason),
                "nodes": solver.plan["nodes"],
                "seconds_per_iteration": [r.timings["per_iteration"] for r in results],
            }
        )
    return rows


def work(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what this process has found; the first solve of all is timed from the launch on."""
    start = {"until python": BEGAN - asked["launched"]}
    start["until imported"] = time.time() - asked["launched"]
    solves: list[dict[str, Any]] = []
    for number, matrix in enumerate(asked["matrices"]):
        A = cpufree.load_matrix(matrix)
        if number == 0:
            start["until matrix"] = time.time() - asked["launched"]
        with solver_of(asked, A) as solver:
            if number == 0:
                start["until set up"] = time.time() - asked["launched"]
                first = solver.solve(np.ones(A.shape[0]), rtol=0.0, maxiter=1)
                start["until first iteration"] = time.time() - asked["launched"]
                parts = {k: s for k, s in first.timings.items() if k.startswith("setup")}
                start |= {name.replace("_", " "): passed for name, passed in parts.items()}
            solves += solve_all(asked, solver, matrix)
    return {"start": start, "solves": solves}


def main(text: str) -> None:
    """Do what is asked; rank 0 writes it, with the latest times of all ranks."""
    asked = json.loads(text)
    found = work(asked)
    team = ranks.current()
    if team is not None:
        everybody = team.tell_all("times of the start", found["start"])
        for name in found["start"]:
            found["start"][name] = max(start[name] for start in everybody)
    if team is None or team.rank == 0:
        Path(asked["out"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
