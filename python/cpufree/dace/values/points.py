"""What maps write, before it is a stage: expressions of values at points.

While a body is read, places in arrays are `Point`s: indices that are sums of multiples of
parameters, of the map and of loops of the run around it. boxes.py makes stages of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as of_each
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine
from cpufree.dace.values.refusal import Place


@dataclass(frozen=True)
class Point:
    """The value of a field at indices of parameters."""

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
class Over:
    """The sum, product, max or min of a value over all values of a parameter, in order."""

    reduction: str
    param: str
    range: Range
    value: Any
    type: str


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
    ranges: Mapping[str, Range] = of_each(default_factory=dict)
    """Of all parameters for which it is written."""
    facts: tuple[Affine, ...] = ()
    """Sums of them that are 0 or more wherever it is written."""


_JOINS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def join(reduction: str, old: Any, value: Any) -> Any:
    """Return two values joined."""
    return operators.apply(_JOINS[reduction], [old, value])


def joins(value: Any, reduction: str) -> bool:
    """Return whether an expression joins two values in the way of a reduction."""
    return isinstance(value, ir.Op) and value.name == _JOINS[reduction]


def neutral(reduction: str, kind: str) -> ir.Literal:
    """Return the value that changes none that it is joined with."""
    if reduction == "sum":  # x + -0.0 is x, also where x is -0.0
        return ir.Literal(-0.0, kind) if kind.startswith("float") else ir.Literal(0, kind)
    if reduction == "prod":
        return ir.Literal(1.0 if kind.startswith("float") else 1, kind)
    low = reduction == "max"
    if kind.startswith("float"):
        return ir.Literal(-np.inf if low else np.inf, kind)
    limits = np.iinfo(kind)
    return ir.Literal(int(limits.min if low else limits.max), kind)


def points(expr: Any) -> Iterator[Any]:
    """Yield the Points and Indices in an expression."""
    if isinstance(expr, Point | Index):
        yield expr
    elif isinstance(expr, Over):
        yield from points(expr.value)
    elif not isinstance(expr, ir.Literal | ir.Scalar | ir.Read):
        for child in ir.children(expr):
            yield from points(child)


def replaced(expr: Any, change: Callable[[Any], Any]) -> Any:
    """Return an expression in which Points and Indices are changed."""
    if isinstance(expr, Point | Index):
        return change(expr)
    if isinstance(expr, Over):
        return replace(expr, value=replaced(expr.value, change))
    if isinstance(expr, ir.Op):
        return replace(expr, args=tuple(replaced(a, change) for a in expr.args))
    return expr  # indices of elements are numbers of the run, without points


def with_params(expr: Any, values: Mapping[str, Affine | int]) -> Any:
    """Return an expression with parameters replaced."""

    def change(p: Any) -> Any:
        if isinstance(p, Index):
            return Index(p.value.with_values(values), p.type)
        return Point(p.field, tuple(a.with_values(values) for a in p.index), p.type)

    return replaced(expr, change) if values else expr


def fixed(output: Output, values: Mapping[str, Affine | int]) -> Output:
    """Return an output with parameters replaced, which it then has no more."""
    if not values:
        return output
    return replace(
        output,
        index=tuple(a.with_values(values) for a in output.index),
        value=with_params(output.value, values),
        ranges={p: r for p, r in output.ranges.items() if p not in values},
        facts=tuple(f.with_values(values) for f in output.facts),
    )


def size(expr: Any) -> int:
    """Return how many operations an expression has."""
    if isinstance(expr, Over):
        return 1 + size(expr.value)
    return 1 + sum(map(size, expr.args)) if isinstance(expr, ir.Op) else 1
