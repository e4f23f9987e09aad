"""NumPy's functions that programs may call: their names, types and rounding."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from cpufree.errors import UnsupportedError

Kind: TypeAlias = str
"""Of an operand: the name of a dtype, or int, float or truth: a number of Python's. "int|float":
one of these, depending on the way that the run takes."""

KINDS: tuple[Kind, ...] = (
    "truth", "int", "float", "bool", "int32", "int64", "float32", "float64"
)  # fmt: skip
WEAK = {"int": "int64", "float": "float64", "truth": "bool"}
"""Python's numbers, which take on the type of arrays, and how they are kept."""

_EXACT = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "negative",
    "positive",
    "absolute",
    "fabs",
    "sqrt",
    "square",
    "reciprocal",
    "minimum",
    "maximum",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "sign",
    "isnan",
    "isfinite",
    "isinf",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_not",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "invert",
    "copysign",
]
_ROUNDED = [
    "power",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "arctan2",
    "hypot",
    "cbrt",
]

UFUNCS: dict[str, np.ufunc] = {name: getattr(np, name) for name in (*_EXACT, *_ROUNDED)}
EXACT = frozenset(_EXACT)
"""Operations that have the bits of NumPy's; of the others the last ones may differ."""

_MATH = (
    "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh fabs"
)
MATH = {**dict.fromkeys(_MATH.split(), 1), "pow": 2, "atan2": 2, "copysign": 2}
"""Functions of Python's math that programs may call, and how many arguments they take."""

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.Pow: "power",
    ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift", ast.RShift: "right_shift",
}  # fmt: skip
UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "negative", ast.UAdd: "positive", ast.Invert: "invert", ast.Not: "logical_not",
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
    ast.Gt: "greater", ast.GtE: "greater_equal",
}  # fmt: skip

OF_PYTHON: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.MatMult: operator.matmul,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
    ast.Not: operator.not_,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
"""Operators, as Python has them for what is known beforehand."""

# What has no effect, and the same result every time: called once, when the program is compiled.
_PURE = [
    "arange",
    "linspace",
    "logspace",
    "meshgrid",
    "outer",
    "array",
    "asarray",
    "ascontiguousarray",
    "diff",
    "cumsum",
    "prod",
    "sum",
    "max",
    "min",
    "amax",
    "amin",
    "mean",
    "any",
    "all",
    "count_nonzero",
    "dot",
    "where",
    "clip",
    "roll",
    "round",
    "dtype",
    "result_type",
    "finfo",
    "iinfo",
    "sqrt",
    "exp",
    "log",
    "ceil",
    "floor",
    "pow",
    "isqrt",
    "hypot",
    "tan",
    "fsum",
    "gcd",
    "factorial",
    "comb",
    "ones",
    "zeros",
    "full",
    "stack",
    "concatenate",
]
PURE = frozenset(_PURE)


def require_numpy() -> None:
    """Raise UnsupportedError before NumPy 2, whose rules of types are those of the compiler."""
    if int(np.__version__.split(".")[0]) < 2:
        raise UnsupportedError(
            f"the compiler follows the type rules of NumPy 2; this is {np.__version__}: "
            "pip install 'numpy>=2'"
        )


def stored(kind: Kind) -> str:
    """Return the dtype in which a value of a kind is kept, or of one of several kinds."""
    if "|" not in kind:
        return WEAK.get(kind, kind)
    return np.result_type(*(WEAK.get(one, one) for one in kinds_of(kind))).name


def kinds_of(kind: Kind) -> list[Kind]:
    """Return the kinds of which a number is one, depending on the way taken."""
    return kind.split("|")


def loop_types(ufunc: np.ufunc, kinds: list[Kind]) -> tuple[str, ...]:
    """Return the types in which NumPy computes: of the operands, and of the result.

    Raises:
        TypeError: as NumPy.
    """
    weak: dict[str, Any] = {"int": int, "float": float, "truth": np.dtype(bool)}
    given = [weak.get(kind) or np.dtype(stored(kind)) for kind in kinds]
    # Numbers of Python alone have their own types.
    if all(kind in WEAK for kind in kinds):
        given = [np.dtype(WEAK[kind]) for kind in kinds]
    return tuple(t.name for t in ufunc.resolve_dtypes((*given, None)))


def python_kind(value: object) -> Kind | None:
    """Return the kind of a number on the host, None for what is none."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, np.generic):
        return value.dtype.name
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, float) else None
