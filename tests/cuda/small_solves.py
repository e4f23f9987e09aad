"""Small solves with all methods and preconditioners, right or wrong: a case for compute-sanitizer.

    compute-sanitizer --tool racecheck python tests/cuda/small_solves.py --pes 2

Few rows, few blocks and few iterations, because tools slow kernels down a hundredfold and more.
Exit status 1 where the residual that a solve reports is not that of its solution.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from cpufree import generate
from cpufree.extension import load_core
from cpufree.matrix.load import as_csr
from cpufree.partition.methods import contiguous

METHODS = ("cg", "prcg", "pipecg")
PRECONDITIONERS = ("none", "jacobi", "chebyshev", "fsai")
# With everything on chip or nothing, through rings, and every way in which rows travel.
TUNINGS = (
    {"halo": 1, "residency": 1, "ring": 2},
    {"halo": 0, "residency": 1, "lanes_log2": 2},
    {"halo": 0, "residency": 0},
    {"halo": 1, "residency": -1},
    {"halo": 2, "residency": -1},
    {"halo": 2, "residency": -1, "lanes_log2": 2},
    {"halo": 2, "residency": 0, "compress": 0},
)
BLOCKS, THREADS = 3, 64
WAIT_LIMIT = 600.0  # seconds; what is instrumented is slow


def solve_all(pes: int, engine: str, side: int, unknowns: int, iterations: int) -> list[str]:
    """Run all combinations; return what is wrong."""
    coupling = np.eye(unknowns) + 0.1 * np.add.outer(np.arange(unknowns), np.arange(unknowns))
    A = as_csr(sp.csr_array(sp.kron(generate.poisson2d(side, side), coupling)))
    exact = A.to_scipy()
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    part = contiguous(A, pes) if pes > 1 else None
    on_gpu = engine == "cuda_p2p"
    devices = [gpu["index"] for gpu in load_core().gpus()][:pes] if on_gpu else []
    wrong = []
    for tuning in TUNINGS:
        chosen = {**tuning, "threads": THREADS} if on_gpu else {"halo": min(tuning["halo"], 1)}
        chosen |= {"pc": "fsai", "pc_level": 2}
        system = load_core().System(
            A.indptr, A.indices, A.data, part, None, pes, BLOCKS, engine, devices, chosen
        )
        for method, pc in itertools.product(METHODS, PRECONDITIONERS):
            options = {"method": method, "pc": pc, "rtol": 0.0, "maxiter": iterations}
            options |= {"wait_limit": WAIT_LIMIT, "replace_every": 3}
            outcome = system.solve(b, None, None, options, None)
            name = f"{pes} PEs, {method}, {pc}, {chosen}"
            told = outcome["true_residual"]
            true = float(np.linalg.norm(b - exact @ outcome["x"]))
            print(f"{name}: {outcome['iterations']} iterations, residual {told:.6e}", flush=True)
            if outcome["iterations"] != iterations or abs(told - true) > 1e-8 * true:
                wrong.append(f"{name}: reported {told}, true {true}, {outcome['reason']}")
        if not system.refuses_columns():
            wrong += solve_columns(system, exact, iterations, f"{pes} PEs, {chosen}")
    return wrong


def solve_columns(system: Any, exact: sp.csr_array, iterations: int, where: str) -> list[str]:
    """Solve for four right-hand sides together; return what is wrong."""
    rights = np.random.default_rng(2).standard_normal((4, exact.shape[0]))
    options = {"method": "cg", "rtol": 0.0, "maxiter": iterations, "wait_limit": WAIT_LIMIT}
    wrong = []
    for k, outcome in enumerate(system.solve_columns(list(rights), None, None, options, None)):
        told = outcome["true_residual"]
        true = float(np.linalg.norm(rights[k] - exact @ outcome["x"]))
        name = f"{where}, column {k} of 4"
        print(f"{name}: {outcome['iterations']} iterations, residual {told:.6e}", flush=True)
        if outcome["iterations"] != iterations or abs(told - true) > 1e-8 * true:
            wrong.append(f"{name}: reported {told}, true {true}, {outcome['reason']}")
    return wrong


def main() -> int:
    """Solve, and say what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pes", type=int, default=1, help="GPUs to use")
    parser.add_argument("--engine", default="cuda_p2p", help=argparse.SUPPRESS)
    parser.add_argument("--side", type=int, default=12, help="points along a side of the grid")
    parser.add_argument(
        "--unknowns", type=int, default=1, help="of a point; of three, columns come in runs"
    )
    parser.add_argument("--iterations", type=int, default=5)
    given = parser.parse_args()
    wrong = solve_all(given.pes, given.engine, given.side, given.unknowns, given.iterations)
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
