"""Statements of tasklets in Python."""

from __future__ import annotations

import ast
from typing import Any

from cpufree.dace import operators
from cpufree.dace.inner import Body


def outputs(body: Body, code: str, values: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what a tasklet sets: the values, and conditions for those that it sets at times only.

    `values` are those of its inputs.
    """
    known: dict[str, Any] = dict(values)
    ways: dict[str, Any] = {}
    always = _run(body, ast.parse(code).body, known, None, ways)
    return {name: (known[name], None if name in always else ways[name]) for name in ways}


def _run(
    body: Body, statements: list[ast.stmt], values: dict[str, Any], test: Any, ways: dict[str, Any]
) -> set[str]:
    """Read statements that are done under a condition; return what they set in any case.

    `ways` gets the condition under which a name is set at all.
    """
    always: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            here = operators.cast(body.evaluated(statement.test, values), "bool")
            not_here = operators.apply("logical_not", [here])
            both = []
            for way, part in ((here, statement.body), (not_here, statement.orelse)):
                inner = way if test is None else operators.apply("logical_and", [test, way])
                both.append(_run(body, part, values, inner, ways))
            always |= both[0] & both[1]
            continue
        name = _target(statement)
        if not name:
            body.place.fail(
                f"the tasklet holds '{ast.unparse(statement)}'",
                "let tasklets assign expressions to their connectors",
            )
        assert isinstance(statement, ast.Assign)
        value = body.evaluated(statement.value, values)
        if test is not None and name in values:
            value = operators.where(test, value, values[name])
        values[name] = value
        known = name in ways and test is not None
        ways[name] = operators.apply("logical_or", [ways[name], test]) if known else test
        always.add(name)
    return always


def _target(statement: ast.stmt) -> str:
    """Return the connector that a statement assigns to, "" where it does something else."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target = statement.targets[0]
    target = target.value if isinstance(target, ast.Subscript) else target
    return target.id if isinstance(target, ast.Name) else ""
