"""Functions that return in branches and loops, as functions that return at their end.

What follows an `if` that may return goes into its other branch. A return in a loop becomes a number
that says which one it was, and a break; what it returns is evaluated behind the loop, where names
stand for what they stood for at the break.
"""

from __future__ import annotations

import ast
from copy import copy

_MOST = 64
"""Statements that are lowered twice, as neither branch before them always returns."""


def with_one_return(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a function with one return, at their end."""
    made = _Returns({n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)})
    out = made.block(body)
    last = made.last or body[-1]
    return [*out, ast.copy_location(ast.Return(_name(made.result, last, ast.Load())), last)]


def may_return(statement: ast.AST) -> bool:
    """Return whether a statement, or one in it, returns."""
    if isinstance(statement, ast.expr | ast.FunctionDef):
        return False
    return isinstance(statement, ast.Return) or any(
        map(may_return, ast.iter_child_nodes(statement))
    )


class _Returns:
    def __init__(self, taken: set[str]) -> None:
        self.result, self.way = (_fresh(name, taken) for name in ("the_result", "way_out"))
        self.last: ast.Return | None = None
        self.ways: int = 0
        self.twice = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return statements that set the result, whatever way they take."""
        out: list[ast.stmt] = []
        for k, s in enumerate(body):
            rest = body[k + 1 :]
            if isinstance(s, ast.Return):
                return [*out, self._result(s)]
            if isinstance(s, ast.If) and may_return(s):
                changed = copy(s)
                both = [[*part, *([] if _ends(part) else rest)] for part in (s.body, s.orelse)]
                self.twice += len(rest) if not (_ends(s.body) or _ends(s.orelse)) else 0
                if self.twice > _MOST:
                    return body
                changed.body, changed.orelse = map(self.block, both)
                return [*out, changed]
            if isinstance(s, ast.For | ast.While) and may_return(s):
                return [*out, *self.block([*self._loop(s), *rest])]
            out.append(s)
        place = body[-1] if body else self.last
        assert place is not None
        return [*out, _set(self.result, ast.Constant(None), place)]

    def _result(self, s: ast.Return) -> ast.stmt:
        self.last = s
        return _set(self.result, s.value or ast.Constant(None), s)

    def _loop(self, s: ast.For | ast.While) -> list[ast.stmt]:
        """Return a loop that notes how it is left, and the returns behind it."""
        found: list[tuple[int, ast.Return]] = []
        changed = copy(s)
        changed.body = self._inside(s.body, found)
        behind: list[ast.stmt] = []
        for way, one in found:
            if way == self.ways and _has_no_end(s):
                behind.append(one)
            else:
                behind.append(_if(self.way, ast.Eq(), way, [one], one))
        return [_set(self.way, ast.Constant(0), s), changed, *behind]

    def _inside(self, body: list[ast.stmt], found: list[tuple[int, ast.Return]]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in body:
            if isinstance(s, ast.Return):
                self.ways += 1
                found.append((self.ways, s))
                way = _set(self.way, ast.Constant(self.ways), s)
                return [*out, way, ast.copy_location(ast.Break(), s)]
            if not may_return(s):
                out.append(s)
                continue
            changed = copy(s)
            if isinstance(changed, ast.If):
                changed.body = self._inside(changed.body, found)
                changed.orelse = self._inside(changed.orelse, found)
                out.append(changed)
            elif isinstance(changed, ast.For | ast.While):
                changed.body = self._inside(changed.body, found)
                leave = ast.copy_location(ast.Break(), s)
                out += [changed, _if(self.way, ast.NotEq(), 0, [leave], s)]
            else:
                out.append(s)
        return out


def _fresh(name: str, taken: set[str]) -> str:
    return name if name not in taken else _fresh(f"{name}_", taken)


def _has_no_end(s: ast.For | ast.While) -> bool:
    """Return whether a loop is left by its returns alone."""
    if not (isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and s.test.value):
        return False
    return not any(isinstance(part, ast.Break) for part in ast.walk(s))


def _ends(body: list[ast.stmt]) -> bool:
    """Return whether statements always return."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, ast.Return)


def _name(name: str, place: ast.AST, context: ast.expr_context) -> ast.Name:
    return ast.copy_location(ast.Name(name, context), _place(place))


def _set(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    if isinstance(value, ast.Constant) and not hasattr(value, "lineno"):
        ast.copy_location(value, _place(place))
    return ast.copy_location(ast.Assign([_name(name, place, ast.Store())], value), place)


def _if(name: str, op: ast.cmpop, number: int, body: list[ast.stmt], place: ast.AST) -> ast.stmt:
    here = _place(place)
    constant = ast.copy_location(ast.Constant(number), here)
    test = ast.Compare(_name(name, place, ast.Load()), [op], [constant])
    return ast.copy_location(ast.If(ast.copy_location(test, here), body, []), place)


def _place(place: ast.AST) -> ast.AST:
    """Return where an error about a return is shown: at what it returns."""
    return getattr(place, "value", None) or place
