"""Points of maps: what a map's body writes, as stages over boxes of arrays.

While a body is read, places in arrays are `Point`s: indices that are sums of multiples of the
map's parameters. Then each output becomes a stage: every axis of what is written gets at most one
parameter, and the reads go by the same ones. Parameters that do not fit (a diagonal, a reshaped
axis) are written out, one stage for each of their values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cpufree.compiler import ir
from cpufree.dace.affine import Affine
from cpufree.dace.refusal import Place

MOST_COPIES = 256
"""Of a stage whose parameters are written out."""


@dataclass(frozen=True)
class Point:
    """The value of a field at indices of a map's parameters."""

    field: str
    index: tuple[Affine, ...]
    type: str


@dataclass(frozen=True)
class Index:
    """The value of a sum of multiples of parameters."""

    value: Affine
    type: str = "int64"


@dataclass(frozen=True)
class Range:
    """The values begin, begin + step, ... of a parameter, `count` of them."""

    begin: int
    step: int
    count: int


@dataclass(frozen=True)
class Output:
    """What a map writes: at an index of a field (reduction "": the value is assigned).

    `fresh`: a reduction that does not go on from what is there, but from `start`; None: from its
    first value.
    """

    field: str
    index: tuple[Affine, ...]
    value: Any
    place: Place
    reduction: str = ""
    fresh: bool = False
    start: ir.Literal | None = None
    folds: tuple[tuple[str, int], ...] = ()
    """Parameters that folds in the value go over, and their dims (ir.Axis)."""


def points(expr: Any) -> Iterator[Any]:
    """Yield the Points and Indices in an expression."""
    if isinstance(expr, Point | Index):
        yield expr
    elif not isinstance(expr, ir.Literal | ir.Scalar | ir.Read):
        for child in ir.children(expr):
            yield from points(child)


def replaced(expr: Any, change: Callable[[Any], Any]) -> Any:
    """Return an expression in which Points and Indices are changed."""
    if isinstance(expr, Point | Index):
        return change(expr)
    if isinstance(expr, ir.Op):
        return replace(expr, args=tuple(replaced(a, change) for a in expr.args))
    if isinstance(expr, ir.Fold):
        return replace(expr, value=replaced(expr.value, change))
    return expr  # indices of elements are numbers of the run, without points


def with_params(expr: Any, values: Mapping[str, Affine | int]) -> Any:
    """Return an expression with parameters replaced."""

    def change(p: Any) -> Any:
        if isinstance(p, Index):
            return Index(p.value.with_values(values), p.type)
        return Point(p.field, tuple(a.with_values(values) for a in p.index), p.type)

    return replaced(expr, change)


