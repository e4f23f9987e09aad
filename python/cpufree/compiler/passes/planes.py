"""For GPUs: an array of a few planes becomes an array for each of them.

`s = np.roll(g[k], ...)`, `rho = s + ...`, `g[k] = rho * ...`: points of g have one index more than
those of rho, so no thread can do both. As arrays of their own the planes g[0], g[1], ... have the
points of rho, stages on them go together, and what they hand on needs no memory (points.py).

Planes lie along the caller's first axis, which is the second one here: the divided one comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import element_fields, expressions
from cpufree.compiler.passes.rows import Work

MOST_PLANES = 27
MOST_STAGES = 256
"""Of a program whose planes are arrays: its text is to stay short."""
_PLANE = 1
"""The axis of planes."""


def split_planes(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program whose arrays, but those in `kept`, are planes where that is of use.

    Parameters
    ----------
    program : ir.Program
        After add_temporaries: no stage reads another plane that it writes.
    kept : collection of str
        Fields that the caller gets.
    """
    names = _useful(program, _possible(program, kept))
    works = list(_works(program))
    stages = sum(w.box[_PLANE].count if _of(w) in names else 1 for w in works)
    if not names or stages > MOST_STAGES:
        return program
    return _Split(program, names).program()


def _works(program: ir.Program) -> Iterator[Work]:
    return (s for s in ir.walk(program.body) if isinstance(s, ir.Assign | ir.Reduce))


def _of(work: Work) -> str:
    """Return the field whose points a stage goes over."""
    return work.field if isinstance(work, ir.Assign) else work.over


def _possible(program: ir.Program, kept: Collection[str]) -> set[str]:
    """Return the fields whose planes can be arrays: what reads and writes them says which."""
    names = {
        f.name
        for f in program.fields
        if f.role != "constant" and f.axis and f.name not in kept and f.shape[_PLANE] <= MOST_PLANES
    }
    names -= element_fields(program)
    while True:
        refused = set(_refused(program, names))
        if not refused & names:
            return names
        names -= refused


def _refused(program: ir.Program, names: set[str]) -> Iterator[str]:
    for s in ir.walk(program.body):
        if isinstance(s, ir.Permute):
            counts = {program.field(n).shape[_PLANE] if n in names else 0 for n in s.fields}
            yield from s.fields if len(counts) > 1 else ()
            continue
        work = s if isinstance(s, ir.Assign | ir.Reduce) else None
        of = _of(work) if work else ""
        if work and of in names:
            span = work.box[_PLANE]
            if span.index is not None or (isinstance(s, ir.Reduce) and span.count > 1):
                yield of
        for read in (r for e in expressions(s) for r in ir.reads(e) if r.field in names):
            axis = read.axes[_PLANE]
            is_known = axis.dim == ir.FIXED and axis.index is None
            if not (is_known or (axis.dim == _PLANE and of in names)):
                yield read.field


def _useful(program: ir.Program, possible: set[str]) -> set[str]:
    """Return those that have a use as a plane, and those that are computed with them."""
    names: set[str] = set()
    together: list[set[str]] = []
    for s in ir.walk(program.body):
        if isinstance(s, ir.Permute):
            together.append(set(s.fields) & possible)
        elif isinstance(s, ir.Assign | ir.Reduce):
            of = {_of(s)} & possible
            reads = [r for r in ir.reads(s.value) if r.field in possible]
            names |= {r.field for r in reads if r.axes[_PLANE].dim == ir.FIXED}
            names |= {n for n in of if s.box[_PLANE].count < program.field(n).shape[_PLANE]}
            together.append(of | {r.field for r in reads if r.axes[_PLANE].dim != ir.FIXED})
    while True:
        more = names.union(*(group for group in together if group & names))
        if more == names:
            return names
        names = more


class _Split:
    """A program whose fields `names` become planes."""

    def __init__(self, program: ir.Program, names: set[str]) -> None:
        self.before, self.planes = program, {}
        taken = {f.name for f in program.fields}
        for f in (f for f in program.fields if f.name in names):
            self.planes[f.name] = [_fresh(f"{f.name}_{k}", taken) for k in range(f.shape[_PLANE])]

    def program(self) -> ir.Program:
        body = self.block(self.before.body)
        works = [s for s in ir.walk(body) if isinstance(s, ir.Assign | ir.Reduce)]
        used = {name for w in works for name in (_of(w), *(r.field for r in ir.reads(w.value)))}
        used |= {n for s in ir.walk(body) if isinstance(s, ir.Permute) for n in s.fields}
        fields = [g for f in self.before.fields for g in self.fields(f)]
        fields = [f for f in fields if f.role not in ("local", "temporary") or f.name in used]
        return replace(self.before, body=body, fields=tuple(fields))

    def fields(self, f: ir.Field) -> list[ir.Field]:
        if f.name not in self.planes:
            return [f]
        shape = (*f.shape[:_PLANE], *f.shape[_PLANE + 1 :])
        planes = enumerate(self.planes[f.name])
        return [
            replace(f, name=name, shape=shape, axis=f.axis - 1, plane=(f.name, k))
            for k, name in planes
        ]

    def block(self, body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        return tuple(made for s in body for made in self.statement(s))

    def statement(self, s: ir.Statement) -> list[ir.Statement]:
        if isinstance(s, ir.Permute) and s.fields[0] in self.planes:
            fields, sources = (
                tuple(name for n in names for name in self.planes[n])
                for names in (s.fields, s.sources)
            )
            return [replace(s, fields=fields, sources=sources)]
        if not isinstance(s, ir.Assign | ir.Reduce):
            return [ir.with_blocks(s, self.block)]
        if _of(s) in self.planes:
            return [self.on_plane(s, k) for k in range(s.box[_PLANE].count)]
        return [replace(s, value=ir.with_reads(s.value, self.read))]

    def on_plane(self, work: Work, k: int) -> Work:
        """Return what a stage does on the k-th plane of its box."""
        span = work.box[_PLANE]

        def there(read: ir.Read) -> ir.Expr:
            return self.read(replace(read, axes=tuple(_at(a, k) for a in read.axes)))

        name = self.planes[_of(work)][span.start + span.step * k]
        box = (*work.box[:_PLANE], *work.box[_PLANE + 1 :])
        value = ir.with_reads(work.value, there)
        if isinstance(work, ir.Reduce):
            return replace(work, over=name, box=box, value=value)
        return replace(work, field=name, box=box, value=value)

    def read(self, read: ir.Read) -> ir.Read:
        if read.field not in self.planes:
            return read
        axes = (*read.axes[:_PLANE], *read.axes[_PLANE + 1 :])
        return replace(read, field=self.planes[read.field][read.axes[_PLANE].start], axes=axes)


def _at(axis: ir.Axis, k: int) -> ir.Axis:
    """Return the axis of a read in a stage that goes over the k-th plane alone."""
    if axis.dim > _PLANE:
        return replace(axis, dim=axis.dim - 1)
    if axis.dim < _PLANE:
        return axis
    i = (k + axis.shift) % axis.wrap if axis.wrap else k
    return ir.Axis(ir.FIXED, axis.start + axis.step * i)


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
