"""Arithmetic of Python's numbers, where it differs from that of NumPy's; what both refuse.

Operations whose names begin with py_ or math_ may be faults of the run (compiler/faults.py). Here
is which of them stands for what; python_numbers.hpp and interpret.py do them.
"""

from __future__ import annotations

import math
from typing import Any

from cpufree.compiler import ir
from cpufree.compiler.operations import COMPARE, WEAK, Kind

_CHECKED = {
    "add": "py_add", "subtract": "py_subtract", "multiply": "py_multiply",
    "negative": "py_negative", "absolute": "py_absolute",
}  # fmt: skip
_BY_ZERO = {"divide": "py_divide", "floor_divide": "py_floor_divide", "remainder": "py_remainder"}
_AS_NUMPY = ("positive", "invert")
_TURNED = {
    "equal": "equal", "less": "greater", "less_equal": "greater_equal",
    "greater": "less", "greater_equal": "less_equal",
}  # fmt: skip
"""Comparisons with their operands exchanged."""
_LIMITS = {"int32": 2**31, "int64": 2**63}


def is_whole(kinds: list[Kind]) -> bool:
    """Return whether all of some operands are whole numbers of Python's."""
    return all(kind in ("int", "truth") for kind in kinds)


def operation(name: str, args: tuple[ir.Expr, ...], kinds: list[Kind]) -> ir.Op | None:
    """Return an operation on Python's numbers as Python does it; None where NumPy does the same.

    `args` have the type that `types` says. Whole numbers that outgrow 64 bits, floats that a power
    makes too large, and divisions by zero, are faults of the run.
    """
    if not all(kind in WEAK for kind in kinds):
        return None
    whole = is_whole(kinds)
    kind = "int64" if whole else "float64"
    if name in _CHECKED:
        return ir.Op(_CHECKED[name], args, kind) if whole else None
    if name in _AS_NUMPY:
        return ir.Op(name, args, kind) if whole else None
    if name in _BY_ZERO:
        return ir.Op(_BY_ZERO[name], args, "float64" if name == "divide" else kind)
    if name == "power":
        return ir.Op("py_power", args, "float64") if not whole else None
    return None


def types(kinds: list[Kind]) -> str:
    """Return the type in which operands of Python's numbers are taken."""
    return "int64" if is_whole(kinds) else "float64"


def comparison(name: str, args: list[ir.Expr], kinds: list[Kind]) -> ir.Op | None:
    """Return a comparison of a whole number of Python's with a float of Python's, which is exact.

    None: of others it is NumPy's, in their common type.
    """
    if sorted(kinds) != ["float", "int"] or name not in COMPARE.values():
        return None
    if name == "not_equal":
        equal = comparison("equal", args, kinds)
        return ir.Op("logical_not", (equal,), "bool") if equal else None
    if kinds[0] == "float":
        name, args = _TURNED[name], args[::-1]
    return ir.Op(f"py_{name}", tuple(args), "bool")


def misfit(number: Any, to: str) -> str:
    """Return why a number has no value in a type of whole numbers; "" where it has one."""
    limit = _LIMITS.get(to)
    if limit is None:
        return ""
    if not math.isfinite(number):
        return f"{number} cannot be converted to a whole number"
    if not -limit <= int(number) < limit:
        return f"{number} is out of bounds for {to}"
    return ""


def conversion(expr: ir.Expr, to: str) -> ir.Expr | None:
    """Return the conversion of a number that is a fault where the type has no such value.

    None: where every number has one.
    """
    if to not in _LIMITS or expr.type in ("bool", "int32", to):
        return None
    if expr.type == "float32":
        expr = ir.Op("cast", (expr,), "float64")
    return ir.Op(f"py_to_{to}", (expr,), to)
