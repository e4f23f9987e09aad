"""Whether a program's values stay on chip, and how many turns of its loop are a round."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import (
    MEMORY,
    THREADS,
    BlockPlan,
    check_rows,
    choose_threads,
    part_cycles,
    place_tiles,
    plan_blocks,
)
from cpufree.compiler.emit.grid import reduces, register_fields
from cpufree.compiler.emit.rates import Rates
from cpufree.compiler.emit.stream_plan import StreamPlan
from cpufree.compiler.emit.sweep_points import choices
from cpufree.compiler.emit.tiles import CROWDED, LARGE, STANDARD, SweepOptions
from cpufree.compiler.emit.work import work_of
from cpufree.compiler.layout import Slabs, distributed_rows
from cpufree.compiler.passes.rounds import Rounds, ghosts_in_rounds, rounds_of
from cpufree.compiler.passes.rows import Work, written
from cpufree.compiler.passes.tiles import Ghosts, NotOnChip, add_exchanges, ghosts_of
from cpufree.machine import Machine

TURNS = (1, 2, 3, 4, 6, 8)
"""Of a round."""
_OF_THREE = 1.25
"""Of the time of sweeps over a block's part that has three dimensions."""
_VALUE = 16  # bytes, the most that a value to be reduced has


def tile_plan(
    program: ir.Program,
    pes: int,
    kept: Iterable[str],
    multiprocessors: int,
    memory: int = MEMORY,
    threads: int = THREADS,
    turns: int | None = None,
    known: Machine | None = None,
) -> BlockPlan:
    """Return how the blocks of a GPU divide a program of groups.

    Parameters
    ----------
    program : ir.Program
        After grid_groups.
    pes : int
        GPUs.
    kept : iterable of str
        Fields that the caller gets.
    multiprocessors : int
        Of a GPU: each has one block.
    memory, threads : int
        Of a block: bytes of its memory, threads.
    turns : int, optional
        Of a round; 0: there are none. None: chosen.
    known : Machine, optional
        With such GPUs.

    Raises
    ------
    NotOnChip
        Its values do not stay on chip.
    """
    in_registers = register_fields(program, set(kept))
    fields = [f for f in program.fields if f.distributed and f.name not in in_registers]
    if not fields:
        raise NotOnChip("it has no arrays that are divided")
    _check_sweeps(program, fields)
    room = _VALUE * threads if reduces(program) else 0

    def plan(ghosts: dict[str, Ghosts]) -> BlockPlan:
        return plan_blocks(program, pes, fields, ghosts, multiprocessors, room, memory, threads)

    plans = [plan(ghosts_of(program))] if not turns else []
    rounds = rounds_of(program) if turns != 0 else None
    why = NotOnChip("its loop has no rounds")
    for n in TURNS if turns is None else (turns,) if turns else ():
        if rounds is not None:
            try:
                ghosts = ghosts_in_rounds(program, rounds, n)
                plans.append(replace(plan(ghosts), rounds=rounds, turns=n))
            except NotOnChip as reason:
                why = reason
    if not plans:
        raise why
    slabs, rates = Slabs(distributed_rows(program), pes), Rates.of(known, pes)
    best = min(plans, key=lambda p: cost(program, p, slabs, in_registers, rates))
    streaming = streaming_cost(program, slabs, multiprocessors, in_registers, rates)
    if turns is None and cost(program, best, slabs, in_registers, rates) > streaming:
        raise NotOnChip("sweeps over memory take less time, it seems")
    return best


def _check_sweeps(program: ir.Program, fields: list[ir.Field]) -> None:
    """Raise NotOnChip for a sweep with none of these fields: no tile says which points it has."""
    in_tiles = {f.name for f in fields}
    for group in ir.walk(program.body):
        if isinstance(group, ir.Group):
            works = [stage.work for stage in group.stages]
            names = {*(r.field for w in works for r in ir.reads(w.value)), *map(written, works)}
            if not names & in_tiles:
                raise NotOnChip(f"line {works[0].line} computes with no array that is divided")


