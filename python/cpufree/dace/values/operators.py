"""Operations of tasklets in the compiler's representation, with types as DaCe's frontend sets them.

The frontend casts constants to the types of arrays (`dace.float32(2) * a`), so what is left is to
join types as NumPy does. What follows from constants is computed at once.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.operations import UFUNCS

BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.Pow: "power",
    ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
    ast.Gt: "greater", ast.GtE: "greater_equal", ast.And: "logical_and", ast.Or: "logical_or",
}  # fmt: skip
UNARY: dict[type[ast.AST], str] = {
    ast.USub: "negative", ast.UAdd: "positive", ast.Not: "logical_not", ast.Invert: "invert",
}  # fmt: skip
CALLS = {
    "abs": "absolute", "fabs": "fabs", "min": "minimum", "max": "maximum", "sqrt": "sqrt",
    "exp": "exp", "log": "log", "log2": "log2", "log10": "log10", "sin": "sin", "cos": "cos",
    "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "floor": "floor", "ceil": "ceil",
    "trunc": "trunc", "pow": "power", "int_floor": "floor_divide", "sign": "sign",
    "Mod": "remainder", "Min": "minimum", "Max": "maximum", "Abs": "absolute",
    "minimum": "minimum", "maximum": "maximum", "absolute": "absolute", "power": "power",
    "expm1": "expm1", "log1p": "log1p", "exp2": "exp2", "cbrt": "cbrt", "hypot": "hypot",
    "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite", "rint": "rint", "square": "square",
    "PyMod": "remainder", "py_mod": "remainder", "Py_mod": "remainder", "reciprocal": "reciprocal",
    "arctan2": "arctan2", "copysign": "copysign",
}  # fmt: skip
CASTS = {
    "float": "float64", "double": "float64", "float64": "float64", "float32": "float32",
    "int": "int64", "int64": "int64", "int32": "int32", "bool": "bool", "bool_": "bool",
}  # fmt: skip
FOLDED: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "equal": operator.eq,
    "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "negative": operator.neg,
    "logical_not": operator.not_, "logical_and": lambda a, b: bool(a and b),
    "logical_or": lambda a, b: bool(a or b), "positive": operator.pos, "minimum": min,
    "maximum": max, "absolute": abs,
}  # fmt: skip
_TRUTHS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
           "logical_not", "logical_and", "logical_or")  # fmt: skip


def literal(value: Any) -> ir.Literal:
    """Return a number as a constant of the program."""
    if isinstance(value, bool | np.bool_):
        return ir.Literal(bool(value), "bool")
    if isinstance(value, int | np.integer):
        return ir.Literal(int(value), "int64")
    if isinstance(value, np.float32):
        return ir.Literal(float(value), "float32")
    return ir.Literal(float(value), "float64")


def cast(expr: ir.Expr, kind: str) -> ir.Expr:
    """Return an expression converted to a type."""
    if expr.type == kind:
        return expr
    if isinstance(expr, ir.Literal):
        value = np.dtype(kind).type(expr.value)
        return ir.Literal(value.item(), kind)
    return ir.Op("cast", (expr,), kind)


def apply(name: str, args: list[ir.Expr]) -> ir.Expr:
    """Return the result of an operation, computed where it can be."""
    if name == "power" and isinstance(args[1], ir.Literal) and args[1].value == 2:
        name, args = "square", args[:1]
    if all(isinstance(a, ir.Literal) for a in args) and name in FOLDED:
        values = [a.value for a in args if isinstance(a, ir.Literal)]
        divides = name in ("floor_divide", "remainder") and not values[1]
        if not divides and not any(a.type == "float32" for a in args):
            return literal(FOLDED[name](*values))
    if name in ("logical_and", "logical_or"):
        short = _short(name, args)
        if short is not None:
            return short
    types = [np.dtype(a.type) for a in args]
    resolved = UFUNCS[name].resolve_dtypes((*types, None))
    operands = tuple(cast(a, t.name) for a, t in zip(args, resolved, strict=False))
    return ir.Op(name, operands, "bool" if name in _TRUTHS else resolved[-1].name)


def _short(name: str, args: list[ir.Expr]) -> ir.Expr | None:
    """Return what `and` and `or` are where one side is known."""
    for k in (0, 1):
        this = args[k]
        if isinstance(this, ir.Literal):
            if bool(this.value) == (name == "logical_or"):
                return ir.Literal(bool(this.value), "bool")
            return cast(args[1 - k], "bool")
    return None


def where(condition: ir.Expr, yes: ir.Expr, no: ir.Expr) -> ir.Expr:
    """Return one of two values."""
    condition = cast(condition, "bool")
    if isinstance(condition, ir.Literal):
        return yes if condition.value else no
    kind = np.result_type(np.dtype(yes.type), np.dtype(no.type)).name
    return ir.Op("where", (condition, cast(yes, kind), cast(no, kind)), kind)


class Unreadable(Exception):
    """A tasklet holds what has no counterpart: `what`, and what to do instead."""

    def __init__(
        self, what: str, advice: str = "write it with NumPy's functions of single values"
    ) -> None:
        super().__init__(what)
        self.what, self.advice = what, advice


Leaf: TypeAlias = "Callable[[ast.AST], ir.Expr | None]"


def evaluate(node: ast.AST, leaf: Leaf, is_pythons: Callable[[Any], bool]) -> ir.Expr:
    """Return an expression of Python's syntax; `leaf` gives names and subscripts.

    `is_pythons` says which values are numbers of Python's, whose division by zero is a fault.

    Raises
    ------
    Unreadable
        It has something that has no counterpart.
    """
    found = leaf(node)
    if found is not None:
        return found

    def value(part: ast.AST) -> ir.Expr:
        return evaluate(part, leaf, is_pythons)

    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return literal(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        return _binary(BINARY[type(node.op)], [value(node.left), value(node.right)], is_pythons)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift | ast.RShift):
        return _shifted(node, [value(node.left), value(node.right)])
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        operand = value(node.operand)
        if isinstance(node.op, ast.Invert) and operand.type == "bool":
            return apply("logical_not", [operand])
        return apply(UNARY[type(node.op)], [operand])
    if isinstance(node, ast.BoolOp):
        result = value(node.values[0])
        for other in node.values[1:]:
            result = apply(BINARY[type(node.op)], [result, value(other)])
        return result
    if isinstance(node, ast.Compare):
        return _compared(node, value)
    if isinstance(node, ast.IfExp):
        return where(value(node.test), value(node.body), value(node.orelse))
    if isinstance(node, ast.Call):
        return _call(node, value, is_pythons)
    if isinstance(node, ast.List) and len(node.elts) == 1:  # as DaCe writes ranks that are sums
        return value(node.elts[0])
    raise Unreadable(f"'{ast.unparse(node)}' has no counterpart in programs on grids")


def _shifted(node: ast.BinOp, args: list[ir.Expr]) -> ir.Expr:
    """Return a whole number shifted by a constant: times, or floor of that by, a power of 2."""
    by = args[1]
    whole = args[0].type in ("int32", "int64")
    if not whole or not isinstance(by, ir.Literal) or not 0 <= by.value < 31:
        raise Unreadable(f"'{ast.unparse(node)}' shifts by what is no constant below 31")
    name = "multiply" if isinstance(node.op, ast.LShift) else "floor_divide"
    return apply(name, [args[0], cast(literal(2 ** int(by.value)), args[0].type)])


def _compared(node: ast.Compare, value: Callable[[ast.AST], ir.Expr]) -> ir.Expr:
    sides = [value(a) for a in (node.left, *node.comparators)]
    result: ir.Expr | None = None
    for op, a, b in zip(node.ops, sides, sides[1:], strict=False):
        if type(op) not in BINARY:
            raise Unreadable(f"'{ast.unparse(node)}' has no counterpart in programs on grids")
        test = apply(BINARY[type(op)], [a, b])
        result = test if result is None else apply("logical_and", [result, test])
    assert result is not None
    return result


def _binary(name: str, args: list[ir.Expr], is_pythons: Callable[[Any], bool]) -> ir.Expr:
    """Return an operation on two values."""
    if name not in ("divide", "floor_divide", "remainder") or not all(map(is_pythons, args)):
        return apply(name, args)
    divisor = args[1]
    if isinstance(divisor, ir.Literal) and divisor.value:
        return apply(name, args)
    kind = "int64" if all(a.type in ("int64", "int32", "bool") for a in args) else "float64"
    result = "float64" if name == "divide" else kind
    return ir.Op(f"py_{name}", tuple(cast(a, kind) for a in args), result)


def _call(
    node: ast.Call, value: Callable[[ast.AST], ir.Expr], is_pythons: Callable[[Any], bool]
) -> ir.Expr:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    if name.startswith("decltype("):  # C++ that DaCe writes, of np.linspace
        raise Unreadable(
            "this function has no counterpart in programs on grids",
            "compute the array before the call, and pass it",
        )
    args = [value(a) for a in node.args]
    if name in CASTS and len(args) == 1:
        return cast(args[0], CASTS[name])
    if name in CALLS and not node.keywords:
        function = CALLS[name]
        if function in ("minimum", "maximum"):
            result = args[0]
            for arg in args[1:]:
                result = apply(function, [result, arg])
            return result
        if function in ("floor_divide", "remainder"):
            return _binary(function, args, is_pythons)
        return apply(function, args)
    raise Unreadable(f"the function {name} has no counterpart in programs on grids")
