"""Expressions of the representation in C++."""

from __future__ import annotations

import math
from collections.abc import Callable

from cpufree.compiler import ir

TYPES = {
    "bool": "bool",
    "int32": "std::int32_t",
    "int64": "std::int64_t",
    "float32": "float",
    "float64": "double",
}
_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "equal": "==",
    "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "logical_and": "&&",
    "logical_or": "||", "py_and": "&&", "py_or": "||",
}  # fmt: skip
_STD = {
    name: f"std::{name}"
    for name in [
        "sqrt",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "copysign",
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
        "sinh",
        "cosh",
        "tanh",
        "hypot",
        "cbrt",
        "fabs",
        "isfinite",
        "isinf",
    ]
} | {
    "arcsin": "std::asin",
    "arccos": "std::acos",
    "arctan": "std::atan",
    "arctan2": "std::atan2",
    "arcsinh": "std::asinh",
    "arccosh": "std::acosh",
    "arctanh": "std::atanh",
    "isnan": "is_nan",
}
_OURS = [
    "left_shift",
    "right_shift",
    "floor_divide",
    "remainder",
    "absolute",
    "square",
    "reciprocal",
    "minimum",
    "maximum",
    "sign",
    "power",
]
_LAZY = ("py_and", "py_or", "py_choose")
"""Operations that do not compute all of their operands."""
_POLES = ("log", "log2", "log10", "log1p", "atanh")
"""Functions that are infinite at numbers where Python's math says that they have no value."""
_WRAPPING = {"add": "plus", "subtract": "minus", "multiply": "times"}
_WHOLE = ("floor", "ceil", "trunc", "rint", "fabs")


def cxx(e: ir.Expr, leaf: Callable[[ir.Expr], str | None], line: str) -> str:
    """Return an expression in C++.

    Parameters
    ----------
    e : ir.Expr
        The expression.
    leaf : callable
        Returns the text of a part that has one of its own, None of others.
    line : str
        The line of the program, for errors of the run.

    Examples
    --------
    >>> cxx(ir.Literal(0.5, "float64"), lambda part: None, "0")
    '0x1.0000000000000p-1'
    """
    found = leaf(e)
    if found is not None:
        return found
    if isinstance(e, ir.Literal):
        return literal(e)
    if isinstance(e, ir.Scalar):
        return f"v_{e.name}"
    if isinstance(e, ir.Element):
        indices = [cxx(i, leaf, line) for i in e.indices]
        if not e.is_checked:
            return element(f"f_{e.field}", indices)
        return f"element(rt, f_{e.field}, {indices[0]}, {line})"
    if isinstance(e, ir.Fold):
        return fold(e, cxx(e.value, leaf, line))
    assert isinstance(e, ir.Op), e
    args = [cxx(a, leaf, line) for a in e.args]
    if e.name in _LAZY or any(True for _ in ir.reads(e)) or not any(map(_may_fail, e.args[1:])):
        return operation(e, args, line)
    # All operands are computed, in order: which one fails first is the fault of the run.
    names = [f"x{k}" for k in range(len(args))]
    made = zip(e.args, names, args, strict=True)
    first = " ".join(f"const {TYPES[a.type]} {name} = {text};" for a, name, text in made)
    return f"[&] {{ {first} return {operation(e, names, line)}; }}()"


def _may_fail(e: ir.Expr) -> bool:
    """Return whether an operation in an expression may be a fault of the run."""
    fails = isinstance(e, ir.Op) and e.name not in _LAZY and e.name.startswith(("py_", "math_"))
    return fails or any(map(_may_fail, ir.children(e)))


def element(array: str, indices: list[str]) -> str:
    """Return the value of an array at indices that are inside."""
    return f"{array}({', '.join(indices)})"


def fold_index(dim: int) -> str:
    """Return the name of the index of a fold."""
    return f"i{-dim}"