def cost(
    program: ir.Program, plan: BlockPlan, slabs: Slabs, in_registers: set[str], rates: Rates
) -> float:
    """Return about how many microseconds a turn of the program's loops takes on chip."""
    groups = [s for s in ir.walk(program.body) if isinstance(s, ir.Group)]
    if plan.rounds is None:
        waits = _waits(program, slabs.most / plan.rows, rates)
        sweeps = (_sweep(program, g, plan, slabs, [(0, 0)], in_registers, rates) for g in groups)
        return waits + sum(sweeps)
    rounds = plan.rounds
    waits = rates.exchange + rates.field * len(rounds.exchanged)
    for group, after in zip(groups, rounds.after, strict=True):
        margins = _margins(rounds, plan.turns, after)
        waits += _sweep(program, group, plan, slabs, margins, in_registers, rates)
    return waits / plan.turns


def _waits(program: ir.Program, rows: float, rates: Rates) -> float:
    """Return the time of all exchanges of a turn that most blocks, of N rows, wait for.

    Where a group computes on fewer rows, the other blocks go on: over many turns, what a few blocks
    wait for beside them does not hold up the rest.
    """
    waits = before = 0.0
    for s in ir.walk(add_exchanges(program).body):
        if isinstance(s, ir.Exchange):
            before = rates.exchange + rates.field * len(s.fields)
        elif isinstance(s, ir.Group):
            most = max(stage.work.box[0].count for stage in s.stages if stage.work.box)
            waits += before if most > rows else 0.0
            before = 0.0
    return waits


def _sweep(
    program: ir.Program,
    group: ir.Group,
    plan: BlockPlan,
    slabs: Slabs,
    margins: list[tuple[int, int]],
    in_registers: set[str],
    rates: Rates,
) -> float:
    """Return about how many microseconds a group takes on a block's part, with all margins."""
    works = [stage.work for stage in group.stages]
    work = work_of(program, works, in_registers)
    names = {r.field for w in works for r in ir.reads(w.value)} | set(map(written, works))
    fields = [program.field(name) for name in names & set(plan.offsets)]
    extents = [plan.extent(f, slabs) for f in fields]
    e = max(extents, key=lambda x: x.rows * x.columns * x.depth)
    dims = len(fields[0].shape)
    sizes = [(e.rows + 2 * m0, e.columns + 2 * m1, e.depth)[:dims] for m0, m1 in margins]
    tile = choose_threads(max(sizes), work, plan.threads)
    slow = _OF_THREE if dims == 3 else 1.0
    cycles = sum(part_cycles(size, tile, work) for size in sizes)
    return rates.group * len(sizes) + slow * cycles / rates.cycles


def _margins(rounds: Rounds, turns: int, after: tuple[int, int]) -> list[tuple[int, int]]:
    (rows, columns), (more, wider) = rounds.reach, after
    return [(turn * rows + more, turn * columns + wider) for turn in range(turns)]


