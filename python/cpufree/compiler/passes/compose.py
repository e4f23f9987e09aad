"""For GPUs: updates of one array that follow one another become one, in one sweep over memory.

Two turns of a smoother go over memory twice, with a barrier between. Here the second one computes
what it reads of the first where it reads it, from the values of before: a chain of updates of an
array, `u[...] = f(u)`, is one update whose value is that of the last one with those of the others
in the place of what it reads. The same for a correction from a coarser grid, four updates of every
second point each, and the smoothing that follows it, and for zeros, from which smoothing begins.

At the ends of the boxes values are chosen by the point (ir.Choice). Where the updates' points lie
between one another's, there is an update for each kind of point. The bits are those of NumPy, as
each value is computed as before, only several times. It is done where that takes less time than
the loads and stores that are saved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.emit.work import operations
from cpufree.compiler.passes.accesses import expressions
from cpufree.compiler.passes.points import at_own_point
from cpufree.compiler.passes.recompute import has
from cpufree.compiler.passes.rows import scalars_read

Body = tuple[ir.Statement, ...]
Ranges = tuple[tuple[int, int], ...]

_OPERATIONS = 16
"""That a GPU does in the time of a value that is loaded or stored."""
_MOST_OPERATIONS = 96
"""Of a value: texts are to stay short."""
_MOST_READS = 400
"""That are followed for a chain."""
_MOST_CHAIN = 6
_MOST_CLASSES = 4


def compose_updates(program: ir.Program) -> ir.Program:
    """Return a program in which updates of one array that follow one another are one.

    Parameters
    ----------
    program : ir.Program
        As it has been lowered: stages may read what they write.
    """
    composer = _Composer(program)
    body = composer.block(program.body)
    return replace(program, body=body, fields=(*program.fields, *composer.made))


class _Composer:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.made: list[ir.Field] = []

    def block(self, body: Body) -> Body:
        out: list[ir.Statement] = []
        for s in body:
            for part in self.written_out(ir.with_blocks(s, self.block)):
                out.append(part)
                self.shorten(out)
        return tuple(out)

    def shorten(self, out: list[ir.Statement]) -> None:
        """Make one update of the last statements, if that pays."""
        last = out[-1]
        if not isinstance(last, ir.Assign) or not _reads_beside(last):
            return
        before = itertools.takewhile(
            lambda s: isinstance(s, ir.Assign) and s.field == last.field, reversed(out)
        )
        chain = [s for s in before if isinstance(s, ir.Assign)][:_MOST_CHAIN][::-1]
        for length in range(len(chain), 1, -1):
            found = self.composed(chain[-length:])
            if found is not None:
                out[-length:] = found
                return

    def written_out(self, s: ir.Statement) -> list[ir.Statement]:
        """Return a loop of a few updates as the updates, two turns as one; or the loop itself."""
        turns = _turns(self.program, s)
        if turns is None:
            return [s]
        assert isinstance(s, ir.For)
        body = [*s.body]
        if turns == 1:
            return body
        two = [*body, *body]
        self.shorten(two)
        if len(two) == 2 * len(body):
            return [s]
        pairs = replace(
            s, start=ir.Literal(0, "int64"), stop=ir.Literal(turns // 2, "int64"), body=tuple(two)
        )
        return [*(two if turns < 4 else [pairs]), *(body if turns % 2 else [])]

    def composed(self, chain: list[ir.Assign]) -> list[ir.Statement] | None:
        """Return the update that does what a chain does; None: there is none, or it costs more."""
        f, last = self.program.field(chain[-1].field), chain[-1]
        if f.axis or not f.distributed or not all(_is_simple(w, f) for w in chain):
            return None
        whole = _whole(chain)
        try:
            made = [
                replace(last, box=box, value=_Value(chain, box).of_point(f))
                for box in _classes(chain, whole)
            ]
        except _Stays:
            return None
        if not _pays(chain, made):
            return None
        if len(made) == 1:
            return [made[0]]
        names = {g.name for g in (*self.program.fields, *self.made)}
        name = next(n for k in range(1, len(names) + 2) if (n := f"new_{f.name}_{k}") not in names)
        self.made.append(replace(f, name=name, role="temporary"))
        axes = tuple(span.axis(k) for k, span in enumerate(whole))
        copy = replace(last, box=whole, value=ir.Read(name, axes, f.type))
        return [*(replace(w, field=name) for w in made), copy]


class _Stays(Exception):
    """A chain is no single update."""


@dataclass
class _Value:
    """The values that a chain of updates leaves at the points of a box."""

    chain: list[ir.Assign]
    box: tuple[ir.Span, ...]
    reads: int = 0

    def of_point(self, f: ir.Field) -> ir.Expr:
        """Return the value of the point of the box."""
        axes = tuple(span.axis(k) for k, span in enumerate(self.box))
        everywhere = tuple((0, span.count) for span in self.box)
        return self.after(len(self.chain), ir.Read(f.name, axes, f.type), everywhere)

    def after(self, count: int, read: ir.Read, of: Ranges) -> ir.Expr:
        """Return what is read after `count` updates, from what has been there before them all.

        `of`: the points for which it is read.
        """
        self.reads += 1
        if self.reads > _MOST_READS:
            raise _Stays
        if not count:
            return read
        work = self.chain[count - 1]
        places = [_place(a, k, span) for k, (a, span) in enumerate(_pairs(read, work))]
        if any(place is None for place in places):
            return self.after(count - 1, read, of)  # between the points of the update
        there = [place for place in places if place is not None]
        own = tuple((0, span.count) for span in work.box)

        def value(points: Ranges) -> ir.Expr:
            return self.moved(work.value, there, count - 1, points)

        return _chosen(own, there, of, value, lambda: self.after(count - 1, read, of))

    def moved(self, e: ir.Expr, places: list[Place], count: int, of: Ranges) -> ir.Expr:
        """Return an expression of an update, that of number `count`, at other points."""
        if isinstance(e, ir.Read):
            read = replace(e, axes=tuple(_axis(a, places) for a in e.axes))
            return self.after(count, read, of) if e.field == self.chain[count].field else read
        if isinstance(e, ir.Choice):

            def inside(points: Ranges) -> ir.Expr:
                return self.moved(e.inside, places, count, points)

            return _chosen(
                e.ranges, places, of, inside, lambda: self.moved(e.beside, places, count, of)
            )
        if isinstance(e, ir.Op):
            return replace(e, args=tuple(self.moved(a, places, count, of) for a in e.args))
        return e


Place = tuple[int, int]
"""Of a point r of the reader, along an axis: an update's own is first + step * r."""


