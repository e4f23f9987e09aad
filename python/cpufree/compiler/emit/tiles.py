"""How the points of a sweep are divided among the threads of a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass

THREADS = 512
"""Of a block."""
RESIDENT = 2
"""Blocks of a multiprocessor: warps enough to hide memory's latency. More would share the L1 cache,
in which neighbours find one another's points, and be more to wait for in a barrier."""
_LEAST_LANES = 32
_MOST_LANES = 64
_ROWS = (4, 2, 1)


@dataclass(frozen=True)
class Tile:
    """What a block does in one go: `rows` points of each thread, along the first axis.

    Threads lie along the last axis, `lanes` of them, and along the one before, `others`: of two
    dimensions that is the first axis again. Of one dimension a thread's points are THREADS apart.
    """

    lanes: int
    others: int
    rows: int


def choose_tile(counts: tuple[int, ...], rows: int, multiprocessors: int) -> Tile:
    """Return the tile of a sweep over points `counts`, of which a PE has `rows` rows.

    Several rows for a thread save loads: what one row reads of the next one is there. But a sweep
    takes as long as the block that has most to do: its tiles, each as long as its rows and one
    more.

    >>> choose_tile((1024, 1024), 1024, 132)
    Tile(lanes=64, others=8, rows=4)
    >>> choose_tile((128, 128), 128, 132)
    Tile(lanes=64, others=8, rows=1)
    """
    if len(counts) == 1:
        lanes, others = THREADS, 1
    else:
        lanes = _LEAST_LANES if counts[-1] <= _LEAST_LANES else _MOST_LANES
        others = THREADS // lanes
    shapes = [Tile(lanes, others, depth) for depth in _ROWS]
    blocks = RESIDENT * multiprocessors
    return min(shapes, key=lambda t: -(-tiles(counts, rows, t) // blocks) * (t.rows + 1))


def inner_tiles(counts: tuple[int, ...], tile: Tile) -> list[int]:
    """Return the tiles along each axis but the first."""
    found = list(counts[1:])
    if found:
        found[-1] = -(-found[-1] // tile.lanes)
    if len(found) > 1:
        found[-2] = -(-found[-2] // tile.others)
    return found


def rows_of_tile(dims: int, tile: Tile) -> int:
    """Return the rows of a tile along the first axis."""
    return {1: THREADS, 2: tile.others}.get(dims, 1) * tile.rows


def tiles(counts: tuple[int, ...], rows: int, tile: Tile) -> int:
    """Return how many tiles a PE with so many rows has."""
    return -(-rows // rows_of_tile(len(counts), tile)) * math.prod(inner_tiles(counts, tile))
