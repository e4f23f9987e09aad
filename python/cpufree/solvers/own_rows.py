"""Systems that no process holds as a whole: each rank gives its own rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpufree.engines.placement import Placement
from cpufree.solvers import agreement

if TYPE_CHECKING:
    from cpufree._core import SlabPlan, System

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.distributed import Team
from cpufree.engines import choices
from cpufree.engines.asked import Asked
from cpufree.engines.gpu_choice import Size
from cpufree.engines.place import place
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.extension import load_core, load_for
from cpufree.laps import Laps
from cpufree.matrix.rows import RowSlab, RowSource, rows_of_rank
from cpufree.matrix.validate import SYMMETRY_TOLERANCE
from cpufree.partition.part_vector import PartitionLike
from cpufree.solvers.layout import Layout, Sharing, balance_warning, layout_of
from cpufree.solvers.preparation import converted, oddness
from cpufree.solvers.work import SystemWork

_UNCHECKED = -1.0  # as a tolerance: the core looks at the pattern between ranks alone


@dataclass(frozen=True)
class OwnRows:
    """What a rank knows of a system whose rows are spread over all of them."""

    layout: Layout
    n: int
    """Rows of the whole matrix."""
    first: int
    last: int
    """Rows [first, last) are this rank's."""
    dtype: np.dtype[Any]
    numbers: npt.NDArray[np.intp] | None
    """Of this rank's rows, where they lie in another order in the matrix."""


def lay_out(
    team: Team | None,
    rows: RowSlab | RowSource,
    asked: Asked,
    env: Env,
    sharing: tuple[PartitionLike, str | bool],
    check: bool,
    dtype: npt.DTypeLike | None,
    laps: Laps,
) -> OwnRows:
    """Plan a system together with the other ranks, and set up this one's part.

    Args:
        team: this process is one of them.
        rows: of this rank; of a source, it takes its part of about as many entries as the others'.
        asked, env: where it is to be solved.
        sharing: partition and order of rows, as Solver takes them.
        check: have the entries checked.
        dtype: of the solve; None: that of the rows.
        laps: of the set-up; those of this are added.

    Raises:
        InvalidInputError: the ranks' rows are not one matrix, or one that cannot be solved; an
            engine of one process.
    """
    require_possible(team, sharing)
    assert team is not None
    kind = choices.floating(rows.dtype if dtype is None else dtype)
    known = rows.nnz if isinstance(rows, RowSource) else None
    agreement.agree_on_rows(team, rows.shape[0], known, kind, check)
    laps.lap("agree")
    first, last, plan = _plan(team, rows, kind, check)
    laps.lap("rows")
    nnz = sum(facts["nnz"] for facts in team.tell_all("size", {"nnz": plan.nnz}))
    size = Size(rows.shape[0], nnz, kind.itemsize)
    where = place(SystemWork(size), asked, env, team=team)
    laps.lap("place")
    odd = oddness(plan.asymmetry)  # the system takes the plan away
    notes, numbers = [], None
    if isinstance(rows, RowSource):
        notes, numbers = [rows.note(team.size)], rows.numbers(first, last)
    as_given = Sharing(None, None, [f"own rows: {_origin(rows)}"], [*filter(None, notes)])
    layout = layout_of(_make_system(plan, where), where, as_given, odd, laps)
    layout.warnings.extend(balance_warning(layout.plan["imbalance"]))
    return OwnRows(layout, rows.shape[0], first, last, kind, numbers)


def require_possible(team: Team | None, sharing: tuple[PartitionLike, str | bool]) -> None:
    """Raise InvalidInputError where rows cannot stay as they are given."""
    if team is None:
        raise InvalidInputError(
            "rows of a part of a matrix are solved by several processes: give engine 'nvshmem' or "
            "'cpu_processes' in a program that a launcher has started ('cpufree run -n N ...')"
        )
    partition, reorder = sharing
    if not isinstance(partition, str) or partition not in ("auto", "contiguous"):
        what = repr(partition) if isinstance(partition, str) else "given"
        raise InvalidInputError(
            f"partition is {what}, but ranks own the rows that they are given: leave it "
            "out, and number the rows so that those of a part are together"
        )
    if reorder not in ("auto", "natural", False):
        raise InvalidInputError(
            f"reorder is {reorder!r}, but ranks keep the rows that they are given in their order: "
            "leave it out"
        )


def _plan(
    team: Team, rows: RowSlab | RowSource, dtype: np.dtype[Any], check: bool
) -> tuple[int, int, Any]:
    """Return the range of this rank's rows, and its share of the plan.

    The arrays of a source are gone once it is planned: the plan has what is needed of them.
    """
    if isinstance(rows, RowSource):
        first, last = rows_of_rank(rows, team.rank, team.size)
        threads = max(1, choices.available_cores() // team.size_here)
        slab = rows.rows(first, last, threads)
    else:
        slab = rows
    values = converted(slab.data, dtype)
    tolerance = SYMMETRY_TOLERANCE[dtype.name] if check else _UNCHECKED
    plan = load_core().SlabPlan(
        slab.first_row, slab.shape[0], slab.indptr, slab.indices, values, tolerance, team
    )
    return slab.first_row, slab.first_row + slab.count, plan


def _origin(rows: RowSlab | RowSource) -> str:
    return "each rank has read or made its part" if isinstance(rows, RowSource) else "as given"


def _make_system(plan: SlabPlan, where: Placement) -> System:
    """Return the System of a share, which it takes over."""
    system: System = load_for(where.engine).System(
        plan,
        where.pes,
        where.blocks,
        where.engine,
        where.own_devices,
        dict(where.tuning),
        where.team,
    )
    return system
