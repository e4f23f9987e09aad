"""Takes out of a program what is not used: scalars that are set and never read, and fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import expressions
from cpufree.compiler.passes.rows import scalars_read


def pruned(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program without what has no effect; scalars and fields in `kept` stay."""
    body = program.body
    while True:
        read = {n for e in _exprs(body) for n in scalars_read(e)} | set(kept)
        unread = {f.name for f in program.fields if f.role == "local"} - set(_fields(body, False))
        smaller = _without(body, read, unread - set(kept))
        if smaller == body:
            break
        body = smaller
    read |= {s.var for s in ir.walk(body) if isinstance(s, ir.For)}
    set_here = {s.name for s in ir.walk(body) if isinstance(s, ir.Set | ir.Reduce)} | read
    used = set(_fields(body)) | set(kept)
    return replace(
        program,
        body=body,
        fields=tuple(f for f in program.fields if f.name in used),
        scalars=tuple(x for x in program.scalars if x[0] in read),
        variables=tuple(x for x in program.variables if x[0] in set_here),
    )


def _without(
    body: tuple[ir.Statement, ...], read: set[str], unread: set[str]
) -> tuple[ir.Statement, ...]:
    out = []
    for s in body:
        if isinstance(s, ir.Assign) and s.field in unread:
            continue
        if isinstance(s, ir.Set | ir.Reduce) and s.name not in read:
            continue
        if isinstance(s, ir.If) and not s.then and not s.otherwise:
            continue
        out.append(ir.with_blocks(s, lambda inner: _without(inner, read, unread)))
    return tuple(out)


def _exprs(body: tuple[ir.Statement, ...]) -> Iterator[ir.Expr]:
    for s in ir.walk(body):
        yield from expressions(s)


def regions(s: ir.Statement) -> tuple[ir.Region, ...]:
    """Return the regions of fields that a statement of messages names."""
    if isinstance(s, ir.Grant):
        return tuple(m.region for m in s.receives)
    if isinstance(s, ir.Start):
        return tuple(m.region for m in s.sends)
    if isinstance(s, ir.Finish):
        return tuple(m.region for m in (*s.sends, *s.receives))
    if isinstance(s, ir.PutSignal | ir.Get) and s.region is not None:
        return (s.region,)
    return ()


def _fields(body: tuple[ir.Statement, ...], written: bool = True) -> Iterator[str]:
    """Yield the fields that statements use; those that they assign only where `written`."""
    for s in ir.walk(body):
        if isinstance(s, ir.Assign) and written:
            yield s.field
        if isinstance(s, ir.Reduce) and s.over:
            yield s.over
        yield from (r.field for r in regions(s))
    for e in _exprs(body):
        yield from (r.field for r in ir.reads(e))
        yield from (x.field for x in ir.elements(e))
