"""Set up and solve at once."""

from __future__ import annotations

from typing import Any

from cpufree.engines.watch import Progress
from cpufree.partition.part_vector import PartitionLike
from cpufree.solvers.result import Result
from cpufree.solvers.solver import Solver


def solve(
    A: Any,
    b: Any,
    *,
    x0: Any = None,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    method: str = "auto",
    pc: str = "jacobi",
    pes: int | str = "auto",
    blocks: int | str = "auto",
    engine: str = "auto",
    gpus: Any = "auto",
    reorder: str | bool = "auto",
    partition: PartitionLike = "auto",
    check: bool = True,
    time_limit: float | None = None,
    wait_limit: float | None = None,
    progress: Progress | None = None,
    replace_every: int = 50,
    chebyshev_degree: int = 4,
) -> Result:
    """Solve A x = b, A sparse, symmetric and positive definite, and report on it.

    The solve is in float32 where A and b both are, else in float64.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
        As of `Solver`.
    b : array, shape (n,) or (n, 1)
        Right-hand side, finite; NumPy, an array of CuPy or PyTorch on a GPU, or the path of a file
        that `load_vector` reads.
    x0 : array, shape (n,) or (n, 1), optional
        First guess; default zero.
    rtol, atol : float
        The solve ends where ‖b - A x‖₂ ≤ max(rtol ‖b‖₂, atol).
    maxiter, method, pc, time_limit, wait_limit, progress, replace_every, chebyshev_degree
        As of `Solver.solve`.
    pes, blocks, engine, gpus, reorder, partition, check
        As of `Solver`.

    Returns
    -------
    Result
        Solution, reason for the end, both residuals, history and times. Non-convergence is a
        reason, not an exception.

    Raises
    ------
    InvalidInputError, UnsupportedError, OutOfMemoryError, WaitTimeoutError
        As `Solver` and `Solver.solve`.

    Examples
    --------
    >>> import numpy as np
    >>> A = cpufree.generate.generate("poisson2d", nx=32, ny=32)
    >>> result = cpufree.solve(A, np.ones(1024), rtol=1e-8)
    >>> result.converged, str(result.reason)
    (True, 'CONVERGED_RTOL')
    >>> result.relative_residual <= 1e-8
    True
    """
    with Solver(
        A,
        pes=pes,
        blocks=blocks,
        engine=engine,
        gpus=gpus,
        reorder=reorder,
        partition=partition,
        check=check,
        _right=b,
    ) as solver:
        return solver.solve(
            b,
            x0,
            rtol=rtol,
            atol=atol,
            maxiter=maxiter,
            method=method,
            pc=pc,
            time_limit=time_limit,
            wait_limit=wait_limit,
            progress=progress,
            replace_every=replace_every,
            chebyshev_degree=chebyshev_degree,
        )
