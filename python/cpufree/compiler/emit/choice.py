"""Whether a program's values stay on chip, and how many turns of its loop are a round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import MEMORY, THREADS, BlockPlan, plan_blocks
from cpufree.compiler.emit.grid import reduces, register_fields
from cpufree.compiler.layout import Slabs, distributed_rows
from cpufree.compiler.passes.rounds import ghosts_in_rounds, rounds_of
from cpufree.compiler.passes.tiles import Ghosts, NotOnChip, add_exchanges, ghosts_of

TURNS = (1, 2, 3, 4, 6, 8)
"""Of a round."""
_EXCHANGE, _FIELD, _GROUP = 1.3, 0.15, 0.1
"""Microseconds of an exchange, of a field in it, of a group beside its points."""
_BYTES = 2.2e5
"""Of its memory that a multiprocessor reads and writes in a microsecond."""
_VALUE = 16  # bytes, the most that a value to be reduced has


def tile_plan(
    program: ir.Program,
    pes: int,
    kept: Iterable[str],
    multiprocessors: int,
    memory: int = MEMORY,
    threads: int = THREADS,
    turns: int | None = None,
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

    Raises
    ------
    NotOnChip
        Its values do not stay on chip.
    """
    in_registers = register_fields(program, set(kept))
    fields = [f for f in program.fields if f.distributed and f.name not in in_registers]
    if not fields:
        raise NotOnChip("it has no arrays that are divided")
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
    slabs = Slabs(distributed_rows(program), pes)
    return min(plans, key=lambda p: cost(program, p, slabs))


def cost(program: ir.Program, plan: BlockPlan, slabs: Slabs) -> float:
    """Return about how many microseconds a turn of the program's loops takes."""
    groups = [s for s in ir.walk(program.body) if isinstance(s, ir.Group)]
    if plan.rounds is None:
        exchanges = [s for s in ir.walk(add_exchanges(program).body) if isinstance(s, ir.Exchange)]
        waits = sum(_EXCHANGE + _FIELD * len(s.fields) for s in exchanges)
        return waits + sum(_sweep(program, g, plan, slabs, (0, 0)) for g in groups)
    rounds = plan.rounds
    waits = _EXCHANGE + _FIELD * len(rounds.exchanged)
    for turn in range(plan.turns):
        for group, after in zip(groups, rounds.after, strict=True):
            margin = tuple(turn * r + a for r, a in zip(rounds.reach, after, strict=True))
            waits += _sweep(program, group, plan, slabs, margin)
    return waits / plan.turns


def _sweep(
    program: ir.Program, group: ir.Group, plan: BlockPlan, slabs: Slabs, margin: tuple[int, ...]
) -> float:
    """Return about how many microseconds a group takes with a margin."""
    reads = {r for stage in group.stages for r in ir.reads(stage.work.value)}
    touched = [r.field for r in reads if r.field in plan.offsets]
    touched += {
        s.work.field
        for s in group.stages
        if isinstance(s.work, ir.Assign) and s.work.field in plan.offsets
    }
    fields = [program.field(name) for name in touched]
    size = sum(np.dtype(f.type).itemsize for f in fields)
    extents = [plan.extent(f, slabs) for f in fields]
    if not extents:
        return _GROUP
    e = max(extents, key=lambda x: x.rows * x.columns * x.depth)
    wide = e.columns + 2 * margin[1] if len(fields[0].shape) > 1 else 1
    return _GROUP + (e.rows + 2 * margin[0]) * wide * e.depth * size / _BYTES


def describe(plan: BlockPlan) -> str:
    """Return what a plan is, in words."""
    where = f"{plan.size >> 10} KB in each of {plan.rows} x {plan.columns} blocks"
    if plan.rounds is None:
        return f"{where}, which exchange ghosts where groups need them"
    return f"{where}, which exchange ghosts every {plan.turns} turns"
