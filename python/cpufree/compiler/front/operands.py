"""What is no operand of an operation, and what to write instead."""

from __future__ import annotations

import ast
from typing import Any, NoReturn, Protocol

import numpy as np

from cpufree.compiler.front.values import Host, Masked, TupleValue
from cpufree.compiler.operations import OF_PYTHON


class Fails(Protocol):
    """Refuses a program."""

    def fail(self, node: ast.AST, problem: str, advice: str) -> NoReturn:
        """Raise ProgramError at a node."""
        ...


def fail_as_array(b: Fails, node: ast.AST, value: Host | TupleValue | Masked) -> NoReturn:
    """Refuse a value in the place of an array or a number."""
    if isinstance(value, TupleValue):
        b.fail(node, "a tuple or list is no operand here", "write an array or a number")
    if isinstance(value, Masked):
        b.fail(
            node,
            "how many points a mask chooses is known only in the run",
            "use u[mask] in the statement that computes with it, as in u[mask] += v[mask] or "
            "np.sum(u[mask]); for whole arrays write np.where(mask, a, b)",
        )
    kind, name = type(value.value), value.text or "this"
    advice = "write an array or a number"
    if isinstance(value.value, np.ndarray):  # without dimensions
        advice = f"pass {name}.item(), or an array of one point"
    elif issubclass(kind, list | tuple) or hasattr(kind, "__array__"):
        advice = f"pass np.array({name})" if value.text else "make it an array: np.array(...)"
    if issubclass(kind, complex | np.complexfloating):
        advice = "keep real and imaginary parts in arrays of their own"
    b.fail(node, f"{name} is a {kind.__name__}: no number or array", advice)


def has_in_place(value: Any, op: ast.operator) -> bool:
    """Return whether Python has an operator that changes an object instead of making another."""
    return hasattr(type(value), f"__i{OF_PYTHON[type(op)].__name__.strip('_')}__")
