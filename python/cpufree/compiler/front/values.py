"""What names and expressions of a program stand for while it is lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.operations import KINDS, Kind, python_kind


@dataclass(frozen=True, eq=False)
class Host:
    """An object of Python that is known when the program is compiled."""

    value: Any
    literal: bool = False
    """The program's text alone says what it is."""
    text: str = ""
    """What the program calls it, where it comes from outside."""
    is_own: bool = False
    """The program makes it: an array that it may write, or a list."""


@dataclass(frozen=True, eq=False)
class ScalarValue:
    """A number that is known when the program runs.

    Where its kind depends on the way taken (operations.kinds_of has several), `tag` is the number
    of its kind in operations.KINDS.
    """

    expr: ir.Expr
    kind: Kind
    tag: ir.Expr | None = None


@dataclass(frozen=True, eq=False)
class ArrayValue:
    """An array, as an expression of its points r = (r0, r1, ...)."""

    expr: ir.Expr
    shape: tuple[int, ...]
    type: str
    is_view: bool = False
    """It is a field or a part of one: names for it see what is written there later."""
    is_part: bool = False
    """It is an array of its own that shows a field, u[:], and not the field itself, u."""
    unless: tuple[str, ArrayValue] | None = None
    """A variable and another array: while the variable is 0, this is a copy of that one."""

    @property
    def field(self) -> str:
        """The field that a view is of."""
        assert isinstance(self.expr, ir.Read)
        return self.expr.field


@dataclass(frozen=True, eq=False)
class TupleValue:
    """A tuple or list."""

    items: tuple[Value, ...]
    is_list: bool = False
    made: object = field(default_factory=object)
    """Of a list which one it is, whatever is in it: of an argument its name. None: any."""


@dataclass(frozen=True)
class Listed:
    """A list or tuple of the caller whose items are arguments of their own, by these names."""

    names: tuple[str, ...]
    is_list: bool


@dataclass(frozen=True, eq=False)
class Masked:
    """The points of an array where a mask of its shape is true: u[mask]."""

    array: ArrayValue
    mask: ArrayValue


Value: TypeAlias = "Host | ScalarValue | ArrayValue | TupleValue | Masked"


@dataclass
class Scope:
    """Names of a function that is being lowered."""

    own: frozenset[str] = frozenset()
    """All names that the function assigns: others are those around it."""
    names: dict[str, Value] = field(default_factory=dict)
    around: dict[str, Host] = field(default_factory=dict)
    """What is read of names around the function."""
    unbound: dict[str, str] = field(default_factory=dict)
    """Names that may have no value, or one of several, and why."""
    outer: Scope | None = None
    """Of the function in which the function is defined, or the comprehension stands."""
    of_comprehension: bool = False

    def of(self, name: str) -> Scope:
        """Return the scope in which a name is looked up."""
        if self.outer is None or name in self.own or name in self.names:
            return self
        return self.outer.of(name)

    @property
    def function(self) -> Scope:
        """The scope of the function that a comprehension stands in."""
        return self.outer.function if self.of_comprehension and self.outer else self


def all_same(a: Value, b: Value) -> bool:
    """Return whether two values are one, tuples leaf by leaf."""
    a, b = unpacked(a), unpacked(b)
    return form(a) == form(b) and all(map(same, leaves(a), leaves(b)))


_PLAIN = (bool, int, float, str, bytes, type(None), np.generic, slice, np.dtype, range)


def unpacked(value: Value) -> Value:
    """Return a value in which tuples and lists of the host are TupleValues."""
    if isinstance(value, Host) and type(value.value) in (tuple, list):
        text = value.text and f"{value.text}[...]"
        items = tuple(unpacked(Host(v, value.literal, text)) for v in value.value)
        return TupleValue(items, isinstance(value.value, list))
    if isinstance(value, TupleValue):
        return replace(value, items=tuple(map(unpacked, value.items)))
    return value


def leaves(value: Value) -> list[Value]:
    """Return what is in a tuple, and in tuples inside it; of others the value."""
    if isinstance(value, TupleValue):
        return [leaf for item in value.items for leaf in leaves(item)]
    return [value]


def with_leaves(value: Value, new: Iterator[Value]) -> Value:
    """Return a value of the same form with other leaves, where ways of the run meet."""
    if isinstance(value, TupleValue):
        items = tuple(with_leaves(i, new) for i in value.items)
        return TupleValue(items, value.is_list, made=None)
    return next(new)


def form(value: Value) -> object:
    """Return what is equal for values whose leaves can be compared one by one."""
    if isinstance(value, TupleValue):
        return value.is_list, tuple(map(form, value.items))
    return None