class Boxes:
    """Makes stages of outputs."""

    def __init__(
        self, shape_of: Callable[[str], tuple[int, ...]], steps: Callable[[int], str]
    ) -> None:
        """`steps(n)` is the name of a field that holds 0, 1, ..., n - 1."""
        self.shape_of, self.steps = shape_of, steps

    def copies(self, output: Output, ranges: Mapping[str, Range]) -> list[Output]:
        """Return outputs in which each axis of the index has at most one parameter."""
        over = dict(output.folds)
        live = {p: r for p, r in ranges.items() if r.count != 1 and p not in over}
        fixed: dict[str, Affine | int] = {p: r.begin for p, r in ranges.items() if r.count == 1}
        output = _fixed(output, fixed)
        written = {p for a in output.index for p in a.params}
        unused = [p for p in live if p not in written]
        if unused:
            output.place.fail(
                f"{output.field} is written at the same point for all values of {unused[0]}",
                "let each point of a map write a point of its own, or reduce with np.sum",
            )
        apart = _crowded(output, live)
        total = math.prod(live[p].count for p in apart)
        if total > MOST_COPIES:
            output.place.fail(
                f"an index of {output.field} holds several parameters of the map "
                f"({', '.join(apart)}), of {total} values in all",
                f"give every axis an index with one parameter (at most {MOST_COPIES} values are "
                "written out)",
            )
        values = [[r.begin + k * r.step for k in range(r.count)] for r in map(live.get, apart) if r]
        return [
            _fixed(output, dict(zip(apart, chosen, strict=True)))
            for chosen in itertools.product(*values)
        ]

    def assign(self, output: Output, ranges: Mapping[str, Range]) -> ir.Assign | None:
        """Return the stage of an output that `copies` has given; None: it has no points."""
        spans, axes = self.box(output, ranges)
        if any(s.count == 0 for s in spans):
            return None
        value = replaced(output.value, lambda p: self.read(p, ranges, axes, output.place))
        return ir.Assign(output.field, spans, value, output.place.line)

    def box(
        self, output: Output, ranges: Mapping[str, Range]
    ) -> tuple[tuple[ir.Span, ...], dict[str, tuple[int, Range]]]:
        """Return what is written; and the axis of each parameter, with its values in order."""
        spans: list[ir.Span] = []
        axes: dict[str, tuple[int, Range]] = {}
        for axis, (index, n) in enumerate(
            zip(output.index, self.shape_of(output.field), strict=True)
        ):
            names = [p for p in index.params if ranges[p].count != 1]
            if not names:
                span = ir.Span(_whole(index.constant), 1, 1)
            else:
                r, factor = ranges[names[0]], index.factor(names[0])
                if factor < 0:  # downwards: the same points upwards
                    r = Range(r.begin + r.step * (r.count - 1), -r.step, r.count)
                start = _whole(index.constant) + factor * r.begin
                span = ir.Span(start, factor * r.step, r.count)
                axes[names[0]] = (axis, r)
            if span.count and not 0 <= span.start <= span.stop <= n:
                output.place.fail(
                    f"{output.field} has {n} points along axis {axis}, and is written at "
                    f"{span.start} to {span.stop - 1}",
                    "correct the bounds",
                )
            spans.append(span)
        axes.update({p: (dim, ranges[p]) for p, dim in output.folds})
        return tuple(spans), axes

    def read(
        self,
        p: Any,
        ranges: Mapping[str, Range],
        axes: Mapping[str, tuple[int, Range]],
        place: Place,
    ) -> ir.Expr:
        """Return a Point as a read by the points of a box, an Index as a read of numbers."""
        if isinstance(p, Index):
            return self._number(p, axes)
        found = []
        for axis, (index, n) in enumerate(zip(p.index, self.shape_of(p.field), strict=True)):
            if len([p for p in index.params if ranges[p].count != 1]) > 1:
                place.fail(
                    f"an index of {p.field} holds several parameters ({', '.join(index.params)})",
                    "give every axis an index with one parameter",
                )
            made = _axis(index, axes)
            count = 1 if made.dim == ir.FIXED else next(
                r.count for a, r in axes.values() if a == made.dim
            )  # fmt: skip
            last = made.start + made.step * (count - 1)
            if not (min(made.start, last) >= 0 and max(made.start, last) < n):
                place.fail(
                    f"{p.field} has {n} points along axis {axis}, and is read at "
                    f"{min(made.start, last)} to {max(made.start, last)}",
                    "correct the bounds",
                )
            found.append(made)
        return ir.Read(p.field, tuple(found), p.type)

    def _number(self, p: Index, axes: Mapping[str, tuple[int, Range]]) -> ir.Expr:
        made: ir.Expr = ir.Literal(_whole(p.value.constant), "int64")
        for name, factor in p.value.factors:
            axis, r = axes[name]
            at = ir.Axis(axis, count=r.count if axis <= ir.FOLDED else 0)
            steps = ir.Read(self.steps(r.count), (at,), "int64")
            scaled = ir.Op("multiply", (steps, ir.Literal(int(factor) * r.step, "int64")), "int64")
            first = ir.Literal(int(factor) * r.begin, "int64")
            made = ir.Op("add", (made, ir.Op("add", (scaled, first), "int64")), "int64")
        return made


def _fixed(output: Output, values: Mapping[str, Affine | int]) -> Output:
    if not values:
        return output
    index = tuple(a.with_values(values) for a in output.index)
    return replace(output, index=index, value=with_params(output.value, values))


def sharing(output: Output, live: Mapping[str, Range], over: list[str]) -> list[str]:
    """Return the parameters in `over` that are to be written out, so that they share no axis."""
    apart: list[str] = []
    for p in points(output.value):
        for a in p.index if isinstance(p, Point) else ():
            names = [n for n in a.params if n in live and n not in apart]
            ours = [n for n in names if n in over]
            apart += ours if len(ours) < len(names) else ours[1:]
    return apart


def _crowded(output: Output, live: Mapping[str, Range]) -> list[str]:
    """Return the parameters to be written out, so that each axis has one, and each one axis."""
    indices = [output.index, *(p.index for p in points(output.value) if isinstance(p, Point))]
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


def _axis(index: Affine, axes: Mapping[str, tuple[int, Range]]) -> ir.Axis:
    if not index.factors:
        return ir.Axis(ir.FIXED, _whole(index.constant))
    (name, factor), *_ = index.factors
    axis, r = axes[name]
    count = r.count if axis <= ir.FOLDED else 0
    start = _whole(index.constant) + int(factor) * r.begin
    return ir.Axis(axis, start, int(factor) * r.step, count=count)


def _whole(value: Any) -> int:
    return int(value)
