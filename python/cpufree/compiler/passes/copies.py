"""For GPUs: a copy of a whole array becomes a change of storage.

`u[1:-1] = new`, where `new` is the program's own and is not read any more, costs a sweep over
memory and a barrier if earlier stages have read u around the point. Instead u takes the storage of
new: what u has beside the box is written into new before, by the sweep that computes new. Updates
that read what they write (life, Gray-Scott) go from two sweeps to one.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import Access, accesses
from cpufree.compiler.passes.boxes import Box, without
from cpufree.compiler.passes.points import at_own_point, goes_with
from cpufree.compiler.passes.rows import Work

Body = tuple[ir.Statement, ...]
LEAST_SHARE = 0.5
"""Of u's points that a copy writes: else writing the others costs more than the copy."""


def swap_copies(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program in which own arrays, but those in `kept`, are copied where they must.

    Parameters
    ----------
    program : ir.Program
        After add_temporaries and align_locals.
    kept : collection of str
        Fields that the caller gets.
    """
    while True:
        changed = _in_block(program, program.body, set(kept))
        if changed is None:
            return program
        program = changed


def _in_block(program: ir.Program, body: Body, kept: set[str]) -> ir.Program | None:
    """Return the program with one copy less, in a block or in one inside; None: there is none."""
    group: list[Work] = []
    for at, s in enumerate(body):
        goes = isinstance(s, ir.Assign | ir.Reduce) and bool(group) and goes_with(program, group, s)
        if isinstance(s, ir.Assign) and not goes:
            made = _swapped(program, body, at, kept)
            if made is not None:
                new, fields = made
                everything = replaced(program.body, body, new)
                return replace(program, body=everything, fields=fields)
        for block in ir.blocks(s):
            found = _in_block(program, block, kept)
            if found is not None:
                return found
        group = ([*group, s] if goes else [s]) if isinstance(s, ir.Assign | ir.Reduce) else []
    return None


def late_swaps(program: ir.Program) -> ir.Program:
    """Return a program in which stages come before changes of storage instead of after them.

    They use the storage by its name of before. What is computed before and after such a change
    can then go together.
    """
    return replace(program, body=_with_late_swaps(program.body))


def _with_late_swaps(body: Body) -> Body:
    out: list[ir.Statement] = []
    swaps: list[ir.Permute] = []
    now: dict[str, str] = {}  # by name: that of before the swaps, of the same storage
    for s in body:
        if isinstance(s, ir.Permute) and s.values:
            swaps.append(s)
            now |= {f: now.get(g, g) for f, g in zip(s.fields, s.sources, strict=True)}
        elif isinstance(s, ir.Assign | ir.Reduce):
            out.append(_renamed(s, now) if now else s)
        else:
            out += swaps
            swaps, now = [], {}
            out.append(ir.with_blocks(s, _with_late_swaps))
    return (*out, *swaps)


def _renamed(work: Work, now: dict[str, str]) -> Work:
    """Return a stage on fields of other names."""

    def read(r: ir.Read) -> ir.Expr:
        return replace(r, field=now.get(r.field, r.field))

    value = ir.with_reads(work.value, read)
    if isinstance(work, ir.Reduce):
        return replace(work, over=now.get(work.over, work.over), value=value)
    return replace(work, field=now.get(work.field, work.field), value=value)


def replaced(body: Body, old: Body, new: Body) -> Body:
    """Return statements in which one block, the object itself, is another."""
    if body is old:
        return new
    return tuple(
        ir.with_blocks(s, lambda inner: replaced(inner, old, new)) if ir.blocks(s) else s
        for s in body
    )


def _swapped(
    program: ir.Program, body: Body, at: int, kept: set[str]
) -> tuple[Body, tuple[ir.Field, ...]] | None:
    """Return a block in which statement `at`, a copy, is a change of storage; None: it is not."""
    copy = body[at]
    assert isinstance(copy, ir.Assign)
    read = copy.value
    if not isinstance(read, ir.Read) or not at_own_point(read, copy) or _moves(copy):
        return None
    u, t = program.field(copy.field), program.field(read.field)
    if t.name in kept or not _may_change_places(u, t) or not _is_most(copy, u):
        return None
    first = _first_write(program, body, at, t)
    if first is None or not _only_here(program, body, first, at, t):
        return None
    if not _untouched(body[first:at], u) or (t.shape != u.shape and _goes_around(program, t)):
        return None
    whole = u.whole
    if copy.box != whole and not _writes_only(body[first:at], t, copy.box):
        return None  # what t has beside the box is not u's
    out = list(body)
    out[at] = ir.Permute((u.name, t.name), (t.name, u.name), copy.line, values=True)
    if copy.box != whole:
        axes = tuple(span.axis(k) for k, span in enumerate(whole))
        out.insert(first, ir.Assign(t.name, whole, ir.Read(u.name, axes, u.type), copy.line))
    larger = replace(t, shape=u.shape, first=u.first)
    return tuple(out), tuple(larger if f.name == t.name else f for f in program.fields)


def _moves(work: ir.Assign) -> bool:
    """Return whether the run says which points a stage writes."""
    return any(span.index is not None for span in work.box)


def _may_change_places(u: ir.Field, t: ir.Field) -> bool:
    return (
        u.name != t.name
        and t.role in ("local", "temporary")
        and u.role != "constant"
        and (u.type, u.apart) == (t.type, t.apart)
        and u.distributed
        and t.distributed
        and len(u.shape) == len(t.shape)
        and all(a <= b for a, b in zip(t.shape, u.shape, strict=True))
    )


def _is_most(copy: ir.Assign, u: ir.Field) -> bool:
    """Return whether a copy is of a box without gaps, of many of the points of u."""
    count = math.prod(s.count for s in copy.box)
    return _has_no_gaps(copy, u) and count >= LEAST_SHARE * math.prod(u.given_shape)


def _has_no_gaps(work: ir.Assign, f: ir.Field) -> bool:
    return all(span.step == step for span, step in zip(work.box, f.steps, strict=True))


def _first_write(program: ir.Program, body: Body, at: int, t: ir.Field) -> int | None:
    """Return the first statement of a block that touches t, if all that is read is written then."""
    for k, s in enumerate(body[:at]):
        if not _mentions(program, s, t.name):
            continue
        if not isinstance(s, ir.Assign) or s.field != t.name:
            return None
        return k if _write_all_that_is_read(program, body[k : at + 1], t) else None
    return None


def _write_all_that_is_read(program: ir.Program, body: Body, t: ir.Field) -> bool:
    """Return whether the first stages, before any that reads t, write all points that are read."""
    writes: list[Box] = []
    for s in body:
        if not isinstance(s, ir.Assign) or s.field != t.name or _reads(program, s, t.name):
            break
        writes += [] if _moves(s) else [Box.of_spans(s.box)]
    reads = (a for s in body if isinstance(s, Work) for a in _reads(program, s, t.name))
    left = frozenset(Box(tuple((p.first, p.last, p.step) for p in a.points)) for a in reads)
    for write in writes:
        left = without(left, write)
    return not left


def _reads(program: ir.Program, work: Work, name: str) -> list[Access]:
    """Return what a stage reads of a field."""
    return [a for a in accesses(program, work) if a.field == name and not a.writes]


def _writes_only(body: Body, t: ir.Field, box: tuple[ir.Span, ...]) -> bool:
    """Return whether all that stages write of t lies in a box."""
    writes = [s for s in body if isinstance(s, ir.Assign) and s.field == t.name]
    return not any(map(_moves, writes)) and all(
        a.start >= b.start and a.stop <= b.stop
        for s in writes
        for a, b in zip(s.box, box, strict=True)
    )


def _only_here(program: ir.Program, body: Body, first: int, at: int, t: ir.Field) -> bool:
    """Return whether stages first, ..., at of a block are all that touch t."""
    inside = [s for s in body[first : at + 1] if _mentions(program, s, t.name)]
    stages = [s for s in inside if isinstance(s, ir.Assign | ir.Reduce)]
    everywhere = [s for s in ir.walk(program.body) if _touches(program, s, t.name)]
    return len(stages) == len(inside) == len(everywhere)


def _mentions(program: ir.Program, s: ir.Statement, name: str) -> bool:
    """Return whether a statement, or one inside of it, touches a field."""
    return any(_touches(program, part, name) for part in ir.walk((s,)))


def _touches(program: ir.Program, s: ir.Statement, name: str) -> bool:
    if isinstance(s, ir.Assign | ir.Reduce):
        over = s.over if isinstance(s, ir.Reduce) else s.field
        return over == name or any(a.field == name for a in accesses(program, s))
    return isinstance(s, ir.Permute) and name in s.fields


def _untouched(body: Body, u: ir.Field) -> bool:
    """Return whether no statement writes u or changes its storage."""
    return not any(
        (isinstance(s, ir.Assign) and s.field == u.name)
        or (isinstance(s, ir.Permute) and u.name in s.fields)
        for s in ir.walk(body)
    )


def _goes_around(program: ir.Program, t: ir.Field) -> bool:
    """Return whether statements depend on where t ends: indices that wrap around, single rows."""
    for s in ir.walk(program.body):
        if not isinstance(s, ir.Assign | ir.Reduce):
            continue
        reads = [r for r in ir.reads(s.value) if r.field == t.name]
        writes = isinstance(s, ir.Assign) and s.field == t.name
        if (reads or writes) and s.box[0].count == 1:
            return True
        if any(a.wrap for r in reads for a in r.axes):
            return True
        if isinstance(s, ir.Reduce) and s.over == t.name:
            return True
    return False
