"""Reductions, and arrays that a program makes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import values
from cpufree.compiler.front.calls.along import axes_of, is_true, kept_dims, reduced_along, term_of
from cpufree.compiler.front.calls.call import (
    Call,
    beforehand,
    dtype_of,
    numbers,
    on_host,
    same_kind,
    stored_type,
    type_by_numpy,
)
from cpufree.compiler.front.masks import filled
from cpufree.compiler.front.values import ArrayValue, Host, Masked, ScalarValue, TupleValue, Value
from cpufree.compiler.operations import python_kind, stored


def reduction(op: str) -> Callable[[Call], Value]:
    """Return what handles np.sum and the like."""

    def handle(c: Call) -> Value:
        if on_host(c):
            return beforehand(c)
        operand, axis, keepdims = _along(c)
        if isinstance(operand, Masked):
            return _of_chosen(c, op, operand)
        return _reduced(c, op, operand, axis, keepdims)

    return handle


def _along(c: Call) -> tuple[ArrayValue | ScalarValue | Masked, Any, bool]:
    """Return what a call reduces, along which axes (None: all), and whether it keeps them."""
    given = c.args[0] if c.args else None
    operand = given if isinstance(given, Masked) else c.operand()
    axis = c.take("axis", 1)
    keepdims = is_true(c, c.take("keepdims", 9, False))
    rest = [a for a in c.args[2:] if not _none(a)]
    for name in ("dtype", "initial", "where", "out"):
        given = c.keywords.pop(name, None)
        if (given is not None and not _none(given)) or rest:
            c.fail(
                "dtype, initial, where and out of a reduction are not taken",
                "convert before with .astype, and choose points with np.where(mask, a, b)",
            )
    c.args = c.args[:1]
    c.done(1)
    if isinstance(operand, Masked) and (axis is not None or keepdims):
        c.fail("points that a mask chooses lie along one axis", "leave axis out")
    return operand, axis, keepdims


def _reduced(
    c: Call, op: str, operand: ArrayValue | ScalarValue, axis: Any, keepdims: bool
) -> ArrayValue | ScalarValue:
    """Return a reduction along some axes, or over all points."""
    dims = len(operand.shape) if isinstance(operand, ArrayValue) else 0
    axes = tuple(range(dims)) if axis is None else axes_of(c, axis, dims)
    if isinstance(operand, ArrayValue) and len(axes) < dims:
        return reduced_along(c, op, operand, axes, keepdims)
    scalar = reduced(c, op, operand)
    return kept_dims(scalar, dims) if keepdims and dims else scalar


def _of_chosen(c: Call, op: str, chosen: Masked) -> ScalarValue:
    """Return a reduction of the points that a mask chooses."""
    if op in ("max", "min"):
        c.fail(
            f"np.{op} of points that a mask chooses, of which there may be none",
            f"write np.{op}(np.where(mask, u, b)) with a number b for the others",
        )
    if op == "mean":
        term, _ = term_of(c, op, chosen.array)
        total = reduced(c, "sum", filled(Masked(term, chosen.mask), 0))
        points = c.e.builder.cast(reduced(c, "sum", chosen.mask).expr, total.expr.type)
        return ScalarValue(ir.Op("divide", (total.expr, points), total.expr.type), total.kind)
    return reduced(c, op, filled(chosen, int(op == "all")))


def spread(c: Call) -> Value:
    """np.var and np.std, as NumPy computes them."""
    if on_host(c):
        return beforehand(c)
    less = c.take("ddof", 99, 0)
    operand, axis, keepdims = _along(c)
    if not isinstance(operand, ArrayValue) or not isinstance(less, int):
        c.fail("np.var and np.std take an array, and a known ddof", "write np.mean((u - m) ** 2)")
    assert isinstance(operand, ArrayValue)
    b, dims = c.e.builder, len(operand.shape)
    if not operand.type.startswith("float"):
        operand = ArrayValue(b.cast(operand.expr, "float64"), operand.shape, "float64")
    distance = b.elementwise(
        c.node, "subtract", [operand, _reduced(c, "mean", operand, axis, keepdims=True)]
    )
    square = b.elementwise(c.node, "multiply", [distance, distance])
    total = _reduced(c, "sum", square, axis, keepdims)
    axes = range(dims) if axis is None else axes_of(c, axis, dims)
    points = max(math.prod(operand.shape[k] for k in axes) - less, 0)
    number = ScalarValue(ir.Literal(points, operand.type), operand.type)
    result = b.elementwise(c.node, "divide", [total, number])
    is_root = getattr(c.function, "__name__", c.function) == "std"
    return b.elementwise(c.node, "sqrt", [result]) if is_root else result


def count(c: Call) -> Value:
    """np.count_nonzero of all points."""
    if on_host(c):
        return beforehand(c)
    given, axis, keepdims = _along(c)
    operand = filled(given, 0) if isinstance(given, Masked) else given
    kind = python_kind(np.count_nonzero(np.ones(1)))
    assert kind is not None
    test = c.e.builder.elementwise(c.node, "not_equal", [operand, _ZERO])
    total = _reduced(c, "sum", test, axis, keepdims)
    if isinstance(total, ArrayValue):
        return total
    return ScalarValue(c.e.builder.cast(total.expr, stored(kind)), kind)


_ZERO = ScalarValue(ir.Literal(0, "int64"), "int")


def _none(value: Value) -> bool:
    return isinstance(value, Host) and value.value is None


def reduced(c: Call, op: str, array: ArrayValue | ScalarValue) -> ScalarValue:
    """Return a reduction of an array, or of a number, in the type that NumPy gives it."""
    builder = c.e.builder
    if isinstance(array, ScalarValue):
        types = builder.one_for_all(c.node, f"np.{op}", [array.kind], lambda kind: stored(kind))
        array = ArrayValue(builder.cast(array.expr, types), (), types)
    term, how = term_of(c, op, array)
    points, kind = math.prod(array.shape), term.type
    if not points and op in ("any", "all"):
        return ScalarValue(ir.Literal(op == "all", kind), kind)
    total = builder.reduce(c.node, how, term, kind) if array.shape else term.expr
    if op == "mean":
        total = ir.Op("divide", (total, ir.Literal(points, kind)), kind)
    return ScalarValue(total, kind)


def norm(c: Call) -> Value:
    """np.linalg.norm of all points."""
    array, order = c.array(), c.take("ord", 1)
    c.done(2)
    if not array.type.startswith("float"):
        array = ArrayValue(c.e.builder.cast(array.expr, "float64"), array.shape, "float64")
    if order is not None and (order != np.inf or len(array.shape) != 1):
        c.fail("this order of a norm is not taken", "write it with np.sum, np.max and np.abs")
    if order is not None:
        size = ir.Op("absolute", (array.expr,), array.type)
        return reduced(c, "max", ArrayValue(size, array.shape, array.type))
    square = ir.Op("multiply", (array.expr, array.expr), array.type)
    total = reduced(c, "sum", ArrayValue(square, array.shape, array.type))
    return ScalarValue(ir.Op("sqrt", (total.expr,), array.type), array.type)


def equal(c: Call) -> Value:
    """np.array_equal."""
    c.done(2)
    a, b = c.operand(0), c.operand(1)
    shapes = {o.shape if isinstance(o, ArrayValue) else () for o in (a, b)}
    if len(shapes) > 1:
        return Host(False, literal=True)
    return _is_everywhere(c, c.e.builder.elementwise(c.node, "equal", [a, b]))


def close(c: Call) -> Value:
    """np.isclose and np.allclose."""
    rtol, atol = c.take("rtol", 2, 1e-5), c.take("atol", 3, 1e-8)
    if c.take("equal_nan", 4, False) is not False:
        c.fail("equal_nan is not taken", "leave it out")
    c.done(5)
    b, node = c.e.builder, c.node
    limits = [o if isinstance(o, ScalarValue) else b.operand(node, Host(o)) for o in (rtol, atol)]
    one, other = c.operand(0), c.operand(1)
    kind = type_by_numpy(c, [other], lambda o: np.ones(1, np.result_type(o, 1.0)))
    if isinstance(other, ArrayValue) and other.type != kind:
        other = ArrayValue(b.cast(other.expr, kind), other.shape, kind)

    def of(name: str, *operands: ArrayValue | ScalarValue) -> ArrayValue | ScalarValue:
        return b.elementwise(node, name, list(operands))

    limit = of("add", limits[1], of("multiply", limits[0], of("absolute", other)))
    near = of("less_equal", of("absolute", of("subtract", one, other)), limit)
    near = of("bitwise_and", near, of("isfinite", other))
    result = of("bitwise_or", near, of("equal", one, other))
    return _is_everywhere(c, result) if c.function is np.allclose else result


def _is_everywhere(c: Call, test: ArrayValue | ScalarValue) -> ScalarValue:
    """Return the bool of Python's that a test of all points gives."""
    return ScalarValue(reduced(c, "all", test).expr, "truth")