def _pairs(read: ir.Read, work: ir.Assign) -> Iterator[tuple[ir.Axis, ir.Span]]:
    return zip(read.axes, work.box, strict=True)


def _place(a: ir.Axis, axis: int, span: ir.Span) -> Place | None:
    """Return which points of an update are read; None: those between them."""
    if a.dim != axis or a.wrap or a.index is not None:
        raise _Stays
    first, rest = divmod(a.start - span.start, span.step)
    if a.step % span.step:
        raise _Stays
    return None if rest else (first, a.step // span.step)


def _chosen(
    ranges: Ranges,
    places: list[Place],
    of: Ranges,
    inside: Callable[[Ranges], ir.Expr],
    beside: Callable[[], ir.Expr],
) -> ir.Expr:
    """Return one value at the points of a reader, `of` them, that are in an update's ranges."""
    found = []
    for (low, high), (first, step), (start, stop) in zip(ranges, places, of, strict=True):
        found.append((max(start, -((first - low) // step)), min(stop, -((first - high) // step))))
    if any(low >= high for low, high in found):
        return beside()
    value = inside(tuple(found))
    return value if tuple(found) == of else ir.Choice(tuple(found), value, beside())


def _axis(a: ir.Axis, places: list[Place]) -> ir.Axis:
    """Return an index of an update, by the points of the reader."""
    if a.dim == ir.FIXED and a.index is None:
        return a
    if a.dim < 0 or a.index is not None:
        raise _Stays
    first, step = places[a.dim]
    if a.wrap:
        if step != 1:
            raise _Stays
        return replace(a, shift=a.shift + first)
    return replace(a, start=a.start + a.step * first, step=a.step * step)


def _reads_beside(work: ir.Assign) -> bool:
    reads = [r for r in ir.reads(work.value) if r.field == work.field]
    return any(not at_own_point(r, work) for r in reads)


def _is_simple(work: ir.Assign, f: ir.Field) -> bool:
    """Return whether the value of an update may be computed by a later one.

    Single rows may stand for neighbours around the ring.
    """
    return (
        work.value.type == f.type
        and not has(work.value, ir.Element, ir.Fold)
        and all(span.index is None and span.count > 1 for span in work.box)
    )


def _whole(chain: list[ir.Assign]) -> tuple[ir.Span, ...]:
    """Return the box around those of a chain, with all points between."""
    spans = []
    for along in zip(*(work.box for work in chain), strict=True):
        start, last = min(s.start for s in along), max(s.stop - 1 for s in along)
        step = math.gcd(*(s.step for s in along), *(s.start - start for s in along))
        spans.append(ir.Span(start, step, (last - start) // step + 1))
    return tuple(spans)


def _classes(chain: list[ir.Assign], whole: tuple[ir.Span, ...]) -> list[tuple[ir.Span, ...]]:
    """Return the points of a box in parts of which each update has all points, or none, or ends."""
    parts = []
    for k, span in enumerate(whole):
        wide = math.lcm(*(work.box[k].step for work in chain))
        starts = range(span.start, min(span.stop, span.start + wide), span.step)
        parts.append([ir.Span(s, wide, (span.stop - 1 - s) // wide + 1) for s in starts])
    if math.prod(map(len, parts)) > _MOST_CLASSES or any(s.count < 2 for p in parts for s in p):
        raise _Stays
    return list(itertools.product(*parts))


def _pays(chain: list[ir.Assign], made: list[ir.Assign]) -> bool:
    """Return whether operations that are done again take less time than moves that are saved."""
    if max(operations(w.value) for w in made) > _MOST_OPERATIONS:
        return False
    saved = sum(map(_moves, chain)) - sum(map(_moves, made))
    again = sum(map(_operations, made)) - sum(map(_operations, chain))
    return saved > 0 and again <= _OPERATIONS * saved


def _points(work: ir.Assign) -> int:
    return math.prod(span.count for span in work.box)


def _moves(work: ir.Assign) -> int:
    """Return how many values are loaded, of each array once, and stored."""
    return _points(work) * (1 + len({r.field for r in ir.reads(work.value)}))


def _operations(work: ir.Assign) -> int:
    return _points(work) * operations(work.value)


def _turns(program: ir.Program, s: ir.Statement) -> int | None:
    """Return the turns of a loop of updates of one array that are alike; None: it is none."""
    if not isinstance(s, ir.For) or s.var in program.results:
        return None
    if not (isinstance(s.start, ir.Literal) and isinstance(s.stop, ir.Literal)):
        return None
    updates = [w for w in s.body if isinstance(w, ir.Assign)]
    if len(updates) < len(s.body) or len({w.field for w in updates}) != 1:
        return None
    used = (e for w in ir.walk(program.body) for e in _expressions(w))
    if any(s.var in scalars_read(e) for e in used):
        return None
    return len(range(int(s.start.value), int(s.stop.value), s.step)) or None


def _expressions(s: ir.Statement) -> Iterator[ir.Expr]:
    yield from expressions(s)
    if isinstance(s, ir.Assign | ir.Reduce):
        yield from (span.index for span in s.box if span.index is not None)
