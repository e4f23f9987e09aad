"""NumPy's functions that make larger arrays of smaller ones."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from cpufree.compiler.front import values
from cpufree.compiler.front.calls.along import axes_of
from cpufree.compiler.front.calls.call import Call, beforehand, numbers, on_host
from cpufree.compiler.front.calls.fields import part_of
from cpufree.compiler.front.lists import items_of
from cpufree.compiler.front.values import ArrayValue, Host, TupleValue, Value


def joined(c: Call) -> Value:
    """np.stack and np.concatenate: a new array of several ones."""
    is_new = c.function is np.stack
    items = items_of(c.e.builder, c.node, c.args[0]) if c.args else []
    if all(isinstance(item, Host) for item in items):
        return beforehand(c)
    axis = c.take("axis", 1, 0)
    c.done(2)
    b, node = c.e.builder, c.node
    arrays = [b.operand(node, item) for item in items]
    parts = [a for a in arrays if isinstance(a, ArrayValue)]
    (along,) = axes_of(c, axis, len(parts[0].shape) + is_new if parts else 1)
    if is_new:
        parts = [values.sliced(a, _index(a, along, None)) for a in parts]
    others = {(*a.shape[:along], *a.shape[along + 1 :]) for a in parts}
    if len(parts) < len(arrays) or len(others) != 1:
        c.fail(f"np.{c.function.__name__} of arrays of unequal shapes", "give equal ones")
    (beside,) = others
    kind = np.result_type(*(a.type for a in parts)).name
    total = sum(a.shape[along] for a in parts)
    result = b.new_field(node, "joined", (*beside[:along], total, *beside[along:]), kind, "local")
    first = 0
    for part in parts:
        b.assign(node, part_of(result, along, slice(first, first + part.shape[along])), part)
        first += part.shape[along]
    return result


def _index(array: ArrayValue, axis: int, at: None) -> list[int | slice | None]:
    index: list[int | slice | None] = [slice(None)] * len(array.shape)
    index.insert(axis, at)
    return index


def repeated(c: Call) -> Value:
    """np.repeat: each point several times."""
    if on_host(c) or isinstance(c.args[0], Host):
        return beforehand(c)
    array = c.array()
    (times,) = numbers(c, c.take("repeats", 1))
    axis = c.take("axis", 2, 0 if len(array.shape) == 1 else None)
    c.done(3)
    if axis is None or times < 1:
        c.fail("np.repeat takes an axis, and a number from 1 on", "write np.repeat(a, 2, axis=0)")
    (along,) = axes_of(c, axis, len(array.shape))
    b = c.e.builder
    shape = tuple(n * times if k == along else n for k, n in enumerate(array.shape))
    result = b.new_field(c.node, "repeated", shape, array.type, "local")
    for k in range(times):
        b.assign(c.node, part_of(result, along, slice(k, None, times)), array)
    return result


def _lines(c: Call) -> list[ArrayValue]:
    """Return the arguments, which are arrays of one dimension."""
    arrays = [c.array(k) for k in range(len(c.args))]
    if any(len(a.shape) != 1 for a in arrays):
        c.fail("this function takes arrays of one dimension", "write u[:, None] * v[None, :]")
    return arrays


def outer(c: Call) -> Value:
    """np.outer of two lines."""
    if all(isinstance(a, Host) for a in c.args):
        return beforehand(c)
    c.done(2)
    a, b = _lines(c)
    return c.e.binary(c.node, ast.Mult, values.sliced(a, [slice(None), None]), b)


def meshgrid(c: Call) -> Value:
    """np.meshgrid: an array of coordinates for each axis."""
    if all(isinstance(a, Host) for a in (*c.args, *c.keywords.values())):
        return beforehand(c)
    indexing = c.take("indexing", 99, "xy")
    lines = _lines(c)
    c.done(len(lines))
    order = list(range(len(lines)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    shape = tuple(lines[k].shape[0] for k in order)
    found: list[Value] = []
    for k, line in enumerate(lines):
        index: list[int | slice | None] = [slice(None) if k == n else None for n in order]
        expr = values.broadcast(values.sliced(line, index), shape)
        found.append(ArrayValue(expr, shape, line.type))
    return TupleValue(tuple(found))


FUNCTIONS: dict[Any, Any] = {
    np.stack: joined, np.concatenate: joined, np.repeat: repeated, np.outer: outer,
    np.meshgrid: meshgrid,
}  # fmt: skip
