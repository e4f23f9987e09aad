"""Expressions of the intermediate representation (ir.py, which has all of these names, too)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

FIXED = -1
"""Of an axis of a read that does not depend on the point."""
FOLDED = -2
"""Of an axis of a read that goes by the index of a Fold: that of the innermost one, -3, ..."""


@dataclass(frozen=True)
class Axis:
    """The index that a read has along one axis of its field.

    start + step i, where i is r[dim] (0: dim is FIXED), or (r[dim] + shift) modulo wrap. Of a
    negative dim but FIXED i is the index of a Fold, which has `count` values. Of a FIXED axis with
    an `index`, a scalar expression of the run, i is that, and wrap the axis' points: any may be
    meant.
    """

    dim: int
    start: int = 0
    step: int = 1
    wrap: int = 0
    """0: none."""
    shift: int = 0
    count: int = 0
    index: Expr | None = None

    def values(self, box: tuple[Span, ...]) -> int:
        """Return how many values i has, for the points of a box."""
        if self.dim == FIXED:
            return 1
        return self.count if self.dim <= FOLDED else box[self.dim].count


@dataclass(frozen=True)
class Literal:
    """A constant of the program's text."""

    value: bool | int | float
    type: str


@dataclass(frozen=True)
class Scalar:
    """A scalar: an argument's, or a variable's, by its name."""

    name: str
    type: str


@dataclass(frozen=True)
class Read:
    """A field's value at the point that the axes say."""

    field: str
    axes: tuple[Axis, ...]
    type: str


@dataclass(frozen=True)
class Element:
    """A value of a field that all PEs have, at an index that an expression gives.

    Of a field of several axes `more` has the indices along the others. An index with reads, or of
    several axes, is inside the field: front ends see to it.
    """

    field: str
    index: Expr
    type: str
    more: tuple[Expr, ...] = ()

    @property
    def indices(self) -> tuple[Expr, ...]:
        """The index along each axis."""
        return (self.index, *self.more)

    @property
    def is_checked(self) -> bool:
        """Whether an index beyond the ends is a fault of the run; negative ones count back."""
        return not self.more and not any(True for _ in reads(self.index))


@dataclass(frozen=True)
class Op:
    """An operation on values. `cast` converts.

    Those on Python's numbers, which may be faults of the run, have names that begin with py_, and
    with math_ for functions of its math. `py_and`, `py_or` and `py_choose` (`a if c else b`, with c
    first) compute their operands only as far as they are needed; all others compute them all.
    """

    name: str
    args: tuple[Expr, ...]
    type: str


@dataclass(frozen=True)
class Fold:
    """The sum, prod, max or min of a value for i = 0, ..., count - 1; reads go by i (Axis.dim)."""

    op: str
    dim: int
    count: int
    value: Expr
    type: str


@dataclass(frozen=True)
class Choice:
    """One value at the points r of a stage with low <= r[k] < high for each axis k, another beside.

    Only the one that is chosen is computed: the other's reads may be beyond the ends of fields.
    """

    ranges: tuple[tuple[int, int], ...]
    inside: Expr
    beside: Expr

    @property
    def type(self) -> str:
        """The type of both values."""
        return self.inside.type


Expr: TypeAlias = "Literal | Scalar | Read | Element | Op | Fold | Choice"


@dataclass(frozen=True)
class Span:
    """The points of a box along one axis: start, start + step, ..., `count` of them.

    With an `index`, a scalar expression of the run, it is the one point start + step * index, any
    of `size`.
    """

    start: int
    step: int
    count: int
    index: Expr | None = None
    size: int = 0

    @property
    def line(self) -> tuple[int, int, int]:
        """The first point, the last one, and their distance: of all that may be meant."""
        if self.index is not None:
            return 0, self.size - 1, 1
        return self.start, self.start + self.step * (self.count - 1), self.step

    def axis(self, dim: int) -> Axis:
        """Return the axis of a read of the same points."""
        if self.index is not None:
            return Axis(FIXED, self.start, self.step, self.size, index=self.index)
        return Axis(dim, self.start, self.step)

    @property
    def stop(self) -> int:
        """One more than the last index; start where there is none."""
        return self.start + (self.count - 1) * self.step + 1 if self.count else self.start


def reads(expr: Expr) -> tuple[Read, ...]:
    """Return the reads in an expression."""
    return _of_kind(expr, Read)


def elements(expr: Expr) -> tuple[Element, ...]:
    """Return the elements in an expression."""
    return _of_kind(expr, Element)


def _of_kind(expr: Expr, kind: type) -> tuple[Any, ...]:
    """Return the parts of an expression of a kind, which are found once: passes ask often."""
    if isinstance(expr, Literal | Scalar):
        return ()
    found: tuple[Any, ...] | None = vars(expr).get(kind.__name__)
    if found is None:
        found = (expr,) if isinstance(expr, kind) else ()
        for child in children(expr):
            found += _of_kind(child, kind)
        vars(expr)[kind.__name__] = found
    return found


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the operands of an expression."""
    if isinstance(expr, Op):
        return expr.args
    if isinstance(expr, Fold):
        return (expr.value,)
    if isinstance(expr, Choice):
        return (expr.inside, expr.beside)
    if isinstance(expr, Read):
        return tuple(a.index for a in expr.axes if a.index is not None)
    return expr.indices if isinstance(expr, Element) else ()


def with_reads(expr: Expr, change: Callable[[Read], Expr]) -> Expr:
    """Return an expression with other reads."""
    if isinstance(expr, Read):
        return change(expr)
    if isinstance(expr, Op):
        return dataclasses.replace(expr, args=tuple(with_reads(a, change) for a in expr.args))
    if isinstance(expr, Fold):
        return dataclasses.replace(expr, value=with_reads(expr.value, change))
    if isinstance(expr, Choice):
        inside, beside = (with_reads(e, change) for e in (expr.inside, expr.beside))
        return dataclasses.replace(expr, inside=inside, beside=beside)
    if isinstance(expr, Element):
        index, *more = (with_reads(i, change) for i in expr.indices)
        return dataclasses.replace(expr, index=index, more=tuple(more))
    return expr
