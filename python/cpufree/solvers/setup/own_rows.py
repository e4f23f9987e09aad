"""Systems that no process holds as a whole: each rank gives its own rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cpufree.distributed import Team
from cpufree.engines import choices
from cpufree.engines.gpu_choice import Size
from cpufree.engines.method_choice import OTHERS
from cpufree.engines.place import place
from cpufree.engines.placement import Placement
from cpufree.errors import InvalidInputError
from cpufree.extension import load_core, load_for
from cpufree.laps import Laps
from cpufree.matrix.entries import symmetry_tolerance
from cpufree.matrix.rows import RowSlab, RowSource, rows_of_rank
from cpufree.partition.part_vector import PartitionLike
from cpufree.solvers.factors import without_multigrid
from cpufree.solvers.forecast import with_first_solve
from cpufree.solvers.setup import agreement
from cpufree.solvers.setup.layout import MatrixSetup, Sharing, balance_warning, layout_of
from cpufree.solvers.setup.options import SetupContext
from cpufree.solvers.setup.preparation import converted, symmetry_warnings
from cpufree.solvers.work import SystemWork

if TYPE_CHECKING:
    from cpufree._core import SlabPlan, System

_UNCHECKED = -1.0  # as a tolerance: the core looks at the pattern between ranks alone


def lay_out(
    rows: RowSlab | RowSource, context: SetupContext, dtype: npt.DTypeLike | None, laps: Laps
) -> MatrixSetup:
    """Plan a system together with the other ranks, and set up this one's part.

    Args:
        rows: of this rank; of a source, it takes its part of about as many entries as the others'.
        context: of the set-up.
        dtype: of the solve; None: that of the rows.
        laps: of the set-up; those of this are added.

    Raises:
        InvalidInputError: the ranks' rows are not one matrix, or one that cannot be solved; an
            engine of one process.
    """
    team, check = context.team, context.options.check
    require_possible(team, context.sharing)
    assert team is not None
    if "factor" in context.asked.tuning:
        raise InvalidInputError(
            "pc gives a factor, which is that of the whole matrix, and this rank has its own rows "
            "alone: use pc='fsai'"
        )
    kind = choices.floating(rows.dtype if dtype is None else dtype)
    known = rows.nnz if isinstance(rows, RowSource) else None
    agreement.agree_on_rows(team, rows.shape[0], known, kind, check)
    laps.lap("agree")
    tolerance = symmetry_tolerance(kind.name) if check else _UNCHECKED
    wanted = OTHERS.get(context.options.method, "")
    first, last, plan = _plan(team, rows, kind, (tolerance, wanted))
    laps.lap("rows")
    nnz = sum(facts["nnz"] for facts in team.tell_all("size", {"nnz": plan.nnz}))
    n = rows.shape[0]
    size = Size(n, nnz, kind.itemsize)
    where = place(SystemWork(size), context.asked, context.env, team=team)
    where = with_first_solve(where, context.options.pc, context.options.call)
    laps.lap("place")
    notes = symmetry_warnings(plan.asymmetry)  # the system takes the plan away
    of_source, numbers = "", None
    if isinstance(rows, RowSource):
        of_source, numbers = rows.note(team.size), rows.numbers(first, last)
    origin = [f"own rows: {_origin(rows)}"]
    as_given = Sharing(None, None, origin, [of_source] if of_source else [])
    layout = layout_of(_make_system(plan, where), where, as_given, notes, laps)
    layout.warnings.extend(balance_warning(layout.plan["imbalance"]))
    own = range(first, last)
    return MatrixSetup(layout, (n, n), kind, None, rows=own, numbers=numbers)


def require_possible(team: Team | None, sharing: tuple[PartitionLike, str | bool]) -> None:
    """Raise InvalidInputError where rows cannot stay as they are given."""
    if team is None:
        raise InvalidInputError(
            "rows of a part of a matrix are solved by several processes: give engine "
            "'nvshmem', 'nccl' or 'cpu_processes' in a program that a launcher has started "
            "('cpufree run -n N ...')"
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
    team: Team, rows: RowSlab | RowSource, dtype: np.dtype[Any], rule: tuple[float, str]
) -> tuple[int, int, Any]:
    """Return the range of this rank's rows, and its share of the plan.

    `rule`: how far entries may miss symmetry, and what else a method wants of them.

    The arrays of a source are gone once it is planned: the plan has what is needed of them.
    """
    if isinstance(rows, RowSource):
        first, last = rows_of_rank(rows, team.rank, team.size)
        threads = max(1, choices.available_cores() // team.size_here)
        slab = rows.rows(first, last, threads)
    else:
        slab = rows
    values = converted(slab.data, dtype)
    plan = load_core().SlabPlan(
        slab.first_row, slab.shape[0], slab.indptr, slab.indices, values, *rule, team
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
        without_multigrid(where.tuning),
        where.team,
    )
    return system
