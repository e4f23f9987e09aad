"""Runs a program after its passes as several PEs do, each with ghosts of its own, in NumPy.

A ghost has the value that was last brought to it or computed in it: a program that lacks an
exchange computes with stale ones, as its kernel would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.interpret import _Run
from cpufree.compiler.layout import Slabs, distributed_rows
from cpufree.compiler.passes.rows import row_offset, rows_written


class _Pe(_Run):
    """A PE: its arrays, with ghosts on either side."""

    def __init__(self, machine: Machine, pe: int, arguments: Mapping[str, Any]) -> None:
        super().__init__(machine.program, arguments, machine.values)
        self.lo, self.hi = machine.slabs.bounds(pe)
        self.wide = machine.wide
        self.distributed = {f.name for f in machine.program.fields if f.distributed}
        for name in self.distributed:
            whole = self.arrays[name]
            end = min(self.hi, len(whole))
            rows = np.arange(self.lo - self.wide, end + self.wide) % len(whole)
            self.arrays[name] = whole[rows]

    def own(self, name: str) -> Any:
        """Return the rows of a field that are this PE's."""
        return self.arrays[name][self.wide : -self.wide]

    def turns(self, work: Any, below: int = 0, above: int = 0) -> range:
        """Return which points along the first axis a stage does here."""
        rows = work.box[0]
        first = -(-(self.lo - below - rows.start) // rows.step)
        last = -(-(self.hi + above - rows.start) // rows.step)
        return range(max(0, first), min(rows.count, last))

    def stage(self, work: Any, turns: range) -> Any:
        """Return the values of a stage at some of its points along the first axis."""
        rows = work.box[0]
        box = (replace(rows, count=len(turns)), *work.box[1:])

        def here(read: ir.Read) -> ir.Read:
            if read.field not in self.distributed:
                return read
            n = self.program.field(read.field).shape[0]
            offset, _ = row_offset(read, rows, n, rows_written(self.program, work))
            start = rows.start + offset + rows.step * turns.start - self.lo + self.wide
            return replace(read, axes=(ir.Axis(0, start, rows.step), *read.axes[1:]))

        values = self.points(ir.with_reads(work.value, here), box, work.line)
        return np.broadcast_to(values, tuple(span.count for span in box))

    def assign(self, stage: ir.Stage) -> None:
        """Do an Assign, on rows beyond the border too, as far as there is room for them."""
        work = stage.work
        assert isinstance(work, ir.Assign)
        turns = self.turns(work, stage.below, stage.above)
        if turns:
            rows = work.box[0]
            start = rows.start + rows.step * turns.start - self.lo + self.wide
            along = [slice(s.start, s.stop, s.step) for s in work.box[1:]]
            stop = start + rows.step * (len(turns) - 1) + 1
            self.arrays[work.field][(slice(start, stop, rows.step), *along)] = self.stage(
                work, turns
            )


class Machine(_Run):
    """All PEs: they take the same ways, for they have the same scalars."""

    def __init__(
        self, program: ir.Program, arguments: Mapping[str, Any], values: Any, pes: int
    ) -> None:
        super().__init__(program, arguments, values)
        self.values, self.slabs = values, Slabs(distributed_rows(program), pes)
        self.wide = 16
        self.pes = [_Pe(self, pe, arguments) for pe in range(pes)]
        self.sent: dict[int, list[dict[str, Any]]] = {}

    def statement(self, s: ir.Statement) -> None:
        if isinstance(s, ir.Group):
            for stage in s.stages:
                self.stage(stage)
        elif isinstance(s, ir.Put):
            self.sent[s.channel] = [{h.field: pe.own(h.field).copy() for h in s.halos}
                                    for pe in self.pes]  # fmt: skip
        elif isinstance(s, ir.Wait):
            self.wait(s)
        elif isinstance(s, ir.Permute):
            for pe in self.pes:
                pe.statement(s)
            super().statement(s)
        else:
            super().statement(s)

    def stage(self, stage: ir.Stage) -> None:
        """Do a stage on all PEs."""
        work = stage.work
        if isinstance(work, ir.Assign):
            for pe in self.pes:
                pe.assign(stage)
            return
        assert work.op in ("max", "min"), "sums depend on their order"
        parts = [pe.stage(work, pe.turns(work)) for pe in self.pes if pe.turns(work)]
        function = np.max if work.op == "max" else np.min
        self.scalars[work.name] = function([function(part) for part in parts]).astype(work.type)
        for pe in self.pes:
            pe.scalars = self.scalars

    def wait(self, s: ir.Wait) -> None:
        """Bring what has been sent into the ghosts."""
        ring = any(h.periodic for h in s.halos)
        sent, count = self.sent.pop(s.channel), len(self.pes)
        for k, pe in enumerate(self.pes):
            for h in s.halos:
                array = pe.arrays[h.field]
                if h.below and (ring or k > 0):
                    rows = sent[(k - 1) % count][h.field][-h.below :]
                    array[pe.wide - len(rows) : pe.wide] = rows
                if h.above and (ring or k + 1 < count):
                    rows = sent[(k + 1) % count][h.field][: h.above]
                    array[len(array) - pe.wide :][: len(rows)] = rows


def run_on_pes(
    program: ir.Program, arguments: Mapping[str, Any], values: Any, pes: int
) -> dict[str, Any]:
    """Run a program that passes have been through; return the final arrays of the caller.

    Arrays of the caller stand for storage: what a name stands for may have been another's.
    """
    machine = Machine(program, arguments, values, pes)
    for pe in machine.pes:
        pe.scalars = machine.scalars
    machine.block(program.body)
    found = {}
    for name, array in arguments.items():
        now = next(other for other, storage in machine.arrays.items() if storage is array)
        found[name] = np.concatenate([pe.own(now) for pe in machine.pes])
    return found
