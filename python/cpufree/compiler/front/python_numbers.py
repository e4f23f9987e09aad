"""Arithmetic of Python's numbers, where it differs from that of NumPy's."""

from __future__ import annotations

from cpufree.compiler import ir
from cpufree.compiler.operations import WEAK, Kind

_CHECKED = {"add": "py_add", "subtract": "py_subtract", "multiply": "py_multiply"}
_BY_ZERO = {"divide": "py_divide", "floor_divide": "py_floor_divide", "remainder": "py_remainder"}


def operation(name: str, args: tuple[ir.Expr, ...], kinds: list[Kind]) -> ir.Op | None:
    """Return an operation on Python's numbers as Python does it; None where NumPy does the same.

    Whole numbers that outgrow 64 bits, and divisions by zero, are errors of the run.
    """
    if not all(kind in WEAK for kind in kinds):
        return None
    whole = all(kind in ("int", "truth") for kind in kinds)
    kind = "int64" if whole else "float64"
    if name in _CHECKED:
        return ir.Op(_CHECKED[name], args, kind) if whole else None
    if name in _BY_ZERO:
        return ir.Op(_BY_ZERO[name], args, "float64" if name == "divide" else kind)
    if name == "power":
        return ir.Op("py_power", args, "float64") if not whole else None
    return None


def types(name: str, kinds: list[Kind]) -> str:
    """Return the type in which operands of Python's numbers are taken."""
    whole = all(kind in ("int", "truth") for kind in kinds)
    return "int64" if whole and name != "divide" else "float64"
