"""For GPUs: a program's own array gets the indices of the arrays that are computed from it.

`lap = u[2:] - u[:-2]` has one row less at the begin than `u[1:-1] += lap` writes: the same thread
computes both only where row k of one is row k of the other. So lap is laid out as if it began at
row 1; no result shows that, and often it needs no memory then.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.passes.rows import Work, written


def align_locals(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program whose own arrays, but those in `kept`, lie as their readers do."""
    permuted = {n for s in ir.walk(program.body) if isinstance(s, ir.Permute) for n in s.fields}
    fixed = permuted | set(kept)
    # Readers come later, and are in place before; but those of new values are what they are of.
    order = sorted(reversed(program.fields), key=lambda f: f.role == "temporary")
    for f in order:
        if f.role in ("local", "temporary") and f.distributed and f.name not in fixed:
            shift = _shift(program, f)
            if any(shift):
                program = _shifted(program, f, shift)
    return program


def _uses(program: ir.Program, f: ir.Field) -> list[tuple[Work, ir.Read]]:
    works = [s for s in ir.walk(program.body) if isinstance(s, ir.Assign | ir.Reduce)]
    return [(w, r) for w in works for r in ir.reads(w.value) if r.field == f.name]


def _shift(program: ir.Program, f: ir.Field) -> tuple[int, ...]:
    """Return by how much the indices of a field are to grow; zeros: not at all."""
    none = (0,) * len(f.shape)
    uses = _uses(program, f)
    # Single rows may stand for neighbours around the ring, which goes by the field's size.
    boxes = [s for s in ir.walk(program.body) if isinstance(s, ir.Assign) and s.field == f.name]
    if any(work.box[0].count == 1 for work, _ in uses) or any(s.box[0].count == 1 for s in boxes):
        return none
    if any(a.wrap for _, read in uses for a in read.axes):
        return none
    if any(span.index is not None for s in boxes for span in s.box):
        return none
    for work, read in uses:
        if written(work) == f.name or len(work.box) != len(f.shape):
            continue
        pairs = enumerate(zip(read.axes, work.box, f.steps, strict=True))
        if not all(a.dim == k and a.step == span.step == d for k, (a, span, d) in pairs):
            continue
        shift = tuple(s.start - a.start for s, a in zip(work.box, read.axes, strict=True))
        if all(d >= 0 for d in shift):
            return shift
    return none


def _shifted(program: ir.Program, f: ir.Field, shift: tuple[int, ...]) -> ir.Program:
    """Return a program in which all indices of a field are larger."""

    def read(r: ir.Read) -> ir.Expr:
        if r.field != f.name:
            return r
        moved = (replace(a, start=a.start + d) for a, d in zip(r.axes, shift, strict=True))
        return replace(r, axes=tuple(moved))

    def box(spans: tuple[ir.Span, ...]) -> tuple[ir.Span, ...]:
        return tuple(replace(s, start=s.start + d) for s, d in zip(spans, shift, strict=True))

    def block(body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        return tuple(statement(s) for s in body)

    def statement(s: ir.Statement) -> ir.Statement:
        if isinstance(s, ir.Assign):
            mine = s.field == f.name
            return replace(s, box=box(s.box) if mine else s.box, value=ir.with_reads(s.value, read))
        if isinstance(s, ir.Reduce):
            mine = s.over == f.name
            return replace(s, box=box(s.box) if mine else s.box, value=ir.with_reads(s.value, read))
        return ir.with_blocks(s, block)

    shape = tuple(n + d for n, d in zip(f.shape, shift, strict=True))
    larger = replace(f, shape=shape, first=f.first + shift[0])
    fields = tuple(larger if g.name == f.name else g for g in program.fields)
    return replace(program, fields=fields, body=block(program.body))
