"""What the parts of lowering ask of one another."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Protocol

from cpufree.compiler import ir
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.values import Scope, Value


class Evaluates(Protocol):
    """Evaluates expressions."""

    builder: Builder
    call_program: Callable[..., Value]

    def eval(self, node: ast.expr, scope: Scope) -> Value:
        """Return what an expression stands for."""
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

    def block(self, body: list[ast.stmt]) -> Value | None:
        """Lower statements."""
        ...

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a name, or write into a part of an array."""
        ...
