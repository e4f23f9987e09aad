"""A solve that begins with Jacobi and goes on with multigrid where its residual says so."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cpufree.errors import OutOfMemoryError
from cpufree.log import logger
from cpufree.solvers.amg_gain import Trial
from cpufree.solvers.result import Reason, Result

SUMS = ("reductions", "exchanges", "replacements")


def pays(trial: Trial, begun: Result) -> bool:
    """Return whether to go on with multigrid, by the residuals of a trial that has ended."""
    first, last = float(begun.history[0]), begun.true_residual
    least = float(np.min(begun.history)) / first if first > 0.0 else 0.0
    return trial.pays(least, begun.tolerance / last if last > 0.0 else 1.0)


def is_over(begun: Result, maxiter: int) -> bool:
    """Return whether a trial was all of the solve."""
    return begun.reason is not Reason.DIVERGED_ITS or begun.iterations >= maxiter


def takes_multigrid(matrix: Any, begun: Result) -> str:
    """Set multigrid up where the trial says so; return why, or why not.

    matrix: a MatrixOnPes on trial, which is none afterwards.
    """
    trial = matrix.layout.trial
    after = f"the residual has fallen to {begun.relative_residual:.1e} in {begun.iterations}"
    if not pays(trial, begun):
        matrix.end_trial()
        return f"jacobi: {after} iterations, and goes on"
    try:
        matrix.take_multigrid()
    except OutOfMemoryError as error:
        matrix.end_trial()
        logger.warning("pc='auto' stays with jacobi: %s", error)
        return f"jacobi: {after} iterations, and multigrid has no room: {error}"
    return f"amg: {after} iterations with jacobi only"


def joined(begun: Result, ended: Result, why: str) -> Result:
    """Return the Result of a solve that went on from the x of another one."""
    timings = {
        name: seconds + begun.timings.get(name, 0.0)
        if name.startswith(("solve", "kernel"))
        else seconds
        for name, seconds in ended.timings.items()
    }
    iterations = begun.iterations + ended.iterations
    if iterations:
        timings["per_iteration"] = timings.get("kernel", 0.0) / iterations
    counts = {
        name: value + begun.counts.get(name, 0.0) if name in SUMS else value
        for name, value in ended.counts.items()
    }
    history = ended.history
    if begun.history_stride == ended.history_stride == 1:
        history = np.concatenate([begun.history[:-1], ended.history])
    return dataclasses.replace(
        ended,
        iterations=iterations,
        history=history,
        timings=timings,
        counts=counts,
        why=f"{ended.why}; {why}",
    )
