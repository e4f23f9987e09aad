"""Programs on GPUs: the passes, the kernel's text, and what a launch needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import MEMORY, THREADS
from cpufree.compiler.emit.choice import memory_plan, sweep_options, tile_plan
from cpufree.compiler.emit.grid import GridText, emit_grid, register_fields
from cpufree.compiler.emit.rates import Rates
from cpufree.compiler.emit.resident import emit_tiles
from cpufree.compiler.emit.rounds import changed_fields, emit_rounds
from cpufree.compiler.emit.stream_choice import stream_plan
from cpufree.compiler.emit.streams import emit_streams
from cpufree.compiler.emit.tiles import STANDARD, SweepOptions
from cpufree.compiler.emit.times import sweep_time, time_of
from cpufree.compiler.front.values import ArrayValue, TupleValue, Value
from cpufree.compiler.layout import GridLayout, RoundLayout, TileLayout
from cpufree.compiler.passes import add_temporaries
from cpufree.compiler.passes.align import align_locals
from cpufree.compiler.passes.barriers import add_barriers, by_one_block, check_barriers
from cpufree.compiler.passes.buffers import buffer_updates
from cpufree.compiler.passes.compose import compose_updates
from cpufree.compiler.passes.planes import split_planes
from cpufree.compiler.passes.points import group_points, interleave
from cpufree.compiler.passes.recompute import recompute
from cpufree.compiler.passes.rounds import ghosts_in_rounds
from cpufree.compiler.passes.tiles import NotOnChip, add_exchanges, check_exchanges
from cpufree.machine import Machine


@dataclass(frozen=True)
class GridKernel:
    """A program that the passes for GPUs have been through, laid out for N PEs."""

    program: ir.Program
    layout: GridLayout
    text: GridText
    why: str = ""
    """Why values do not stay on chip."""


def grid_groups(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program in groups, each for one sweep; the caller gets the fields in `kept`."""
    return group_points(buffer_updates(_laid_out(program, kept), kept))


