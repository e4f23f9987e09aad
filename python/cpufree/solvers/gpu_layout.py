"""Set-up of matrices that lie on a GPU: no entry of them visits the host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpufree.engines.asked import Asked
from cpufree.engines.digests import Pattern
from cpufree.engines.gpu_choice import Size
from cpufree.engines.place import place
from cpufree.engines.placement import Placement
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, OutOfMemoryError, UnsupportedError
from cpufree.extension import load_core, load_for
from cpufree.laps import Laps
from cpufree.matrix.entries import EntryStatistics
from cpufree.matrix.gpu_csr import GpuCsr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.validate import SYMMETRY_TOLERANCE
from cpufree.partition.methods import NEAR_DIAGONAL
from cpufree.solvers.layout import Layout, Sharing, layout_of
from cpufree.solvers.preparation import oddness
from cpufree.solvers.work import SystemWork

FACTORS = ("block_jacobi", "fsai")


@dataclass(frozen=True)
class There:
    """How a matrix is to be laid out where it lies."""

    asked: Asked
    env: Env
    check: bool
    """Look at its entries."""
    dtype: np.dtype[Any]
    """Of the solve."""
    reorder: str | bool


def may_be_checked_there(A: CsrMatrix, asked: Asked, env: Env) -> bool:
    """Return whether GPUs are likely to lay A out, and so may look at its entries on the way.

    Not where they are known: nobody can have changed them since they were looked at.
    """
    core = load_core()
    if A.nnz <= core.most_nonzeros_by_host or A.entries_known() or not core.cuda_built():
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


def lay_out_there(A: GpuCsr, there: There, laps: Laps) -> tuple[Layout, Pattern] | None:
    """Lay a matrix out on one GPU, its own unless another one is asked for.

    None: it takes what is made of matrices on the host alone, such as another order of rows,
    METIS, packets among blocks of small systems, or errors that say which entry is wrong.

    Args:
        A: the matrix. there: how.
        laps: of the set-up; those of this are added.
    """
    small = A.nnz <= load_core().most_nonzeros_by_host
    natural = there.reorder in (False, "natural", "auto")
    factors = there.asked.tuning.get("pc") in FACTORS
    if small or not natural or A.dtype != there.dtype or factors:
        return None
    where = _placement(A, there.asked, there.env)
    if where is None:
        return None
    laps.lap("place")
    tuning = {**where.tuning, "inspect": there.check}
    try:
        system = load_for("cuda_p2p").System(
            *A.addresses(), where.blocks, where.own_devices, tuning
        )
    except (InvalidInputError, OutOfMemoryError):
        return None  # the host says more of it, or finds room
    plan: dict[str, Any] = {**system.plan()}
    found, distance = plan.get("entries"), plan.get("mean_distance", 0.0)
    asymmetry = 0.0 if found is None else EntryStatistics(**found).asymmetry
    if asymmetry > SYMMETRY_TOLERANCE[A.dtype.name]:
        return None
    if distance > NEAR_DIAGONAL and there.reorder == "auto":
        return None  # RCM may pay
    sharing = Sharing(None, None, ["natural order: rows stay as they lie on the GPU"], [])
    return layout_of(system, where, sharing, oddness(asymmetry), laps), Pattern(A.n, A.nnz, None)


def _placement(A: GpuCsr, asked: Asked, env: Env) -> Placement | None:
    """Return where a matrix on a GPU is solved; None: not on one GPU of this process."""
    if asked.pes == "auto" and env.pes is None:
        asked = replace(asked, pes=1)  # others would have to be sent their rows
    try:
        where = place(SystemWork(Size(A.n, A.nnz, A.dtype.itemsize)), asked, env, A.device)
    except (InvalidInputError, UnsupportedError, NotEnoughGpusError, OutOfMemoryError):
        return None  # said where the matrix is set up from the host
    own = where.engine == "cuda_p2p" and where.team is None and where.pes == 1
    return where if own else None
