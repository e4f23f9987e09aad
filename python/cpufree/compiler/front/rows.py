"""Arrays as sequences: the parts of one along its first axis."""

from __future__ import annotations

import ast

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import values
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.values import ArrayValue, Host, ScalarValue, Value


def known(b: Builder, array: ArrayValue) -> np.ndarray | None:
    """Return the values of a part of an array from outside; None: it is none."""
    read = array.expr
    if not isinstance(read, ir.Read) or read.field not in b.data:
        return None
    f = b.fields[read.field]
    if not f.is_dense or any(a.index is not None for a in read.axes):
        return None
    index = []
    for a in read.axes:
        r = np.arange(1 if a.dim == ir.FIXED else array.shape[a.dim])
        along = a.start + a.step * ((r + a.shift) % a.wrap if a.wrap else r)
        index.append(along.reshape([-1 if k == a.dim else 1 for k in range(len(array.shape))]))
    found = np.moveaxis(b.data[f.name], f.axis, 0)[tuple(index)]
    return np.broadcast_to(found, array.shape)


def rows_of(b: Builder, node: ast.AST, array: ArrayValue) -> list[Value]:
    """Return the parts of an array along its first axis: arrays, or numbers."""
    there = known(b, array)
    if there is not None:
        return [Host(row, text="a row of an array from outside") for row in there]
    parts = [values.sliced(array, [k]) for k in range(array.shape[0])]
    return [part if part.shape else point(b, node, part) for part in parts]


def point(b: Builder, node: ast.AST, array: ArrayValue) -> ScalarValue:
    """Return the value at one point, which all PEs get."""
    single = ArrayValue(array.expr, (), array.type)
    return ScalarValue(b.reduce(node, "max", single, array.type), array.type)
