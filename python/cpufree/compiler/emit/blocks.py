"""Which part of a PE's points each block has where values stay on chip."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.emit.tiles import Tile
from cpufree.compiler.emit.work import GroupWork
from cpufree.compiler.layout import Slabs, aligned, distributed_rows
from cpufree.compiler.passes.rounds import Rounds
from cpufree.compiler.passes.tiles import Ghosts, NotOnChip

THREADS = 1024
"""Of a block, of which a multiprocessor has one."""
_SHARED = {(8, 0): 163, (8, 7): 163, (9, 0): 227, (10, 0): 227, (10, 3): 227}
_LEAST_SHARED = 99
_OF_THE_PORT = 4
"""KB of shared memory that a block may have, by compute capability; and what the port takes."""
_LANES = (32, 64, 96, 128, 160, 192, 224, 256)


@dataclass(frozen=True)
class Extent:
    """A field's largest tile: points along rows and columns, and those along the third axis."""

    rows: int
    columns: int
    depth: int


@dataclass(frozen=True)
class BlockPlan:
    """Blocks of a PE, and where tiles lie in a block's memory."""

    rows: int
    columns: int
    width: int
    """Points along the second axis, of the widest field."""
    ghosts: dict[str, Ghosts]
    offsets: dict[str, int]
    room: int
    size: int
    threads: int = THREADS
    rounds: Rounds | None = None
    turns: int = 0
    """Of a round, between two exchanges; 0: exchanges stand before the groups that need them."""
    tile: tuple[int, int] | None = None
    """Rows and columns of tiles that come from memory for a round; None: each block has one."""
    resident: int = 1
    """Blocks of a multiprocessor."""

    @property
    def blocks(self) -> int:
        """Blocks of a PE."""
        return self.rows * self.columns

    def extent(self, f: ir.Field, slabs: Slabs) -> Extent:
        """Return the extent of a field's largest tile."""
        if self.tile is not None:
            shape = [*f.shape, 1, 1]
            rows, columns = (min(n, m) for n, m in zip(self.tile, shape, strict=False))
            return Extent(rows, columns, shape[2] if len(f.shape) > 2 else 1)
        return _extent(f, slabs, self.rows, self.columns, self.width)


def tile_memory(capability: tuple[int, int]) -> int:
    """Return the bytes that a block has for reductions and tiles on a GPU.

    >>> tile_memory((9, 0)) >> 10
    223
    """
    return (_SHARED.get(capability, _LEAST_SHARED) - _OF_THE_PORT) << 10


MEMORY = tile_memory((9, 0))


