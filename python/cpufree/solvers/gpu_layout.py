"""Set-up of matrices that lie on a GPU, or that it can make: no entry of them visits the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cpufree.engines import core, gpus
from cpufree.engines.answer_time import Forecast
from cpufree.engines.asked import Asked
from cpufree.engines.digests import Pattern
from cpufree.engines.gpu_choice import Size
from cpufree.engines.placement import Placement, place
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, OutOfMemoryError, UnsupportedError
from cpufree.laps import Laps
from cpufree.matrix.entries import EntryStatistics
from cpufree.matrix.gpu_csr import GpuCsr, GridCsr, gpu_csr
from cpufree.matrix.load import grid_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.validate import SYMMETRY_TOLERANCE
from cpufree.partition.cost import Spread
from cpufree.partition.methods import CLEAR_GAIN, NEAR_DIAGONAL
from cpufree.partition.part_vector import PartitionLike
from cpufree.solvers.forecast import Goal, forecast_of_grid
from cpufree.solvers.layout import Layout, Sharing, layout_of
from cpufree.solvers.preparation import oddness

if TYPE_CHECKING:
    from cpufree._core import System

FACTORS = ("block_jacobi", "fsai")
CONSECUTIVE = ("auto", "contiguous")
"""Partitions that may be blocks of consecutive rows, which is how GPUs make a grid."""


@dataclass(frozen=True)
class There:
    """How a matrix is to be laid out where it lies, or is made."""

    asked: Asked
    env: Env
    check: bool
    """Look at its entries."""
    dtype: np.dtype[Any]
    """Of the solve."""
    partition: PartitionLike
    reorder: str | bool
    goal: Goal
    near: int | None = None
    """The GPU of the right-hand side; None: it is on the host, or not known."""


def given_there(A: Any) -> GpuCsr | GridCsr | None:
    """Return a matrix that lies on a GPU, or that it can make; None: it is for the host."""
    return grid_csr(A) if isinstance(A, str) else gpu_csr(A)


def may_be_made_there(A: str, asked: Asked, env: Env) -> GridCsr | None:
    """Return the matrix that a name stands for, if a GPU is likely to make it; None: the host does.

    Raises:
        InvalidInputError: parameters that the generator does not take.
    """
    ours = {asked.engine, env.engine} <= {"auto", "cuda_p2p"}
    if not ours or not core.cuda_built():
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
    return core.make_grid_system_there(A.in_three_axes(), A.cuts(where.pes), **how)


def lay_out_there(A: GpuCsr | GridCsr, there: There, laps: Laps) -> tuple[Layout, Pattern] | None:
    """Lay a matrix out on one GPU, its own unless another one is asked for; a grid on several, too.

    None: it takes what is made of matrices on the host alone, such as another order of rows,
    METIS, packets among blocks of small systems, or errors that say which entry is wrong.

    Args:
        A: the matrix. there: how.
        laps: of the set-up; those of this are added.
    """
    small = A.nnz <= core.most_nonzeros_by_host()
    natural = there.reorder in (False, "natural", "auto")
    factors = there.asked.tuning.get("pc") in FACTORS
    if small or not natural or A.dtype != there.dtype or factors:
        return None
    where = _place_given(A, there) if isinstance(A, GpuCsr) else _place_grid(A, there)
    if where is None:
        return None
    laps.lap("place")
    try:
        system = _system(A, where, there.check)
    except (InvalidInputError, OutOfMemoryError):
        return None  # the host says more of it, or finds room
    plan: dict[str, Any] = {**system.plan()}
    found, distance = plan.get("entries"), plan.get("mean_distance", 0.0)
    asymmetry = 0.0 if found is None else EntryStatistics(**found).asymmetry
    if asymmetry > SYMMETRY_TOLERANCE[A.dtype.name]:
        return None
    if isinstance(A, GpuCsr) and distance > NEAR_DIAGONAL and there.reorder == "auto":
        return None  # RCM may pay
    layout = layout_of(system, where, _sharing(A, where.pes), oddness(asymmetry), laps)
    return layout, Pattern(A.n, A.nnz, None)


def _sharing(A: GpuCsr | GridCsr, pes: int) -> Sharing:
    """Return how rows are shared out, and why."""
    if isinstance(A, GpuCsr):
        return Sharing(None, None, ["natural order: rows stay as they lie on the GPU"], [])
    if pes == 1:
        return Sharing(None, None, ["natural order: rows stay as the GPU has made them"], [])
    own = "contiguous partition: each GPU has made a block of consecutive rows of the grid"
    return Sharing(None, None, [own, "natural order: rows stay as they have been made"], [])


def _place_given(A: GpuCsr, there: There) -> Placement | None:
    """Return where a matrix on a GPU is solved; None: not on one GPU of this process."""
    asked = there.asked
    if asked.pes == "auto" and there.env.pes is None:
        asked = replace(asked, pes=1)  # others would have to be sent their rows
    where = _placement(A, asked, there.env, A.device)
    return where if where is not None and where.pes == 1 else None


def _place_grid(A: GridCsr, there: There) -> Placement | None:
    """Return the GPUs that make and solve a grid; None: it is to be made on the host."""
    partition = there.partition if isinstance(there.partition, str) else "given"

    @cache
    def known() -> Forecast:
        found = forecast_of_grid(A, there.goal)
        if partition != "contiguous":
            return found
        return replace(found, gain=replace(found.gain, search_seconds=math.inf))  # no METIS

    if there.reorder == "auto" and _order_may_pay(A, known):
        return None
    where = _placement(A, there.asked, there.env, there.near, known)
    if where is None or where.pes == 1:
        return where
    if partition not in CONSECUTIVE:
        return None
    good = Spread.of_grid(A).is_good(where.pes)  # else iterations are counted, which takes longer
    return where if good or not known().searches(where.pes) else None


def _order_may_pay(A: GridCsr, known: Callable[[], Forecast]) -> bool:
    """Return whether reverse Cuthill-McKee may bring entries clearly nearer to the diagonal.

    It can do little more than have the longest axis run slowest.
    """
    natural = A.mean_distance()
    if natural <= NEAR_DIAGONAL:
        return False
    best = A.mean_distance(sorted(range(len(A.grid)), key=lambda axis: -A.grid[axis]))
    return best <= CLEAR_GAIN * natural and known().gain.order_pays(A.n)


def _placement(
    A: GpuCsr | GridCsr,
    asked: Asked,
    env: Env,
    near: int | None,
    known: Callable[[], Forecast] | None = None,
) -> Placement | None:
    """Return where A is solved; None: not on GPUs of this process."""
    grid = isinstance(A, GridCsr)
    size = Size(A.n, A.nnz, A.dtype.itemsize, coded=grid)
    try:
        where = place(asked, env, size, near, known, made_there=grid)
    except (InvalidInputError, UnsupportedError, NotEnoughGpusError, OutOfMemoryError):
        return None  # said where the matrix is set up from the host
    return where if where.engine == "cuda_p2p" and where.team is None else None
