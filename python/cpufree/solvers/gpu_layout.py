"""Set-up of matrices that lie on a GPU, or that it can make: no entry of them visits the host."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cpufree.engines import core, gpus
from cpufree.engines.digests import Pattern
from cpufree.engines.gpu_choice import Size
from cpufree.engines.placement import Asked, Placement, place
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, OutOfMemoryError, UnsupportedError
from cpufree.laps import Laps
from cpufree.matrix.entries import EntryStatistics
from cpufree.matrix.gpu_csr import GpuCsr, GridCsr, gpu_csr
from cpufree.matrix.load import grid_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.validate import SYMMETRY_TOLERANCE
from cpufree.partition.methods import NEAR_DIAGONAL
from cpufree.solvers.layout import Layout, Sharing, layout_of
from cpufree.solvers.preparation import oddness

if TYPE_CHECKING:
    from cpufree._core import System

FACTORS = ("block_jacobi", "fsai")


def given_there(A: Any) -> GpuCsr | GridCsr | None:
    """Return a matrix that lies on a GPU, or that it can make; None: it is for the host."""
    return grid_csr(A) if isinstance(A, str) else gpu_csr(A)


def may_be_made_there(A: str, asked: Asked, env: Env) -> GridCsr | None:
    """Return the matrix that a name stands for, if a GPU is likely to make it; None: the host does.

    Raises:
        InvalidInputError: parameters that the generator does not take.
    """
    ours = {asked.engine, env.engine} <= {"auto", "cuda_p2p"}
    several = not {asked.pes, env.pes} <= {"auto", None, 1}
    if not ours or several or not core.cuda_built():
        return None
    made = grid_csr(A)
    if made is None or made.nnz <= core.most_nonzeros_by_host():
        return None
    return made if gpus.usable(gpus.find()) else None


def may_be_checked_there(A: CsrMatrix, asked: Asked, env: Env) -> bool:
    """Return whether GPUs are likely to lay A out, and so may look at its entries on the way.

    Not where they are known: nobody can have changed them since they were looked at.
    """
    if A.nnz <= core.most_nonzeros_by_host() or A.entries_known() or not core.cuda_built():
        return False
    names = {asked.engine, env.engine}
    return names <= {"auto", "cuda_p2p"} and asked.tuning.get("pc") not in FACTORS


def oddness_found(layout: Layout, A: CsrMatrix) -> list[str] | None:
    """Return what to tell of a matrix that has been laid out unchecked; None: it must be refused.

    Its entries are looked at now, where it was the host that has laid it out.
    """
    found = layout.entries or A.statistics
    good = found.mirrored and found.finite and found.positive_diagonal
    if not good or found.asymmetry > SYMMETRY_TOLERANCE[A.dtype.name]:
        return None
    return oddness(found.asymmetry)


def _system(A: GpuCsr | GridCsr, where: Placement, check: bool) -> System:
    how: dict[str, Any] = {
        "blocks": where.blocks,
        "gpus": where.own_devices,
        "tuning": {**where.tuning, "inspect": check},
    }
    if isinstance(A, GpuCsr):
        return core.make_system_there(A.addresses(), **how)
    return core.make_grid_system_there(A.in_three_axes(), **how)


def lay_out_there(
    A: GpuCsr | GridCsr,
    asked: Asked,
    env: Env,
    check: bool,
    dtype: np.dtype[Any],
    reorder: str | bool,
    laps: Laps,
) -> tuple[Layout, Pattern] | None:
    """Lay a matrix out on one GPU, its own unless another one is asked for.

    None: it takes what is made of matrices on the host alone, such as another order of rows,
    several PEs, packets among blocks of small systems, or errors that say which entry is wrong.

    Args:
        A: the matrix. asked, env: where it is to be solved.
        check: look at its entries.
        dtype: of the solve.
        reorder: order of rows, as Solver takes it.
        laps: of the set-up; those of this are added.
    """
    small = A.nnz <= core.most_nonzeros_by_host()
    natural = reorder in (False, "natural", "auto")
    if small or not natural or A.dtype != dtype or asked.tuning.get("pc") in FACTORS:
        return None
    where = _placement(A, asked, env)
    if where is None:
        return None
    laps.lap("place")
    try:
        system = _system(A, where, check)
    except (InvalidInputError, OutOfMemoryError):
        return None  # the host says more of it, or finds room
    plan: dict[str, Any] = {**system.plan()}
    found, distance = plan.get("entries"), plan.get("mean_distance", 0.0)
    asymmetry = 0.0 if found is None else EntryStatistics(**found).asymmetry
    if asymmetry > SYMMETRY_TOLERANCE[A.dtype.name]:
        return None
    if distance > NEAR_DIAGONAL and reorder == "auto":
        return None  # RCM may pay
    lie = "as they lie on the GPU" if isinstance(A, GpuCsr) else "as the GPU has made them"
    sharing = Sharing(None, None, [f"natural order: rows stay {lie}"], [])
    layout = layout_of(system, where, sharing, oddness(asymmetry), laps)
    return layout, Pattern(A.n, A.nnz, None)


def _placement(A: GpuCsr | GridCsr, asked: Asked, env: Env) -> Placement | None:
    """Return where A is solved; None: not on one GPU of this process."""
    if asked.pes == "auto" and env.pes is None:
        asked = replace(asked, pes=1)  # others would have to be sent their rows, or be started
    try:
        where = place(asked, env, Size(A.n, A.nnz, A.dtype.itemsize), A.device)
    except (InvalidInputError, UnsupportedError, NotEnoughGpusError, OutOfMemoryError):
        return None  # said where the matrix is set up from the host
    on_one = where.engine == "cuda_p2p" and where.pes == 1 and where.team is None
    return where if on_one else None