def is_number(value: Value) -> bool:
    """Return whether a value is a number."""
    if isinstance(value, Host):
        return python_kind(value.value) in KINDS
    return isinstance(value, ScalarValue)


def same(a: Value, b: Value) -> bool:
    """Return whether two leaves are one value, of whatever kind."""
    if isinstance(a, Host) and isinstance(b, Host):
        x, y = a.value, b.value
        alike = type(x) is type(y) and isinstance(x, _PLAIN) and repr(x) == repr(y)
        return x is y or alike
    if isinstance(a, ScalarValue) and isinstance(b, ScalarValue):
        return (a.expr, a.kind, a.tag) == (b.expr, b.kind, b.tag)
    if isinstance(a, ArrayValue) and isinstance(b, ArrayValue):
        alike = (a.expr, a.shape, a.is_part) == (b.expr, b.shape, b.is_part)
        return alike and a.is_view == b.is_view and a.unless == b.unless
    return False


def whole(f: ir.Field) -> ArrayValue:
    """Return a field as an array, with its axes in the order that the program knows."""
    dims = len(f.shape)
    order = [f.axis, *(k for k in range(dims) if k != f.axis)]
    first, *others = order
    axes = (ir.Axis(first, f.first, f.apart), *map(ir.Axis, others))
    shape = tuple(f.given_shape[order.index(k)] for k in range(dims))
    return ArrayValue(ir.Read(f.name, axes, f.type), shape, f.type, True)


def is_whole(value: ArrayValue, f: ir.Field) -> bool:
    """Return whether a value is a field as it is."""
    all_of_it = whole(f)
    return value.is_view and (value.expr, value.shape) == (all_of_it.expr, all_of_it.shape)


class OutOfRange(Exception):
    """An index does not suit an array."""

    def __init__(self, problem: str, advice: str = "correct the index") -> None:
        super().__init__(problem)
        self.advice = advice


def at(axis: ir.Axis, i: int) -> ir.Axis:
    """Return an axis at one value of its dim."""
    inner = (i + axis.shift) % axis.wrap if axis.wrap else i
    return ir.Axis(ir.FIXED, axis.start + axis.step * inner)


def _moved(axis: ir.Axis, dim: int, first: int, step: int) -> ir.Axis:
    """Return an axis whose dim is first + step * (the new dim)."""
    if not axis.wrap:
        return ir.Axis(dim, axis.start + axis.step * first, axis.step * step)
    if step != 1:
        raise OutOfRange("a slice with a step of what np.roll gives is not taken")
    return replace(axis, dim=dim, shift=axis.shift + first)


@dataclass(frozen=True)
class Moving:
    """A whole number of the run as an index."""

    node: Any
    expr: ir.Expr

    def axis(self, axis: ir.Axis, points: int) -> ir.Axis:
        """Return an axis of N points at the index; a bad one is a fault of the run."""
        if axis.wrap:
            raise OutOfRange("an index of the run into what np.roll gives is not taken")
        i = ir.Op("py_index", (self.expr, ir.Literal(points, "int64")), "int64")
        size = axis.start + axis.step * (points - 1) + 1
        return ir.Axis(ir.FIXED, axis.start, axis.step, size, index=i)


def moves(value: ArrayValue) -> bool:
    """Return whether an array is a part at an index of the run."""
    return any(a.index is not None for r in ir.reads(value.expr) for a in r.axes)


def with_indices(value: ArrayValue, change: Callable[[ir.Expr], ir.Expr]) -> ArrayValue:
    """Return a view whose indices of the run are others; it is itself where it has none."""
    if not (isinstance(value.expr, ir.Read) and moves(value)):
        return value
    axes = (replace(a, index=a.index and change(a.index)) for a in value.expr.axes)
    return replace(value, expr=replace(value.expr, axes=tuple(axes)))


Index: TypeAlias = "int | slice | Moving | None"


