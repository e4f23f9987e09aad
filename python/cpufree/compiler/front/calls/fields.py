"""NumPy's functions of fields: differences, gradients, padding."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import values
from cpufree.compiler.front.calls.along import axes_of
from cpufree.compiler.front.calls.call import Call, beforehand, numbers, on_host
from cpufree.compiler.front.values import ArrayValue, Host, ScalarValue, TupleValue, Value

_EDGES = {1: ((-1.0, 1.0), (-1.0, 1.0)), 2: ((-1.5, 2.0, -0.5), (0.5, -2.0, 1.5))}
"""Of np.gradient, by its order: what points at the begin and at the end count for."""


def part_of(array: ArrayValue, axis: int, part: slice | int) -> ArrayValue:
    """Return part of an array along one axis."""
    index: list[int | slice | None] = [slice(None)] * len(array.shape)
    index[axis] = part
    return values.sliced(array, index)


def _known(c: Call, name: str, place: int, otherwise: Any) -> Any:
    """Return an argument that must be known beforehand."""
    given = c.take(name, place, otherwise)
    if isinstance(given, ScalarValue | ArrayValue):
        c.fail(f"{name} must be known beforehand", "give a number of the text or of the arguments")
    return given


def diff(c: Call) -> Value:
    """np.diff: differences of neighbours along an axis."""
    if on_host(c) or isinstance(c.args[0], Host):
        return beforehand(c)
    array, times = c.array(), _known(c, "n", 1, 1)
    axis = _known(c, "axis", 2, -1)
    c.done(3)
    (along,) = axes_of(c, axis, len(array.shape))
    if not isinstance(times, int) or times < 0:
        c.fail("np.diff takes a whole number of times", "write np.diff(a, axis=0)")
    name = "not_equal" if array.type == "bool" else "subtract"
    for _ in range(times):
        pair: list[ScalarValue | ArrayValue] = [
            part_of(array, along, slice(1, None)), part_of(array, along, slice(None, -1))
        ]  # fmt: skip
        made = c.e.builder.elementwise(c.node, name, pair)
        assert isinstance(made, ArrayValue)
        array = made
    return array if times else c.e.builder.materialise(c.node, "copy", array)


def gradient(c: Call) -> Value:
    """np.gradient: central differences, one-sided ones at the ends."""
    array = c.array()
    axis, order = _known(c, "axis", 99, None), _known(c, "edge_order", 99, 1)
    dims = len(array.shape)
    axes = list(range(dims)) if axis is None else list(_in_order(c, axis, dims))
    spacings = c.args[1:] or [Host(1.0, literal=True)]
    c.done(1 + len(spacings))
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes) or order not in (1, 2):
        c.fail("np.gradient takes one distance for each axis, and orders 1 and 2", "write it so")
    if not array.type.startswith("float"):
        array = ArrayValue(c.e.builder.cast(array.expr, "float64"), array.shape, "float64")
    array = c.e.builder.materialise(c.node, "field", array) if not array.is_view else array
    found: list[Value] = []
    for along, spacing in zip(axes, spacings, strict=True):
        if not isinstance(c.e.builder.operand(c.node, spacing), ScalarValue):
            c.fail("np.gradient of points at several distances", "give one distance for each axis")
        found.append(_gradient(c, array, along, spacing, order))
    plain = len(found) == 1 and (axis is None or np.ndim(axis) == 0)
    return found[0] if plain or len(found) == 1 else TupleValue(tuple(found))


def _in_order(c: Call, axis: Any, dims: int) -> tuple[int, ...]:
    axes_of(c, axis, dims)
    return tuple(one % dims for one in numbers(c, axis))


def _gradient(c: Call, f: ArrayValue, along: int, h: Value, order: int) -> ArrayValue:
    b, e, node = c.e.builder, c.e, c.node
    if f.shape[along] <= order:
        c.fail(f"np.gradient of order {order} takes {order + 1} points", "use a larger array")

    def number(x: float) -> Host:
        return Host(x, literal=True)

    result = b.new_field(node, "gradient", f.shape, f.type, "local")
    two = e.binary(node, ast.Mult, number(2.0), h)
    central = e.binary(
        node, ast.Sub, part_of(f, along, slice(2, None)), part_of(f, along, slice(None, -2))
    )
    inner = b.operand(node, e.binary(node, ast.Div, central, two))
    b.assign(node, part_of(result, along, slice(1, -1)), inner)
    for weights, first, at in zip(_EDGES[order], (0, -1 - order), (0, -1), strict=True):
        points = [
            part_of(f, along, slice(k, k + 1 or None)) for k in range(first, first + order + 1)
        ]
        if order == 1:
            total = e.binary(node, ast.Div, e.binary(node, ast.Sub, points[1], points[0]), h)
        else:
            factors = [e.binary(node, ast.Div, number(weight), h) for weight in weights]
            terms = map(partial(e.binary, node, ast.Mult), factors, points)
            total = reduce(partial(e.binary, node, ast.Add), terms)
        edge = part_of(result, along, slice(at, at + 1 or None))
        b.assign(node, edge, b.operand(node, total))
    return result


def rounded(c: Call) -> Value:
    """np.round: to the nearest number with N decimals, ties to even ones."""
    if on_host(c):
        return beforehand(c)
    operand, decimals = c.operand(), _known(c, "decimals", 1, 0)
    c.done(2)
    if not isinstance(decimals, int):
        c.fail("decimals is a whole number", "write np.round(a, 2)")
    b, kind = c.e.builder, operand.expr.type
    if not kind.startswith("float"):
        if decimals < 0 or kind == "bool":
            c.fail("np.round of whole numbers to tens, or of bools", "convert with .astype before")
        rounded: Value = operand
    elif decimals == 0:
        rounded = b.elementwise(c.node, "rint", [operand])
    else:
        ten = ScalarValue(ir.Literal(float(10 ** abs(decimals)), kind), kind)
        there, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
        whole = b.elementwise(c.node, "rint", [b.elementwise(c.node, there, [operand, ten])])
        rounded = b.elementwise(c.node, back, [whole, ten])
    if isinstance(rounded, ScalarValue):
        return ScalarValue(rounded.expr, kind)
    assert isinstance(rounded, ArrayValue)
    return b.materialise(c.node, "rounded", rounded) if rounded is operand else rounded


_MOST_WIDE: dict[Any, Callable[[int], float]] = {
    "constant": lambda n: math.inf, "edge": lambda n: math.inf, "wrap": lambda n: n,
    "reflect": lambda n: n - 1, "symmetric": lambda n: n,
}  # fmt: skip
"""By the mode of np.pad, the points that may be beside an axis of n points."""


def pad(c: Call) -> Value:
    """np.pad: a larger array with a constant, the edge, the other end or a mirror around it."""
    array, mode = c.array(), _known(c, "mode", 2, "constant")
    width = c.take("pad_width", 1)
    constant = c.keywords.pop("constant_values", Host(0, literal=True))
    c.done(3)
    if mode not in _MOST_WIDE:
        c.fail(f"np.pad of mode {mode!r} is not taken", f"use one of {', '.join(_MOST_WIDE)}")
    if isinstance(values.unpacked(constant), TupleValue):
        c.fail("np.pad with several constants", "give one, and write the others into the result")
    b, dims = c.e.builder, len(array.shape)
    pairs = _widths(c, width, dims)
    shape = tuple(n + x + y for n, (x, y) in zip(array.shape, pairs, strict=True))
    result = b.new_field(c.node, "padded", shape, array.type, "local")
    if mode == "constant":
        b.assign(c.node, result, b.operand(c.node, constant), checks=False)
    inner: list[int | slice | None] = [
        slice(x, x + n) for n, (x, _) in zip(array.shape, pairs, strict=True)
    ]
    b.assign(c.node, values.sliced(result, inner), array)
    for axis, (x, y) in enumerate(pairs if mode != "constant" else ()):
        n = array.shape[axis]
        if max(x, y) > _MOST_WIDE[mode](n):
            c.fail("np.pad goes over an axis more than once", "use a smaller width")
        # Along the axes before, what is beside is there already, as NumPy does it.
        cut = [*(slice(None),) * (axis + 1), *inner[axis + 1 :]]
        for to, source in _beside(mode, x, y, n):
            part, of = list(cut), list(cut)
            part[axis], of[axis] = to, source
            value = values.sliced(result, of)
            b.assign(c.node, values.sliced(result, part), value)
    return result


def _beside(mode: str, x: int, y: int, n: int) -> list[tuple[slice, slice]]:
    """Return, along an axis of n points in the middle, parts of the rim and what they are."""
    before, behind = slice(0, x), slice(x + n, x + n + y)
    if mode == "edge":
        found = [(before, slice(x, x + 1)), (behind, slice(x + n - 1, x + n))]
    elif mode in ("reflect", "symmetric"):
        again = int(mode == "symmetric")  # the edge itself
        places = [(k, 2 * x - again - k) for k in range(x)]
        places += [(x + n + k, x + n - 2 + again - k) for k in range(y)]
        found = [(slice(to, to + 1), slice(of, of + 1)) for to, of in places]
    else:
        found = [(before, slice(n, n + x)), (behind, slice(x, x + y))]
    return [(to, of) for to, of in found if to.stop > to.start]


def _widths(c: Call, width: Any, dims: int) -> list[tuple[int, int]]:
    """Return the points before and behind along each axis."""
    value = values.unpacked(width if isinstance(width, TupleValue) else Host(width))
    plain = np.array([_plain(c, leaf) for leaf in values.leaves(value)])
    nested = isinstance(value, TupleValue) and isinstance(value.items[0], TupleValue)
    try:
        pairs = np.broadcast_to(plain.reshape(-1, 2) if nested else plain, (dims, 2))
    except ValueError:
        c.fail("np.pad takes a width, a pair, or a pair for each axis", "write ((1, 1), (0, 0))")
    if (pairs < 0).any():
        c.fail("np.pad takes widths from 0 on", "cut with a slice")
    return [(int(x), int(y)) for x, y in pairs]


def _plain(c: Call, leaf: Value) -> int:
    (number,) = numbers(c, leaf)
    return number


FUNCTIONS: dict[Any, Any] = {
    np.diff: diff, np.gradient: gradient, np.round: rounded, np.around: rounded, np.pad: pad,
}  # fmt: skip