def fold(e: ir.Fold, value: str) -> str:
    """Return a fold as a function that is called: the first term, then the others in order."""
    kind, i = TYPES[e.type], fold_index(e.dim)
    joined = {
        "sum": "total + term",
        "prod": "total * term",
        "max": "maximum(total, term)",
        "min": "minimum(total, term)",
    }
    if e.type in ("int32", "int64"):
        joined |= {"sum": "plus(total, term)", "prod": "times(total, term)"}
    return (
        f"[&] {{ {kind} total{{}}; for (std::int64_t {i} = 0; {i} < {e.count}; ++{i}) {{ "
        f"const {kind} term = static_cast<{kind}>({value}); "
        f"total = {i} == 0 ? term : static_cast<{kind}>({joined[e.op]}); }} return total; }}()"
    )


def literal(e: ir.Literal) -> str:
    """Return a constant in C++, to the last bit."""
    kind = TYPES[e.type]
    if e.type == "bool":
        return "true" if e.value else "false"
    if e.type in ("int32", "int64"):
        return f"{kind}({int(e.value)}LL)" if e.value != -(2**63) else f"(-{2**63 - 1}LL - 1)"
    value = float(e.value)
    if math.isnan(value):
        return f"std::numeric_limits<{kind}>::quiet_NaN()"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}std::numeric_limits<{kind}>::infinity()"
    text = value.hex() if value >= 0 and math.copysign(1, value) > 0 else f"({value.hex()})"
    return text if e.type == "float64" else f"float({text})"


def operation(e: ir.Op, args: list[str], line: str) -> str:
    """Return an operation on operands that are C++ already."""
    kind, name = TYPES[e.type], e.name
    given = e.args[0].type
    if name == "cast":
        if given.startswith("float") and e.type in ("int32", "int64"):
            return f"whole<{kind}>({args[0]})"
        return f"({args[0]} != 0)" if e.type == "bool" else f"static_cast<{kind}>({args[0]})"
    if name in ("where", "py_choose"):
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if name == "divide" and not given.startswith("float"):
        return f"(static_cast<{kind}>({args[0]}) / static_cast<{kind}>({args[1]}))"
    if given == "bool" and name in ("add", "multiply", "maximum", "minimum"):
        return f"({args[0]} {'||' if name in ('add', 'maximum') else '&&'} {args[1]})"
    if name == "logical_xor":
        return f"(({args[0]} != 0) != ({args[1]} != 0))"
    if name in _WRAPPING and e.type in ("int32", "int64"):
        cast = [f"static_cast<{kind}>({a})" for a in args]
        return f"{_WRAPPING[name]}({', '.join(cast)})"
    if name in _INFIX:
        text = f"({args[0]} {_INFIX[name]} {args[1]})"
        return f"static_cast<{kind}>{text}" if e.type in ("int32", "bool") else text
    if name in ("negative", "positive", "invert", "logical_not"):
        sign = {"negative": "-", "positive": "+", "invert": "~", "logical_not": "!"}[name]
        sign = "!" if given == "bool" else sign
        return f"static_cast<{kind}>({sign}{args[0]})"
    if name.startswith("py_"):
        cast = [f"static_cast<{TYPES[a.type]}>({t})" for a, t in zip(e.args, args, strict=True)]
        return f"{name}(rt, {', '.join(cast)}, {line})"
    if name.startswith("math_"):
        return math_call(name.removeprefix("math_"), args, line)
    if name in _WHOLE and not given.startswith("float"):
        return args[0] if name != "fabs" else f"std::fabs({args[0]})"
    if name in ("isnan", "isinf") and not given.startswith("float"):
        return "false"
    if name == "isfinite" and not given.startswith("float"):
        return "true"
    function = _STD.get(name) or (f"{name}<{TYPES[given]}>" if name in _OURS else "")
    assert function, f"no C++ for {name}"
    return f"{function}({', '.join(args)})"


def math_call(name: str, args: list[str], line: str) -> str:
    """Return a call of a function of Python's math, on floats that are C++ already."""
    if name == "pow":
        return f"py_math_pow(rt, {', '.join(args)}, {line})"
    if len(args) == 2:  # they never fail
        return f"std::{name}({', '.join(args)})"
    poles = "true" if name in _POLES else "false"
    function = f"[](double a) {{ return std::{name}(a); }}"
    return f"py_math(rt, {args[0]}, {function}, {poles}, {line})"
