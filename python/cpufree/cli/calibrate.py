"""Solves by which a machine is calibrated."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from cpufree.cli.system_facts import facts_of
from cpufree.engines import choices, gpus
from cpufree.engines.gpu_choice import Size, candidates
from cpufree.model.calibrate import LARGE, METHOD, SMALL, THIN, Solve

if TYPE_CHECKING:
    from cpufree.machine import Machine
    from cpufree.matrix.problem import CsrMatrix

SIDES = {
    SMALL: ((24, 24, 24), (24, 24, 24)),
    LARGE: ((72, 72, 72), (160, 160, 160)),
    THIN: ((1024, 1024, 4), (1024, 1024, 4)),
}
"""Points of the sides on the CPU, and on GPUs: what latency bounds, what memory does, and what
consecutive rows exchange much of."""
ROWS = "contiguous"
ITERATIONS = 50
REPEATS = 3


def measured_solves(like: Machine) -> list[Solve]:
    """Return solves of Poisson systems on the CPU, and on 1, 2, 4, ... GPUs if there are any."""
    there = len(gpus.usable(gpus.find()))
    found = [one for what in (SMALL, LARGE) for one in _solves(what, 0, like)]
    # Fewer GPUs first: each start of CUDA is told by the first solve on one more of them.
    for count in candidates(there) if there else []:
        systems = (SMALL, LARGE, THIN) if count > 1 else (SMALL, LARGE)
        found += [one for what in systems for one in _solves(what, count, like)]
    return found


def _solves(what: str, count: int, like: Machine) -> list[Solve]:
    import numpy as np

    import cpufree

    A = _system(*SIDES[what][count > 0])
    size = Size(A.shape[0], A.nnz, 8)
    where: dict[str, Any] = {"engine": "cuda_p2p", "pes": count} if count else {
        "engine": "cpu_threads", "blocks": choices.available_cores(),
    }  # fmt: skip
    facts = facts_of(A, [count], like, ROWS)[0] if count else None
    found = []
    for _ in range(REPEATS):
        with cpufree.Solver(A, partition=ROWS, pc="none", **where) as solver:
            ones = np.ones(A.shape[0])
            done = solver.solve(ones, method=METHOD, rtol=1e-30, maxiter=ITERATIONS)
        times = done.timings
        start = times.get("setup_system_context", 0.0)
        setup, iteration = times["setup"] - start, times["solve_kernel"] / ITERATIONS
        took = setup, start, iteration
        found.append(Solve(what, count, size.nnz, size.moved, *took, ITERATIONS, facts))
    return found


@functools.lru_cache(maxsize=3)
def _system(nx: int, ny: int, nz: int) -> CsrMatrix:
    from cpufree.generate import poisson3d
    from cpufree.matrix.load import as_csr

    return as_csr(poisson3d(nx, ny, nz))
