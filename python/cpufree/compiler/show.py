"""Programs of the intermediate representation as text."""

from __future__ import annotations

from collections.abc import Iterator

from cpufree.compiler import ir

_SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "true_divide": "/", "greater": ">",
    "greater_equal": ">=", "less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip


def show(program: ir.Program) -> str:
    """Return a program as text, for people.

    >>> show(ir.Program("p", (), (), (), (ir.Set("s", ir.Literal(1, "int64")),)))
    'program p\\n  s = 1'
    """
    lines = [f"program {program.name}"]
    for f in program.fields:
        where = "" if f.distributed else ", on every PE"
        where += f", axis {f.axis} first" if f.axis else ""
        where += f", rows {f.apart} apart" if f.apart > 1 else ""
        lines.append(f"  field {f.name}: {f.type} {list(f.shape)}, {f.role}{where}")
    lines += [f"  scalar {name}: {kind}" for name, kind in program.scalars]
    lines += [f"  {line}" for line in _statements(program.body)]
    return "\n".join(lines)


def _statements(body: tuple[ir.Statement, ...]) -> Iterator[str]:
    for s in body:
        yield from _statement(s)


def _statement(s: ir.Statement) -> Iterator[str]:
    if isinstance(s, ir.Assign):
        yield f"{s.field}{_box(s.box)} = {expression(s.value)}"
    elif isinstance(s, ir.Reduce):
        of = f" of {s.over}{_box(s.box)}" if s.over else f" of {_box(s.box)}"
        yield f"{s.name} = {s.op}({expression(s.value)}) over r{of}"
    elif isinstance(s, ir.Set):
        yield f"{s.name} = {expression(s.value)}"
    elif isinstance(s, ir.Permute):
        what = "values" if s.values else "storage"
        yield f"{', '.join(s.fields)} take the {what} of {', '.join(s.sources)}"
    elif isinstance(s, ir.Break | ir.Continue):
        yield type(s).__name__.lower()
    elif isinstance(s, ir.Put | ir.Wait):
        halos = ", ".join(_halo(h) for h in s.halos)
        verb = "put" if isinstance(s, ir.Put) else "wait for"
        yield f"{verb} halos {halos} (channel {s.channel})"
    elif isinstance(s, ir.Barrier):
        whom = " of each block" if s.of_block else " with the PEs beside" if s.neighbours else ""
        yield f"barrier{whom}"
    elif isinstance(s, ir.Grant | ir.Start | ir.Finish):
        yield _message_text(s)
    elif isinstance(s, ir.PutSignal | ir.WaitSignal | ir.Get):
        yield _one_sided_text(s)
    elif isinstance(s, ir.Exchange):
        yield f"exchange ghosts of {', '.join(s.fields)} among blocks"
    elif isinstance(s, ir.Group):
        yield "together, by one block:" if s.by_one else "together:"
        for stage in s.stages:
            lag = f"   [{stage.lag} rows behind]" if stage.lag else ""
            yield from (f"  {line}{lag}" for line in _statement(stage.work))
    else:
        yield from _control(s)


def _message_text(s: ir.Grant | ir.Start | ir.Finish) -> str:
    if isinstance(s, ir.Grant):
        return f"grant {', '.join(_region(m.region) for m in s.receives)} ({s.exchange})"
    sends = ", ".join(f"{_region(m.region)} (site {m.site})" for m in s.sends)
    if isinstance(s, ir.Start):
        return f"start to send {sends} ({s.exchange})"
    receives = ", ".join(f"{_region(m.region)} (site {m.site})" for m in s.receives)
    return f"finish to send {sends}, wait for {receives} ({s.exchange})"


def _one_sided_text(s: ir.PutSignal | ir.WaitSignal | ir.Get) -> str:
    if isinstance(s, ir.WaitSignal):
        return f"wait until signal {s.signal} >= {expression(s.value)}"
    if isinstance(s, ir.Get):
        return f"get {_region(s.region)} (site {s.site})"
    put = f"put {_region(s.region)}" if s.region else "put nothing"
    raised = f", then signal {s.signal} = {expression(s.value)}" if s.signal >= 0 else ""
    return f"{put} (site {s.site}){raised}"


def _region(region: ir.Region) -> str:
    return f"{region.field}{_box(region.box)}"


def _control(s: ir.For | ir.Loop | ir.If) -> Iterator[str]:
    if isinstance(s, ir.For):
        bounds = f"{expression(s.start)}, {expression(s.stop)}, {s.step}"
        yield f"for {s.var} in range({bounds}):"
    elif isinstance(s, ir.Loop):
        yield "repeat:"
    else:
        yield f"if {expression(s.condition)}:"
    for k, block in enumerate(ir.blocks(s)):
        if k == 1 and block:
            yield "else:"
        yield from (f"  {line}" for line in _statements(block))


def _halo(h: ir.Halo) -> str:
    around = ", periodic" if h.periodic else ""
    return f"{h.field} ({h.below} below, {h.above} above{around})"


def _box(box: tuple[ir.Span, ...]) -> str:
    return f"[{', '.join(map(_span, box))}]"


def _span(s: ir.Span) -> str:
    if s.index is not None:
        return _axis(s.axis(0))
    return f"{s.start}:{s.stop}" + (f":{s.step}" if s.step != 1 else "")


def expression(e: ir.Expr) -> str:
    """Return an expression as text."""
    if isinstance(e, ir.Literal):
        return repr(e.value)
    if isinstance(e, ir.Scalar):
        return e.name
    if isinstance(e, ir.Read):
        return f"{e.field}[{', '.join(map(_axis, e.axes))}]"
    if isinstance(e, ir.Element):
        return f"{e.field}[{', '.join(map(expression, e.indices))}]"
    if isinstance(e, ir.Fold):
        return f"{e.op}(r{e.dim} below {e.count}: {expression(e.value)})"
    if isinstance(e, ir.Choice):
        where = ", ".join(f"r{k} in {a}:{b}" for k, (a, b) in enumerate(e.ranges))
        return f"({expression(e.inside)} if {where} else {expression(e.beside)})"
    args = [expression(a) for a in e.args]
    if e.name == "cast":
        return f"{e.type}({args[0]})"
    if e.name in _SIGNS:
        return f"({args[0]} {_SIGNS[e.name]} {args[1]})"
    return f"{e.name}({', '.join(args)})"


def _axis(a: ir.Axis) -> str:
    if a.dim == ir.FIXED and a.index is None:
        return str(a.start)
    inner = f"r{a.dim}" if a.index is None else expression(a.index)
    if a.wrap and a.index is None:
        inner = f"({inner}{a.shift:+d}) mod {a.wrap}"
    inner = inner if a.step == 1 else f"{a.step} {inner}"
    return inner if a.start == 0 else f"{inner}{a.start:+d}"