def _laid_out(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program whose stages that compute the same points have the same indices."""
    made = recompute(add_temporaries(program), kept)
    return align_locals(split_planes(made, kept), kept)


def swept_groups(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program in groups, as few as pays where each is a sweep over memory."""
    return grid_groups(compose_updates(program), kept)


def grid_passes(program: ir.Program, kept: Collection[str], pes: int = 2) -> ir.Program:
    """Return a program ready for sweeps over memory of `pes` PEs (2: of any number); checked."""
    return with_barriers(swept_groups(program, kept), pes)


def with_barriers(groups: ir.Program, pes: int) -> ir.Program:
    """Return a program of groups as sweeps of `pes` PEs do it; checked."""
    made = interleave(groups)
    made = add_barriers(by_one_block(made) if pes == 1 else made)
    check_barriers(made)
    return made


def grid_kernel(
    program: ir.Program,
    pes: int,
    kept: Iterable[str],
    multiprocessors: int,
    options: SweepOptions = STANDARD,
) -> GridKernel:
    """Return the kernel of a program that grid_passes have been through."""
    layout = GridLayout(program, pes)
    return GridKernel(program, layout, emit_grid(program, layout, kept, multiprocessors, options))


def tile_kernel(
    groups: ir.Program,
    pes: int,
    kept: Collection[str],
    multiprocessors: int,
    memory: int = MEMORY,
    threads: int = THREADS,
    turns: int | None = None,
    tiles_in_heap: bool = False,
    known: Machine | None = None,
) -> GridKernel:
    """Return the kernel of a program of groups whose values stay on chip.

    Parameters
    ----------
    groups : ir.Program
        After grid_groups.
    pes : int
        GPUs.
    kept : collection of str
        Fields that the caller gets.
    multiprocessors : int
        Of a GPU: each has one block.
    memory : int
        Bytes of a block for its tiles.
    threads : int
        Of a block.
    turns : int, optional
        Of a round between two exchanges; 0: there are none. None: chosen.
    tiles_in_heap : bool
        For engines whose blocks have no memory of their own.
    known : Machine, optional
        With such GPUs, by which is chosen what is not given.

    Raises
    ------
    NotOnChip
        They do not; the message says why.
    """
    plan = tile_plan(groups, pes, kept, multiprocessors, memory, threads, turns, known)
    made = groups
    if plan.rounds is None:
        made = add_exchanges(groups)
        check_exchanges(made)
    around = {name: (g.around, g.beside) for name, g in plan.ghosts.items()}
    size = plan.size * plan.blocks if tiles_in_heap else 0
    layout = TileLayout(made, pes, around, size)
    return GridKernel(made, layout, emit_tiles(made, layout, kept, plan))


def round_kernel(
    groups: ir.Program,
    pes: int,
    kept: Collection[str],
    multiprocessors: int,
    memory: int = MEMORY,
    tile: tuple[int, int] | None = None,
    turns: int | None = None,
    tiles_in_heap: bool = False,
    known: Machine | None = None,
) -> GridKernel:
    """Return the kernel of a program of groups whose values come on chip for rounds of turns.

    Parameters
    ----------
    groups, pes, kept, multiprocessors, memory, tiles_in_heap, known
        As of tile_kernel.
    tile, turns : optional
        Rows and columns of a tile, turns of a round; None: chosen.

    Raises
    ------
    NotOnChip
        They do not; the message says why.
    """
    plan = memory_plan(groups, pes, kept, multiprocessors, memory, tile, turns, known)
    around = {name: g.around if pes > 1 or g.ring0 else 0 for name, g in plan.ghosts.items()}
    size = plan.size * plan.blocks if tiles_in_heap else 0
    layout = RoundLayout(groups, pes, around, changed_fields(groups, plan), size)
    return GridKernel(groups, layout, emit_rounds(groups, layout, set(kept), plan))


def stream_kernel(
    groups: ir.Program,
    pes: int,
    kept: Collection[str],
    multiprocessors: int,
    turns: int | None = None,
    strip: int | None = None,
    chunks: int | None = None,
    known: Machine | None = None,
) -> GridKernel:
    """Return the kernel of a program of groups whose warps stream rows through registers.

    Parameters
    ----------
    groups, pes, kept, multiprocessors, known
        As of tile_kernel.
    turns, strip, chunks : int, optional
        Turns of a round, columns of a strip, parts of a PE's rows; None: chosen.

    Raises
    ------
    NotOnChip
        They cannot; the message says why.
    """
    plan = stream_plan(groups, pes, kept, multiprocessors, turns, strip, chunks, known)
    ghosts = ghosts_in_rounds(groups, plan.rounds, plan.turns)
    around = {name: g.around if pes > 1 or g.ring0 else 0 for name, g in ghosts.items()}
    changed = ir.touched_fields(groups.body) - register_fields(groups, set(kept))
    layout = RoundLayout(groups, pes, around, changed)
    return GridKernel(groups, layout, emit_streams(groups, layout, set(kept), plan))


def chosen_kernel(
    groups: ir.Program,
    pes: int,
    kept: Collection[str],
    multiprocessors: int,
    memory: int = MEMORY,
    known: Machine | None = None,
    swept: ir.Program | None = None,
) -> GridKernel:
    """Return the kernel of a program of groups that takes the least time, as far as is known.

    `swept`: the program after swept_groups, if sweeps over memory are to do that one.
    """
    given = groups, pes, kept, multiprocessors
    makes: list[Callable[[], GridKernel]] = [
        lambda: tile_kernel(*given, memory, known=known),
        lambda: round_kernel(*given, memory, known=known),
        lambda: stream_kernel(*given, known=known),
    ]
    found, reasons, rates = [], [], Rates.of(known, pes)
    for make in makes:
        try:
            kernel = make()
        except NotOnChip as reason:
            reasons.append(str(reason))
        else:
            assert kernel.text.on_chip is not None
            found.append((time_of(groups, kernel.text.on_chip, *given[1:], rates), kernel))
    over_memory = groups if swept is None else swept
    sweeps = sweep_time(over_memory, *given[1:], rates)
    if found and min(time for time, _ in found) < sweeps:
        return min(found, key=lambda one: one[0])[1]
    made = with_barriers(over_memory, pes)
    options = sweep_options(made, pes, kept, known)
    kernel = grid_kernel(made, pes, kept, multiprocessors, options)
    return replace(kernel, why=", and ".join(reasons) or "other ways take longer, it seems")


def sparing_kernel(
    program: ir.Program,
    pes: int,
    kept: Collection[str],
    multiprocessors: int,
    known: Machine | None = None,
) -> GridKernel:
    """Return the kernel of a lowered program that takes the least memory: sweeps, no buffers."""
    made = with_barriers(group_points(_laid_out(program, kept)), pes)
    options = sweep_options(made, pes, kept, known)
    kernel = grid_kernel(made, pes, kept, multiprocessors, options)
    return replace(kernel, why="GPUs have no memory for more")


def returned_fields(result: Value | None) -> set[str]:
    """Return the fields that a call returns."""
    if isinstance(result, TupleValue):
        return {name for item in result.items for name in returned_fields(item)}
    if isinstance(result, ArrayValue) and isinstance(result.expr, ir.Read):
        other = returned_fields(result.unless[1]) if result.unless else set()
        return {result.expr.field} | other
    return set()
