"""Set-up of a solve: the matrix is shared among PEs, reordered, and handed to the core."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cpufree.distributed import Team
from cpufree.engines import choices, gpus, remote
from cpufree.engines.digests import Pattern
from cpufree.engines.placement import Placement
from cpufree.errors import InvalidInputError, OutOfMemoryError
from cpufree.extension import load_core, load_for
from cpufree.laps import Laps
from cpufree.matrix.entries import EntryStatistics
from cpufree.matrix.problem import CsrMatrix
from cpufree.multigrid.gain import TRIAL
from cpufree.multigrid.near_nullspace import Modes
from cpufree.partition.cache import PartitionCache
from cpufree.partition.cost import Gain
from cpufree.partition.methods import Int32s, choose_order, partition
from cpufree.partition.part_vector import PartitionLike
from cpufree.solvers.factors import (
    SET_UP,
    factor_facts,
    factor_warnings,
    gain_of,
    levels_by_host,
    require_room,
    set_up_of,
    without_multigrid,
)
from cpufree.solvers.precision import precision_facts, precision_notes
from cpufree.solvers.setup.preparation import Prepared
from cpufree.text import counted

if TYPE_CHECKING:
    from cpufree._core import System

# Largest over mean nonzeros per PE from which the user is warned.
UNBALANCED = 1.25
AMG = {"pc": "amg", "first_method": "cg", "first_pc": "amg"}
"""What the core is to set up, and to expect, where multigrid has been chosen."""


@dataclass(frozen=True)
class Layout:
    """A matrix laid out on its PEs, how it lies there and why."""

    system: System | None
    """None: it has been freed."""
    plan: Mapping[str, Any]
    why: list[str]
    warnings: list[str]
    placement: Placement
    sharing: Sharing
    entries: EntryStatistics | None = None
    """What GPUs have found in the entries, where they were asked to look."""
    mean_distance: float = 0.0
    """Of entries from the diagonal, where GPUs have looked."""
    diagonal_spread: float = 1.0
    """Its largest entry over the smallest, where PEs are on the CPU."""
    kernels: set[tuple[str, str]] = field(default_factory=set)
    """Methods and preconditioners that have solved with it."""
    refused: str = ""
    """Why GPUs that were asked to look have not laid the matrix out; there is no system then."""

    def opened(self) -> System:
        """Return the system; InvalidInputError where it has been freed."""
        if self.system is None:
            raise InvalidInputError("this Solver is closed: make a new one from the matrix")
        return self.system

    def freed(self) -> Layout:
        """Return the same without the memory of the matrix, which solves under way keep."""
        return replace(self, system=None)

    @property
    def engine(self) -> str:
        """The engine."""
        return self.placement.engine

    @property
    def devices(self) -> tuple[int, ...]:
        """Numbers of the GPUs, one for each PE; none on the CPU engine."""
        return tuple(gpu.index for gpu in self.placement.gpus)

    @property
    def device_names(self) -> str:
        """Such as "4 × NVIDIA H200"; "" on the CPU engine."""
        return gpus.models(self.placement.gpus)


@dataclass(frozen=True)
class MatrixSetup:
    """A matrix that has been set up."""

    layout: Layout
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    """Of solves."""
    pattern: Pattern | None
    """Which later values must have; None: the process gave its own rows alone."""
    prepared: Prepared | None = None
    """The matrix, where this process has all of it on the host."""
    rows: npt.NDArray[np.intp] | range | None = None
    """Of this process: an array where vectors are those of all rows, None: all of them."""
    of_complex: bool = False
    """Whether rows are real and imaginary parts."""
    numbers: npt.NDArray[np.intp] | None = None
    """Of own rows that lie in another order."""

    @classmethod
    def of(cls, prepared: Prepared, layout: Layout) -> MatrixSetup:
        """Return that of a matrix on the host."""
        part, team = layout.sharing.part, layout.placement.team
        rows = None if part is None or team is None else np.flatnonzero(part == team.rank)
        A = prepared.matrix
        found = A.shape, np.dtype(A.dtype), prepared.pattern, prepared, rows, A.of_complex
        return cls(layout, *found)


def lay_out(
    prepared: Prepared,
    placement: Placement,
    sharing: Sharing | Callable[[], Sharing],
    laps: Laps,
    inspect: bool = False,
) -> Layout:
    """Share out the rows of a matrix, and set it up on its PEs.

    Args:
        prepared: the matrix.
        placement: where it goes.
        sharing: of its rows, or a function that finds one.
        laps: of the set-up; those of this are added.
        inspect: GPUs are to lay the matrix out, and to look at its entries on the way.

    Returns:
        The layout; with `inspect`, perhaps one that says why it was refused.
    """
    matrix = prepared.matrix
    room = remote.room_for(matrix.shape[0], matrix.dtype.itemsize, placement.pes)
    with remote.starting(placement, room):
        if not isinstance(sharing, Sharing):
            sharing = sharing()
            laps.lap("partition")
        if placement.tuning.get("pc") == "auto":
            system, sharing = _chosen_system(matrix, placement, sharing, inspect)
        else:
            system, sharing = _system(matrix, placement, sharing, placement.tuning, inspect)
    return layout_of(system, placement, sharing, prepared.warnings, laps)


def _system(
    A: CsrMatrix,
    placement: Placement,
    sharing: Sharing,
    asked: Mapping[str, Any],
    inspect: bool = False,
    modes: Modes | None = None,
) -> tuple[System, Sharing]:
    """Set a matrix up with a preconditioner; return how rows are shared, too.

    Args:
        A: the matrix. placement, sharing, inspect: as for `lay_out`.
        asked: what is to be set up; no automatic preconditioner.
        modes: that levels represent, where they are known.
    """
    tuning, modes, said = set_up_of(asked, A, modes)
    if inspect:
        tuning["inspect"] = True
    if levels_by_host(tuning, placement.engine):
        require_room(A.nnz)
    sharing = replace(sharing.with_whole_nodes(modes), why=[*sharing.why, *said])
    where = placement.pes, placement.blocks, placement.engine, placement.own_devices
    in_real_form = tuning.get("pc") in SET_UP or tuning.get("single_values", False)
    pairs = _has_pairs(A, placement, in_real_form)
    if pairs:
        tuning["pairs"] = True
    given = *_rows_of(A, pairs), sharing.part, sharing.order
    system = load_for(placement.engine).System(*given, *where, tuning, placement.team)
    return system, sharing


def _has_pairs(A: CsrMatrix, placement: Placement, in_real_form: bool) -> bool:
    """Return whether entries are complex and stored once, not as four real ones."""
    return A.of_complex and not placement.gpus and not in_real_form


def _rows_of(A: CsrMatrix, pairs: bool) -> tuple[Any, Any, Any]:
    """Return the arrays of a matrix as the core takes them."""
    return A.in_pairs() if pairs else (A.indptr, A.indices, A.data)


def _chosen_system(
    A: CsrMatrix, placement: Placement, sharing: Sharing, inspect: bool
) -> tuple[System, Sharing]:
    """Set a matrix up with Jacobi or multigrid, whichever is expected to be sooner and has room."""
    asked = placement.tuning
    known = None if inspect else gain_of(asked, A, placement)
    if known is not None and known[0].certain:
        told = replace(sharing, why=[*sharing.why, f"amg: {known[0].why}"])
        return _system(A, placement, told, {**asked, **AMG}, modes=known[1])
    system, shared = _system(A, placement, sharing, without_multigrid(asked), inspect)
    if inspect and not _solvable(system, A):
        return system, shared
    gain, modes = known or gain_of(asked, A, placement)
    if not gain.possible:
        return system, replace(shared, why=[*shared.why, f"jacobi: {gain.why}"])
    sooner, reason = gain.by_trial(trial(system, A.shape[0], A.dtype, placement))
    if not sooner:
        return system, replace(shared, why=[*shared.why, reason])
    del system  # there may not be memory for both
    told = replace(sharing, why=[*sharing.why, reason])
    try:
        return _system(A, placement, told, {**asked, **AMG}, inspect, modes)
    except OutOfMemoryError as error:
        if placement.team is not None:  # of whose processes others may have had room
            raise
        lacking = f"jacobi: {error}"
    told = replace(sharing, why=[*sharing.why, lacking])
    return _system(A, placement, told, without_multigrid(asked), inspect)


def _solvable(system: System, A: CsrMatrix) -> bool:
    """Return whether GPUs have laid a matrix out, and found entries that can be solved for."""
    plan: dict[str, Any] = {**system.plan()}
    return not plan.get("refused") and EntryStatistics(**plan["entries"]).solvable(A.dtype.name)


def trial(
    system: System, rows: int, dtype: np.dtype[Any], placement: Placement
) -> npt.NDArray[np.float64]:
    """Return the residuals of the first iterations with Jacobi, for a right-hand side of noise.

    By the kernel of the solve that is expected first, which is there then.
    """
    b = np.random.default_rng(0).standard_normal(rows).astype(dtype)
    options = {
        "method": placement.tuning.get("first_method", "prcg"),
        **{"pc": "jacobi", "rtol": 0.0, "atol": 0.0, "maxiter": TRIAL},
        **{"time_limit": 0.0, "wait_limit": 60.0, "replace_every": 0, "chebyshev_degree": 1},
        **({} if placement.team is None else {"gather": False}),
    }
    history: npt.NDArray[np.float64] = system.solve(b, None, None, options, None)["history"]
    return history


def relaid(old: Layout, prepared: Prepared, laps: Laps) -> Layout | None:
    """Return a layout whose values are those of another matrix of its pattern.

    None: they do not fit into it as it is, and nothing has changed.
    """
    plan, A = old.plan, prepared.matrix
    factors = bool(plan.get("levels")) or plan.get("factors", "none") != "none"
    pairs = _has_pairs(A, old.placement, factors or bool(plan.get("single_values")))
    if not old.opened().update(*_rows_of(A, pairs)):
        return None
    return layout_of(old.opened(), old.placement, old.sharing, prepared.warnings, laps)


def layout_of(
    system: System, placement: Placement, sharing: Sharing, notes: list[str], laps: Laps
) -> Layout:
    """Return what there is to know of a system that has been set up; the last lap is that.

    `notes` are warnings of the matrix.
    """
    plan: dict[str, Any] = {**system.plan()}
    entries = plan.pop("entries", None)
    found: dict[str, Any] = {
        "entries": None if entries is None else EntryStatistics(**entries),
        "mean_distance": plan.pop("mean_distance", 0.0),
        "diagonal_spread": plan.pop("diagonal_spread", 1.0),
    }
    if refused := plan.pop("refused", ""):
        return Layout(None, plan, [], [], placement, sharing, **found, refused=refused)
    laps.lap("system", plan.pop("seconds", None))
    blocks = counted(plan.get("blocks", placement.blocks), "block")
    if placement.gpus:
        blocks += f" × {counted(plan['threads'], 'thread')}"
    warnings = [*notes, *placement.warnings, *sharing.warnings]
    warnings += precision_notes(placement.tuning, plan)
    facts = [*factor_facts(plan), *precision_facts(plan)]
    return Layout(
        system,
        plan=plan,
        why=[*placement.why, f"{blocks} each: {placement.why_blocks}", *sharing.why, *facts],
        warnings=[*warnings, *oversubscription(placement), *factor_warnings(plan)],
        placement=placement,
        sharing=sharing,
        **found,
    )


@dataclass(frozen=True)
class Sharing:
    """Which PE owns which rows, in which order, and why."""

    part: Int32s | None
    """The PE that owns each row; None: there is one, or the processes have rows of their own."""
    order: Int32s | None
    why: list[str]
    warnings: list[str]

    @classmethod
    def of(
        cls,
        A: CsrMatrix,
        pes: int,
        method: PartitionLike,
        reorder: str | bool,
        gain: Gain | None = None,
        cache: PartitionCache | None = None,
    ) -> Sharing:
        """Return how the rows are shared out; `gain` and `cache` as `partition` takes them."""
        part, why, warnings = share(A, pes, method, gain, cache)
        ordering = choose_order(A, part, reorder, gain)
        order = ordering.order
        if A.of_complex and order is not None:  # imaginary parts follow real ones
            first = order[order % 2 == 0]
            order = np.stack((first, first + 1), axis=1).ravel()
        return cls(part, order, [*why, ordering.why], warnings)

    def with_whole_nodes(self, modes: Modes | None) -> Sharing:
        """Return the same with all rows of a node on one PE."""
        if modes is None or self.part is None or modes.node is None:
            return self
        return replace(self, part=load_core().with_whole_nodes(self.part, modes.node))

    def keeps_rows_in_order(self) -> bool:
        """Return whether PEs have consecutive rows, in the order of the matrix."""
        if self.order is not None:
            return False
        return self.part is None or bool((self.part[1:] >= self.part[:-1]).all())


def in_team(team: Team | None, decide: Callable[[], Sharing]) -> Sharing:
    """Return what is decided; with a team, by rank 0 for all."""
    if team is None:
        return decide()

    def arrays() -> dict[str, Any]:
        sharing = decide()
        known = {"part": sharing.part, "order": sharing.order}
        words = json.dumps([sharing.why, sharing.warnings])
        there = {name: array for name, array in known.items() if array is not None}
        return {**there, "words": np.array(words)}

    found = team.from_first("partition", arrays)
    why, warnings = json.loads(str(found["words"]))
    return Sharing(found.get("part"), found.get("order"), why, warnings)


def share(
    A: CsrMatrix,
    pes: int,
    method: PartitionLike,
    gain: Gain | None = None,
    cache: PartitionCache | None = None,
) -> tuple[Int32s | None, list[str], list[str]]:
    """Return the owners of the rows (None: one PE), why, and what is amiss."""
    if pes == 1 and isinstance(method, str) and method == "auto":
        return None, [], []
    parts = partition(A, pes, method, gain, cache)
    warnings = [*parts.notes]
    if parts.fallback:
        warnings.append(f"rows are shared out in consecutive blocks: {parts.why}")
    warnings += balance_warning(parts.report.imbalance)
    return parts.part, [f"{parts.method} partition: {parts.why}"], warnings


def balance_warning(imbalance: float) -> list[str]:
    """Return a warning where one PE has many more nonzeros than the others."""
    if imbalance <= UNBALANCED:
        return []
    return [
        f"the largest PE has {imbalance:.2f} times the mean nonzeros; the others wait for it: "
        "fewer PEs may be as fast"
    ]


def oversubscription(placement: Placement) -> list[str]:
    """Return a warning where the CPU engine has more threads than cores."""
    cores = placement.cores or choices.available_cores()
    here = placement.pes if placement.team is None else placement.team.size_here
    threads = here * placement.blocks
    if placement.gpus or threads <= cores:
        return []
    return [
        f"{counted(here, 'PE')} × {counted(placement.blocks, 'block')} are {threads} "
        f"threads on {counted(cores, 'core')}: they take turns, which is slow"
    ]
