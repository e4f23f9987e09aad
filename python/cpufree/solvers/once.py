"""Set up and solve at once."""

from __future__ import annotations

import os

from cpufree.arguments import (
    Columns,
    Count,
    Engine,
    Gpus,
    Method,
    Order,
    Precision,
    Preconditioner,
    VectorLike,
)
from cpufree.calls import public
from cpufree.docstrings import with_parameters
from cpufree.engines.watch import ProgressLike
from cpufree.matrix.given_factor import Factor
from cpufree.matrix.problem import MatrixLike
from cpufree.multigrid.given_levels import Levels
from cpufree.multigrid.near_nullspace import ModesLike
from cpufree.partition.part_vector import PartitionLike
from cpufree.solvers.factors import within_call
from cpufree.solvers.forecast import ExpectedCall, workload_of
from cpufree.solvers.nullspace import NullSpaceLike
from cpufree.solvers.result import Result
from cpufree.solvers.solver import Solver
from cpufree.trace.asked import TraceGiven


@public
@with_parameters
def solve(
    A: MatrixLike,
    b: VectorLike,
    *,
    x0: VectorLike | None = None,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    method: Method = "auto",
    pc: Preconditioner | Levels | Factor = "auto",
    pc_level: int = 1,
    nullspace: NullSpaceLike = None,
    near_nullspace: ModesLike = None,
    coordinates: ModesLike = None,
    unknowns: str = "auto",
    pes: Count = "auto",
    blocks: Count = "auto",
    engine: Engine = "auto",
    gpus: Gpus = "auto",
    reorder: Order = "auto",
    partition: PartitionLike = "auto",
    partition_cache: str | os.PathLike[str] | None = None,
    check: bool = True,
    precision: Precision | None = None,
    time_limit: float | None = None,
    wait_limit: float | None = None,
    progress: ProgressLike = None,
    replace_every: int = 50,
    chebyshev_degree: int = 4,
    columns: Columns = "auto",
    trace: TraceGiven = None,
) -> Result:
    """Solve A x = b, A sparse, symmetric and positive definite, and report on it.

    The solve is in float32 where A and b both are, else in float64.

    Parameters
    ----------
    {A, b, x0, rtol, atol, maxiter, method, pc, pc_level, nullspace, near_nullspace}
    {coordinates, unknowns, time_limit, wait_limit, progress, replace_every, chebyshev_degree}
    {columns, engine, gpus, pes, blocks, partition, partition_cache, reorder, check, precision}
    {trace}

    Returns
    -------
    Result
        Solution, reason for the end, both residuals, history and times. Non-convergence is a
        reason, not an exception.

    Raises
    ------
    InvalidInputError
        And its kinds MatrixError and VectorError, for data or options that cannot be used.
    UnsupportedError, NotEnoughGpusError
        For an engine or GPUs that are not available.
    OutOfMemoryError
        Of the host or of a GPU.
    WaitTimeoutError
        Where a wait outlasts wait_limit.
    Exception
        Whatever progress raises.

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
        partition_cache=partition_cache,
        check=check,
        precision=precision,
        pc=within_call(pc, method, columns),
        pc_level=pc_level,
        nullspace=nullspace,
        near_nullspace=near_nullspace,
        coordinates=coordinates,
        unknowns=unknowns,
        _call=ExpectedCall(workload_of(b, rtol, maxiter), b, method),
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
            columns=columns,
            trace=trace,
        )
