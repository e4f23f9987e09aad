"""Operations of tasklets in the compiler's representation, with types as DaCe's frontend sets them.

The frontend casts constants to the types of arrays (`dace.float32(2) * a`), so what is left is to
join types as NumPy does. What follows from constants is computed at once.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

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
}  # fmt: skip
CASTS = {
    "float": "float64", "double": "float64", "float64": "float64", "float32": "float32",
    "int": "int64", "int64": "int64", "int32": "int32", "bool": "bool", "bool_": "bool",
}  # fmt: skip
_FOLDED: dict[str, Callable[..., Any]] = {
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
    if all(isinstance(a, ir.Literal) for a in args) and name in _FOLDED:
        values = [a.value for a in args if isinstance(a, ir.Literal)]
        divides = name in ("floor_divide", "remainder") and not values[1]
        if not divides and not any(a.type == "float32" for a in args):
            return literal(_FOLDED[name](*values))
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
    """A tasklet holds what has no counterpart: `what`."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def evaluate(node: ast.AST, leaf: Callable[[ast.AST], ir.Expr | None]) -> ir.Expr:
    """Return an expression of Python's syntax; `leaf` gives names and subscripts.

    Raises
    ------
    Unreadable
        It has something that has no counterpart.
    """
    found = leaf(node)
    if found is not None:
        return found
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return literal(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        return apply(BINARY[type(node.op)], [evaluate(a, leaf) for a in (node.left, node.right)])
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        return apply(UNARY[type(node.op)], [evaluate(node.operand, leaf)])
    if isinstance(node, ast.BoolOp):
        result = evaluate(node.values[0], leaf)
        for value in node.values[1:]:
            result = apply(BINARY[type(node.op)], [result, evaluate(value, leaf)])
        return result
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sides = [evaluate(a, leaf) for a in (node.left, node.comparators[0])]
        return apply(BINARY[type(node.ops[0])], sides)
    if isinstance(node, ast.IfExp):
        test, yes, no = (evaluate(a, leaf) for a in (node.test, node.body, node.orelse))
        return where(test, yes, no)
    if isinstance(node, ast.Call):
        return _call(node, leaf)
    if isinstance(node, ast.List) and len(node.elts) == 1:  # as DaCe writes ranks that are sums
        return evaluate(node.elts[0], leaf)
    raise Unreadable(f"'{ast.unparse(node)}' has no counterpart in programs on grids")


def _call(node: ast.Call, leaf: Callable[[ast.AST], ir.Expr | None]) -> ir.Expr:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    args = [evaluate(a, leaf) for a in node.args]
    if name in CASTS and len(args) == 1:
        return cast(args[0], CASTS[name])
    if name in CALLS and not node.keywords:
        if CALLS[name] in ("minimum", "maximum"):
            result = args[0]
            for arg in args[1:]:
                result = apply(CALLS[name], [result, arg])
            return result
        return apply(CALLS[name], args)
    raise Unreadable(f"the function {name} has no counterpart in programs on grids")
