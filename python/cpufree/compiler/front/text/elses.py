"""Loops with an else, as loops that note whether a break has left them."""

from __future__ import annotations

import ast
from copy import copy


def without_else(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a function in which no loop has an else."""
    if not any(isinstance(n, ast.For | ast.While) and n.orelse for s in body for n in ast.walk(s)):
        return body
    return _Elses({n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}).block(body)


class _Elses:
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [made for s in body for made in self._statement(s)]

    def _statement(self, s: ast.stmt) -> list[ast.stmt]:
        if not isinstance(s, ast.For | ast.While | ast.If | ast.With):
            return [s]
        changed = copy(s)
        if isinstance(changed, ast.With):
            changed.body = self.block(changed.body)
            return [changed]
        assert isinstance(s, ast.For | ast.While | ast.If)
        changed.body, changed.orelse = self.block(s.body), self.block(s.orelse)
        if isinstance(changed, ast.If) or not changed.orelse:
            return [changed]
        behind, changed.orelse = changed.orelse, []
        name = "left"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        body, found = _noted(changed.body, name)
        if not found:
            return [changed, *behind]
        changed.body = body
        place = behind[0]
        test = ast.UnaryOp(ast.Not(), ast.Name(name, ast.Load()))
        made = ast.If(test, behind, [])
        for node in (made, test, test.operand):
            ast.copy_location(node, place)
        return [_set(name, False, s), changed, made]


def _noted(body: list[ast.stmt], name: str) -> tuple[list[ast.stmt], bool]:
    """Return statements that set a name before each break of theirs; whether there is one."""
    out: list[ast.stmt] = []
    any_found = False
    for s in body:
        if isinstance(s, ast.Break):
            out.append(_set(name, True, s))
            any_found = True
        elif isinstance(s, ast.If | ast.With):
            s = copy(s)
            s.body, first = _noted(s.body, name)
            second = False
            if isinstance(s, ast.If):
                s.orelse, second = _noted(s.orelse, name)
            any_found = any_found or first or second
        out.append(s)
    return out, any_found


def _set(name: str, value: bool, place: ast.AST) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
    for node in (made, made.targets[0], made.value):
        ast.copy_location(node, place)
    return made
