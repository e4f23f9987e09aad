"""Puts values where they are used: DaCe computes into arrays of its own, then copies.

An array that one stage computes as a whole, and that the next statement alone reads, is not needed:
the reader computes the values itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import Access, accesses
from cpufree.compiler.passes.fusion import is_full
from cpufree.compiler.ranks.prune import regions


def forwarded(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program without arrays that only hand values on; those in `kept` stay."""
    uses = _uses(program)
    free = {
        f.name
        for f in program.fields
        if f.role == "local" and f.name not in kept and uses[f.name] == 2
    }
    return replace(program, body=_block(program, program.body, free))


def _uses(program: ir.Program) -> Counter[str]:
    """Return how many statements name each field."""
    found: Counter[str] = Counter()
    for s in ir.walk(program.body):
        names = {r.field for r in regions(s)}
        if isinstance(s, ir.Assign | ir.Reduce):
            names |= {r.field for r in ir.reads(s.value)}
            names |= {e.field for e in ir.elements(s.value)}
            # Written and read by one statement: no array that hands values on.
            name = s.field if isinstance(s, ir.Assign) else s.over
            found[name] += 2 if name in names and isinstance(s, ir.Assign) else 1
            names -= {name}
        found.update(names)
    return found


def _block(
    program: ir.Program, body: tuple[ir.Statement, ...], free: set[str]
) -> tuple[ir.Statement, ...]:
    out: list[ir.Statement] = []
    for statement in body:
        s = ir.with_blocks(statement, lambda inner: _block(program, inner, free))
        while isinstance(s, ir.Assign):
            k = _source(program, out, s, free)
            if k is None:
                break
            stage = out.pop(k)
            assert isinstance(stage, ir.Assign)
            s = replace(s, value=_put_in(s.value, stage))
        out.append(s)
    return tuple(out)


def _source(
    program: ir.Program, out: list[ir.Statement], s: ir.Assign, free: set[str]
) -> int | None:
    """Return the stage that may be computed in its reader; None: there is none."""
    between: list[Access] = []
    for k in reversed(range(len(out))):
        stage = out[k]
        if not isinstance(stage, ir.Assign | ir.Reduce | ir.Set):
            return None
        if isinstance(stage, ir.Set):
            continue
        found = accesses(program, stage)
        if isinstance(stage, ir.Assign) and _hands_on(program, stage, s, free):
            reads = [a for a in found if not a.writes]
            scalars = any(isinstance(x, ir.Set | ir.Reduce) for x in out[k + 1 :])
            if not scalars and not any(w.conflicts(r) for w in between for r in reads):
                return k
        between += [a for a in found if a.writes]
    return None


def _hands_on(program: ir.Program, one: ir.Assign, other: ir.Assign, free: set[str]) -> bool:
    return (
        one.field in free
        and is_full(program, one)
        and any(r.field == one.field for r in ir.reads(other.value))
        and not _folds(one.value)  # computed once for each point
        and not any(
            a.dim <= ir.FOLDED
            for r in ir.reads(other.value)
            if r.field == one.field
            for a in r.axes
        )
        and one.value.type == program.field(one.field).type
    )


def _folds(e: ir.Expr) -> bool:
    return isinstance(e, ir.Fold) or any(_folds(child) for child in ir.children(e))


def _put_in(value: ir.Expr, stage: ir.Assign) -> ir.Expr:
    """Return an expression in which reads of a stage's field are what the stage computes."""

    def change(read: ir.Read) -> ir.Expr:
        if read.field != stage.field:
            return read
        return ir.with_reads(stage.value, lambda r: replace(r, axes=_joined(r.axes, read.axes)))

    return ir.with_reads(value, change)


def _joined(inner: tuple[ir.Axis, ...], outer: tuple[ir.Axis, ...]) -> tuple[ir.Axis, ...]:
    """Return the axes of a read at points r, where r are points that are read by `outer`."""
    found = []
    for a in inner:
        if a.dim < 0:
            found.append(a)
            continue
        o = outer[a.dim]
        start = a.start + a.step * o.start
        if o.dim == ir.FIXED:
            found.append(ir.Axis(ir.FIXED, start))
        else:
            found.append(ir.Axis(o.dim, start, a.step * o.step))
    return tuple(found)
