"""What a function's text reads of names that it does not set itself."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Step: TypeAlias = "tuple[bool, Any]"
"""Whether it is an attribute; its name, or the index of an item."""


@dataclass(frozen=True)
class Use:
    """A name, and the attributes and items that are read of it: cfg.dt, grid["h"]."""

    name: str
    steps: tuple[Step, ...]
    is_parameter: bool


def uses_of(tree: ast.FunctionDef) -> tuple[Use, ...]:
    """Return what a function reads of its parameters and of names from outside."""
    parameters = _parameters(tree.args)
    reads = _Reads()
    for statement in tree.body:
        reads.visit(statement)
    found: dict[Use, None] = {}
    for name, steps in reads.found:
        if name in parameters:
            # What it stands for where the name has been reassigned comes from its value before.
            found[Use(name, () if name in reads.stored else steps, True)] = None
        elif name not in reads.stored:
            found[Use(name, steps, False)] = None
    return tuple(found)


def _parameters(args: ast.arguments) -> set[str]:
    rest = [a for a in (args.vararg, args.kwarg) if a is not None]
    return {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, *rest)}


class _Reads(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: dict[tuple[str, tuple[Step, ...]], None] = {}
        self.stored: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.found[node.id, ()] = None
        else:
            self.stored.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.stored.add(node.name)
        self._inner(node, node.body)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inner(node, [node.body])

    def _inner(self, node: ast.FunctionDef | ast.Lambda, body: Sequence[ast.AST]) -> None:
        """Add what a function inside reads of names that it does not have itself."""
        inner = _Reads()
        for part in body:
            inner.visit(part)
        own = _parameters(node.args) | inner.stored
        self.found |= {use: None for use in inner.found if use[0] not in own}
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.found[node.target.id, ()] = None
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Visit all but the names that a comprehension has for itself."""
        for part in (node.iter, *node.ifs):
            self.visit(part)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._chain(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._chain(node)

    def _chain(self, node: ast.Attribute | ast.Subscript) -> None:
        steps: list[Step] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute | ast.Subscript) and isinstance(inner.ctx, ast.Load):
            if isinstance(inner, ast.Attribute):
                steps.append((True, inner.attr))
            elif isinstance(inner.slice, ast.Constant):
                steps.append((False, inner.slice.value))
            else:
                break
            inner = inner.value
        if steps and isinstance(inner, ast.Name):
            self.found[inner.id, tuple(reversed(steps))] = None
        elif inner is not node:
            self.visit(inner)
        else:
            self.generic_visit(node)
