"""Expressions of the intermediate representation (ir.py, which has all of these names, too)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

FIXED = -1
"""Of an axis of a read that does not depend on the point."""
FOLDED = -2
"""Of an axis of a read that goes by the index of a Fold: that of the innermost one, -3, ..."""


@dataclass(frozen=True)
class Axis:
    """The index that a read has along one axis of its field.

    start + step i, where i is r[dim] (0: dim is FIXED), or (r[dim] + shift) modulo wrap. Of a
    negative dim but FIXED i is the index of a Fold, which has `count` values.
    """

    dim: int
    start: int = 0
    step: int = 1
    wrap: int = 0
    """0: none."""
    shift: int = 0
    count: int = 0

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
    """The sum, prod, max or min of a value for i = 0, ..., count - 1: reads go by it (Axis.dim)."""

    op: str
    dim: int
    count: int
    value: Expr
    type: str


Expr: TypeAlias = "Literal | Scalar | Read | Element | Op | Fold"


@dataclass(frozen=True)
class Span:
    """The points of a box along one axis: start, start + step, ..., `count` of them."""

    start: int
    step: int
    count: int

    @property
    def stop(self) -> int:
        """One more than the last index; start where there is none."""
        return self.start + (self.count - 1) * self.step + 1 if self.count else self.start


def reads(expr: Expr) -> Iterator[Read]:
    """Yield the reads in an expression."""
    if isinstance(expr, Read):
        yield expr
    for child in children(expr):
        yield from reads(child)


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the operands of an expression."""
    if isinstance(expr, Op):
        return expr.args
    if isinstance(expr, Fold):
        return (expr.value,)
    return expr.indices if isinstance(expr, Element) else ()


def with_reads(expr: Expr, change: Callable[[Read], Expr]) -> Expr:
    """Return an expression with other reads."""
    if isinstance(expr, Read):
        return change(expr)
    if isinstance(expr, Op):
        return dataclasses.replace(expr, args=tuple(with_reads(a, change) for a in expr.args))
    if isinstance(expr, Fold):
        return dataclasses.replace(expr, value=with_reads(expr.value, change))
    if isinstance(expr, Element):
        index, *more = (with_reads(i, change) for i in expr.indices)
        return dataclasses.replace(expr, index=index, more=tuple(more))
    return expr