def create(c: Call) -> Value:
    """np.zeros, np.empty_like and so on: a new array."""
    name = c.function.__name__
    like = name.endswith("_like")
    fills = name.startswith("full")
    first = c.take("a" if like else "shape", 0)
    fill: Any = c.take("fill_value", 1) if fills else float(name.startswith("ones"))
    dtype = c.take("dtype", 2 if fills else 1)
    c.keywords.pop("order", None)
    c.done(3)
    if like:
        model = c.e.builder.operand(c.node, first if isinstance(first, ArrayValue) else Host(first))
        if not isinstance(model, ArrayValue):
            c.fail("this function takes an array", "pass an array")
        assert isinstance(model, ArrayValue)
        shape, kind = model.shape, model.type
    else:
        shape, kind = _shape(c, first), "float64"
    value = fill
    if not isinstance(fill, ScalarValue | ArrayValue):
        value = c.e.builder.operand(c.node, Host(fill, not isinstance(fill, np.ndarray)))
    if fills and not like and isinstance(value, ScalarValue):
        kind = type_by_numpy(c, [value], lambda number: np.full(1, number))
    elif fills and not like:
        kind = value.type
    c.e.builder.require_type(c.node, kind)
    if dtype is not None:
        kind = dtype_of(c, dtype)
    array = c.e.builder.new_field(c.node, "made", shape, kind, "local")
    c.e.builder.assign(c.node, array, value, checks=False)
    return array


