"""Stages over boxes of arrays, from what maps write.

Every axis of what is written gets at most one parameter of the map; where it has several, all but
one are written out, a stage for each of their values. Reads that go by the same parameters, one
along an axis, are reads of the stage; others are elements, of an array that every PE has whole.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cpufree.compiler import ir
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine, plus, times
from cpufree.dace.values.points import (
    Index,
    Output,
    Over,
    Point,
    Range,
    fixed,
    points,
    replaced,
    with_params,
)
from cpufree.dace.values.refusal import Place, shown
from cpufree.dace.values.space import Space, facts_of, is_true, known_facts

MOST_COPIES = 256
"""Of a stage whose parameters are written out."""
_MOST_TERMS = 64
"""Of a sum that is written out, so that its reads are those of a stage."""
Axes = Mapping[str, tuple[int, Range]]
"""Of parameters: the axis of the box (or the fold, ir.Axis) along which their values go."""


class Boxes:
    """Makes stages of outputs."""

    def __init__(
        self,
        shape_of: Callable[[str], tuple[int, ...]],
        steps: Callable[[int], str],
        checked: Callable[[ir.Expr, int, Place], ir.Expr],
    ) -> None:
        """`steps(n)` is the name of a field that holds 0, 1, ..., n - 1.

        `checked(index, n, place)` is an index of the run that is a fault unless it is one of n.
        """
        self.shape_of, self.steps, self.checked = shape_of, steps, checked

    def copies(self, output: Output) -> list[Output]:
        """Return outputs in which each axis of the index has at most one parameter."""
        live = {p: r for p, r in output.ranges.items() if r.count != 1}
        output = fixed(output, {p: r.begin for p, r in output.ranges.items() if r.count == 1})
        written = {p for a in output.index for p in a.params}
        unused = [p for p in live if p not in written]
        if unused:
            output.place.fail(
                f"{output.field} is written at the same point for all values of {shown(unused[0])}",
                "let each point of a map write a point of its own, or reduce with np.sum",
            )
        apart = _crowded(output, live, reads=True)
        if _turns(apart, live) > MOST_COPIES:
            apart = _crowded(output, live, reads=False)
        if _turns(apart, live) > MOST_COPIES:
            output.place.fail(
                f"an index of {output.field} holds several parameters of the map "
                f"({', '.join(map(shown, apart))}), of {_turns(apart, live)} values in all",
                f"give every axis an index with one parameter (at most {MOST_COPIES} values are "
                "written out)",
            )
        values = [[r.begin + k * r.step for k in range(r.count)] for r in map(live.get, apart) if r]
        return [
            fixed(output, dict(zip(apart, chosen, strict=True)))
            for chosen in itertools.product(*values)
        ]

    def assign(self, output: Output, space: Space) -> ir.Assign | None:
        """Return the stage of an output that `copies` has given; None: it changes nothing."""
        space = space.over(output.ranges)
        value = simplified(output.value, space)
        if value == Point(output.field, output.index, output.value.type):
            return None
        spans, axes = self.box(output)
        if any(s.count == 0 for s in spans):
            return None
        made = Stage(self, axes, output.place).value(value, space)
        return ir.Assign(output.field, spans, made, output.place.line)

    def box(
        self, output: Output, done: str = "written"
    ) -> tuple[tuple[ir.Span, ...], dict[str, tuple[int, Range]]]:
        """Return the points of an output; and the axis of each parameter, with its values in order.

        `done`: what is done to the points, for messages.
        """
        spans: list[ir.Span] = []
        axes: dict[str, tuple[int, Range]] = {}
        shape = self.shape_of(output.field)
        for axis, (index, n) in enumerate(zip(output.index, shape, strict=True)):
            names = [p for p in index.params if output.ranges[p].count != 1]
            if not names:
                span = ir.Span(int(index.constant), 1, 1)
            else:
                r, factor = output.ranges[names[0]], index.factor(names[0])
                if factor < 0:  # downwards: the same points upwards
                    r = Range(r.begin + r.step * (r.count - 1), -r.step, r.count)
                start = int(index.constant) + factor * r.begin
                span = ir.Span(start, factor * r.step, r.count)
                axes[names[0]] = (axis, r)
            if span.count and not 0 <= span.start <= span.stop <= n:
                where = _from_to(span.start, span.stop - 1)
                output.place.fail(
                    f"{output.field} has {n} points along axis {axis}, and is {done} at {where}",
                    "correct the bounds",
                )
            spans.append(span)
        return tuple(spans), axes


def _from_to(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


class Stage:
    """Makes the value of one stage."""

    def __init__(self, boxes: Boxes, axes: Axes, place: Place, folds: int = 0) -> None:
        self.boxes, self.axes, self.place, self.folds = boxes, axes, place, folds

    def value(self, e: Any, space: Space) -> ir.Expr:
        """Return an expression in which Points are reads and elements, Indices numbers."""
        if isinstance(e, Index):
            return self.number(e.value, space)
        if isinstance(e, Point):
            return self.read(e, space)
        if isinstance(e, Over):
            return self.fold(e, space)
        if not isinstance(e, ir.Op):
            return e  # type: ignore[no-any-return]
        if e.name == "where":
            test, yes, no = e.args
            made = (
                self.value(test, space),
                self.value(yes, space.given(known_facts(test, True))),
                self.value(no, space.given(known_facts(test, False))),
            )
            return replace(e, args=made)
        return replace(e, args=tuple(self.value(a, space) for a in e.args))

    def fold(self, e: Over, space: Space) -> ir.Expr:
        """Return a sum over a parameter."""
        dim = ir.FOLDED - self.folds
        axes = {**self.axes, e.param: (dim, e.range)}
        inner = Stage(self.boxes, axes, self.place, self.folds + 1)
        value = inner.value(e.value, space.over({e.param: e.range}))
        return ir.Fold(e.reduction, dim, e.range.count, value, e.type)

    def read(self, p: Point, space: Space) -> ir.Expr:
        """Return what lies at a point: a read by the points of the box, or an element."""
        shape = self.boxes.shape_of(p.field)
        found = [self._axis(index, n) for index, n in zip(p.index, shape, strict=True)]
        if None not in found:
            return ir.Read(p.field, tuple(a for a in found if a is not None), p.type)
        indices = []
        for axis, (index, n) in enumerate(zip(p.index, shape, strict=True)):
            made = self.number(index, space)
            if not space.is_inside(index, n):
                if any(name not in space.moving for name in index.params):
                    self._beyond(p, axis, index, n, space)
                made = self.boxes.checked(made, n, self.place)
            indices.append(made)
        return ir.Element(p.field, indices[0], p.type, tuple(indices[1:]))

    def _axis(self, index: Affine, n: int) -> ir.Axis | None:
        """Return how a read goes along an axis; None: it does not go by one parameter, inside."""
        if any(name not in self.axes for name in index.params) or len(index.factors) > 1:
            return None
        made, count = ir.Axis(ir.FIXED, int(index.constant)), 1
        for name, factor in index.factors:
            axis, r = self.axes[name]
            count = r.count if axis <= ir.FOLDED else 0
            start = int(index.constant) + int(factor) * r.begin
            made, count = ir.Axis(axis, start, int(factor) * r.step, count=count), r.count
        last = made.start + made.step * (count - 1)
        return made if min(made.start, last) >= 0 and max(made.start, last) < n else None

    def _beyond(self, p: Point, axis: int, index: Affine, n: int, space: Space) -> None:
        least, greatest = space.least(index), space.greatest(index)
        where = "indices that only the run knows"
        if least is not None and greatest is not None:
            where = _from_to(math.ceil(least), math.floor(greatest))
        self.place.fail(
            f"{p.field} has {n} points along axis {axis}, and is read at {where}",
            "correct the bounds, or read under a condition on the indices",
        )

    def number(self, a: Affine, space: Space) -> ir.Expr:
        """Return the value of a sum of multiples of parameters."""
        made: ir.Expr = ir.Literal(int(a.constant), "int64")
        for name, factor in a.factors:
            made = operators.apply("add", [made, self._term(name, int(factor), space)])
        return made

    def _term(self, name: str, factor: int, space: Space) -> ir.Expr:
        if name in space.moving:
            scalar = operators.cast(space.moving[name], "int64")
            return operators.apply("multiply", [scalar, operators.literal(factor)])
        axis, r = self.axes[name]
        at = ir.Axis(axis, count=r.count if axis <= ir.FOLDED else 0)
        steps = ir.Read(self.boxes.steps(r.count), (at,), "int64")
        scaled = ir.Op("multiply", (steps, ir.Literal(factor * r.step, "int64")), "int64")
        return ir.Op("add", (scaled, ir.Literal(factor * r.begin, "int64")), "int64")


def simplified(e: Any, space: Space) -> Any:
    """Return an expression without conditions that hold at all points of a space, or at none."""
    if isinstance(e, Over):
        return replace(e, value=simplified(e.value, space.over({e.param: e.range})))
    if not isinstance(e, ir.Op):
        return e
    if e.name == "where":
        test = simplified(e.args[0], space)
        if isinstance(test, ir.Literal):
            return simplified(e.args[1 if test.value else 2], space)
        yes = simplified(e.args[1], space.given(known_facts(test, True)))
        no = simplified(e.args[2], space.given(known_facts(test, False)))
        return yes if yes == no else replace(e, args=(test, yes, no))
    facts = facts_of(e)
    if facts is not None:
        truths = [space.truth(f) for f in facts]
        if False in truths:
            return ir.Literal(False, "bool")
        if None not in truths:
            return ir.Literal(True, "bool")
    args = [simplified(a, space) for a in e.args]
    if e.name in ("logical_and", "logical_or", "logical_not") and any(
        isinstance(a, ir.Literal) for a in args
    ):
        return operators.apply(e.name, args)
    return replace(e, args=tuple(args))


def cuts(e: Any, ranges: Mapping[str, Range]) -> dict[str, set[int]]:
    """Return where conditions in an expression change along single parameters of a map."""
    found: dict[str, set[int]] = {}

    def look(part: Any) -> None:
        if isinstance(part, Over):
            look(part.value)
        if not isinstance(part, ir.Op):
            return
        for fact in facts_of(part) or ():
            if len(fact.factors) == 1 and fact.params[0] in ranges:
                ((name, factor),) = fact.factors
                first = -fact.constant / factor  # 0 or more from here on, or up to here
                at = math.ceil(first) if factor > 0 else math.floor(first) + 1
                found.setdefault(name, set()).add(at)
        for child in part.args:
            look(child)

    look(e)
    return found


def pieces(output: Output) -> list[Output]:
    """Return outputs for parts of the ranges, in which conditions on one parameter are decided."""
    found = [output]
    for name, at in cuts(output.value, output.ranges).items():
        r = output.ranges[name]
        if r.step != 1:
            continue
        ends = [r.begin, *sorted(a for a in at if r.begin < a < r.begin + r.count)]
        if len(ends) * len(found) > _MOST_TERMS:
            continue
        parts = [
            Range(begin, 1, end - begin)
            for begin, end in itertools.pairwise([*ends, r.begin + r.count])
        ]
        found = [replace(o, ranges={**o.ranges, name: p}) for o in found for p in parts]
    return found


def _turns(apart: list[str], live: Mapping[str, Range]) -> int:
    return math.prod(live[p].count for p in apart)


def _crowded(output: Output, live: Mapping[str, Range], reads: bool) -> list[str]:
    """Return the parameters to be written out, so that each axis has one, and each one axis."""
    indices = [output.index]
    if reads:
        indices += [p.index for p in points(output.value) if isinstance(p, Point)]
    apart: list[str] = []
    for index in indices:
        for a in index:
            names = [p for p in a.params if p in live and p not in apart]
            names.sort(key=lambda p: -abs(a.factor(p)))
            apart += names[:-1]  # the one whose points lie closest stays
    seen: set[str] = set()
    for a in output.index:
        for p in a.params:
            if p in live and p not in apart:
                if p in seen:
                    apart.append(p)
                seen.add(p)
    return apart


def sharing(value: Any, over: list[str], live: Mapping[str, Range]) -> list[str]:
    """Return the parameters in `over` that share an axis of what is read with another one.

    They are to be written out where they have few values: reads are sooner than elements.
    """
    apart: list[str] = []
    for p in points(value):
        for a in p.index if isinstance(p, Point) else ():
            names = [n for n in a.params if n in live and n not in apart]
            ours = [n for n in names if n in over]
            apart += ours if len(ours) < len(names) else ours[1:]
    return apart if _turns(apart, live) <= _MOST_TERMS else []


def unmoved(output: Output, space: Space) -> Output:
    """Return an output whose index has no parameters that move in the run.

    It goes over all points along these axes, and leaves those that are not meant as they are.
    """
    if not any(p in space.moving for a in output.index for p in a.params):
        return output
    whole = space.over(output.ranges).given(output.facts)
    for axis, index in enumerate(output.index):
        names = [p for p in index.params if p in space.moving]
        ours = [p for p in index.params if p not in space.moving]
        if not names:
            continue
        least, greatest = whole.least(index), whole.greatest(index)
        if least is None or greatest is None or len(ours) > 1:
            output.place.fail(
                f"an index of {output.field} is a value that only the run knows",
                "index by variables of loops over range(), and by numbers that are arguments",
            )
        name = f"{output.field}@{axis}"
        there = Range(math.ceil(least), 1, math.floor(greatest) - math.ceil(least) + 1)
        new = Affine(0, ((name, 1),))
        rest = plus(new, times(index, Affine(-1)))
        output = _moved(output, axis, (new, there, rest), ours)
    return output


def _moved(output: Output, axis: int, new: tuple[Affine, Range, Affine], ours: list[str]) -> Output:
    """Let an output go over all points of an axis, `new` its parameter.

    `rest` is that parameter less the index, which is 0 where the output is meant.
    """
    at, there, rest = new
    facts: tuple[Affine, ...] = (rest, times(rest, Affine(-1)))
    values: dict[str, Affine | int] = {}
    for p in ours:
        factor, r = output.index[axis].factor(p), output.ranges[p]
        if abs(factor) != 1 or r.step != 1:
            output.place.fail(
                f"an index of {output.field} moves in the run by steps of {factor}",
                "write points that lie side by side",
            )
        # Where the index is `at`, the parameter is this.
        value = plus(Affine(0, ((p, 1),)), times(rest, Affine(factor)))
        values[p] = value
        low, high = plus(value, Affine(-r.begin)), times(value, Affine(-1))
        facts = (low, plus(high, Affine(r.begin + r.count - 1)))
    index = tuple(at if k == axis else a for k, a in enumerate(output.index))
    old = Point(output.field, output.index, output.value.type)
    own = replace(old, index=tuple(a.with_values(values) for a in index))
    value = replaced(output.value, lambda p: own if p == old else with_params(p, values))
    (name,) = at.params
    ranges = {p: r for p, r in output.ranges.items() if p not in values}
    return replace(
        output,
        index=own.index,
        value=operators.where(is_true(*facts), value, own),  # type: ignore[arg-type]
        ranges={**ranges, name: there},
        facts=tuple(f.with_values(values) for f in output.facts),
    )
