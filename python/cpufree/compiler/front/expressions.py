"""Expressions of a program: what they stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import lists, masks, values
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.calls import by_name, products
from cpufree.compiler.front.calls.by_name import METHODS
from cpufree.compiler.front.conditions import Conditions, fields_written, is_plain
from cpufree.compiler.front.numbers import python_numbers
from cpufree.compiler.front.numbers.large import too_large
from cpufree.compiler.front.parts import Parts
from cpufree.compiler.front.text.helpers import local_function
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    Masked,
    ScalarValue,
    Scope,
    TupleValue,
    Value,
)
from cpufree.compiler.operations import BINARY, OF_PYTHON, WEAK, Kind, kinds_of

_SHIFTS: dict[type[ast.operator], type[ast.operator]] = {
    ast.LShift: ast.Mult, ast.RShift: ast.FloorDiv
}  # fmt: skip
# x ** y where y is a number of Python's: what NumPy computes for arrays of floats.
_POWERS = {-1.0: "reciprocal", 0.5: "sqrt", 1.0: "positive", 2.0: "square"}


class Expressions(Conditions, Parts):
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
                "write it with slices, NumPy's functions and numbers (docs/compiler.md has "
                "the list)",
            )
        value: Value = method(node, scope)
        return value

    def in_order(self, nodes: Sequence[ast.expr], scope: Scope) -> list[Value]:
        """Return what expressions stand for that are evaluated one after the other.

        A value is what it was when it was evaluated: where a later expression writes what an
        earlier one reads, that one is computed before.
        """
        found: list[tuple[int, Value]] = []
        for node in nodes:
            starred = isinstance(node, ast.Starred)
            value = self.eval(node.value if isinstance(node, ast.Starred) else node, scope)
            found = self.settled(node, found)
            parts = lists.items_of(self.builder, node, value) if starred else [value]
            found += [(len(self.builder.out), part) for part in parts]
        return [value for _, value in found]

    def settled(self, node: ast.AST, found: list[tuple[int, Value]]) -> list[tuple[int, Value]]:
        """Return values, of which the length of the program at their time is known, as settled."""
        b = self.builder
        out: list[tuple[int, Value]] = []
        more = 0
        for length, value in found:
            start = length + more
            written = fields_written(b.out[start:])
            if written and any(_depends(leaf, written) for leaf in values.leaves(value)):
                later = b.out[start:]
                del b.out[start:]
                value = b.kept(node, value, "before")
                more += len(b.out) - start
                b.out += later
            out.append((start, value))
        return out

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
        scope = scope.of(node.id)
        if node.id in scope.unbound:
            self.builder.fail(
                node,
                f"{node.id} {scope.unbound[node.id]}",
                f"give {node.id} a value of one kind before, or use another name",
                by_join=True,
            )
        if node.id in scope.names:
            return scope.names[node.id]
        known = self.builder.source.names
        if node.id in known and node.id not in scope.own:
            return scope.around.setdefault(node.id, Host(known[node.id], text=node.id))
        self.builder.fail(
            node, f"{node.id} has no value here", f"assign to {node.id} before, or pass it"
        )

    def _tuple(self, node: ast.Tuple | ast.List, scope: Scope) -> Value:
        items = tuple(self.in_order(node.elts, scope))
        return TupleValue(items, isinstance(node, ast.List))

    _list = _tuple

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        return Host(local_function(self, node, scope))

    def _listcomp(self, node: ast.ListComp, scope: Scope) -> Value:
        return lists.comprehension(self, node, scope)

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
                f"arrays have shape, ndim, size and dtype, and the methods {', '.join(METHODS)}"
                + ("; A.T is taken as an operand of @ alone" if node.attr == "T" else ""),
            )
        if isinstance(value, Host):
            try:
                found = getattr(value.value, node.attr)
                return Host(found, text=value.text and f"{value.text}.{node.attr}")
            except AttributeError as error:
                self.builder.fail(node, str(error), "correct the name")
        if isinstance(value, Masked):
            self.builder.fail(
                node,
                f"the attribute {node.attr} of points that are chosen by a mask",
                "count them with np.count_nonzero(mask)",
            )
        if isinstance(value, TupleValue):
            what = "list" if value.is_list else "tuple"
            self.builder.fail(
                node,
                f"the attribute {node.attr} of a {what} is not taken",
                "lists of the program grow by a.append(b) in a line of its own; others do not "
                "change: return values and collect them outside",
            )
        self.builder.fail(
            node, f"the attribute {node.attr} of a number is not taken", "write NumPy's function"
        )

    # --- operators ---

    def _binop(self, node: ast.BinOp, scope: Scope) -> Value:
        if isinstance(node.op, ast.MatMult):
            return products.of_transposed(self, node, scope)
        left, right = self.in_order([node.left, node.right], scope)
        return self.binary(node, type(node.op), left, right)

    def binary(self, node: ast.AST, op: type[ast.operator], left: Value, right: Value) -> Value:
        """Return what an operator gives."""
        if is_plain(left) and is_plain(right):
            return self.on_host(node, OF_PYTHON.get(op), left, right)
        if masks.has_masks([left, right]):
            if op is ast.Pow:
                masks.check_power(self.builder, node, [right])
            return masks.pointwise(
                self.builder, node, [left, right], lambda o: self.binary(node, op, *o)
            )
        if isinstance(left, TupleValue) or isinstance(right, TupleValue):
            return self._of_tuples(node, op, left, right)
        if op is ast.MatMult:
            return products.matmul(self, node, left, right)
        if op not in BINARY:
            self.builder.fail(node, "this operator is not taken", "write it with NumPy's functions")
        name = BINARY[op]
        a, b = self.builder.operand(node, left), self.builder.operand(node, right)
        if name == "power" and isinstance(a, ArrayValue) and isinstance(right, Host):
            return self._power(node, a, b, right.value)
        if isinstance(a, ScalarValue) and isinstance(b, ScalarValue):
            if op in _SHIFTS and python_numbers.is_whole([a.kind, b.kind]):
                return self._shifted(node, op, left, right)
            return self._of_scalars(node, name, [a, b])
        return self.builder.elementwise(node, name, [a, b])

    def _shifted(self, node: ast.AST, op: type[ast.operator], left: Value, right: Value) -> Value:
        """Return a whole number of Python's of the run, shifted: a product or a quotient."""
        if not isinstance(right, Host) or not 0 <= right.value < 63:
            self.builder.fail(
                node,
                "a whole number of the run is shifted by a number of bits that is not known",
                "write np.int64(k) << bits, whose bits beyond the 64th are lost",
            )
        return self.binary(node, _SHIFTS[op], left, Host(2**right.value, literal=True))

    def _of_tuples(self, node: ast.AST, op: type[ast.operator], left: Value, right: Value) -> Value:
        left, right = values.unpacked(left), values.unpacked(right)
        a, b = (v if isinstance(v, TupleValue) else None for v in (left, right))
        if a and b and op is ast.Add and a.is_list == b.is_list:
            return TupleValue(a.items + b.items, a.is_list)
        some, times = (a, right) if a else (b, left)
        if some and op is ast.Mult and isinstance(times, Host) and type(times.value) is int:
            if len(some.items) * times.value > lists.MOST_ITEMS:
                self.builder.fail(node, f"more than {lists.MOST_ITEMS} items", "use an array")
            return TupleValue(some.items * times.value, some.is_list)
        self.builder.fail(node, "tuples and lists cannot be computed with", "use arrays")

    def on_host(self, node: ast.AST, f: Callable[..., Any] | None, *operands: Value) -> Value:
        hosts = [o for o in operands if isinstance(o, Host)]
        if f is None:
            self.builder.fail(node, "this operator is not taken", "write it with NumPy's functions")
        if large := too_large(f, [h.value for h in hosts]):
            self.builder.fail(node, f"{large} is not computed", "write a smaller one")
        try:
            result = f(*(h.value for h in hosts))
        except Exception as error:
            self.builder.fail(
                node, f"{type(error).__name__}: {error}", "that is what Python says of it"
            )
        return Host(result, literal=all(h.literal for h in hosts))

    def _power(self, node: ast.AST, a: ArrayValue, b: Any, exponent: Any) -> Value:
        """Return x ** y as NumPy does it for an array and a number."""
        builder = self.builder
        *_, kind = builder.types(node, "power", [a, b])
        plain = isinstance(exponent, int | float) and not isinstance(exponent, bool)
        if plain and a.type == "bool":
            builder.fail(
                node,
                "powers of bools are whole numbers of 8 bits",
                "convert with .astype(np.int64)",
            )
        floats = kind.startswith("float")
        if plain and floats and exponent == 0:
            return ArrayValue(ir.Literal(1.0, kind), a.shape, kind)
        if plain and ((floats and float(exponent) in _POWERS) or exponent == 2):
            base = ArrayValue(builder.cast(a.expr, kind), a.shape, kind)
            return builder.elementwise(node, _POWERS[float(exponent)], [base])
        return builder.elementwise(node, "power", [a, b])

    def _of_scalars(self, node: ast.AST, name: str, operands: list[ScalarValue]) -> Value:
        def way(*kinds: Kind) -> tuple[str, ir.Op | None]:
            given = list(kinds)
            kind = python_numbers.types(given)
            args = tuple(self.builder.cast(o.expr, kind) for o in operands)
            return kind, python_numbers.operation(name, args, given)

        given = [o.kind for o in operands]
        if not all(kind in WEAK for o in given for kind in kinds_of(o)):
            return self.builder.elementwise(node, name, list(operands))
        _, op = self.builder.one_for_all(node, name, given, way)
        if op is not None:
            return ScalarValue(op, "int" if op.type == "int64" else "float")
        if name == "power" and all(k in ("int", "truth") for k in given):
            self.builder.fail(
                node,
                "a whole number to a power that is known only while the program runs",
                "write a float: float(x) ** n",
            )
        return self.builder.elementwise(node, name, list(operands))

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        return by_name.call(self, node, scope)


def _depends(value: Value, written: set[str]) -> bool:
    """Return whether a value is another one once fields have been written: views are views."""
    if isinstance(value, Masked):
        return bool(written & (fields_read(value.array.expr) | fields_read(value.mask.expr)))
    if isinstance(value, Host | TupleValue) or (isinstance(value, ArrayValue) and value.is_view):
        return False
    return bool(written & fields_read(value.expr))


def fields_read(expr: ir.Expr) -> set[str]:
    """Return the fields that an expression reads."""
    found = {expr.field} if isinstance(expr, ir.Read | ir.Element) else set()
    for child in ir.children(expr):
        found |= fields_read(child)
    return found


def _named(node: ast.AST) -> str:
    words = {
        "SetComp": "a set comprehension",
        "Dict": "a dictionary",
        "JoinedStr": "an f-string",
        "GeneratorExp": "a generator",
        "Starred": "a starred expression",
        "NamedExpr": "an assignment inside an expression",
    }
    return words.get(type(node).__name__, f"this ({type(node).__name__})")
