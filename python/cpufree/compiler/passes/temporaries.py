"""Updates that read what they write get a temporary: NumPy computes the right side first."""

from __future__ import annotations

from dataclasses import replace

from cpufree.compiler import ir


def add_temporaries(program: ir.Program) -> ir.Program:
    """Return a program in which no stage reads points that it writes, but the point itself."""
    made: list[ir.Field] = []
    taken = {f.name for f in program.fields}

    def block(body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        out: list[ir.Statement] = []
        for s in body:
            if isinstance(s, ir.Assign) and reads_what_it_writes(s):
                f = program.field(s.field)
                name = next(
                    n for k in range(1, len(taken) + 2) if (n := f"new_{f.name}_{k}") not in taken
                )
                taken.add(name)
                made.append(replace(f, name=name, role="temporary"))
                axes = tuple(span.axis(k) for k, span in enumerate(s.box))
                out.append(replace(s, field=name))
                out.append(replace(s, value=ir.Read(name, axes, f.type)))
            else:
                out.append(ir.with_blocks(s, block))
        return tuple(out)

    body = block(program.body)
    return replace(program, body=body, fields=(*program.fields, *made))


def reads_what_it_writes(stage: ir.Assign) -> bool:
    """Return whether a stage may read a point after it has written it."""
    return any(e.field == stage.field for e in ir.elements(stage.value)) or any(
        read.field == stage.field and not _same(read, stage.box) and not _apart(read, stage.box)
        for read in ir.reads(stage.value)
    )


def _same(read: ir.Read, box: tuple[ir.Span, ...]) -> bool:
    """Return whether a read is of the point that is written."""
    return all(
        a == span.axis(k)
        if span.index is not None
        else not a.wrap
        and a.dim > ir.FOLDED
        and a.start == span.start
        and (span.count == 1 or (a.dim == k and a.step == span.step))
        for k, (a, span) in enumerate(zip(read.axes, box, strict=True))
    )


def _apart(read: ir.Read, box: tuple[ir.Span, ...]) -> bool:
    """Return whether no point of a read is one of the box."""
    for a, span in zip(read.axes, box, strict=True):
        if a.wrap or span.index is not None:
            continue
        count = a.values(box)
        last = a.start + a.step * (count - 1)
        if last < span.start or a.start >= span.stop:
            return True
        fixed = a.dim == ir.FIXED or count == 1
        strided = span.step > 1 and (fixed or a.step % span.step == 0)
        if strided and (a.start - span.start) % span.step:
            return True
    return False
