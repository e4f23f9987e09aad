"""Reductions along some axes: arrays of fewer dimensions from arrays of more."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import values
from cpufree.compiler.front.calls.call import Call, numbers
from cpufree.compiler.front.values import ArrayValue, Host, ScalarValue

_MOST_TERMS = 32
"""Of a sum that is written out; longer ones are loops."""
_JOINED = {"sum": "add", "max": "maximum", "min": "minimum"}


def axes_of(c: Call, axis: object, dims: int) -> tuple[int, ...]:
    """Return axes that a call names, in order, as numbers from 0 on."""
    found = numbers(c, axis)
    for one in found:
        if not -dims <= one < dims:
            c.fail(f"axis {one} is out of bounds for an array of {dims} dimensions", "correct it")
    axes = sorted(one % dims for one in found)
    if len(set(axes)) < len(axes):
        c.fail("an axis is named twice", "name each once")
    return tuple(axes)


def term_of(c: Call, op: str, array: ArrayValue) -> tuple[ArrayValue, str]:
    """Return what a reduction takes of each point, in NumPy's type, and whether sum, max or min."""
    expr, kind = array.expr, array.type
    if op in ("any", "all"):
        if kind != "bool":
            expr = ir.Op("not_equal", (expr, ir.Literal(0, kind)), "bool")
        return ArrayValue(expr, array.shape, "bool"), "max" if op == "any" else "min"
    if op in ("sum", "mean") and not kind.startswith("float"):
        kind = "int64" if op == "sum" else "float64"
    expr = c.e.builder.cast(expr, kind)
    return ArrayValue(expr, array.shape, kind), "sum" if op == "mean" else op


def reduced_along(
    c: Call, op: str, array: ArrayValue, axes: tuple[int, ...], keepdims: bool
) -> ArrayValue:
    """Return a reduction of an array along some of its axes, in the type that NumPy gives it."""
    b = c.e.builder
    points = math.prod(array.shape[k] for k in axes)
    if not points and op in ("max", "min"):
        c.fail("an array without points has no least or largest", "reduce another")
    term, how = term_of(c, op, array)
    if any(a.wrap and a.dim in axes for r in ir.reads(term.expr) for a in r.axes):
        term = b.materialise(c.node, "rolled", term)
    found = joined(term, how, axes)
    result = b.materialise(c.node, f"{op}_along", found)
    if op == "mean":
        count = ScalarValue(ir.Literal(points, term.type), term.type)
        mean = b.elementwise(c.node, "divide", [result, count])
        assert isinstance(mean, ArrayValue)
        result = mean
    result = replace(result, is_view=False)
    if keepdims:
        index: list[int | slice | None] = [
            None if k in axes else slice(None) for k in range(len(array.shape))
        ]
        result = values.sliced(result, index)
    return result


def joined(term: ArrayValue, op: str, axes: tuple[int, ...]) -> ArrayValue:
    """Return the sum, max or min of an array's points along some axes, term by term in order."""
    shape = tuple(n for k, n in enumerate(term.shape) if k not in axes)
    counts = [term.shape[k] for k in axes]
    places = {k: n for n, k in enumerate(j for j in range(len(term.shape)) if j not in axes)}
    terms = math.prod(counts)
    if not terms:
        return ArrayValue(ir.Literal(op == "min", term.type), shape, term.type)
    if terms * max(1, sum(1 for _ in ir.reads(term.expr))) <= _MOST_TERMS:
        parts = [_at(term, axes, point) for point in np.ndindex(*counts)]
        expr = parts[0]
        for part in parts[1:]:
            expr = ir.Op(_JOINED[op], (expr, part), term.type)
        return ArrayValue(expr, shape, term.type)
    folds = {k: ir.FOLDED - n for n, k in enumerate(reversed(axes))}

    def move(a: ir.Axis) -> ir.Axis:
        if a.dim in folds:
            return replace(a, dim=folds[a.dim], count=term.shape[a.dim])
        return a if a.dim == ir.FIXED else replace(a, dim=places[a.dim])

    expr = ir.with_reads(term.expr, lambda r: replace(r, axes=tuple(map(move, r.axes))))
    for axis in reversed(axes):
        expr = ir.Fold(op, folds[axis], term.shape[axis], expr, term.type)
    return ArrayValue(expr, shape, term.type)


def _at(term: ArrayValue, axes: tuple[int, ...], point: tuple[int, ...]) -> ir.Expr:
    """Return the value of one term."""
    index: list[int | slice | None] = [slice(None)] * len(term.shape)
    for axis, i in zip(axes, point, strict=True):
        index[axis] = i
    return values.sliced(term, index).expr


def kept_dims(scalar: ScalarValue, dims: int) -> ArrayValue:
    """Return a reduction over all points as an array of one point along each axis."""
    return ArrayValue(scalar.expr, (1,) * dims, scalar.expr.type)


def is_true(c: Call, given: object) -> bool:
    """Return whether an option that is known beforehand is true."""
    if isinstance(given, Host):
        given = given.value
    if not isinstance(given, bool | np.bool_):
        c.fail("keepdims must be known beforehand", "write True or False")
    return bool(given)
