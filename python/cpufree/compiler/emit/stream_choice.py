"""How many turns a kernel streams at a time, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import check_rows
from cpufree.compiler.emit.grid import register_fields
from cpufree.compiler.emit.rates import Rates
from cpufree.compiler.emit.stream_plan import WARP, StreamPlan
from cpufree.compiler.emit.work import operations
from cpufree.compiler.layout import Slabs, distributed_rows
from cpufree.compiler.passes.levels import Chain, chain_of
from cpufree.compiler.passes.rounds import Rounds, ghosts_in_rounds, rounds_of
from cpufree.compiler.passes.tiles import NotOnChip
from cpufree.machine import Machine

TURNS = (1, 2, 3, 4, 6, 8)
"""Of a round."""
MOST_OF_LARGE, _LARGE = 4, 200e6
"""Turns where arrays have more bytes. A Jacobi iteration at 8192² took 107 µs with 4 turns, 121
with 6, 126 with 8; one at 2048² took 11.3, 12.6, 6.4 (H200)."""
_PACK = 16
"""Bytes of a lane's columns in a row."""
_OTHER_REGISTERS = 60
"""Of a thread: addresses, numbers, what is computed; with what spills little (by nvdisasm)."""
_MOST_REGISTERS = 185
"""With more a thread spills hundreds of values in a text."""
_MOST_UNROLLED = 12
_FIRST_CACHE = 700
"""Instructions."""
_OF_ROW, _OF_TURN, _OF_LEVEL = 10, 8, 2
"""Cycles of a row, of a turn of it, which waits for the one before, and of a level."""
_WIDE, _NARROW = 1.3, 0.6
"""Cycles of a scheduler for an operation of a warp, on eight bytes and on four."""
_BUSY = 1.3
"""Of the cycles: what schedulers wait."""
_SCHEDULERS = 4
_EDGE = 2.0
"""Times the time of a row: of the rows before and behind a warp's own, which the text for edges
computes in part."""


def stream_plan(
    program: ir.Program,
    pes: int,
    kept: Iterable[str],
    multiprocessors: int,
    turns: int | None = None,
    strip: int | None = None,
    chunks: int | None = None,
    known: Machine | None = None,
) -> StreamPlan:
    """Return how a program of groups is streamed.

    Parameters
    ----------
    program : ir.Program
        After grid_groups.
    pes : int
        GPUs.
    kept : iterable of str
        Fields that the caller gets.
    multiprocessors : int
        Of a GPU.
    turns, strip, chunks : int, optional
        Turns of a round, columns of a strip, parts of a PE's rows; None: chosen.
    known : Machine, optional
        With such GPUs.

    Raises
    ------
    NotOnChip
        It cannot be.
    """
    in_registers = register_fields(program, set(kept))
    fields = [f for f in program.fields if f.distributed and f.name not in in_registers]
    if any(len(f.shape) != 2 for f in program.fields if f.distributed):
        raise NotOnChip("rows of arrays of two dimensions alone are streamed")
    rounds = rounds_of(program)
    if rounds is None or not fields:
        raise NotOnChip("its loop has no rounds")
    slabs, rates = Slabs(distributed_rows(program), pes), Rates.of(known, pes)
    why, plans = NotOnChip("its rows do not fit into registers"), []
    large = _bytes(program, [f.name for f in fields], slabs) > _LARGE
    most = MOST_OF_LARGE if large else TURNS[-1]
    for n in [n for n in TURNS if n <= most] if turns is None else (turns,):
        try:
            check_rows(fields, slabs, ghosts_in_rounds(program, rounds, n))
            chain = chain_of(program, rounds, n, in_registers)
            plan = _planned(program, rounds, chain, n, slabs, multiprocessors, (strip, chunks))
        except NotOnChip as reason:
            why = reason
            continue
        plans.append((stream_cost(program, plan, chain, slabs, multiprocessors, rates), plan))
    if not plans:
        raise why
    return min(plans, key=lambda one: one[0])[1]


