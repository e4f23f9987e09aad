"""Several right-hand sides, the columns of an array: apart before a solve, together after it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.device_arrays import cuda_device, gradient_advice
from cpufree.dtypes import dtype_name
from cpufree.errors import VectorError
from cpufree.matrix.io.vectors import is_path
from cpufree.matrix.sparse import issparse
from cpufree.solvers import on_gpu
from cpufree.solvers.result import Reason, Result


def described(b: Any) -> str:
    """Return what a right-hand side is, in a few words: type and shape, or the file."""
    if is_path(b):
        return f"file {os.fspath(b)}"
    kind = dtype_name(b) or type(b).__name__
    return f"{kind} {shape_of(b)}"


def shape_of(v: Any) -> tuple[int, ...]:
    """Return the shape of an array or list; () for what is none."""
    if cuda_device(v) is not None:
        return tuple(getattr(v, "shape", ()))
    if issparse(v):
        return ()  # as_vector says what to do
    try:
        return np.shape(v)
    except ValueError:  # lists of unequal lengths
        return ()


def count_columns(b: Any, x0: Any, n: int) -> int:
    """Return how many right-hand sides b has, 1 for a vector, once the shapes agree.

    Args:
        n: numbers in a vector.

    Raises:
        VectorError: b or x0 is two-dimensional and does not fit, or is to be differentiated.
            Vectors are checked elsewhere.
    """
    for name, v in (("b", b), ("x0", x0)):
        if advice := gradient_advice(v, name):
            raise VectorError(advice)
    shape = shape_of(b)
    if len(shape) < 2 or shape in ((n, 1), (1, n)):
        return 1
    if len(shape) > 2 or shape[0] != n:
        hint = "; pass b.T" if len(shape) == 2 and shape[1] == n else ""
        raise VectorError(
            f"b has shape {shape}, but the matrix has {n} rows; b must have shape ({n},), or "
            f"({n}, k) with a column for each right-hand side{hint}"
        )
    if shape[1] == 0:
        raise VectorError(f"b has shape {shape}: there is no right-hand side in it")
    if x0 is not None and shape_of(x0) != shape:
        raise VectorError(
            f"x0 has shape {shape_of(x0)}, but b has {shape}: give a guess for each column"
        )
    return shape[1]


def as_matrix(v: Any) -> Any:
    """Return right-hand sides or guesses as an array that can be asked for its columns."""
    if v is None or cuda_device(v) is not None or isinstance(v, np.ndarray):
        return v
    return np.asarray(v)


def column(v: Any, number: int) -> Any:
    """Return a column, contiguous on a GPU; None for None."""
    if v is None:
        return None
    return v[:, number] if cuda_device(v) is None else on_gpu.column(v, number)


class Solutions:
    """The array for x, which is filled column by column."""

    def __init__(self, b: Any, dtype: npt.DTypeLike) -> None:
        # In the order of Fortran a column is contiguous.
        on_host = cuda_device(b) is None
        self.x = np.empty(b.shape, dtype, order="F") if on_host else on_gpu.empty_beside(b)

    def put(self, number: int, result: Result) -> Result:
        """Take x of a column; return its Result, with a view of that."""
        self.x[:, number] = result.x
        return dataclasses.replace(result, x=self.x[:, number])


def unsolved(judged: Result) -> Result:
    """Return the Result of a column that was not begun, as the solve was interrupted.

    `judged` tells of its guess, after no iteration.
    """
    if judged.converged:
        return judged
    return dataclasses.replace(judged, reason=Reason.INTERRUPTED)


def together(x: Any, groups: Sequence[Sequence[Result]], why: str) -> Result:
    """Return one Result for all columns; see Result.

    Args:
        groups: the Results of columns that were solved together, in one kernel, whose times and
            counts each of them has.
        why: they were solved so.
    """
    columns = [result for group in groups for result in group]
    once = [group[0] for group in groups]
    failed = [result for result in columns if not result.converged]
    worst = failed[0] if failed else max(columns, key=lambda result: result.relative_residual)
    iterations = sum(result.iterations for result in columns)
    kernel = sum(result.timings["kernel"] for result in once)
    parts = {n for result in once for n in result.timings if n.startswith("solve")}
    timings = {
        **columns[0].timings,
        **{n: sum(result.timings.get(n, 0.0) for result in once) for n in sorted(parts)},
        "kernel": kernel,
        "per_iteration": kernel / max(1, iterations),
    }
    counts = {
        "reductions": sum(result.counts["reductions"] for result in once),
        "exchanges": sum(result.counts["exchanges"] for result in once),
        "replacements": sum(result.counts["replacements"] for result in columns),
        "dependent": sum(result.counts["dependent"] for result in columns),
    }
    return dataclasses.replace(
        worst,
        x=x,
        converged=not failed,
        iterations=iterations,
        disturbances=sum(result.disturbances for result in once),
        timings=timings,
        counts={**worst.counts, **counts},
        warnings=tuple(warnings_of(columns)),
        why="; ".join([why, *dependent_columns(columns), worst.why]),
        outside=max(result.outside for result in columns),
        columns=tuple(columns),
    )


def dependent_columns(columns: Sequence[Result]) -> list[str]:
    """Return which columns of blocks depend on the others, in words, if any do."""
    numbers = [n for n, result in enumerate(columns) if result.counts["dependent"]]
    if not numbers:
        return []
    if len(numbers) == 1:
        return [f"column {numbers[0]} depends on the others, and needs no directions"]
    names = ", ".join(str(number) for number in numbers)
    return [f"columns {names} depend on the others, and need no directions"]


def warnings_of(columns: Sequence[Result]) -> list[str]:
    """Return the warnings of all columns, those that all have in common once."""
    common = [note for note in columns[0].warnings if all(note in c.warnings for c in columns)]
    own = [
        f"column {number}: {note}"
        for number, result in enumerate(columns)
        for note in result.warnings
        if note not in common
    ]
    return [*common, *own]
