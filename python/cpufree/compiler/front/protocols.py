"""What the parts of lowering ask of one another."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cpufree.compiler import ir
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.values import ScalarValue, Scope, Value


@dataclass(frozen=True)
class Left:
    """Statements end in break, or in continue (`again`).

    `by_run`: on all ways that the run may take, so that it never gets to what follows.
    """

    again: bool
    by_run: bool = False


@dataclass(frozen=True)
class Returned:
    """Statements end in return."""

    value: Value


class Evaluates(Protocol):
    """Evaluates expressions."""

    builder: Builder
    call_program: Callable[..., Value]

    def eval(self, node: ast.expr, scope: Scope) -> Value:
        """Return what an expression stands for."""
        ...

    def host(self, node: ast.expr, scope: Scope, what: str) -> Any:
        """Return the object that an expression stands for, which must be known beforehand."""
        ...

    def in_order(self, nodes: Sequence[ast.expr], scope: Scope) -> list[Value]:
        """Return what expressions stand for that are evaluated one after the other."""
        ...

    def binary(self, node: ast.AST, op: type[ast.operator], left: Value, right: Value) -> Value:
        """Return what an operator gives."""
        ...

    def choice(self, node: ast.AST, test: ir.Expr, yes: Value, no: Value) -> ScalarValue:
        """Return one of two numbers."""
        ...

    def test(self, node: ast.expr, scope: Scope) -> Value:
        """Return something of the truth of an expression."""
        ...

    def known_truth(self, value: Value) -> bool | None:
        """Return the truth of a value that is known beforehand."""
        ...

    def truth(self, node: ast.AST, value: Value) -> ir.Expr:
        """Return a scalar as a condition."""
        ...


class Lowers(Protocol):
    """Lowers statements."""

    builder: Builder
    scopes: list[Scope]
    loops: list[Any]
    depth: int

    @property
    def expressions(self) -> Evaluates:
        """What evaluates."""
        ...

    @property
    def scope(self) -> Scope:
        """The names of the function that is being lowered."""
        ...

    def eval(self, node: ast.expr) -> Value:
        """Return what an expression stands for."""
        ...

    def kept(self, node: ast.AST, value: Value, name: str) -> Value:
        """Return a value that stays what it is now."""
        ...

    def block(self, body: list[ast.stmt]) -> Left | Returned | None:
        """Lower statements."""
        ...

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a name, or write into a part of an array."""
        ...
