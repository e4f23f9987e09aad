"""How the points of a sweep are divided among the threads of a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass

_LEAST_LANES = 32
_MOST_LANES = 64
_ROWS = (4, 2, 1)


@dataclass(frozen=True)
class Tile:
    """What a block does in one go: `rows` points of each thread, along the first axis.

    Threads lie along the last axis, `lanes` of them, and along the one before, `others`: of two
    dimensions that is the first axis again. Of one dimension a thread's points are `lanes` apart.
    """

    lanes: int
    others: int
    rows: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.lanes * self.others


@dataclass(frozen=True)
class SweepOptions:
    """How sweeps are done.

    Attributes
    ----------
    threads : int
        Of a block.
    resident : int
        Blocks of a multiprocessor: warps enough to hide memory's latency. More would be more to
        wait for in a barrier.
    lanes, rows : int
        Of a tile; 0: chosen for each sweep.
    most_rows : int
        That are chosen.
    order : str
        The tiles that a block does: "strides" (every N-th; blocks are beside one another),
        "chunks" (one behind the other, along the last axis), "down" (along the first axis), or
        "queue" (a block that is ready takes the next one).
    aligned : bool
        Threads lie along the last axis as lines of memory do.
    """

    threads: int = 512
    resident: int = 2
    lanes: int = 0
    rows: int = 0
    most_rows: int = _ROWS[0]
    order: str = "strides"
    aligned: bool = True

    def tile(self, counts: tuple[int, ...], rows: int, multiprocessors: int) -> Tile:
        """Return the tile of a sweep over points `counts`, of which a PE has `rows` rows.

        Several rows for a thread save loads: what one row reads of the next one is there. But a
        sweep takes as long as the block that has most to do: its tiles, each as long as its rows
        and one more.

        >>> SweepOptions().tile((1024, 1024), 1024, 132)
        Tile(lanes=64, others=8, rows=4)
        >>> SweepOptions().tile((128, 128), 128, 132)
        Tile(lanes=64, others=8, rows=1)
        """
        lanes = self.lanes or _MOST_LANES
        if len(counts) == 1:
            lanes = self.threads
        elif not self.lanes and counts[-1] <= _LEAST_LANES:
            lanes = _LEAST_LANES
        depths = (self.rows,) if self.rows else [n for n in _ROWS if n <= self.most_rows]
        shapes = [Tile(lanes, self.threads // lanes, depth) for depth in depths]
        blocks = self.resident * multiprocessors
        return min(shapes, key=lambda t: -(-tiles(counts, rows, t) // blocks) * (t.rows + 1))


STANDARD = SweepOptions()
LARGE = SweepOptions(most_rows=2)
"""For arrays that no cache holds."""
CROWDED = SweepOptions(resident=1)
"""For threads that have more values than half of a multiprocessor's registers hold."""


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
    return {1: tile.threads, 2: tile.others}.get(dims, 1) * tile.rows


def tiles(counts: tuple[int, ...], rows: int, tile: Tile) -> int:
    """Return how many tiles a PE with N rows has."""
    return -(-rows // rows_of_tile(len(counts), tile)) * math.prod(inner_tiles(counts, tile))
