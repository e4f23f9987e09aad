"""Statements of tasklets in Python."""

from __future__ import annotations

import ast
from typing import Any

from cpufree.dace.lowering.inner import Body
from cpufree.dace.values import operators


def run(
    body: Body,
    statements: list[ast.stmt],
    values: dict[str, Any],
    set_if: dict[str, Any],
    test: Any,
) -> None:
    """Read the statements of a tasklet, done under a condition.

    `set_if` gets the condition under which a connector is set that is not always.
    """
    for statement in statements:
        if isinstance(statement, ast.If):
            here = operators.cast(body.evaluated(statement.test, values), "bool")
            not_here = operators.apply("logical_not", [here])
            for way, part in ((here, statement.body), (not_here, statement.orelse)):
                both = way if test is None else operators.apply("logical_and", [test, way])
                run(body, part, values, set_if, both)
            continue
        name = _target(statement)
        if not name:
            body.place.fail(
                f"the tasklet holds '{ast.unparse(statement)}'",
                "let tasklets assign expressions to their connectors",
            )
        assert isinstance(statement, ast.Assign)
        value = body.evaluated(statement.value, values)
        if test is None:
            set_if.pop(name, None)
        elif name in values:
            value = operators.where(test, value, values[name])
            if name in set_if:
                set_if[name] = operators.apply("logical_or", [set_if[name], test])
        else:
            set_if[name] = test
        values[name] = value


def _target(statement: ast.stmt) -> str:
    """Return the connector that a statement assigns to, "" where it does something else."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target = statement.targets[0]
    target = target.value if isinstance(target, ast.Subscript) else target
    return target.id if isinstance(target, ast.Name) else ""
