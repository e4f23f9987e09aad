"""Set-up of matrices that lie on a GPU: no entry of them visits the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.engines import gpus
from cpufree.engines.asked import Asked
from cpufree.engines.choices import floating
from cpufree.engines.digests import Pattern
from cpufree.engines.gpu_choice import Size
from cpufree.engines.method_choice import OTHERS
from cpufree.engines.place import place
from cpufree.engines.placement import Placement
from cpufree.env import Env
from cpufree.errors import OutOfMemoryError
from cpufree.extension import load_core, load_for
from cpufree.laps import Laps
from cpufree.matrix.entries import symmetry_tolerance
from cpufree.matrix.gpu_csr import GpuCsr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.samples import sample, unknowns_of_a_node
from cpufree.multigrid.gain import MultigridGain
from cpufree.partition.methods import NEAR_DIAGONAL
from cpufree.solvers.factors import made_by_host, without_multigrid
from cpufree.solvers.forecast import with_first_solve
from cpufree.solvers.setup.layout import AMG, Layout, MatrixSetup, Sharing, layout_of, trial
from cpufree.solvers.setup.options import SetupContext
from cpufree.solvers.setup.preparation import symmetry_warnings
from cpufree.solvers.work import SystemWork


def gpus_may_check(A: CsrMatrix, context: SetupContext) -> bool:
    """Return whether GPUs are likely to lay A out, and so may look at its entries on the way.

    Not where they are known: they cannot have changed since they were looked at.
    """
    if not context.options.check or context.team is not None or context.options.method in OTHERS:
        return False  # GPUs look for what conjugate gradients need
    core = load_core()
    if A.nnz < core.least_gpu_layout_nonzeros or A.entries_known() or not core.gpu_vendor():
        return False
    named = context.named in ("auto", "cuda_p2p")
    return named and not made_by_host(context.asked.tuning)


def lay_out_on_gpu(
    A: GpuCsr, context: SetupContext, dtype: npt.DTypeLike | None, laps: Laps
) -> MatrixSetup | str:
    """Lay a matrix out on one GPU, its own unless another one is asked for.

    Args:
        A: the matrix. dtype: of solves; None: that of A.
        laps: of the set-up; those of this are added.

    Returns:
        The matrix, or why the matrix has to be on the host. That takes what is made there alone,
        such as another order of rows, METIS, or errors that say which entry is wrong.
    """
    kind = A.dtype if dtype is None else floating(dtype)
    where = _placement(A, context, kind)
    if isinstance(where, str):
        return where
    laps.lap("place")
    where = with_first_solve(where, context.options.pc, context.options.call)
    asked = where.tuning.get("pc")
    if asked == "amg" and unknowns_of_a_node(sample(A), A.n) > 1:
        return "the host makes the levels for several unknowns a node"
    tuning = {**without_multigrid(where.tuning), "inspect": context.options.check}
    layout = _laid_out(A, where, tuning, [], laps)
    if layout.refused:
        return layout.refused
    asymmetry = 0.0 if layout.entries is None else layout.entries.asymmetry
    if asymmetry > symmetry_tolerance(A.dtype.name):
        return "it may not be symmetric"
    if layout.mean_distance > NEAR_DIAGONAL and context.options.reorder == "auto":
        return "another order of rows may pay"
    if asked == "auto":
        sooner, reason = _multigrid_is_sooner(A, where, layout)
        if sooner:
            found, distance = layout.entries, layout.mean_distance
            del layout  # there may not be memory for both
            layout = _with_multigrid(A, where, reason, laps)
            if layout.refused:
                return layout.refused
            layout = replace(layout, entries=found, mean_distance=distance)
        else:
            layout = replace(layout, why=[*layout.why, reason])
    layout = replace(layout, warnings=[*symmetry_warnings(asymmetry), *layout.warnings])
    return MatrixSetup(layout, A.shape, A.dtype, Pattern(A.n, A.nnz, None))


def _laid_out(
    A: GpuCsr, where: Placement, tuning: dict[str, Any], why: list[str], laps: Laps
) -> Layout:
    """Lay a matrix out on its GPU; `why`: what led to this preconditioner."""
    system = load_for("cuda_p2p").System(*A.addresses(), where.blocks, where.own_devices, tuning)
    natural = "natural order: rows stay as they lie on the GPU"
    return layout_of(system, where, Sharing(None, None, [natural, *why], []), [], laps)


def _multigrid_is_sooner(A: GpuCsr, where: Placement, with_jacobi: Layout) -> tuple[bool, str]:
    """Return whether that is expected, and why, from what has been laid out for Jacobi."""
    unknowns = unknowns_of_a_node(sample(A), A.n)
    gain = MultigridGain.of(A, where.tuning["workload"], where, unknowns)
    if not gain.possible:
        return False, f"jacobi: {gain.why}"
    return gain.by_trial(trial(with_jacobi.opened(), A.n, A.dtype, where))


def _with_multigrid(A: GpuCsr, where: Placement, reason: str, laps: Laps) -> Layout:
    """Return the layout with multigrid, or with Jacobi where the GPU has no room for levels."""
    jacobi = {**without_multigrid(where.tuning), "inspect": False}
    try:
        layout = _laid_out(A, where, {**jacobi, **AMG}, [reason], laps)
        lacking = layout.refused
    except OutOfMemoryError as error:
        lacking = str(error)
    if not lacking:
        return layout
    return _laid_out(A, where, jacobi, [f"jacobi: {lacking}"], laps)


def _placement(A: GpuCsr, context: SetupContext, dtype: np.dtype[Any]) -> Placement | str:
    """Return where a matrix on a GPU is solved, or why not on one GPU of this process."""
    asked, env = context.asked, context.env
    if A.nnz < load_core().least_gpu_layout_nonzeros:
        return "small matrices are laid out by the host"
    if context.options.method in OTHERS:
        return f"the host checks what method {context.options.method} needs"
    if context.options.reorder not in (False, "natural", "auto"):
        return "its rows are to be in another order"
    if A.dtype != dtype:
        return f"it is to be solved in {dtype}"
    pc, modes = asked.tuning.get("pc"), asked.tuning.get("modes")
    if made_by_host(asked.tuning) or (pc == "amg" and modes is not None and not modes.nothing):
        return "the preconditioner is set up by the host"
    if context.named == "cpu_threads":
        return "it is to be solved on the CPU"
    there = gpus.find()
    if gpus.absence(there):
        return "no GPU can be used"
    if _least_pes(asked, env, there) > 1:  # others would have to be sent their rows
        return "several PEs are to solve it"
    if asked.pes == "auto":
        asked = replace(asked, pes=1)
    return place(SystemWork(Size(A.n, A.nnz, A.dtype.itemsize)), asked, env, A.device)


def _least_pes(asked: Asked, env: Env, there: list[gpus.Gpu]) -> int:
    """Return how many PEs are asked for; 1 where nothing says so, whatever would be best."""
    if not isinstance(asked.devices, str):
        return len(asked.devices)
    if asked.pes != "auto":
        return int(asked.pes)
    if asked.devices == "all":
        return len(gpus.usable(there))
    return env.pes or 1
