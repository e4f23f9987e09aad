"""Conditions: comparisons, and, or, not, choices."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import masks
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.numbers import fitting, kinds
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    ScalarValue,
    Scope,
    TupleValue,
    Value,
)
from cpufree.compiler.operations import COMPARE, OF_PYTHON, UNARY, kinds_of, stored


class Conditions:
    """What is true or false; a part of Expressions."""

    builder: Builder
    eval: Callable[[ast.expr, Scope], Value]
    in_order: Callable[[Sequence[ast.expr], Scope], list[Value]]
    on_host: Callable[..., Value]
    _of_scalars: Callable[..., Value]
    settled: Callable[[ast.AST, list[tuple[int, Value]]], list[tuple[int, Value]]]

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Value:
        negates = isinstance(node.op, ast.Not)
        value = self.test(node.operand, scope) if negates else self.eval(node.operand, scope)
        if negates and isinstance(value, TupleValue):
            return Host(not value.items, literal=True)
        if is_plain(value):
            return self.on_host(node, OF_PYTHON[type(node.op)], value)
        if not negates:
            name = UNARY[type(node.op)]
            return masks.pointwise(
                self.builder, node, [value], lambda o: self._unary(node, name, o[0])
            )
        operand = self.builder.operand(node, value)
        if isinstance(operand, ArrayValue):
            self.builder.fail(
                node,
                "not of an array is ambiguous",
                "write ~a or np.logical_not(a) for each point, or np.any, np.all for one answer",
            )
        return ScalarValue(ir.Op("logical_not", (self.truth(node, operand),), "bool"), "truth")

    def _unary(self, node: ast.AST, name: str, value: Value) -> Value:
        operand = self.builder.operand(node, value)
        if isinstance(operand, ScalarValue):
            return self._of_scalars(node, name, [operand])
        return self.builder.elementwise(node, name, [operand])

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        parts = self.in_order([node.left, node.comparators[0]], scope)
        result = self._comparison(node, node.ops[0], *parts)
        for op, more in zip(node.ops[1:], node.comparators[1:], strict=True):
            if isinstance(result, Host) and not result.value:
                return result
            start = len(self.builder.out)
            before = [(start, result), (start, parts[-1])]
            right = self._guarded(more, scope, self.truth(node, result))
            (_, result), (_, left) = self.settled(node, before)
            parts = [left, right]
            one = self._comparison(node, op, *parts)
            if isinstance(one, ArrayValue) or isinstance(result, ArrayValue):
                self.builder.fail(
                    node,
                    "a chain of comparisons of arrays is ambiguous",
                    "write (a < b) & (b < c)",
                )
            result = one if isinstance(result, Host) else self._joined(node, False, [result, one])
        return result

    def _guarded(self, node: ast.expr, scope: Scope, test: ir.Expr, truth: bool = False) -> Value:
        """Return what an expression stands for that is evaluated only where a condition holds."""
        b = self.builder
        with b.apart():
            value = self._part(node, scope, truth)
            made = tuple(b.out)
        if made:
            b.out.append(ir.If(test, made, (), b.line(node)))
        return value

    def _part(self, node: ast.expr, scope: Scope, truth: bool) -> Value:
        if truth and isinstance(node, ast.BoolOp):
            return self._boolop(node, scope, True)
        return self.eval(node, scope)

    def _comparison(self, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> Value:
        if isinstance(op, ast.Is | ast.IsNot):
            one = self._identity(node, left, right)
            return Host(one == isinstance(op, ast.Is), literal=True)
        left, right = _as_host(left), _as_host(right)
        if is_plain(left) and is_plain(right):
            return self.on_host(node, OF_PYTHON[type(op)], left, right)
        if type(op) not in COMPARE:
            self.builder.fail(
                node, "this comparison is not taken for values of the run", "use ==, !=, <, <=, >"
            )
        return masks.pointwise(
            self.builder, node, [left, right], lambda o: self._compared(node, COMPARE[type(op)], o)
        )

    def _compared(self, node: ast.AST, name: str, parts: list[Value]) -> Value:
        operands = [self.builder.operand(node, part) for part in parts]
        return fitting.compare(self.builder, node, name, operands)

    def test(self, node: ast.expr, scope: Scope) -> Value:
        """Return something of the truth of an expression."""
        return self._part(node, scope, True)

    def _identity(self, node: ast.AST, a: Value, b: Value) -> bool:
        """Return whether two values are one object, which must be known beforehand."""
        if isinstance(a, Host) and isinstance(b, Host):
            return a.value is b.value
        if a is b or type(a) is not type(b):
            return a is b
        if isinstance(a, ArrayValue) and isinstance(b, ArrayValue):
            whole = not (a.is_part or b.is_part or a.unless or b.unless)
            if not (a.is_view and b.is_view):
                return False
            if whole and a.field == b.field:
                return True
            # Arguments may be one array, which what moves storage brings to other fields.
            roles = {self.builder.fields[one.field].role for one in (a, b)}
            if whole and "local" in roles and not self.builder.permutes:
                return False
        self.builder.fail(
            node,
            "whether these are one object is not known here",
            "compare values with ==, or pass a number that decides",
        )

    def _boolop(self, node: ast.BoolOp, scope: Scope, truth_alone: bool = False) -> Value:
        """Return the first operand that decides, as Python does, else the last one."""
        ends = isinstance(node.op, ast.Or)  # the truth that decides
        found: list[tuple[int, Value]] = []
        for part in node.values:
            if found:
                value = self._guarded(part, scope, self._undecided(node, ends, found), truth_alone)
                found = self.settled(node, found)
            else:
                value = self._part(part, scope, truth_alone)
            known = self.known_truth(value)
            if known is None or known == ends or part is node.values[-1]:
                found.append((len(self.builder.out), value))
            if known == ends:
                break
        rest = [value for _, value in found]
        if truth_alone and len(rest) > 1:
            rest = [ScalarValue(self.truth(node, value), "truth") for value in rest]
        return rest[0] if len(rest) == 1 else self._joined(node, ends, rest)

    def _undecided(self, node: ast.AST, ends: bool, found: list[tuple[int, Value]]) -> ir.Expr:
        """Return whether none of some operands of and, or (`ends`) has decided."""
        tests = [self.truth(node, value) for _, value in found]
        if ends:
            tests = [ir.Op("logical_not", (test,), "bool") for test in tests]
        result = tests[0]
        for test in tests[1:]:
            result = ir.Op("py_and", (result, test), "bool")
        return result

    def known_truth(self, value: Value) -> bool | None:
        """Return the truth of a value that is known beforehand."""
        if isinstance(value, TupleValue):
            return bool(value.items)
        if isinstance(value, Host) and not (
            isinstance(value.value, np.ndarray) and value.value.size != 1
        ):
            return bool(value.value)
        return None

    def _joined(self, node: ast.AST, ends: bool, parts: list[Value]) -> Value:
        """Return a or b (`ends`), a and b of numbers: one of the operands."""
        *before, result = parts
        for part in reversed(before):
            test = self.truth(node, part)
            self.truth(node, result)  # a number
            rest = self.builder.operand(node, result).expr
            result = self.choice(node, test, *((part, result) if ends else (result, part)))
            if result.expr.type == "bool":
                joined = ir.Op("py_or" if ends else "py_and", (test, rest), "bool")
                result = replace(result, expr=joined)
        return result

    def choice(self, node: ast.AST, test: ir.Expr, yes: Value, no: Value) -> ScalarValue:
        """Return one of two numbers, of the kind that it has; the other one is not evaluated."""
        a, b = self.builder.operand(node, yes), self.builder.operand(node, no)
        assert isinstance(a, ScalarValue) and isinstance(b, ScalarValue)
        kind = kinds.either([a.kind, b.kind])
        if not (kinds.keeps_value(a, kind) and kinds.keeps_value(b, kind)):
            self.builder.fail(
                node,
                f"this is {kinds.words(a.kind)} or {kinds.words(b.kind)}, which the run decides",
                "convert both to one type: float(...)",
            )
        args = (test, *(self.builder.cast(o.expr, stored(kind)) for o in (a, b)))
        tag = None
        if len(kinds_of(kind)) > 1:
            tag = ir.Op("py_choose", (test, kinds.tag_of(a), kinds.tag_of(b)), "int64")
        return ScalarValue(ir.Op("py_choose", args, stored(kind)), kind, tag)

    def truth(self, node: ast.AST, value: Value) -> ir.Expr:
        """Return a scalar as a condition."""
        if isinstance(value, TupleValue):
            return ir.Literal(bool(value.items), "bool")
        operand = self.builder.operand(node, value)
        if isinstance(operand, ArrayValue):
            self.builder.fail(
                node,
                "the truth of an array is ambiguous",
                "write & and | for each point, or np.any, np.all for one answer",
            )
        if operand.expr.type == "bool":
            return operand.expr
        zero = ir.Literal(0, operand.expr.type)
        return ir.Op("not_equal", (operand.expr, zero), "bool")

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Value:
        condition = self.test(node.test, scope)
        known = self.known_truth(condition)
        if known is not None:
            return self.eval(node.body if known else node.orelse, scope)
        test = self.builder.kept(node, ScalarValue(self.truth(node.test, condition), "truth"), "c")
        assert isinstance(test, ScalarValue)
        otherwise = ir.Op("logical_not", (test.expr,), "bool")
        start, yes = len(self.builder.out), self._guarded(node.body, scope, test.expr)
        no = self._guarded(node.orelse, scope, otherwise)
        ((_, yes),) = self.settled(node, [(start, yes)])
        operands = [self.builder.operand(node, value) for value in (yes, no)]
        if any(isinstance(o, ArrayValue) for o in operands):
            self.builder.fail(
                node,
                "a choice between arrays by a value of the run is not taken in an expression",
                "write np.where(condition, a, b), or an if statement",
            )
        return self.choice(node, test.expr, yes, no)


def _as_host(value: Value) -> Value:
    """Return a tuple of values that are known beforehand as an object of Python."""
    if not isinstance(value, TupleValue):
        return value
    items = [_as_host(item) for item in value.items]
    known = [item.value for item in items if isinstance(item, Host)]
    if len(known) < len(items):
        return value
    literal = all(isinstance(item, Host) and item.literal for item in items)
    return Host(known if value.is_list else tuple(known), literal)


def fields_written(out: list[ir.Statement]) -> set[str]:
    """Return the fields that statements write."""
    return ir.touched_fields(tuple(out))


def is_plain(value: Value) -> bool:
    """Return whether Python itself can compute with a value beforehand."""
    return isinstance(value, Host) and not (
        isinstance(value.value, np.ndarray) and value.value.ndim > 0
    )
