"""How a program lies in memory: slabs of rows for the PEs, and the numbers that a kernel takes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.passes.fusion import Reach
from cpufree.compiler.passes.halos import widths
from cpufree.compiler.passes.rows import row_reads
from cpufree.engines.choices import available_cores, count

Key: TypeAlias = "int | tuple[str, str | int]"
"""A number that a kernel takes: itself, or what is known once the PEs are: (what, of which)."""

_LINE = 64
_PAGE = 4096
_FLAG = 128
_GPU_LINE = 128
_POINTS = 8192
"""A PE with fewer points costs more in waiting than it saves in work."""
FAR = 8
"""Ghost rows, more of which come from PEs beyond those beside, where a PE has fewer rows itself."""
_CACHE = 1 << 17
"""Bytes that the rows of a group are to take while they are gone over."""


def aligned(size: int, to: int = 256) -> int:
    """Return a size rounded up."""
    return -(-size // to) * to


@dataclass(frozen=True)
class Slabs:
    """Rows [bounds[p], bounds[p + 1]) of all distributed fields belong to PE p."""

    rows: int
    pes: int

    def bounds(self, pe: int) -> tuple[int, int]:
        """Return the first row of a PE, and the one behind its last one."""
        return self.rows * pe // self.pes, self.rows * (pe + 1) // self.pes

    @property
    def most(self) -> int:
        """Rows of the largest slab."""
        return -(-self.rows // self.pes)


def distributed_rows(program: ir.Program) -> int:
    """Return the rows that are divided among PEs: those of the longest field."""
    return max((f.shape[0] for f in program.fields if f.distributed), default=1)


def far_fields(program: ir.Program) -> set[str]:
    """Return the fields whose exchanges go from PE to PE: of coarse grids with few rows.

    Those around a ring do not, nor do any of GPUs, whose threads store ghosts where they belong.
    """
    halos = [h for s in ir.walk(program.body) if isinstance(s, ir.Put) for h in s.halos]
    ring = {h.field for h in halos if h.periodic}
    wide = {name for name, r in widths(program).items() if max(r.below, r.above) > FAR}
    return (wide - ring) & {h.field for h in halos}


def fits(program: ir.Program, pes: int) -> bool:
    """Return whether every PE has the rows that its neighbours need."""
    slabs = Slabs(distributed_rows(program), pes)
    needs = widths(program) if pes > 1 else {}
    far = far_fields(program)
    for f in program.fields:
        need = needs.get(f.name, Reach())
        wide = max(need.below, need.above)
        for pe in range(pes):
            lo, hi = slabs.bounds(pe)
            own = min(hi, f.shape[0]) - lo
            if wide and own < (1 if f.name in far else wide):
                return False
    return pes <= slabs.rows


def most_pes(program: ir.Program, wanted: int) -> int:
    """Return the largest number of PEs up to `wanted` for which each has enough rows."""
    return next(p for p in range(wanted, 0, -1) if p == 1 or fits(program, p))


def choose_pes(program: ir.Program, asked: int | str, preset: int | None) -> int:
    """Return the number of PEs: as asked for, or one for each core where there is work for them."""
    if asked != "auto":
        return most_pes(program, count("pes", asked))
    if preset is not None:
        return most_pes(program, preset)
    points = max((math.prod(f.shape) for f in program.fields), default=1)
    return most_pes(program, max(1, min(available_cores(), points // _POINTS)))


class Layout:
    """Offsets in the heap of a PE, the same on all; and which rows of arrays lie there.

    The arrays are those of one caller, or of one for each rank: the `owner`, by number. What an
    owner has lies on its PEs, from that of the same number on.
    """

    def __init__(self, program: ir.Program, pes: int) -> None:
        self.program = program
        self.slabs = Slabs(distributed_rows(program), pes)
        self.widths = widths(program)
        self.offsets: dict[str, int] = {}
        self.channels: dict[int, dict[str, int]] = {}
        self.size = 0
        self._place(pes)

    def _place(self, pes: int) -> None:
        """Give everything its offset."""
        self.slots = self._reserve(2 * 2 * pes * 16)
        self.leave = self._reserve(_FLAG)
        self.stop = self._reserve(_FLAG)
        for k, f in enumerate(self.program.fields):
            # Not all fields on the same lines of a cache's sets.
            self.offsets[f.name] = self._reserve(self.bytes_of(f))
            self.size += _LINE * (2 * k % 32 + 1)
            self.size = aligned(self.size)
        for s in ir.walk(self.program.body):
            if isinstance(s, ir.Put):
                self._add_channel(s)

    def _reserve(self, size: int) -> int:
        at = self.size
        self.size += aligned(size)
        return at

    def reach(self, f: ir.Field) -> Reach:
        """Return the ghost rows of a field."""
        return self.widths.get(f.name, Reach())

    def rows(self, f: ir.Field) -> int:
        """Return the rows that a PE keeps of a field."""
        if not f.distributed:
            return f.shape[0]
        reach = self.reach(f)
        return min(self.slabs.most, f.shape[0]) + reach.below + reach.above

    def inner(self, f: ir.Field) -> tuple[int, ...]:
        """Return the points along the axes after the first one, as they are kept."""
        if len(f.shape) == 1:
            return ()
        size = np.dtype(f.type).itemsize
        last = aligned(f.shape[-1] * size, _LINE)
        if last % _PAGE == 0:
            last += _LINE  # rows one behind the other would share their place in the cache
        return (*f.shape[1:-1], last // size)

    def strides(self, f: ir.Field) -> tuple[int, ...]:
        """Return the distances of points along each axis, in values."""
        inner = self.inner(f)
        return tuple(math.prod(inner[k:]) for k in range(len(f.shape)))

    def bytes_of(self, f: ir.Field) -> int:
        """Return the bytes that a PE keeps of a field."""
        return self.rows(f) * self.strides(f)[0] * np.dtype(f.type).itemsize

    def _add_channel(self, s: ir.Put) -> None:
        below = above = 0
        hops = 1
        for h in s.halos:
            f = self.program.field(h.field)
            least = min(hi - lo for lo, hi in (self.own_rows(f, k) for k in range(self.pes)))
            hops = max(hops, -(-max(h.below, h.above) // max(1, least)))
            row = self.strides(f)[0] * np.dtype(f.type).itemsize
            below += aligned(h.below * row, 8)
            above += aligned(h.above * row, 8)
        slot = aligned(below + above)
        self.channels[s.channel] = {
            "flags": self._reserve(2 * _FLAG),
            "mail": self._reserve(2 * slot),
            "slot": slot,
            "from_above": below,
            "hops": hops,
        }

    def number(self, key: Key) -> int:
        """Return a number that a kernel takes."""
        if isinstance(key, int):
            return key
        what, of = key
        if what in ("flags", "mail", "slot", "from_above", "hops"):
            return self.channels[int(of)][what]
        if what == "rows_of_all":
            return self.slabs.rows
        if what == "slots":
            return self.slots
        if what == "stop":
            return self.stop
        if what == "block":
            return self._block(str(of))
        f = self.program.field(str(of))
        if what.startswith("stride"):
            return self.strides(f)[int(what[-1])]
        found = {"offset": self.offsets[f.name], "points": f.shape[0]}
        return {**found, "below": self.reach(f).below}[what]

    def _block(self, names: str) -> int:
        """Return the rows that a group goes over at a time: those that fit into a cache."""
        row = 0
        for name in names.split(","):
            f = self.program.field(name)
            row += self.strides(f)[0] * np.dtype(f.type).itemsize
        return max(1, _CACHE // row)

    @property
    def results(self) -> int:
        """Words that a program leaves: its variables, and which field lies where."""
        return len(self.program.variables) + len(self.program.fields)

    # --- arrays of the caller ---

    @property
    def pes(self) -> int:
        """How many PEs there are."""
        return self.slabs.pes

    def program_of(self, owner: int) -> ir.Program:
        """Return the program that works on the arrays of one of the callers: there is one."""
        return self.program

    def written(self, owner: int) -> Set[str]:
        """Return the fields of a caller that are written."""
        return self.program.written

    def tables(self, owner: int) -> dict[int, npt.NDArray[np.int64]]:
        """Return what lies in a heap besides fields before a run, by its place there."""
        return {}

    def faults_in(self, results: npt.NDArray[np.int64]) -> list[int]:
        """Return the faults that a kernel leaves among its results: none, it has them apart."""
        return []

    def keeps_ghosts(self, f: ir.Field) -> bool:
        """Return whether rows of a field have copies on other PEs, or around a ring."""
        reach = self.reach(f)
        return bool(reach.below or reach.above)

    def own_rows(self, f: ir.Field, pe: int) -> tuple[int, int]:
        """Return the first row of a field that a PE has, and the one behind its last one."""
        if not f.distributed:
            return 0, f.shape[0]
        lo, hi = self.slabs.bounds(pe)
        return lo, min(hi, f.shape[0])


class GridLayout(Layout):
    """Offsets in the heap of a PE whose blocks are many: a GPU."""

    _MOST_BLOCKS = 1024  # of a PE, for whose reductions there is room
    MOST_QUEUES = 32
    """Sweeps whose tiles blocks take from a queue."""

    def _place(self, pes: int) -> None:
        self.ring = any(
            r.periodic
            for s in ir.walk(self.program.body)
            if isinstance(s, ir.Group)
            for stage in s.stages
            for r in row_reads(self.program, stage.work)
        )
        self.leave = self._reserve(_FLAG)
        self.counter = self._reserve(_FLAG)
        self.flags = self._reserve(2 * _FLAG)
        self.stop = self._reserve(_FLAG)
        self.queues = self._reserve(self.MOST_QUEUES * _FLAG)
        self.packets = self._reserve(4 * pes * self._MOST_BLOCKS * 16)
        for f in self.program.fields:
            self.offsets[f.name] = self._reserve(self.bytes_of(f))

    def queue(self, number: int) -> int:
        """Return the offset of a queue's counter."""
        return self.queues + number * _FLAG

    @property
    def most_blocks(self) -> int:
        """Blocks of a PE for which there is room."""
        return self._MOST_BLOCKS

    def inner(self, f: ir.Field) -> tuple[int, ...]:
        if len(f.shape) == 1:
            return ()
        size = np.dtype(f.type).itemsize
        return (*f.shape[1:-1], aligned(f.shape[-1] * size, _GPU_LINE) // size)

    def keeps_ghosts(self, f: ir.Field) -> bool:
        return super().keeps_ghosts(f) and (self.slabs.pes > 1 or self.ring)

    def places(self, f: ir.Field) -> list[int]:
        """Return the offsets in the heap where the values of a field may lie in the end."""
        return [self.offsets[f.name]]

    @property
    def results(self) -> int:
        return super().results + len(self.program.fields)

    def number(self, key: Key) -> int:
        places = {
            "counter": self.counter,
            "flags": self.flags,
            "packets": self.packets,
            "stop": self.stop,
        }
        if not isinstance(key, int) and key[0] in places:
            return places[key[0]]
        return super().number(key)


class TileLayout(GridLayout):
    """The same for values that stay on chip: packets of exchanges, too.

    Attributes
    ----------
    packets_of : dict
        Offset of a field's packets, and how many a slot has; there are two.
    tiles : int
        Offset of the blocks' tiles, where they have no memory of their own.
    """

    def __init__(
        self,
        program: ir.Program,
        pes: int,
        around: Mapping[str, tuple[int, int]],
        tile_bytes: int = 0,
    ) -> None:
        """Lay out a program.

        Parameters
        ----------
        program : ir.Program
            Its fields.
        pes : int
            PEs.
        around : mapping
            Ghost rows and columns of the fields that have tiles.
        tile_bytes : int
            Of all blocks of a PE, in the heap; 0: they lie in fast memory.
        """
        super().__init__(program, pes)
        self.packets_of: dict[str, tuple[int, int]] = {}
        for f in program.fields:
            rows, columns = around.get(f.name, (0, 0))
            if rows or columns:
                high = min(self.slabs.most, f.shape[0]) + 2 * rows
                slot = high * math.prod(f.shape[1:])
                self.packets_of[f.name] = self._reserve(2 * 16 * slot), slot
        self.tiles = self._reserve(tile_bytes)


class RoundLayout(TileLayout):
    """The same for values that lie in memory and are brought on chip for rounds of turns.

    Attributes
    ----------
    others : dict
        Offset of the second copy of each field that changes: a round reads one, writes the other.
    """

    def __init__(
        self,
        program: ir.Program,
        pes: int,
        around: Mapping[str, int],
        changed: Collection[str],
        tile_bytes: int = 0,
    ) -> None:
        """Lay out a program whose rounds read `around` ghost rows, and write `changed`."""
        self.around = around
        super().__init__(program, pes, {}, tile_bytes)
        self.others = {
            f.name: self._reserve(self.bytes_of(f)) for f in program.fields if f.name in changed
        }

    def reach(self, f: ir.Field) -> Reach:
        rows = self.around.get(f.name)
        return super().reach(f) if rows is None else Reach(rows, rows)

    def places(self, f: ir.Field) -> list[int]:
        others = [self.others[f.name]] if f.name in self.others else []
        return [*super().places(f), *others]
