"""What a group of stages costs a multiprocessor: loads, stores, operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.passes.rows import Work, row_offset, rows_written

_LOADED, _STORED = 128, 16  # registers of a thread
_ISSUE = 0.4  # cycles of an instruction of a warp, with four schedulers that are busy mostly
_SLOW, _FAST = 0.9, 0.55  # of an operation on eight bytes, on four
_LONG = {"divide": 10, "sqrt": 10, "power": 16, "exp": 16, "log": 16}
"""Operations that one of these is: Newton's steps from a reciprocal, or a polynomial."""


@dataclass(frozen=True)
class GroupWork:
    """Of one point of a group; loads are shared by the rows that a thread does.

    Attributes
    ----------
    columns : int
        Loads of each row: fields and places along the other axes.
    beyond : int
        Loads more for all rows of a thread, of rows before and behind.
    stores : int
        Fields that are written, each as often as a thread does points of it.
    words : float
        Words of four bytes of a value.
    operations : int
        Of floats and whole numbers.
    """

    columns: int = 5
    beyond: int = 2
    stores: int = 1
    words: float = 2.0
    operations: int = 5

    def finds_registers(self, rows: int) -> bool:
        """Return whether a thread of N rows finds registers for what it loads and stores.

        Loads that are added up need theirs for a short time; results wait for one another.
        """
        loads = (self.columns * rows + self.beyond) * self.words
        return loads <= _LOADED and rows * self.stores * self.words <= _STORED

    def fitting(self, rows: int) -> int:
        """Return the rows of a thread, up to N, for which it finds registers; 1 at least."""
        return next((n for n in range(rows, 1, -1) if self.finds_registers(n)), 1)

    def cycles(self, rows: int) -> float:
        """Return about how many cycles of a multiprocessor a warp of N rows takes."""
        loads = self.columns * rows + self.beyond
        moves = (loads + self.stores * rows) * self.words
        slow = _SLOW if self.words > 1 else _FAST
        issued = loads + (self.stores + self.operations) * rows + 12
        return max(moves, self.operations * rows * slow, issued * _ISSUE)


def work_of(program: ir.Program, works: list[Work], in_registers: set[str]) -> GroupWork:
    """Return the cost of a group; fields `in_registers` are neither loaded nor stored."""
    spans: dict[tuple[object, ...], list[int]] = {}
    sizes, count = [], 0
    for work in works:
        for read in ir.reads(work.value):
            f = program.field(read.field)
            if f.name in in_registers:
                continue
            offset = 0
            if f.distributed and work.box:
                rows = work.box[0]
                offset, _ = row_offset(read, rows, f.shape[0], rows_written(program, work))
                offset //= rows.step  # rows of coarse grids lie apart
            others = tuple(
                (a.start - work.box[k].start, a.shift if a.wrap else 0)
                for k, a in enumerate(read.axes)
                if 0 < k < len(work.box)
            )
            spans.setdefault((f.name, others), []).append(offset)
            sizes.append(np.dtype(f.type).itemsize)
        count += operations(work.value)
    stores = {
        (w.field, tuple(s.start % s.step for s in w.box))
        for w in works
        if isinstance(w, ir.Assign) and w.field not in in_registers
    }
    sizes += [np.dtype(program.field(name).type).itemsize for name, _ in stores]
    beyond = sum(max(rows) - min(rows) for rows in spans.values())
    words = max(1.0, float(np.mean(sizes)) / 4) if sizes else 1.0
    return GroupWork(len(spans), beyond, len(stores), words, count)


def operations(e: ir.Expr) -> int:
    """Return the operations of an expression that has reads, a long one counted as several."""
    mine = 0
    if isinstance(e, ir.Op) and any(True for _ in ir.reads(e)):
        mine = _LONG.get(e.name, 1)
    turns = e.count if isinstance(e, ir.Fold) else 1
    return mine + turns * sum(operations(child) for child in ir.children(e))
