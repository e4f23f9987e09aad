"""For GPUs: an array of the program's own that one stage reads beside its points is not stored.

The residual of a fine grid that is read by the restriction to a coarse one would be written and
read again, with a barrier between: more than it takes to compute it where it is read. The reader
gets the expression in place of the value. The bits are those of NumPy, as each value is computed as
before, only more than once, or not at all where nothing reads it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import expressions
from cpufree.compiler.passes.boxes import Box, without
from cpufree.compiler.passes.copies import Body, replaced
from cpufree.compiler.passes.points import at_own_point
from cpufree.compiler.passes.rows import Work, scalars_of, written

MOST_AGAIN = 1.5
"""Values that are computed, for each that would have been stored."""


def recompute(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program whose own arrays, but those in `kept`, are stored where that pays.

    Parameters
    ----------
    program : ir.Program
        After add_temporaries.
    kept : collection of str
        Fields that the caller gets.
    """
    moved = {n for s in ir.walk(program.body) if isinstance(s, ir.Permute) for n in s.fields}
    for f in program.fields:
        if f.role in ("local", "temporary") and f.name not in moved and f.name not in kept:
            program = _without_field(program, program.body, f.name) or program
    return program


def _without_field(program: ir.Program, body: Body, name: str) -> ir.Program | None:
    """Return a program without a field whose uses are all in one block; None: it stays."""
    for s in body:
        for block in ir.blocks(s):
            found = _without_field(program, block, name)
            if found is not None:
                return found
    at = [k for k, s in enumerate(body) if _uses(s, name)]
    if len(at) < 2 or len(at) != sum(1 for s in ir.walk(program.body) if _uses(s, name)):
        return None
    reader, run = body[at[-1]], body[at[0] : at[-1]]
    stages = [s for s in run if isinstance(s, ir.Assign | ir.Reduce)]
    if not isinstance(reader, ir.Assign) or len(stages) != len(run):
        return None
    if reader.field == name or not all(_only_writes(body[k], name) for k in at[:-1]):
        return None
    value = _value_without(program, stages, reader, name)
    if value is None:
        return None
    left = [s for s in run if not _uses(s, name)]
    made = (*body[: at[0]], *left, replace(reader, value=value), *body[at[-1] + 1 :])
    fields = tuple(f for f in program.fields if f.name != name)
    return replace(program, body=replaced(program.body, body, made), fields=fields)


def _reads(s: Work, name: str) -> bool:
    return any(r.field == name for r in ir.reads(s.value))


def _uses(s: ir.Statement, name: str) -> bool:
    """Return whether a statement itself touches a field."""
    if any(e.field == name for expr in expressions(s) for e in ir.elements(expr)):
        return True
    if not isinstance(s, ir.Assign | ir.Reduce):
        return False
    return (s.over if isinstance(s, ir.Reduce) else s.field) == name or _reads(s, name)


def _only_writes(s: ir.Statement, name: str) -> bool:
    return isinstance(s, ir.Assign) and s.field == name and not _reads(s, name)


def _value_without(
    program: ir.Program, stages: list[Work], reader: ir.Assign, name: str
) -> ir.Expr | None:
    """Return what a stage computes, with what is read of a field computed there; None: it is not.

    `stages`: those from the first that writes the field to the reader.
    """
    reads = list(dict.fromkeys(r for r in ir.reads(reader.value) if r.field == name))
    if all(at_own_point(r, reader) for r in reads):
        return None  # the same thread has it
    values: dict[ir.Read, ir.Expr] = {}
    stored: set[int] = set()
    for read in reads:
        k = _writer(program, stages, reader, read)
        if k is None:
            return None
        work = stages[k]
        value = _moved(work, read) if _may_be_later(stages[k:], reader, work) else None
        if value is None:
            return None
        values[read] = value
        stored.add(k)
    points = sum(_points(stages[k]) for k in stored)
    if len(reads) * _points(reader) > MOST_AGAIN * points:
        return None
    return ir.with_reads(reader.value, lambda r: values.get(r, r))


def _points(work: Work) -> int:
    return math.prod(s.count for s in work.box)


def _writer(
    program: ir.Program, stages: list[Work], reader: ir.Assign, read: ir.Read
) -> int | None:
    """Return the number of the stage that writes all that is read, as the last one."""
    if any(a.wrap or a.index is not None or a.dim <= ir.FOLDED for a in read.axes):
        return None
    wanted = Box.of_read(read, reader.box, program.field(read.field).shape)
    for k, work in reversed(list(enumerate(stages))):
        if written(work) != read.field:
            continue
        if any(span.index is not None for span in work.box):
            return None
        box = Box.of_spans(work.box)
        if not box.meets(wanted):
            continue
        return None if without(frozenset({wanted}), box) else k
    return None


def _may_be_later(after: list[Work], reader: ir.Assign, work: Work) -> bool:
    """Return whether a stage may be computed by its reader, `after` which it is the first."""
    reads = {r.field for r in ir.reads(work.value)}
    changed = {written(w) for w in after} | {reader.field}
    scalars = {w.name for w in after if isinstance(w, ir.Reduce)}
    single = any(w.box[0].count == 1 for w in (work, reader))  # rows may be neighbours in a ring
    return not (single or reads & changed or scalars & scalars_of(work))


def _moved(work: Work, read: ir.Read) -> ir.Expr | None:
    """Return the value of a stage at the points of a read of it."""
    if work.value.type != read.type or has(work.value, ir.Element, ir.Fold, ir.Choice):
        return None
    moved: list[ir.Read] = []

    def change(r: ir.Read) -> ir.Expr:
        axes = tuple(_axis(a, work, read) for a in r.axes)
        if all(a is not None for a in axes):
            moved.append(r)
        return replace(r, axes=tuple(a or ir.Axis(ir.FIXED) for a in axes))

    value = ir.with_reads(work.value, change)
    return value if len(moved) == sum(1 for _ in ir.reads(work.value)) else None


def has(e: ir.Expr, *kinds: type) -> bool:
    """Return whether there are such parts in an expression, as have indices of their own."""
    return isinstance(e, kinds) or any(has(c, *kinds) for c in ir.children(e))


def _axis(a: ir.Axis, work: Work, read: ir.Read) -> ir.Axis | None:
    """Return an index of a stage, by the indices of the reader; None: it has no such form."""
    if a.index is not None:
        return None
    if a.dim == ir.FIXED:
        return a
    mine, span = read.axes[a.dim], work.box[a.dim]
    first, rest = divmod(mine.start - span.start, span.step)
    if rest or (mine.dim != ir.FIXED and mine.step % span.step):
        return None
    if mine.dim == ir.FIXED:
        place = (first + a.shift) % a.wrap if a.wrap else first
        return ir.Axis(ir.FIXED, a.start + a.step * place)
    step = mine.step // span.step
    if a.wrap:
        return replace(a, dim=mine.dim, shift=a.shift + first) if step == 1 else None
    return ir.Axis(mine.dim, a.start + a.step * first, a.step * step)