def plan_blocks(
    program: ir.Program,
    pes: int,
    fields: list[ir.Field],
    ghosts: dict[str, Ghosts],
    multiprocessors: int,
    room: int,
    memory: int = MEMORY,
    threads: int = THREADS,
) -> BlockPlan:
    """Return how blocks divide a program's fields, of which `fields` have tiles.

    Blocks are as many as there are multiprocessors, or somewhat fewer: what counts are the rows of
    threads that the largest part has, then the ghosts around it.

    Raises
    ------
    NotOnChip
        Values do not fit, or a PE has fewer rows than its neighbours need.
    """
    slabs = Slabs(distributed_rows(program), pes)
    width = max((f.shape[1] for f in fields if len(f.shape) > 1), default=1)
    best: tuple[int, BlockPlan] | None = None
    for rows in range(1, min(multiprocessors, slabs.rows // pes) + 1):
        if not _rows_have_points(fields, slabs, rows):
            continue
        columns = _most_columns(fields, width, min(multiprocessors // rows, width))
        plan = _placed(program, slabs, fields, ghosts, rows, columns, width, room)
        high, wide = -(-slabs.most // rows), -(-width // columns)
        lanes = aligned(wide, 32) if width > 1 and len(fields[0].shape) == 2 else wide
        cost = high * lanes + 4 * (high + wide)
        if plan.size <= memory and (best is None or cost < best[0]):
            best = cost, plan
    if not _rows_have_points(fields, slabs, 1):
        raise NotOnChip("a PE has no rows of one of its arrays")
    if best is None:
        least = _placed(program, slabs, fields, ghosts, *_square(multiprocessors), width, room)
        raise NotOnChip(
            f"a block's part takes some {least.size >> 10} KB, and a multiprocessor has "
            f"{memory >> 10} KB"
        )
    check_rows(fields, slabs, best[1].ghosts)
    return replace(best[1], threads=threads)


ROUND_THREADS, ROUND_BLOCKS = 512, 2
"""Of a block, and blocks of a multiprocessor, where tiles come from memory: while one waits for its
tile, another computes."""


def place_tiles(
    fields: list[ir.Field],
    ghosts: dict[str, Ghosts],
    tile: tuple[int, int],
    width: int,
    slabs: Slabs,
    multiprocessors: int,
) -> BlockPlan:
    """Return a plan whose tiles come from memory, and have ghosts on all sides."""
    # Each block has a tile: all compute the scalars of a round, and fail together.
    count = -(-(slabs.rows // slabs.pes) // tile[0]) * -(-width // tile[1])
    blocks = min(ROUND_BLOCKS * multiprocessors, count)
    plan = BlockPlan(
        blocks, 1, width, {}, {}, 0, 0, ROUND_THREADS, tile=tile, resident=ROUND_BLOCKS
    )
    for f in fields:
        plan.offsets[f.name] = plan.size
        e, g = plan.extent(f, slabs), ghosts[f.name]
        if len(f.shape) == 1:
            g = replace(g, beside=0)
        plan.ghosts[f.name] = g
        points = (e.rows + 2 * g.around) * (e.columns + 2 * g.beside) * e.depth
        size = aligned(points * np.dtype(f.type).itemsize, 128)
        plan = replace(plan, size=plan.size + size)
    return plan


def _rows_have_points(fields: list[ir.Field], slabs: Slabs, rows: int) -> bool:
    """Return whether each row of blocks has a row of each field: exchanges go both ways then."""
    for pe in range(slabs.pes):
        lo, hi = slabs.bounds(pe)
        last = lo + (hi - lo) * (rows - 1) // rows
        if any(last >= f.shape[0] for f in fields):
            return False
    return True


def _most_columns(fields: list[ir.Field], width: int, limit: int) -> int:
    """Return the largest number of columns of blocks of which each has a column of each field."""
    least = min(f.shape[1] if len(f.shape) > 1 else width for f in fields)
    return next(c for c in range(limit, 0, -1) if c == 1 or width * (c - 1) // c < least)


def _square(blocks: int) -> tuple[int, int]:
    rows = next(r for r in range(int(blocks**0.5), 0, -1) if blocks % r == 0)
    return rows, blocks // rows


def _placed(
    program: ir.Program,
    slabs: Slabs,
    fields: list[ir.Field],
    ghosts: dict[str, Ghosts],
    rows: int,
    columns: int,
    width: int,
    room: int,
) -> BlockPlan:
    """Return a plan with the places of tiles. No ghosts are kept where there is no neighbour."""
    kept = {}
    for f in fields:
        g = ghosts[f.name]
        around = g.around if rows > 1 or slabs.pes > 1 or g.ring0 else 0
        beside = g.beside if columns > 1 or g.ring1 else 0
        kept[f.name] = Ghosts(around, beside, g.ring0, g.ring1, g.corners)
    offsets, size = {}, room
    for f in fields:
        offsets[f.name] = size - room
        e, g = _extent(f, slabs, rows, columns, width), kept[f.name]
        points = (e.rows + 2 * g.around) * (e.columns + 2 * g.beside) * e.depth
        size += aligned(points * np.dtype(f.type).itemsize, 128)
    return BlockPlan(rows, columns, width, kept, offsets, room, size)


def _extent(f: ir.Field, slabs: Slabs, rows: int, columns: int, width: int) -> Extent:
    shape = [*f.shape, 1, 1]
    high = min(-(-slabs.most // rows), shape[0])
    wide = min(-(-width // columns), shape[1]) if len(f.shape) > 1 else 1
    return Extent(high, wide, shape[2] if len(f.shape) > 2 else 1)


def check_rows(fields: list[ir.Field], slabs: Slabs, ghosts: dict[str, Ghosts]) -> None:
    """Refuse slabs in which a neighbour's ghosts are not all rows of the PE beside."""
    for f in fields:
        for pe in range(slabs.pes if slabs.pes > 1 else 0):
            lo, hi = slabs.bounds(pe)
            if min(hi, f.shape[0]) - lo < ghosts[f.name].around:
                raise NotOnChip(f"PE {pe} has too few rows of {f.name}")


def choose_threads(extents: tuple[int, ...], work: GroupWork, threads: int = THREADS) -> Tile:
    """Return how threads go over a block's part, whose points along each axis are `extents`.

    Several rows for a thread save loads.

    >>> choose_threads((64, 128), GroupWork())
    Tile(lanes=128, others=8, rows=8)
    >>> choose_threads((138, 74), GroupWork())
    Tile(lanes=37, others=23, rows=6)
    """
    extents = tuple(max(1, n) for n in extents)  # of empty slices: there are threads all the same
    most = work.fitting(8)
    if len(extents) == 1:
        points = -(-extents[0] // threads)
        turns = -(-points // most)
        return Tile(threads, 1, -(-points // turns))
    lanes = {n for n in _LANES if n <= threads}
    lanes |= {-(-extents[-1] // parts) for parts in (1, 2, 3, 4)}
    shapes = [
        Tile(n, others, rows)
        for n in sorted(lanes)
        if n <= threads
        for rows in range(1, most + 1)
        for others in _others(extents, threads // n, rows)
    ]
    return min(shapes, key=lambda t: (part_cycles(extents, t, work), t.rows))


def _others(extents: tuple[int, ...], most: int, rows: int) -> set[int]:
    """Return threads that may lie along the axis before the last one."""
    size = -(-extents[0] // rows) if len(extents) == 2 else extents[1]
    return {min(most, -(-size // parts)) for parts in (1, 2, 3, 4)}


def part_cycles(extents: tuple[int, ...], tile: Tile, work: GroupWork) -> float:
    """Return about how many cycles a block takes with a tile: its warps, then the last of them."""
    of_turn = 120 + 14 * tile.rows
    if len(extents) == 1:  # the last turn has the warps alone that have points
        turns, warps = (-(-extents[0] // (n * tile.rows)) for n in (tile.threads, 32))
        return warps * work.cycles(tile.rows) + turns * of_turn
    turns = -(-extents[-1] // tile.lanes)
    if len(extents) == 2:
        turns *= -(-extents[0] // (tile.others * tile.rows))
    else:
        turns *= -(-extents[1] // tile.others) * -(-extents[0] // tile.rows)
    warps = -(-tile.threads // 32)
    split = 1.05 if tile.lanes % 32 else 1.0  # a warp's points lie in two rows
    return turns * (warps * work.cycles(tile.rows) * split + of_turn)
