"""Which fields of a rank's program go by rows.

A rank has all rows of its arrays, so nothing need be divided. But stages whose rows go together are
done in one sweep, and reductions are shared among the blocks of a PE: for stages `by rows`, all of
whose fields are. The others are computed as arrays of which every PE has a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.front.distribution import far_rows
from cpufree.compiler.passes.accesses import element_fields
from cpufree.compiler.passes.rows import Work, row_offset


def by_rows(programs: list[ir.Program]) -> list[ir.Program]:
    """Return programs with the same fields, of which as many go by rows as can."""
    shapes = {f.name: f.shape for p in programs for f in p.fields}
    apart = {name for p in programs for name in element_fields(p)}
    works = [w for p in programs for w in works_of(p)]
    while True:
        found = {name for w in works for name in _apart(w, shapes, apart)} - apart
        if not found:
            break
        apart |= found
    return [_changed(p, apart) for p in programs]


def works_of(program: ir.Program) -> Iterator[Work]:
    """Yield the stages of a program."""
    for s in ir.walk(program.body):
        if isinstance(s, ir.Assign | ir.Reduce):
            yield s


def far_reads(program: ir.Program, work: Work) -> list[str]:
    """Return why a stage cannot go by the rows of its field; nothing where it can."""
    fields = {f.name: f for f in program.fields}
    name = work.field if isinstance(work, ir.Assign) else work.over
    found = []
    for read in ir.reads(work.value):
        of = fields[read.field]
        if not of.distributed:
            continue
        if not name or not fields[name].distributed:
            found.append(f"{name or 'a number'} is computed from {of.name}, whose rows are divided")
            continue
        why = far_rows(read.axes[0], work.box[0], of.shape[0])
        if why:
            found.append(f"{of.name} is read at {why}")
    return found


def _apart(work: Work, shapes: dict[str, tuple[int, ...]], apart: set[str]) -> set[str]:
    """Return fields that cannot go by rows, given others that do not."""
    name = work.field if isinstance(work, ir.Assign) else work.over
    reads = [r for r in ir.reads(work.value) if r.field not in apart]
    if not name or name in apart:
        return {r.field for r in reads}
    found = set()
    for read in reads:
        n = shapes[read.field][0]
        if far_rows(read.axes[0], work.box[0], n):
            found.add(read.field)
        elif read.axes[0].wrap or row_offset(read, work.box[0], n, shapes[name][0])[1]:
            found.add(read.field)  # around a ring of PEs, which there is none of
    return found


def _changed(program: ir.Program, apart: set[str]) -> ir.Program:
    fields = tuple(replace(f, distributed=f.name not in apart) for f in program.fields)
    return replace(program, fields=fields)