def memory_plan(
    program: ir.Program,
    pes: int,
    kept: Iterable[str],
    multiprocessors: int,
    memory: int = MEMORY,
    tile: tuple[int, int] | None = None,
    turns: int | None = None,
    known: Machine | None = None,
) -> BlockPlan:
    """Return how a program whose values lie in memory does rounds of turns on chip.

    Parameters
    ----------
    program : ir.Program
        After grid_groups.
    pes : int
        GPUs.
    kept : iterable of str
        Fields that the caller gets.
    multiprocessors : int
        Of a GPU: each has two blocks.
    memory : int
        Bytes of a multiprocessor's memory.
    tile, turns : optional
        Rows and columns of a tile, turns of a round; None: chosen.
    known : Machine, optional
        With such GPUs.

    Raises
    ------
    NotOnChip
        There are no rounds, or sweeps over memory take no longer.
    """
    in_registers = register_fields(program, set(kept))
    fields = [f for f in program.fields if f.distributed and f.name not in in_registers]
    rounds = rounds_of(program)
    if rounds is None or not fields:
        raise NotOnChip("its loop has no rounds")
    _check_sweeps(program, fields)
    slabs, rates = Slabs(distributed_rows(program), pes), Rates.of(known, pes)
    width = max((f.shape[1] for f in fields if len(f.shape) > 1), default=1)
    sizes = [tile] if tile is not None else _tiles(len(fields[0].shape))
    plans = []
    why = NotOnChip("tiles with the ghosts of a round do not fit")
    for n in TURNS if turns is None else (turns,):
        try:
            ghosts = ghosts_in_rounds(program, rounds, n)
            check_rows(fields, slabs, ghosts)
        except NotOnChip as reason:
            why = reason
            continue
        for size in sizes:
            plan = place_tiles(fields, ghosts, size, width, slabs, multiprocessors)
            if plan.size <= memory // plan.resident - _OF_BLOCK:
                plans.append(replace(plan, rounds=rounds, turns=n))
    if not plans:
        raise why
    given = slabs, multiprocessors, in_registers, rates
    times = [memory_cost(program, p, *given) for p in plans]
    time, best = min(zip(times, plans, strict=True), key=lambda one: one[0])
    streaming = streaming_cost(program, *given)
    if turns is None and time > _WORTH * streaming:
        raise NotOnChip("rounds of turns would compute too many points twice")
    return best


_OF_BLOCK = 4096
"""Bytes of a block's memory that are the port's and the driver's."""
_WORTH = 0.7
"""A round's time over that of sweeps from which on it is not worth its while."""
_SHARED = 0.8
"""Of the time of a block that has a multiprocessor for itself, where there are two."""


def _tiles(dims: int) -> list[tuple[int, int]]:
    if dims == 1:
        return [(rows, 1) for rows in (1024, 2048, 3072, 4096, 6144)]
    return [(r, c) for r in (16, 32, 48, 64, 96) for c in (16, 32, 64, 96, 128)]


