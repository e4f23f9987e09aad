"""Expressions of a program: what they stand for."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import calls, python_numbers
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.parts import Parts
from cpufree.compiler.front.values import ArrayValue, Host, ScalarValue, Scope, TupleValue, Value
from cpufree.compiler.operations import BINARY, COMPARE, UNARY, Kind

_HOST_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_HOST_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
    ast.Not: operator.not_,
}  # fmt: skip
_HOST_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
# x ** y where y is a number of Python's: what NumPy computes for arrays of floats.
_POWERS = {-1.0: "reciprocal", 0.5: "sqrt", 1.0: "positive", 2.0: "square"}


class Expressions(Parts):
    """Evaluates expressions in a scope; adds statements where one reduces."""

    def __init__(self, builder: Builder, call_program: Callable[..., Value]) -> None:
        self.builder = builder
        self.call_program = call_program

    def eval(self, node: ast.expr, scope: Scope) -> Value:
        """Return what an expression stands for."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            self.builder.fail(
                node,
                f"{_named(node)} is outside the language of programs",
                "write it with slices, NumPy's functions and numbers (docs/compiler.md has the "
                "list)",
            )
        value: Value = method(node, scope)
        return value

    def host(self, node: ast.expr, scope: Scope, what: str) -> Any:
        """Return the object that an expression stands for, which must be known beforehand."""
        value = self.eval(node, scope)
        if isinstance(value, TupleValue):
            items = [v.value if isinstance(v, Host) else None for v in value.items]
            if all(isinstance(v, Host) for v in value.items):
                return tuple(items)
        if not isinstance(value, Host):
            self.builder.fail(
                node,
                f"{what} is known only while the program runs",
                "use a number that follows from the arguments of the call",
            )
        return value.value

    # --- leaves ---

    def _constant(self, node: ast.Constant, scope: Scope) -> Value:
        return Host(node.value, literal=True)

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        if node.id in scope.unbound:
            self.builder.fail(
                node,
                f"{node.id} may have no value here: {scope.unbound[node.id]}",
                f"give {node.id} a value before",
            )
        if node.id in scope.names:
            return scope.names[node.id]
        known = self.builder.source.names
        if node.id in known:
            return scope.names.setdefault(node.id, Host(known[node.id]))
        self.builder.fail(
            node, f"{node.id} has no value here", f"assign to {node.id} before, or pass it"
        )

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Value:
        return TupleValue(tuple(self.eval(item, scope) for item in node.elts))

    _list = _tuple

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        value = self.eval(node.value, scope)
        if isinstance(value, ArrayValue):
            facts: dict[str, Any] = {
                "shape": value.shape,
                "ndim": len(value.shape),
                "size": int(np.prod(value.shape, dtype=object)),
                "dtype": np.dtype(value.type),
            }
            if node.attr in facts:
                return Host(facts[node.attr])
            self.builder.fail(
                node,
                f"the attribute {node.attr} of an array is outside the language of programs",
                "arrays have shape, ndim, size and dtype, and the methods copy, astype, fill, "
                "sum, max, min, mean, any, all"
                + ("; transposed arrays are not taken" if node.attr == "T" else ""),
            )
        if isinstance(value, Host):
            try:
                return Host(getattr(value.value, node.attr))
            except AttributeError as error:
                self.builder.fail(node, str(error), "correct the name")
        self.builder.fail(
            node, f"the attribute {node.attr} of a number is not taken", "write NumPy's function"
        )

    # --- operators ---

    def _binop(self, node: ast.BinOp, scope: Scope) -> Value:
        left, right = self.eval(node.left, scope), self.eval(node.right, scope)
        return self.binary(node, type(node.op), left, right)

    def binary(self, node: ast.AST, op: type[ast.operator], left: Value, right: Value) -> Value:
        """Return what an operator gives."""
        if _plain(left) and _plain(right):
            return self.on_host(node, _HOST_BINARY.get(op), left, right)
        if isinstance(left, TupleValue) or isinstance(right, TupleValue):
            return self._of_tuples(node, op, left, right)
        if op not in BINARY:
            self.builder.fail(node, "this operator is not taken", "write it with NumPy's functions")
        name = BINARY[op]
        a, b = self.builder.operand(node, left), self.builder.operand(node, right)
        if name == "power" and isinstance(a, ArrayValue) and isinstance(right, Host):
            return self._power(node, a, b, right.value)
        if isinstance(a, ScalarValue) and isinstance(b, ScalarValue):
            return self._of_scalars(node, name, [a, b])
        return self.builder.elementwise(node, name, [a, b])

    def _of_tuples(self, node: ast.AST, op: type[ast.operator], left: Value, right: Value) -> Value:
        if op is ast.Add and isinstance(left, TupleValue) and isinstance(right, TupleValue):
            return TupleValue(left.items + right.items)
        self.builder.fail(node, "tuples and lists cannot be computed with", "use arrays")

    def on_host(self, node: ast.AST, f: Callable[..., Any] | None, *operands: Value) -> Value:
        hosts = [o for o in operands if isinstance(o, Host)]
        if f is None:
            self.builder.fail(node, "this operator is not taken", "write it with NumPy's functions")
        try:
            result = f(*(h.value for h in hosts))
        except Exception as error:
            self.builder.fail(
                node, f"{type(error).__name__}: {error}", "that is what Python says of it"
            )
        return Host(result, literal=all(h.literal for h in hosts))

    def _power(self, node: ast.AST, a: ArrayValue, b: Any, exponent: Any) -> Value:
        """Return x ** y as NumPy does it for an array and a number."""
        if isinstance(exponent, int | float) and not isinstance(exponent, bool):
            floats = a.type.startswith("float")
            if (floats and float(exponent) in _POWERS) or (exponent == 2 and a.type != "bool"):
                return self.builder.elementwise(node, _POWERS[float(exponent)], [a])
            if floats and exponent == 0:
                return ArrayValue(ir.Literal(1.0, a.type), a.shape, a.type)
            if not floats and exponent < 0:
                self.builder.fail(
                    node,
                    "whole numbers to a negative power have no whole result",
                    "convert with .astype(np.float64)",
                )
        return self.builder.elementwise(node, "power", [a, b])

    def _of_scalars(self, node: ast.AST, name: str, operands: list[ScalarValue]) -> Value:
        kinds: list[Kind] = [o.kind for o in operands]
        kind = python_numbers.types(name, kinds)
        args = tuple(self.builder.cast(o.expr, kind) for o in operands)
        op = python_numbers.operation(name, args, kinds)
        if op is not None:
            return ScalarValue(op, "int" if op.type == "int64" else "float")
        if name == "power" and all(k in ("int", "truth") for k in kinds):
            self.builder.fail(
                node,
                "a whole number to a power that is known only while the program runs",
                "write a float: float(x) ** n",
            )
        return self.builder.elementwise(node, name, list(operands))

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Value:
        value = self.eval(node.operand, scope)
        if _plain(value):
            return self.on_host(node, _HOST_UNARY[type(node.op)], value)
        operand = self.builder.operand(node, value)
        if isinstance(node.op, ast.Not) and isinstance(operand, ArrayValue):
            self.builder.fail(
                node,
                "not of an array is ambiguous",
                "write ~a or np.logical_not(a) for each point, or np.any, np.all for one answer",
            )
        result = self.builder.elementwise(node, UNARY[type(node.op)], [operand])
        if isinstance(node.op, ast.Not):
            return ScalarValue(result.expr, "truth")
        return result

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        parts = [self.eval(n, scope) for n in (node.left, *node.comparators)]
        result: Value | None = None
        for op, left, right in zip(node.ops, parts, parts[1:], strict=False):
            one = self._comparison(node, op, left, right)
            if result is not None and (
                isinstance(one, ArrayValue) or isinstance(result, ArrayValue)
            ):
                self.builder.fail(
                    node,
                    "a chain of comparisons of arrays is ambiguous",
                    "write (a < b) & (b < c)",
                )
            result = one if result is None else self._both(node, result, one)
        assert result is not None
        return result

    def _comparison(self, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> Value:
        if isinstance(left, TupleValue) and isinstance(right, TupleValue | Host):
            left = Host(tuple(v.value if isinstance(v, Host) else v for v in left.items))
        if isinstance(op, ast.Is | ast.IsNot):
            none = [isinstance(v, Host) and v.value is None for v in (left, right)]
            if not all(isinstance(v, Host) for v in (left, right)) and any(none):
                return Host(isinstance(op, ast.IsNot))
        if _plain(left) and _plain(right):
            return self.on_host(node, _HOST_COMPARE[type(op)], left, right)
        if type(op) not in COMPARE:
            self.builder.fail(
                node, "this comparison is not taken for values of the run", "use ==, !=, <, <=, >"
            )
        operands = [self.builder.operand(node, left), self.builder.operand(node, right)]
        return self.builder.elementwise(node, COMPARE[type(op)], operands)

    def _both(self, node: ast.AST, a: Value, b: Value) -> Value:
        if isinstance(a, Host):
            return b if a.value else a
        return self._joined(node, "and", [a, b])

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Value:
        ends = isinstance(node.op, ast.Or)  # the host's value that decides all
        rest: list[Value] = []
        for part in node.values:
            value = self.eval(part, scope)
            if isinstance(value, Host) and not isinstance(value.value, np.ndarray):
                if bool(value.value) == ends and not rest:
                    return value
                if bool(value.value) != ends and part is not node.values[-1]:
                    continue
            rest.append(value)
        if len(rest) == 1:
            return rest[0]
        return self._joined(node, "or" if ends else "and", rest)

    def _joined(self, node: ast.AST, word: str, parts: list[Value]) -> Value:
        result: ir.Expr | None = None
        for part in parts:
            expr = self.truth(node, part)
            result = expr if result is None else ir.Op(f"py_{word}", (result, expr), "bool")
        assert result is not None
        strong = any(isinstance(p, ScalarValue) and p.kind == "bool" for p in parts)
        return ScalarValue(result, "bool" if strong else "truth")

    def truth(self, node: ast.AST, value: Value) -> ir.Expr:
        """Return a scalar as a condition."""
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
        condition = self.eval(node.test, scope)
        if isinstance(condition, Host):
            return self.eval(node.body if condition.value else node.orelse, scope)
        self.builder.fail(
            node,
            "a choice by a value of the run inside an expression is not taken",
            "write np.where(condition, a, b), or an if statement",
        )

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        return calls.call(self, node, scope)


def _plain(value: Value) -> bool:
    """Return whether Python itself can compute with a value beforehand."""
    return isinstance(value, Host) and not (
        isinstance(value.value, np.ndarray) and value.value.ndim > 0
    )


def _named(node: ast.AST) -> str:
    words = {
        "ListComp": "a list comprehension",
        "Lambda": "a lambda",
        "Dict": "a dictionary",
        "JoinedStr": "an f-string",
        "GeneratorExp": "a generator",
        "Starred": "a starred expression",
        "NamedExpr": "an assignment inside an expression",
    }
    return words.get(type(node).__name__, f"this ({type(node).__name__})")
