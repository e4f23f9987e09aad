"""Which points of fields a stage reads and writes, and whether two stages touch the same ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.passes.rows import Work, is_by_rows, row_offset, rows_written


@dataclass(frozen=True)
class Points:
    """The points first, first + step, ... along an axis, up to `last`."""

    first: int
    last: int
    step: int = 1

    def meets(self, other: Points) -> bool:
        """Return whether some point may be in both."""
        if self.last < other.first or other.last < self.first:
            return False
        return (self.first - other.first) % math.gcd(self.step, other.step) == 0


@dataclass(frozen=True)
class Access:
    """Points of a field that are read or written; `ghosts`: read by another PE than their owner.

    `by_one`: by one block of its PE alone, the same one always; `met`: whose threads have waited
    for one another since.
    """

    field: str
    points: tuple[Points, ...]
    writes: bool
    ghosts: bool = False
    by_one: bool = False
    met: bool = False

    def conflicts(self, later: Access) -> bool:
        """Return whether a later access must wait for this one, wherever both are done."""
        if self.field != later.field or not (self.writes or later.writes):
            return False
        if len(self.points) != len(later.points):
            return True
        return all(a.meets(b) for a, b in zip(self.points, later.points, strict=True))

    def renamed(self, names: dict[str, str]) -> Access:
        """Return the access after fields have changed their storage."""
        return replace(self, field=names[self.field]) if self.field in names else self


def accesses(program: ir.Program, work: Work) -> list[Access]:
    """Return what a stage reads and writes."""
    found = [read_access(program, work, r) for r in ir.reads(work.value)]
    found += [element_access(program, e) for e in ir.elements(work.value)]
    if isinstance(work, ir.Assign):
        points = tuple(_span(s) for s in work.box)
        found.append(Access(work.field, points, writes=True))
    return list(dict.fromkeys(found))


def read_access(program: ir.Program, work: Work, read: ir.Read) -> Access:
    """Return what a stage reads by one of its reads."""
    f = program.field(read.field)
    points = []
    for a, n in zip(read.axes, f.shape, strict=True):
        if a.wrap:
            points.append(Points(0, n - 1))
        elif a.dim == ir.FIXED:
            points.append(Points(a.start, a.start))
        else:
            last = a.start + a.step * (a.values(work.box) - 1)
            points.append(Points(a.start, last, a.step))
    ghosts = False
    if f.distributed and is_by_rows(program, work):
        offset, periodic = row_offset(read, work.box[0], f.shape[0], rows_written(program, work))
        ghosts = offset != 0 or periodic
    return Access(f.name, tuple(points), writes=False, ghosts=ghosts)


def expressions(s: ir.Statement) -> tuple[ir.Expr, ...]:
    """Return the expressions of a statement itself, without those of statements inside it."""
    if isinstance(s, ir.Assign | ir.Reduce | ir.Set | ir.PutSignal | ir.WaitSignal):
        return (s.value,)
    if isinstance(s, ir.If):
        return (s.condition,)
    return (s.start, s.stop) if isinstance(s, ir.For) else ()


def element_fields(program: ir.Program) -> set[str]:
    """Return the fields of which a program reads elements: each PE must have all of them."""
    found = (e for s in ir.walk(program.body) for expr in expressions(s) for e in ir.elements(expr))
    return {e.field for e in found}


def element_access(program: ir.Program, element: ir.Element) -> Access:
    """Return what an element reads: any point, as its index is a value of the run."""
    shape = program.field(element.field).shape
    return Access(element.field, tuple(Points(0, n - 1) for n in shape), writes=False)


def region_access(region: ir.Region, writes: bool) -> Access:
    """Return what a message touches of a field."""
    return Access(region.field, tuple(_span(s) for s in region.box), writes)


def scalar_accesses(program: ir.Program, s: ir.Statement) -> list[Access]:
    """Return what the scalar expressions of a statement itself read of fields."""
    found = () if isinstance(s, ir.Assign | ir.Reduce) else expressions(s)
    return [element_access(program, e) for expr in found for e in ir.elements(expr)]


def _span(s: ir.Span) -> Points:
    return Points(*s.line)
