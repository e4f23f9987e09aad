"""Parts of arrays: indices and slices."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import masks, values
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.distribution import ALL_ROWS, fail_moving
from cpufree.compiler.front.operands import fail_as_array
from cpufree.compiler.front.rows import point
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    Masked,
    ScalarValue,
    Scope,
    TupleValue,
    Value,
    unpacked,
)


class Parts:
    """What subscripts stand for; a part of Expressions."""

    builder: Builder
    eval: Callable[[ast.expr, Scope], Value]
    host: Callable[[ast.expr, Scope, str], Any]
    on_host: Callable[..., Value]
    settled: Callable[[ast.AST, list[tuple[int, Value]]], list[tuple[int, Value]]]

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        base = self.eval(node.value, scope)
        if isinstance(base, TupleValue):
            return self._item(node, base, self.host(node.slice, scope, "this index"))
        if isinstance(base, Host) and not isinstance(base.value, np.ndarray):
            if isinstance(base.value, list | tuple) and base.text and _has_slice(node.slice):
                fail_as_array(self.builder, node, base)
            key = Host(self.host(node.slice, scope, "this index"), literal=True)
            item = self.on_host(node, operator.getitem, base, key)
            text = base.text and f"{base.text}[{key.value!r}]"
            return replace(item, text=text) if isinstance(item, Host) else item
        if isinstance(base, Host) and (number := self._known_point(base.value, node, scope)):
            return number
        array = self.builder.operand(node, base)
        if not isinstance(array, ArrayValue):
            self.builder.fail(node, "a number has no parts", "index an array")
        return self.part(node, array, scope)

    def _known_point(self, array: Any, node: ast.Subscript, scope: Scope) -> Host | None:
        """Return a number of an array from outside, at an index that is known beforehand."""
        if not isinstance(array, np.ndarray) or _has_slice(node.slice):
            return None
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        plain = ast.Name, ast.Constant, ast.UnaryOp, ast.unaryop, ast.expr_context
        if len(index) != array.ndim or not all(
            isinstance(part, plain) for i in index for part in ast.walk(i)
        ):
            return None
        known = [self.eval(i, scope) for i in index]
        places = [v.value for v in known if isinstance(v, Host) and type(v.value) is int]
        if len(places) < len(index):
            return None
        try:
            return Host(array[tuple(places)])
        except IndexError as error:
            self.builder.fail(node, str(error), "correct the index")

    def _item(self, node: ast.AST, base: TupleValue, key: Any) -> Value:
        try:
            found = base.items[key]
        except (IndexError, TypeError) as error:
            self.builder.fail(node, str(error), "correct the index")
        return TupleValue(found, base.is_list) if isinstance(found, tuple) else found

    def part(
        self, node: ast.Subscript, array: ArrayValue, scope: Scope, to_write: bool = False
    ) -> ArrayValue | ScalarValue | Masked:
        """Return the part of an array that an index says; `to_write`: of one point, too, a view."""
        start = len(self.builder.out)
        found: list[tuple[ast.expr, Value]] = []
        for item in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            is_slice = isinstance(item, ast.Slice)
            value = self._slice(item, scope) if is_slice else unpacked(self.eval(item, scope))
            if isinstance(value, TupleValue) and (value.is_list or item is not node.slice):
                self.builder.fail(
                    item,
                    "an array is indexed by several numbers at once",
                    "u[[0, -1]] = 0 is taken; else write a line for each, or a slice",
                )
            parts = value.items if isinstance(value, TupleValue) else [value]
            found += [(item, part) for part in parts]
        index: list[Any] = []
        for item, value in found:
            if masks.is_mask(value):
                index.append(self.builder.operand(item, value))
                continue
            one = self._index(item, array, value, len(found), to_write)
            if isinstance(one, ScalarValue):
                return one
            if one is Ellipsis and any(i is Ellipsis for i in index):
                self.builder.fail(node, "an index has one ellipsis at most", "write : instead")
            index.append(one)
        if any(i is Ellipsis for i in index):
            at = next(k for k, i in enumerate(index) if i is Ellipsis)
            given = sum(_axes_of(one) for one in index) - 1
            index[at : at + 1] = [slice(None)] * (len(array.shape) - given)
        ((_, settled),) = self.settled(node, [(start, array)])
        assert isinstance(settled, ArrayValue)
        chosen_by = [i for i in index if isinstance(i, ArrayValue)]
        if len(chosen_by) > 1:
            self.builder.fail(node, "an index has one mask at most", "join them with &")
        try:
            if chosen_by:
                return masks.chosen(self.builder, node, settled, index, chosen_by[0])
            result = values.sliced(settled, index)
        except values.OutOfRange as error:
            self.builder.fail(node, str(error), error.advice)
        self._check_moving(index, result)
        return result if result.shape or to_write else point(self.builder, node, result)

    def _check_moving(self, index: list[Any], result: ArrayValue) -> None:
        """Refuse an index of the run along the axis that is divided among PEs."""
        moving = [i for i in index if isinstance(i, values.Moving)]
        for read in ir.reads(result.expr):
            if moving and read.axes[0].index and self.builder.fields[read.field].distributed:
                fail_moving(self.builder, moving[0].node)

    def _slice(self, item: ast.expr, scope: Scope) -> Value:
        assert isinstance(item, ast.Slice)
        parts = (item.lower, item.upper, item.step)
        return Host(slice(*(None if p is None else self._whole(p, scope) for p in parts)))

    def _index(
        self, item: ast.expr, array: ArrayValue, value: Value, count: int, to_write: bool
    ) -> Any:
        """Return a whole number, slice, None or Ellipsis; of an element at run time its value."""
        if isinstance(value, ScalarValue) and value.kind in ("int", "int32", "int64"):
            element = None if to_write else self._element(array, value, count)
            if element is not None:
                return element
            if any(isinstance(part, ir.Element) for part in _parts_of(value.expr)):
                value = self.builder.set_now(item, "index", value)
            return values.Moving(item, self.builder.cast(value.expr, "int64"))
        found = value.value if isinstance(value, Host) else value
        if found is None or found is Ellipsis:
            return found
        if isinstance(found, slice):
            return self._checked(item, found)
        if isinstance(found, int | np.integer) and not isinstance(found, bool):
            return int(found)
        self.builder.fail(
            item,
            "an array is indexed by something other than whole numbers and slices",
            "choose points with np.where(mask, a, b); index arrays are not taken",
        )

    def _checked(self, item: ast.expr, found: slice) -> slice:
        try:
            found.indices(1)
        except (TypeError, ValueError) as error:
            self.builder.fail(item, str(error), "give whole numbers, and steps from 1 on")
        return found

    def _whole(self, node: ast.expr, scope: Scope) -> int | None:
        value = self.eval(node, scope)
        if not isinstance(value, Host):
            self.builder.fail(
                node,
                "this slice moves with a value of the run: that is a sweep from row to row, one "
                "after the other",
                ALL_ROWS,
            )
        if value.value is None:
            return None
        try:
            return operator.index(value.value)
        except TypeError:
            self.builder.fail(node, f"{value.value!r} is no whole number", "give a whole number")

    def _element(self, array: ArrayValue, index: ScalarValue, count: int) -> ScalarValue | None:
        """Return a number of an array that all PEs have; None: it is not that simple."""
        f = self.builder.fields.get(array.field) if array.is_view else None
        if f is None or count != 1 or f.distributed or len(array.shape) != 1:
            return None
        if not values.is_whole(array, f):
            return None
        element = ir.Element(f.name, self.builder.cast(index.expr, "int64"), f.type)
        return ScalarValue(element, f.type)


def _parts_of(expr: ir.Expr) -> Iterator[ir.Expr]:
    yield expr
    for child in ir.children(expr):
        yield from _parts_of(child)


def _axes_of(item: Any) -> int:
    """Return how many axes an item of an index stands for; an ellipsis counts as one."""
    return len(item.shape) if isinstance(item, ArrayValue) else int(item is not None)


def _has_slice(index: ast.expr) -> bool:
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(i, ast.Slice) for i in items)