def sliced(value: ArrayValue, index: Sequence[Index]) -> ArrayValue:
    """Return the part of an array that an index says: whole numbers, slices, None (a new axis).

    Raises:
        OutOfRange: the index does not suit.
    """
    shape: list[int] = []
    moves: dict[int, tuple[int, int, int]] = {}  # old dim -> new dim, first, step
    moving: dict[int, Moving] = {}
    old = 0
    for item in index:
        if item is None:
            shape.append(1)
            continue
        if old >= len(value.shape):
            raise OutOfRange(f"too many indices for an array of {len(value.shape)} dimensions")
        n = value.shape[old]
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            if step < 1:
                raise OutOfRange(
                    "a slice with a negative step is not taken",
                    "pass an array that is turned before the call; of a rim, write each line",
                )
            moves[old] = (len(shape), start, step)
            shape.append(max(0, -(-(stop - start) // step)))
        elif isinstance(item, Moving):
            moving[old] = item
        else:
            if not -n <= item < n:
                raise OutOfRange(f"index {item} is out of bounds for axis {old} of {n} points")
            moves[old] = (ir.FIXED, item % n, 1)
        old += 1
    for rest in range(old, len(value.shape)):
        moves[rest] = (len(shape), 0, 1)
        shape.append(value.shape[rest])

    def move(axis: ir.Axis) -> ir.Axis:
        if axis.dim < 0:  # fixed, or the index of a fold
            return axis
        if axis.dim in moving:
            return moving[axis.dim].axis(axis, value.shape[axis.dim])
        dim, first, step = moves[axis.dim]
        return at(axis, first) if dim == ir.FIXED else _moved(axis, dim, first, step)

    return replace(_with_axes(value, tuple(shape), move), is_part=True)


def _with_axes(value: ArrayValue, shape: tuple[int, ...], move: Any) -> ArrayValue:
    expr = ir.with_reads(value.expr, lambda r: replace(r, axes=tuple(map(move, r.axes))))
    return replace(value, expr=expr, shape=shape)


def rolled(value: ArrayValue, shift: int, axis: int) -> ArrayValue:
    """Return np.roll of an array along one axis."""
    n = value.shape[axis]

    def move(a: ir.Axis) -> ir.Axis:
        if a.dim != axis:
            return a
        if a.wrap:
            return replace(a, shift=(a.shift - shift) % a.wrap)
        return replace(a, wrap=n, shift=-shift % n)

    # What was rolled before along this axis, and sliced since, does not wrap where this one does.
    for read in ir.reads(value.expr):
        if any(a.dim == axis and a.wrap not in (0, n) for a in read.axes):
            raise OutOfRange("np.roll of a part of what np.roll gives is not taken")
    return replace(_with_axes(value, value.shape, move), is_view=False, is_part=False)


def broadcast(value: ArrayValue, shape: tuple[int, ...]) -> ir.Expr:
    """Return the expression of an array in the points of a shape that it broadcasts to."""
    more = len(shape) - len(value.shape)

    def move(axis: ir.Axis) -> ir.Axis:
        if axis.dim < 0:  # fixed, or the index of a fold
            return axis
        dim = axis.dim + more
        return at(axis, 0) if value.shape[axis.dim] != shape[dim] else replace(axis, dim=dim)

    return _with_axes(value, shape, move).expr


def without_leading_ones(value: ArrayValue, dims: int) -> ArrayValue:
    """Return an array with at most N dimensions, without leading ones of one point."""
    index: list[int | slice | None] = []
    for k in range(max(0, len(value.shape) - dims)):
        if value.shape[k] != 1:
            return value
        index.append(0)
    return sliced(value, index) if index else value


def moved_to_box(expr: ir.Expr, target: ir.Read) -> ir.Expr:
    """Return the value of a view's points, as expression of the points of its field's box."""
    axis_of = {a.dim: k for k, a in enumerate(target.axes) if a.dim != ir.FIXED}

    def move(a: ir.Axis) -> ir.Axis:
        return a if a.dim < 0 else replace(a, dim=axis_of[a.dim])

    return ir.with_reads(expr, lambda r: replace(r, axes=tuple(map(move, r.axes))))


def box_of(target: ir.Read, shape: tuple[int, ...]) -> tuple[ir.Span, ...]:
    """Return the box of a view: of each axis of its field the points."""
    return tuple(
        ir.Span(a.start, a.step if a.index is not None else 1, 1, a.index, a.wrap)
        if a.dim == ir.FIXED
        else ir.Span(a.start, a.step, shape[a.dim])
        for a in target.axes
    )


def result_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that arrays broadcast to; ValueError as NumPy."""
    return np.broadcast_shapes(*shapes)


def variables_of(value: Value | None) -> list[str]:
    """Return the variables whose numbers a result is made of."""
    if isinstance(value, TupleValue):
        return [name for item in value.items for name in variables_of(item)]
    if isinstance(value, ScalarValue):
        exprs = (value.expr, value.tag)
        return [e.name for e in exprs if isinstance(e, ir.Scalar)]
    if isinstance(value, ArrayValue) and value.unless:
        return [value.unless[0], *variables_of(value.unless[1])]
    return []