def _planned(
    program: ir.Program,
    rounds: Rounds,
    chain: Chain,
    turns: int,
    slabs: Slabs,
    multiprocessors: int,
    asked: tuple[int | None, int | None],
) -> StreamPlan:
    divided = [f for f in program.fields if f.distributed]
    widest = max(np.dtype(f.type).itemsize for f in divided)
    columns = _PACK // widest
    strip, chunks = asked[0] or WARP * columns, asked[1]
    unrolled, ahead = _written_out(program, chain, columns)
    taken = registers(program, chain, columns, ahead)
    if taken > _MOST_REGISTERS:
        raise NotOnChip(f"the rows of {turns} turns take some {taken} registers of a thread")
    threads = 512 if taken <= 128 else 256
    plan = StreamPlan(
        rounds, turns, columns, strip, 1, unrolled, ahead, threads, 1, multiprocessors
    )
    left, right = plan.halo(chain)
    if strip < left + right + columns:
        raise NotOnChip(f"a strip of {strip} columns is too narrow for {turns} turns")
    width = max(f.shape[1] for f in divided)
    warps = multiprocessors * threads // WARP
    rows, span = slabs.most, chain.last - chain.first

    def rows_of_a_warp(chunks: int) -> int:
        units = replace(plan, chunks=chunks).units(width, chain)
        return -(-units // warps) * (-(-rows // chunks) + span)

    if chunks is None:
        most = max(1, min(rows, 4 * warps // plan.units(width, chain)))
        chunks = min(range(1, most + 1), key=rows_of_a_warp)
    plan = replace(plan, chunks=chunks)
    blocks = min(multiprocessors, -(-plan.units(width, chain) * WARP // threads))
    return replace(plan, blocks=max(1, blocks))


def _written_out(program: ir.Program, chain: Chain, columns: int) -> tuple[int, int]:
    """Return how many rows are written out, and how many are on their way: a part of these.

    The rows that are kept of a version go round its registers: nothing is copied where as many
    rows are written out, or a multiple of that; twice as many leave less to copy still. What is
    written out should fit into a multiprocessor's first cache of instructions.
    """
    at_rest = chain.at_rest  # at edges, where copies do no harm
    kept = {v.rows for v in chain.versions if not any(v is r for r in at_rest)}
    rows = math.lcm(*kept)
    if rows > _MOST_UNROLLED:
        rows = max(kept)
    work = sum(columns * operations(level.work.value) for level in chain.levels)
    instructions = 2.5 * work + 12  # of a row, by nvdisasm
    while rows < 3 or (rows < 6 and 2 * rows * instructions <= _FIRST_CACHE):
        rows *= 2
    return rows, next(n for n in (4, 3, 2, 5, 7, rows) if rows % n == 0)


def registers(program: ir.Program, chain: Chain, columns: int, ahead: int) -> int:
    """Return about how many registers a thread has use for."""
    words = 0
    at_rest = chain.at_rest
    for version in chain.versions:
        if any(version is v for v in at_rest):
            continue  # at edges alone
        rows = version.rows + ahead if version.level < 0 else version.rows - 1
        size = np.dtype(program.field(version.field).type).itemsize
        words += rows * columns * -(-size // 4)
    return words + _OTHER_REGISTERS


def stream_cost(
    program: ir.Program,
    plan: StreamPlan,
    chain: Chain,
    slabs: Slabs,
    multiprocessors: int,
    rates: Rates,
) -> float:
    """Return about how many microseconds a turn takes."""
    left, right = plan.halo(chain)
    stored = plan.strip - left - right
    width = max(f.shape[1] for f in program.fields if f.distributed)
    units = plan.units(width, chain)
    span = chain.last - chain.first
    rows = -(-slabs.most // plan.chunks) + span
    each = -(-units // multiprocessors)  # of a multiprocessor
    cycles = _cycles_of_row(program, chain, plan.columns)
    slow = rows + (_EDGE - 1) * span
    chip = each * slow * cycles * _BUSY / min(each, _SCHEDULERS) / rates.cycles
    always = {name for name in chain.final if name in plan.rounds.exchanged or not chain.goes_round}
    at_rest = {v.field for v in chain.at_rest}
    inputs = {v.field for v in chain.inputs.values()}
    read = _bytes(program, inputs - at_rest, slabs)
    read += _bytes(program, _loaded(program, chain), slabs)
    write = _bytes(program, always, slabs)
    overlap = (plan.strip / stored) * (rows / max(1, rows - span))
    moved = read * (1 + 0.4 * (overlap - 1)) + write
    memory = rates.read(moved, read + write)
    return (max(chip, memory) + 0.3 * min(chip, memory) + rates.round) / plan.turns


def _loaded(program: ir.Program, chain: Chain) -> set[str]:
    """Return the fields that levels load: what the loop does not change."""
    names = {r.field for level in chain.levels for r in ir.reads(level.work.value)}
    changed = {v.field for v in chain.versions}
    return {n for n in names - changed if program.field(n).distributed}


def _cycles_of_row(program: ir.Program, chain: Chain, columns: int) -> float:
    """Return about how many cycles a scheduler takes for a row of a warp in all levels."""
    turns = 1 + max(level.turn for level in chain.levels)
    cycles = float(_OF_ROW + turns * _OF_TURN)
    for level in chain.levels:
        size = np.dtype(program.field(level.work.field).type).itemsize
        each = _WIDE if size > 4 else _NARROW
        cycles += _OF_LEVEL + columns * each * operations(level.work.value)
        rows: dict[tuple[int, int], list[int]] = {}
        for version, away, beside in level.reads.values():
            rows.setdefault((id(version), away), [0]).append(beside)
        cycles += sum((max(c) - min(c)) * size / 2 for c in rows.values())
    return cycles


def _bytes(program: ir.Program, names: Iterable[str], slabs: Slabs) -> float:
    total = 0.0
    for name in names:
        f = program.field(name)
        rows = min(slabs.most, f.shape[0])
        total += float(np.dtype(f.type).itemsize) * rows * f.shape[1]
    return total