def _shape(c: Call, shape: Any) -> tuple[int, ...]:
    if isinstance(shape, tuple):
        shape = TupleValue(tuple(Host(n) for n in shape))
    return tuple(numbers(c, shape))


def reshape(c: Call) -> Value:
    """np.reshape where axes of one point come or go: a view."""
    array = c.array()
    given = c.take("shape", 1) if len(c.args) < 3 else TupleValue(tuple(c.args[1:]))
    c.args = c.args[:2]
    c.done(2)
    shape = list(_shape(c, given))
    if shape.count(-1) == 1:
        others = math.prod(n for n in shape if n != -1)
        shape[shape.index(-1)] = math.prod(array.shape) // max(others, 1)
    longer = [n for n in array.shape if n != 1]
    if [n for n in shape if n != 1] != longer:
        c.fail(
            f"reshape of {array.shape} to {tuple(shape)}",
            "axes of one point may come or go; pass arrays of the shape that is computed with",
        )
    flat = values.sliced(array, [0 if n == 1 else slice(None) for n in array.shape])
    return values.sliced(flat, [None if n == 1 else slice(None) for n in shape])


def copy(c: Call) -> Value:
    """np.copy: a new array."""
    c.keywords.pop("order", None)
    c.done(1)
    return c.e.builder.materialise(c.node, "copy", c.array())


def copyto(c: Call) -> Value:
    """np.copyto: writes into an array."""
    c.done(2)
    target = c.array()
    if not target.is_view:
        c.fail("np.copyto writes into an array", "pass an array or a slice of one")
    value = c.operand(1)
    same_kind(c.e, c.node, stored_type(value), target.type)
    c.e.builder.assign(c.node, target, value, checks=False)
    return Host(None)
