"""Set up and solve at once."""

from __future__ import annotations

from typing import Any

from ..parts import PartitionLike
from ..result import Result
from .solver import Solver
from .watch import Progress


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
    """Solve A x = b, A sparse, symmetric and positive definite, to the accuracy asked for.

    A, pes, blocks, engine, gpus, reorder, partition and check are those of Solver; the other
    parameters those of Solver.solve. The solve is in float32 where A and b are, else in float64.

    Returns a Result; raises as Solver and Solver.solve do.
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
