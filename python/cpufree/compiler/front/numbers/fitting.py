"""Numbers that a type has no value for: refused where they are known, else faults of the run."""

from __future__ import annotations

import ast
from typing import Any, Protocol

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front.numbers import python_numbers
from cpufree.compiler.front.operands import Fails
from cpufree.compiler.front.values import ArrayValue, ScalarValue
from cpufree.compiler.operations import COMPARE, kinds_of

Operands = list[ScalarValue | ArrayValue]


class Builds(Fails, Protocol):
    """What is asked of a Builder."""

    scalars: dict[str, tuple[str, Any]]
    data: dict[str, Any]

    def reduce(self, node: ast.AST, op: str, value: ArrayValue, kind: str) -> ir.Scalar:
        """Return the scalar that a reduction over all points gives."""
        ...

    def new_variable(self, name: str, kind: str) -> str:
        """Add a scalar variable."""
        ...

    def set_variable(self, node: ast.AST, name: str, expr: ir.Expr) -> ir.Scalar:
        """Set a variable; return it."""
        ...

    def elementwise(self, node: ast.AST, name: str, operands: Operands) -> ScalarValue | ArrayValue:
        """Return the result of a function of NumPy's point by point."""
        ...


def known(builder: Builds, o: ScalarValue | ArrayValue) -> Any:
    """Return the number that an operand is known to be; None where it is not."""
    if isinstance(o, ScalarValue) and isinstance(o.expr, ir.Literal):
        return o.expr.value
    if isinstance(o.expr, ir.Scalar) and o.expr.name in builder.scalars:
        return builder.scalars[o.expr.name][1]
    return None


def checked(builder: Builds, node: ast.AST, number: ScalarValue, kind: str) -> ScalarValue:
    """Return a number in a type, or as it is where a plain conversion does.

    One that is known to have no value there is refused; others are faults of the run.
    """
    value = known(builder, number)
    if value is not None:
        problem = python_numbers.misfit(value, kind)
        if problem:
            builder.fail(node, problem, "use an array of another type, or another number")
        return number
    found = python_numbers.conversion(number.expr, kind)
    return number if found is None else ScalarValue(found, kind)


def written(
    builder: Builds,
    node: ast.AST,
    value: ScalarValue | ArrayValue,
    kind: str,
    checks: bool,
) -> ScalarValue | ArrayValue:
    """Return a value to be written into an array of a type.

    `checks`: of any number, as in a[...] = number. Else of Python's whole numbers alone, as in
    np.copyto(a, number). Arrays are converted as by astype.
    """
    is_point = isinstance(value, ArrayValue) and not value.shape
    if is_point and python_numbers.conversion(value.expr, kind) is not None:
        assert isinstance(value, ArrayValue)
        value = ScalarValue(builder.reduce(node, "max", value, value.type), value.type)
    if isinstance(value, ScalarValue) and (checks or value.kind == "int"):
        return checked(builder, node, value, kind)
    return value


def fitting(
    builder: Builds, node: ast.AST, name: str, operands: Operands, types: tuple[str, ...]
) -> tuple[Operands, tuple[str, ...]]:
    """Return operands and types with which an operation computes, or fails, as NumPy's does."""
    narrow = types[0] == "int32"
    if name in COMPARE.values():  # of Python's whole numbers exact, whatever the array's type is
        if narrow and any(_is_weak(o) and _is_wide(builder, o) for o in operands):
            types = ("int64", "int64", types[-1])
        return operands, types
    if narrow:
        operands = [
            checked(builder, node, o, "int32") if isinstance(o, ScalarValue) and _is_weak(o) else o
            for o in operands
        ]
    if name == "power" and types[1].startswith("int"):
        operands = [operands[0], _exponent(builder, node, operands[1])]
    return operands, types


def _is_weak(o: ScalarValue | ArrayValue) -> bool:
    return isinstance(o, ScalarValue) and "int" in kinds_of(o.kind)


def _is_wide(builder: Builds, o: ScalarValue | ArrayValue) -> bool:
    """Return whether a whole number may have no value in int32."""
    value = known(builder, o)
    return value is None or bool(python_numbers.misfit(value, "int32"))


def _exponent(
    builder: Builds, node: ast.AST, exponent: ScalarValue | ArrayValue
) -> ScalarValue | ArrayValue:
    """Return an exponent of whole numbers: a negative one is refused, or a fault of the run."""
    value = known(builder, exponent)
    constant = isinstance(exponent.expr, ir.Read) and builder.data.get(exponent.expr.field)
    if isinstance(constant, np.ndarray) and np.min(constant, initial=0) >= 0:
        return exponent
    if value is not None and value < 0:
        builder.fail(
            node,
            "whole numbers to a negative power have no whole result",
            "convert with .astype(np.float64)",
        )
    if value is not None or exponent.expr.type == "bool":
        return exponent
    if isinstance(exponent, ScalarValue):
        fit = ir.Op("py_exponent", (exponent.expr,), exponent.expr.type)
        return ScalarValue(fit, exponent.kind)
    if 0 not in exponent.shape:
        least = builder.reduce(node, "min", exponent, exponent.type)
        name = builder.new_variable("exponent", least.type)
        builder.set_variable(node, name, ir.Op("py_exponent", (least,), least.type))
    return exponent


def compare(
    builder: Builds, node: ast.AST, name: str, operands: Operands
) -> ScalarValue | ArrayValue:
    """Return what an operator that compares gives."""
    if all(isinstance(o, ScalarValue) for o in operands):
        kinds = [o.kind for o in operands if isinstance(o, ScalarValue)]
        exact = python_numbers.comparison(name, [o.expr for o in operands], kinds)
        if exact is not None:
            return ScalarValue(exact, "truth")
    return builder.elementwise(node, name, operands)


def bound(name: str, given: ScalarValue | ArrayValue, kind: str) -> ScalarValue | ArrayValue:
    """Return a bound of np.clip that is at most the limit which an array's type has anyway.

    Python's whole numbers beyond that limit bound nothing; beyond the other one they have no value.
    """
    if not (kind.startswith("int") and _is_weak(given)):
        return given
    limits = np.iinfo(kind)
    limit = ir.Literal(int(limits.min if name == "maximum" else limits.max), "int64")
    if isinstance(given.expr, ir.Literal):
        choose = max if name == "maximum" else min
        return ScalarValue(ir.Literal(choose(given.expr.value, limit.value), "int64"), "int")
    return ScalarValue(ir.Op(name, (given.expr, limit), "int64"), "int")
