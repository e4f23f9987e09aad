"""Solves by which a machine is calibrated."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

from cpufree.cli.model.system_facts import facts_of
from cpufree.engines import choices, gpus
from cpufree.engines.gpu_choice import Size, candidates
from cpufree.errors import CpufreeWarning, EngineError, OutOfMemoryError
from cpufree.model.calibrate import LARGE, METHOD, SMALL, THIN, Solve
from cpufree.text import counted

if TYPE_CHECKING:
    from cpufree.machine import Machine
    from cpufree.matrix.problem import CsrMatrix

SIDES = {SMALL: (24, 24, 24), LARGE: (72, 72, 72), THIN: (1024, 1024, 4)}
"""Points of the sides of grids: what latency bounds, what memory does on CPUs, and what consecutive
rows exchange much of."""
BAND = (300_000, 20)
"""Rows, and neighbours on either side, of what memory bounds on GPUs: bytes of values, all of them
different, and little else."""
ROWS = "contiguous"
ITERATIONS = 50
REPEATS = 3
TIME_LIMIT, WAIT_LIMIT = 10.0, 5.0
"""Seconds of the kernels of a solve, which take milliseconds, and of a wait of theirs."""


def measured_solves(like: Machine) -> list[Solve]:
    """Return solves of Poisson systems on the CPU, and on 1, 2, 4, ... GPUs if there are any."""
    there = len(gpus.usable(gpus.find()))
    found = [one for what in (SMALL, LARGE) for one in _solves(what, 0, like)]
    # Fewer GPUs first: each start of CUDA is told by the first solve on one more of them.
    for count in candidates(there) if there else []:
        systems = (SMALL, LARGE, THIN) if count > 1 else (SMALL, LARGE)
        try:
            found += [one for what in systems for one in _solves(what, count, like)]
        except (EngineError, OutOfMemoryError) as error:
            if count == 1:
                raise
            warnings.warn(
                f"solves on {count} GPUs failed, so that the file tells of fewer: {error}",
                CpufreeWarning,
                stacklevel=2,
            )
            break
    return found


def _solves(what: str, count: int, like: Machine) -> list[Solve]:
    import numpy as np

    import cpufree

    A = _band(*BAND) if count and what == LARGE else _grid(*SIDES[what])
    size = Size(A.shape[0], A.nnz, 8)
    where: dict[str, Any] = {"engine": "cuda_p2p", "pes": count} if count else {
        "engine": "cpu_threads", "blocks": choices.available_cores(),
    }  # fmt: skip
    facts = facts_of(A, [count], like, ROWS)[0] if count else None
    found = []
    for _ in range(REPEATS):
        with cpufree.Solver(A, partition=ROWS, pc="none", **where) as solver:
            ones = np.ones(A.shape[0])
            done = solver.solve(
                ones, method=METHOD, rtol=1e-30, maxiter=ITERATIONS, time_limit=TIME_LIMIT,
                wait_limit=WAIT_LIMIT,
            )  # fmt: skip
        times = done.timings
        _require_whole(done.iterations, times["solve_kernel"], what, count)
        start = times.get("setup_system_context", 0.0)
        setup, iteration = times["setup"] - start, times["solve_kernel"] / ITERATIONS
        took = setup, start, iteration
        found.append(Solve(what, count, size.nnz, size.moved, *took, ITERATIONS, facts))
    return found


def _require_whole(iterations: int, seconds: float, what: str, count: int) -> None:
    """Raise EngineError where a solve is not what it should be: its times tell nothing then."""
    if iterations == ITERATIONS and 0.0 < seconds < TIME_LIMIT:
        return
    place = counted(count, "GPU") if count else "the CPU"
    raise EngineError(
        f"the {what} system on {place} took {seconds:.3g} s for {counted(iterations, 'iteration')} "
        f"of {ITERATIONS}: the machine is too busy, or does not work; calibrate it again"
    )


@functools.lru_cache(maxsize=2)
def _grid(nx: int, ny: int, nz: int) -> CsrMatrix:
    from cpufree.generate import poisson3d
    from cpufree.matrix.load import as_csr

    return as_csr(poisson3d(nx, ny, nz))


@functools.cache
def _band(rows: int, near: int) -> CsrMatrix:
    """Return a Laplacian of weights between rows and the next ones, which takes long to solve."""
    import numpy as np
    import scipy.sparse as sp

    from cpufree.matrix.load import as_csr

    random, values = np.random.default_rng(0), np.zeros((rows, 2 * near + 1))
    for k in range(1, near + 1):
        weights = random.uniform(0.5, 1.5, rows - k)
        values[:-k, near + k] = values[k:, near - k] = -weights
    values[:, near] = 1e-6 - values.sum(axis=1)
    columns = np.arange(rows, dtype=np.int32)[:, None] + np.arange(-near, near + 1, dtype=np.int32)
    there = (columns >= 0) & (columns < rows)
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return as_csr(sp.csr_array((values[there], columns[there], starts), shape=(rows, rows)))
