"""Solves by which a machine is calibrated."""

from __future__ import annotations

from typing import Any

from cpufree.engines import choices, gpus
from cpufree.engines.gpu_choice import Size, candidates
from cpufree.model.calibrate import Solve

SMALL, LARGE = 24, 72
"""Points of a side of the systems on the CPU: one that latency bounds, one that memory does."""
LARGE_ON_GPUS = 160
ITERATIONS = 50
REPEATS = 3


def measured_solves() -> list[Solve]:
    """Return solves of Poisson systems on the CPU, and on 1, 2, 4, ... GPUs if there are any."""
    there = len(gpus.usable(gpus.find()))
    found = [one for side in (SMALL, LARGE) for one in _solves(side, 0)]
    # Fewer GPUs first: each start of CUDA is told by the first solve on one more of them.
    for count in candidates(there) if there else []:
        found += [one for side in (SMALL, LARGE_ON_GPUS) for one in _solves(side, count)]
    return found


def _solves(side: int, count: int) -> list[Solve]:
    import numpy as np

    import cpufree

    A = cpufree.generate.poisson3d(side, side, side)
    size = Size(A.shape[0], A.nnz, 8)
    where: dict[str, Any] = {"engine": "cuda_p2p", "pes": count} if count else {
        "engine": "cpu_threads", "blocks": choices.available_cores(),
    }  # fmt: skip
    found = []
    for _ in range(REPEATS):
        with cpufree.Solver(A, **where) as solver:
            times = solver.solve(np.ones(A.shape[0]), rtol=1e-30, maxiter=ITERATIONS).timings
        start = times.get("setup_system_context", 0.0)
        iteration = times["solve_kernel"] / ITERATIONS
        found.append(Solve(count, size.nnz, size.moved, times["setup"] - start, start, iteration))
    return found
