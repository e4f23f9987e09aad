"""Branches that are decided in the run."""

from __future__ import annotations

import ast

from cpufree.compiler import ir
from cpufree.compiler.front.flow.meeting import End, end_here
from cpufree.compiler.front.flow.regions import assigned, copied, set_names
from cpufree.compiler.front.protocols import Left, Lowers, Returned
from cpufree.compiler.front.values import ArrayValue, all_same

Flow = Left | Returned | None
"""How statements end that do not go on to the next one."""


def lower_body(lowering: Lowers, body: list[ast.stmt]) -> tuple[list[ir.Statement], Flow]:
    """Lower statements that the run may not reach, or reach several times."""
    b = lowering.builder
    lowering.depth += 1
    try:
        with b.apart():
            flow = lowering.block(body)
            return b.out, flow
    finally:
        lowering.depth -= 1


def branches(lowering: Lowers, node: ast.If, test: ir.Expr) -> Flow:
    """Lower an if statement that is decided in the run."""
    b, scope = lowering.builder, lowering.scope
    names = assigned([*node.body, *node.orelse], scope=scope)
    for name in names:  # constants do not change their places: a copy may
        value = scope.names.get(name)
        if isinstance(value, ArrayValue) and b.fields[value.field].role == "constant":
            scope.names[name] = copy = copied(lowering, node, name, value)
            b.locked[copy.field] = f"{name} is an array from outside on one way"
    before = dict(scope.names), dict(scope.unbound)
    ends: list[End] = []
    parts = []
    for body in (node.body, node.orelse):
        scope.names, scope.unbound = dict(before[0]), dict(before[1])
        part, flow = lower_body(lowering, body)
        if flow is None:
            with b.apart(part):
                ends.append(end_here(lowering, names, "only one way through the if may assign it"))
        parts.append(tuple(part))
    b.out.append(ir.If(test, parts[0], parts[1], b.line(node)))
    if not ends:
        return Left(again=False, by_run=True)
    scope.names, scope.unbound = dict(before[0]), dict(before[1])
    # Where one way leaves a name as it was, the other one brings its array there.
    kept = {
        name: value
        for end in ends
        for name, value in end.names.items()
        if name in before[0] and all_same(before[0][name], value)
    }
    set_names(lowering, node, names, ends, kept)
    return None