def memory_cost(
    program: ir.Program,
    plan: BlockPlan,
    slabs: Slabs,
    processors: int,
    in_registers: set[str],
    rates: Rates,
) -> float:
    """Return about how many microseconds a turn takes with rounds from memory."""
    rounds, tile = plan.rounds, plan.tile
    assert rounds is not None and tile is not None
    moved = whole = inner = 0.0
    for name in plan.offsets:
        f = program.field(name)
        e, g = plan.extent(f, slabs), plan.ghosts[name]
        frame = (e.rows + 2 * g.around) * (e.columns + 2 * g.beside) / (e.rows * e.columns)
        bytes_of_field = _bytes(f, slabs)
        is_written = any(
            isinstance(s, ir.Assign) and s.field == name for s in ir.walk(program.body)
        )
        if name in rounds.exchanged:
            moved += bytes_of_field * (frame + 1)
        elif not is_written:
            moved += bytes_of_field * frame
        whole += bytes_of_field
        points = bytes_of_field / np.dtype(f.type).itemsize
        inner = max(inner, points / (e.rows * e.columns * e.depth))
    groups = [s for s in ir.walk(program.body) if isinstance(s, ir.Group)]
    chip = sum(
        _sweep(program, g, plan, slabs, _margins(rounds, plan.turns, after), in_registers, rates)
        for g, after in zip(groups, rounds.after, strict=True)
    )
    tiles = -(-inner // (processors * plan.resident)) * plan.resident
    times = rates.read(moved, 2 * whole), _SHARED * chip * tiles
    return (max(times) + 0.6 * min(times) + rates.barrier) / plan.turns


def streaming_cost(
    program: ir.Program, slabs: Slabs, processors: int, in_registers: set[str], rates: Rates
) -> float:
    """Return about how many microseconds a turn takes whose groups are sweeps over memory."""
    sizes = {f.name: _bytes(f, slabs) for f in program.fields if f.name not in in_registers}
    time = 0.0
    for group in (s for s in ir.walk(program.body) if isinstance(s, ir.Group)):
        works = [stage.work for stage in group.stages]
        moved = sum(_share_of(program.field(name), works, is_read) * sizes[name]
                    for is_read in (True, False) for name in sizes)  # fmt: skip
        points = max(map(_points, works)) / slabs.pes
        work = work_of(program, works, in_registers)
        chip = points / 32 / processors * work.cycles(_ROWS) / _ROWS / rates.cycles
        times = rates.read(moved, sum(sizes.values())), chip
        time += max(times) + 0.4 * min(times) + rates.barrier
    return time


def _points(work: Work) -> float:
    return float(np.prod([s.count for s in work.box]))


def _share_of(f: ir.Field, works: list[Work], is_read: bool) -> float:
    """Return the share of a field that stages read, or write: the largest of theirs."""
    those = [
        w for w in works
        if (any(r.field == f.name for r in ir.reads(w.value)) and is_read)
        or (isinstance(w, ir.Assign) and w.field == f.name and not is_read)
    ]  # fmt: skip
    return min(1.0, max(map(_points, those), default=0.0) / max(1.0, float(np.prod(f.shape))))


def sweep_options(
    program: ir.Program, pes: int, kept: Iterable[str], known: Machine | None = None
) -> SweepOptions:
    """Return how sweeps over memory are done.

    Updates that are composed of others have many values in a thread, which half of a
    multiprocessor's registers do not hold: V-cycles at 2048² take 0.96 times as long with all.
    Where the second cache does not hold the arrays, and little is loaded for a point, threads that
    do few rows at a time find one another's points in the first one; not where the arrays are
    larger still.
    """
    slabs = Slabs(distributed_rows(program), pes)
    in_registers = register_fields(program, set(kept))
    size = sum(_bytes(f, slabs) for f in program.fields if f.name not in in_registers)
    groups = [s for s in ir.walk(program.body) if isinstance(s, ir.Group)]
    works = [[stage.work for stage in group.stages] for group in groups]
    costs = [work_of(program, w, in_registers) for w in works]
    composed = any(True for group in works for w in group for _ in choices(w.value))
    if composed or not all(work.finds_registers(1) for work in costs):
        return CROWDED
    points = [max(math.prod(s.count for s in w.box) for w in group) for group in works]
    loads = np.average([work.columns for work in costs], weights=points) if costs else 0
    least = Rates.of(known, pes).cached
    return LARGE if least <= size < _TOO_LARGE and loads <= _FEW_LOADS else STANDARD


_TOO_LARGE, _FEW_LOADS = 600e6, 6
"""Bytes of all arrays; loads of a row for a point, on average. With two rows of a thread instead of
four, jacobi_3d at 256³ takes 0.84 times as long, V-cycles at 2048² 0.87 times."""
_ROWS = 4  # of a thread, in sweeps over memory


def _bytes(f: ir.Field, slabs: Slabs) -> float:
    """Return the bytes that a PE has of a field."""
    rows = min(slabs.most, f.shape[0]) // f.apart if f.distributed else f.shape[0]
    return float(np.dtype(f.type).itemsize * rows) * float(np.prod(f.shape[1:]))


def describe(plan: BlockPlan | StreamPlan) -> str:
    """Return what a plan is, in words."""
    if isinstance(plan, StreamPlan):
        return plan.describe()
    if plan.tile is not None:
        rows, columns = plan.tile
        return (
            f"values lie in memory; {plan.turns} turns at a time are done on chip, in tiles of "
            f"{rows} x {columns} points"
        )
    where = f"{plan.size >> 10} KB in each of {plan.rows} x {plan.columns} blocks"
    if plan.rounds is None:
        return f"values stay on chip, {where}, which exchange ghosts where groups need them"
    return f"values stay on chip, {where}, which exchange ghosts every {plan.turns} turns"
