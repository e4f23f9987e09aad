"""Makes a program that fails shorter: takes statements away while it fails in the same way."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from any_program import Case

_MOST_TRIES = 150
_KEPT = ("arguments", "symbols", "between", "floats", "wholes")


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Return a case with fewer statements that still fails, as far as tries go."""
    tries = 0
    smaller = True
    while smaller and tries < _MOST_TRIES:
        smaller = False
        for text in _smaller(case.text):
            tries += 1
            if tries >= _MOST_TRIES:
                break
            other = replace(case, text=text)
            if len(text) < len(case.text) and fails(other):
                case, smaller = other, True
                break
    return case


def _smaller(text: str) -> Iterator[str]:
    """Return texts that lack a statement, or have a loop's or branch's body in its place."""
    count = sum(1 for _ in _bodies(ast.parse(text)))
    for which in range(count):
        tree = ast.parse(text)
        body, k = list(_bodies(tree))[which]
        removed = body.pop(k)
        if isinstance(removed, ast.Import | ast.ImportFrom):
            continue
        if body is tree.body and isinstance(removed, ast.Assign):
            continue  # what makes the arguments may need it
        if isinstance(removed, ast.FunctionDef) and removed.name in (*_KEPT, "p"):
            continue
        if not body:
            body.append(ast.Pass())
        yield ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        if isinstance(removed, ast.For | ast.While | ast.If):
            tree = ast.parse(text)
            body, k = list(_bodies(tree))[which]
            body[k : k + 1] = removed.body
            yield ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _bodies(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], int]]:
    """Return each list of statements with each place in it, the last ones first."""
    kept = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in _KEPT]
    left = {id(inner) for node in kept for inner in ast.walk(node)}
    found = []
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and id(node) not in left:
                found += [(body, k) for k in range(len(body))]
    return iter(reversed(found))
