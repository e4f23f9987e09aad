"""The points of an array where a mask is true: u[mask].

How many there are is known only in the run, so what is computed with them is computed at all points
and taken where the mask is true. They are used in the statement that chooses them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import values
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.numbers import fitting
from cpufree.compiler.front.values import ArrayValue, Host, Masked, ScalarValue, Value
from cpufree.compiler.operations import WEAK, kinds_of


def is_mask(value: Value) -> bool:
    """Return whether a value chooses points where it stands as an index."""
    if isinstance(value, Host):
        array = value.value
        return isinstance(array, np.ndarray) and array.ndim > 0 and array.dtype == bool
    return isinstance(value, ArrayValue) and value.type == "bool" and bool(value.shape)


def chosen(
    b: Builder, node: ast.AST, array: ArrayValue, index: list[Any], mask: ArrayValue
) -> Masked:
    """Return the points of array[index] where the mask, an item of the index, is true."""
    at = next(k for k, item in enumerate(index) if item is mask)
    others = [*index[:at], *index[at + 1 :]]
    if any(isinstance(i, int) for i in others) and any(not isinstance(i, int) for i in others):
        b.fail(node, "a mask beside single rows and slices", "take the rows first: u[0][mask]")
    axis = sum(item is not None for item in index[:at])
    dims = len(mask.shape)
    if array.shape[axis : axis + dims] != mask.shape:
        b.fail(
            node,
            f"a mask of shape {mask.shape} for axes of {array.shape[axis : axis + dims]} points",
            "give it the shape of the array that it chooses from",
        )
    every: list[Any] = [slice(None)] * dims
    result = values.sliced(array, [*index[:at], *every, *index[at + 1 :]])
    before = sum(not isinstance(item, int) for item in index[:at])
    after = len(result.shape) - before - dims
    test = values.sliced(mask, [*[None] * before, *every, *[None] * after])
    expr = values.broadcast(test, result.shape)
    return Masked(result, ArrayValue(expr, result.shape, "bool"))


def has_masks(operands: Sequence[Value]) -> bool:
    """Return whether points chosen by a mask are among some operands."""
    return any(isinstance(o, Masked) for o in operands)


def pointwise(
    b: Builder, node: ast.AST, operands: Sequence[Value], compute: Callable[[list[Value]], Value]
) -> Value:
    """Return what `compute`, a function of each point alone, gives: of u[mask] where it is true.

    All masks must be one.
    """
    first = next((o for o in operands if isinstance(o, Masked)), None)
    if first is None:
        return compute(list(operands))
    plain: list[Value] = []
    for o in operands:
        is_host = isinstance(o, Host) and isinstance(o.value, np.ndarray) and o.value.ndim > 0
        is_array = isinstance(o, ArrayValue) or is_host
        if is_array or (isinstance(o, Masked) and not _alike(o, first)):
            b.fail(
                node,
                "points that are chosen by a mask meet others that it does not choose",
                "index all arrays by the same mask: u[mask] + v[mask]",
            )
        plain.append(o.array if isinstance(o, Masked) else o)
    result = compute(plain)
    assert isinstance(result, ArrayValue) and result.shape == first.array.shape
    return Masked(replace(result, is_view=False), first.mask)


def _alike(a: Masked, b: Masked) -> bool:
    return a.mask.expr == b.mask.expr and a.array.shape == b.array.shape


def check_power(b: Builder, node: ast.AST, operands: Sequence[Value]) -> None:
    """Refuse whole exponents that are chosen by a mask: all of an array would be looked at."""
    exponent = operands[-1]
    if isinstance(exponent, Masked) and not exponent.array.type.startswith("float"):
        b.fail(
            node,
            "whole exponents that are chosen by a mask",
            "convert them with .astype(np.float64)",
        )


def assign(b: Builder, node: ast.AST, target: Masked, value: Value) -> None:
    """Write a value into the points of an array where a mask is true."""
    view = target.array
    new: ArrayValue | ScalarValue
    if isinstance(value, Masked):
        taken = pointwise(b, node, [target, value], lambda both: both[1])
        assert isinstance(taken, Masked)
        new = taken.array
    else:
        new = b.operand(node, value)
        if isinstance(new, ArrayValue):
            b.fail(
                node,
                "a whole array is written into points that are chosen by a mask",
                "choose of both: u[mask] = v[mask]",
            )
        weak = any(kind in WEAK for kind in kinds_of(new.kind))
        new = fitting.written(b, node, new, view.type, checks=weak)
    expr = ir.Op("where", (target.mask.expr, b.cast(new.expr, view.type), view.expr), view.type)
    b.assign(node, view, ArrayValue(expr, view.shape, view.type))


def filled(masked: Masked, number: bool | int | float) -> ArrayValue:
    """Return a whole array that has a number where the mask is false."""
    a = masked.array
    expr = ir.Op("where", (masked.mask.expr, a.expr, ir.Literal(number, a.type)), a.type)
    return ArrayValue(expr, a.shape, a.type)
