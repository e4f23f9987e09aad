"""Many small systems at once: each by one core, or by one block of a GPU, side by side."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cpufree import options as schema
from cpufree.arguments import Engine, Method, Preconditioner
from cpufree.calls import public
from cpufree.device_arrays import cuda_device
from cpufree.docstrings import with_parameters
from cpufree.engines import choices, gpus
from cpufree.engines.watch import ProgressLike, Watch
from cpufree.errors import NotEnoughGpusError, UnsupportedError
from cpufree.extension import load_for
from cpufree.solvers.many.result import ManyResult
from cpufree.solvers.many.systems import Asked, batch_of, beside
from cpufree.solvers.result import Reason

METHODS = ("prcg", "cg")
PRECONDITIONERS = ("jacobi", "none")


@public
@with_parameters
def solve_many(
    systems: Any,
    b: Any = None,
    *,
    x0: Any = None,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    method: Method = "auto",
    pc: Preconditioner = "auto",
    engine: Engine = "auto",
    gpu: int | None = None,
    check: bool = True,
    time_limit: float | None = None,
    progress: ProgressLike = None,
) -> ManyResult:
    """Solve A_k x_k = b_k for many small systems at once, each with its own stopping test.

    Systems are solved by one core each, as many side by side as there are cores, or by one block
    of a GPU each, thousands in one kernel; there is no communication. Those that follow one with
    the same pattern share its layout, or its arrays. A system that fails, or whose matrix cannot be
    solved, leaves the others right: the result names it.

    Parameters
    ----------
    systems : list of (A, b), list of A, or (indptr, indices, data)
        Matrices as `solve` takes them; or compressed rows of one pattern, columns in order, with
        values `data` of shape (k, nnz). From NumPy, SciPy, CuPy and PyTorch.
    b : array (k, n) or list of k vectors
        Right-hand sides, where `systems` does not have them.
    x0 : array (k, n) or list of k vectors, optional
        First guesses.
    {rtol, atol}
    maxiter : int, optional
        Most iterations of each system, default 10 n.
    method : {"auto", "prcg", "cg"}, default "auto"
        "auto" is prcg, which sums once in an iteration.
    pc : {"auto", "jacobi", "none"}, default "auto"
        "auto" is jacobi.
    engine : {"auto", "cpu_threads", "cuda_p2p"}, default "auto"
        Where they are solved: on all cores, or on one GPU. "auto" is the GPU if b lies on one, else
        the cores.
    gpu : int, optional
        Number of the GPU, default that of b, or 0.
    {check}
    time_limit : float, optional
        Seconds for all systems together. Those that are then not done end with TIME_LIMIT.
    progress : function, optional
        On the cores: called with how many systems have ended, and 0.0; where it returns False, the
        rest ends.

    Returns
    -------
    ManyResult
        Solutions, reasons, iterations and residuals of all systems.

    Raises
    ------
    InvalidInputError
        And its kinds, for options and arrays that are no systems at all. What is wrong with one
        matrix or one b is in `ManyResult.errors`.
    UnsupportedError
        For another engine, method or preconditioner.

    Examples
    --------
    >>> import numpy as np
    >>> A = cpufree.generate.generate("poisson2d", nx=8, ny=8)
    >>> values = np.stack([A.data * scale for scale in (1.0, 2.0, 4.0)])
    >>> result = cpufree.solve_many((A.indptr, A.indices, values), np.ones((3, 64)), rtol=1e-8)
    >>> bool(result), result.x.shape
    (True, (3, 64))
    """
    begin = time.perf_counter()
    options = _options(method, pc, rtol, atol, maxiter, time_limit)
    watch = Watch(None if progress is True else progress)
    batch = batch_of(systems, b, x0)
    device = _gpu_of(engine, gpu, batch.like)
    found = batch.solve(Asked(options, device, check, watch))
    if watch.error is not None:
        raise watch.error
    for name in ("residual", "true_residual", "bnorm"):
        found[name][list(batch.errors)] = np.nan
    reasons = {name: Reason(name) for name in {*found["reasons"]} - {None}}
    kinds = [None if k in batch.errors else reasons[r] for k, r in enumerate(found["reasons"])]
    return ManyResult(
        x=beside(batch.like, batch.solutions()),
        converged=np.array([kind is not None and kind.converged for kind in kinds], dtype=bool),
        reasons=tuple(kinds),
        iterations=found["iterations"].astype(np.int64),
        residual=found["residual"],
        true_residual=found["true_residual"],
        bnorm=found["bnorm"],
        method=options["method"],
        pc=options["pc"],
        engine="cpu_threads" if device < 0 else "cuda_p2p",
        seconds=time.perf_counter() - begin,
        errors=dict(sorted(batch.errors.items())),
    )


def _options(
    method: str,
    pc: str,
    rtol: float,
    atol: float,
    maxiter: int | None,
    time_limit: float | None,
) -> dict[str, Any]:
    """Return the options as the core takes them, checked."""
    choices.one_of("method", method, schema.METHOD.choices)
    known = {"auto": METHODS[0]} | {name: name for name in METHODS}
    preconditioners = {"auto": PRECONDITIONERS[0]} | {name: name for name in PRECONDITIONERS}
    pc = choices.valid(schema.PC, pc)
    for name, asked, there in (("method", method, known), ("pc", pc, preconditioners)):
        if asked not in there:
            raise UnsupportedError(
                f"solve_many has no {name} {asked!r}: it takes {', '.join(there)}. "
                "cpufree.solve takes it, for one system at a time"
            )
    most = choices.valid(schema.MAXITER, maxiter)
    return {
        "method": known[method],
        "pc": preconditioners[pc],
        "rtol": choices.valid(schema.RTOL, rtol),
        "atol": choices.valid(schema.ATOL, atol),
        "maxiter": -1 if most is None else most,  # 10 n of each system
        "time_limit": choices.seconds("time_limit", time_limit, 0.0),
    }


def _gpu_of(engine: str, gpu: int | None, like: Any) -> int:
    """Return the number of the GPU that solves, -1 for the cores."""
    choices.one_of("engine", engine, schema.ENGINE.choices)
    if engine not in ("auto", "cpu_threads", "cuda_p2p"):
        raise UnsupportedError(
            f"solve_many does not run on the engine {engine}: it takes cpu_threads and cuda_p2p"
        )
    beside = cuda_device(like)
    if engine == "cpu_threads" or (engine == "auto" and gpu is None and beside is None):
        return -1
    load_for("cuda_p2p")  # it knows where kernels come from
    found = gpus.usable(gpus.find())
    number = beside or 0 if gpu is None else gpu
    if number not in [one.index for one in found]:
        raise NotEnoughGpusError(
            f"there is no GPU {number} here that can be used: leave engine and gpu out, and the "
            "cores solve; cpufree doctor says which GPUs there are"
        )
    return number
