"""Set-up of a matrix: who checks it, where it goes, which PE owns which rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy.typing as npt

from cpufree.engines.early import start_gpus
from cpufree.engines.gpu_choice import Size
from cpufree.engines.method_choice import OTHERS
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.place import place
from cpufree.engines.placement import Placement
from cpufree.errors import UnsupportedError
from cpufree.extension import load_core
from cpufree.laps import Laps
from cpufree.log import logger
from cpufree.matrix.gpu_csr import gpu_csr
from cpufree.matrix.load import as_csr, canonical_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.rows import RowSlab, RowSource
from cpufree.partition.cache import PartitionCache
from cpufree.solvers.forecast import forecast, with_first_solve
from cpufree.solvers.precision import solve_type
from cpufree.solvers.setup import agreement, gpu_layout, own_rows
from cpufree.solvers.setup.layout import Layout, MatrixSetup, Sharing, in_team, lay_out
from cpufree.solvers.setup.options import SetupContext
from cpufree.solvers.setup.preparation import (
    Prepared,
    check_matrix,
    prepare,
    solve_dtype,
    symmetry_warnings,
)
from cpufree.solvers.work import SystemWork


def set_up(A: Any, context: SetupContext, laps: Laps) -> MatrixSetup:
    """Set a matrix up, as Solver takes it; laps of the set-up are added."""
    if isinstance(A, (RowSlab, RowSource)):
        if context.of_complex:
            raise UnsupportedError(
                "rows of a part of a complex matrix cannot be given: pass the whole matrix in "
                "each process"
            )
        return own_rows.lay_out(A, context, _dtype(A, context), laps)
    if isinstance(A, (str, os.PathLike)):
        start_gpus(context.asked, context.env, A)
    given = gpu_csr(A) if context.team is None and not context.of_complex else None
    if given is not None:
        made = gpu_layout.lay_out_on_gpu(given, context, _dtype(given, context), laps)
        if isinstance(made, MatrixSetup):
            return made
        logger.debug("the matrix is copied to the host: %s", made)
    matrix = canonical_csr(A)
    if context.of_complex:
        matrix = matrix.as_complex()
    kind = _dtype(matrix, context)
    if gpu_layout.gpus_may_check(matrix, context):
        return _set_up_unchecked(matrix, kind, context, laps)
    prepared = prepare(as_csr(matrix), context.options.checked_for, kind)
    laps.lap("check")
    return MatrixSetup.of(prepared, lay_out_matrix(prepared, context, laps))


def lay_out_matrix(
    prepared: Prepared,
    context: SetupContext,
    laps: Laps,
    past: Sequence[int] = (),
    rhs_gpu: int | None = None,
) -> Layout:
    """Choose where a matrix on the host goes, and set it up there.

    Args:
        prepared: the matrix.
        past: iterations of solves until now, if there were some.
        rhs_gpu: the GPU of the right-hand side, where that of the call does not count.
    """
    where = _place(prepared, context, laps, past, rhs_gpu)
    return lay_out(prepared, where, partial(_share, prepared, where, context), laps)


def _set_up_unchecked(
    A: CsrMatrix, kind: npt.DTypeLike | None, context: SetupContext, laps: Laps
) -> MatrixSetup:
    """Set a matrix up at whose entries GPUs look on the way, or else the host."""
    laps.lap("check")
    unchecked = prepare(A, None, kind)
    where = _place(unchecked, context, laps)
    sharing = None
    # Of several PEs' rows a graph is made, of large matrices only where that pays.
    large = A.nnz > load_core().most_block_halo_nonzeros
    if where.engine == "cuda_p2p" and (large or where.pes == 1):
        sharing = _share(unchecked, where, context)
        laps.lap("partition")
        found = _checked_by_gpus(A, unchecked, where, sharing, laps)
        if found is not None:
            return found
    matrix = as_csr(A)
    if matrix is not A:  # entries that are 0 have gone, or have come
        prepared = prepare(matrix, context.options.method, kind)
        laps.lap("check")
        return MatrixSetup.of(prepared, lay_out_matrix(prepared, context, laps))
    prepared = replace(unchecked, warnings=check_matrix(A, context.options.method))
    laps.lap("check")
    if sharing is not None:  # it has been found out that the host lays this matrix out
        where = replace(where, tuning={"layout": 0, **where.tuning})
    shared = sharing or partial(_share, prepared, where, context)
    return MatrixSetup.of(prepared, lay_out(prepared, where, shared, laps))


def _checked_by_gpus(
    A: CsrMatrix, unchecked: Prepared, where: Placement, sharing: Sharing, laps: Laps
) -> MatrixSetup | None:
    """Lay a matrix out while GPUs look at its entries; None: the host has to look."""
    if not sharing.keeps_rows_in_order():
        return None  # then GPUs do not lay it out
    layout = lay_out(unchecked, where, sharing, laps, inspect=True)
    if layout.refused:
        logger.debug("GPUs do not lay the matrix out: %s", layout.refused)
        return None
    entries = layout.entries
    assert entries is not None, "GPUs tell what they have found, or why they have not looked"
    if not entries.solvable(A.dtype.name):
        return None
    prepared = replace(unchecked, warnings=symmetry_warnings(entries.asymmetry, A.of_complex))
    layout = replace(layout, warnings=[*prepared.warnings, *layout.warnings])
    return MatrixSetup.of(prepared, layout)


def _dtype(A: Any, context: SetupContext) -> npt.DTypeLike | None:
    """Return the type of solves; None: that of the matrix."""
    right = context.options.call.right
    kind = context.options.dtype if right is None else solve_dtype(A, right)
    return solve_type(context.asked.tuning, kind)


def _place(
    prepared: Prepared,
    context: SetupContext,
    laps: Laps,
    past: Sequence[int] = (),
    rhs_gpu: int | None = None,
) -> Placement:
    """Return where a matrix goes."""
    A, workload = prepared.matrix, context.options.call.workload
    size = Size(A.shape[0], A.nnz, A.dtype.itemsize)
    if context.team is None:  # parts of A are solved by conjugate gradients
        known = None if context.options.method in OTHERS else partial(forecast, A, workload, past)
        work = SystemWork(size, known)
    else:
        agreement.agree_on_matrix(context.team, prepared, context.sharing)
        laps.lap("agree")
        work = SystemWork(size)
    near = context.rhs_gpu if rhs_gpu is None else rhs_gpu
    where = place(work, context.asked, context.env, near, context.team)
    laps.lap("place")
    return with_first_solve(where, context.options.pc, context.options.call)


def _share(prepared: Prepared, where: Placement, context: SetupContext) -> Sharing:
    """Return which PE owns which rows; with a team, rank 0 decides."""
    expected = None if where.expected is None else where.expected.iterations
    solves = context.options.call.workload.solves
    gain = gain_on(where.engine, solves, expected, where.gpu_name)
    folder, cache = context.options.partition_cache, None
    if folder is not None:
        cache = PartitionCache(Path(folder), prepared.pattern.numbers)
    decide = partial(Sharing.of, prepared.matrix, where.pes, *context.sharing, gain, cache)
    return in_team(context.team, decide)
