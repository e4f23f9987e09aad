"""Bounds of loops, and their values where arguments give them."""

from __future__ import annotations

import ast
from typing import Any

from cpufree.compiler import ir
from cpufree.dace import operators
from cpufree.dace.protocols import Walks


def bounds(walk: Walks, loop: Any, var: str) -> tuple[ir.Expr, ir.Expr, int]:
    """Return where a loop begins, where it ends (not included), and its step."""
    init, test, update = (
        ast.parse(str(code.as_string).strip()).body[0]
        for code in (loop.init_statement, loop.loop_condition, loop.update_statement)
    )
    step = _step(update, var)
    compare = test.value if isinstance(test, ast.Expr) else test
    known: dict[type[ast.cmpop], int] = {ast.Lt: 0, ast.LtE: 1}
    if step < 0:
        known = {ast.Gt: 0, ast.GtE: -1}
    if (
        not step
        or not isinstance(init, ast.Assign)
        or not isinstance(compare, ast.Compare)
        or ast.unparse(compare.left) != var
        or type(compare.ops[0]) not in known
    ):
        walk.place.fail(f"the loop over {var} is none of range()", "write for ... in range(...)")
    start, stop = (walk.whole(e) for e in (init.value, compare.comparators[0]))
    more = known[type(compare.ops[0])]
    if more:
        stop = operators.apply("add", [stop, operators.literal(more)])
    return start, stop, step


def value_of(walk: Walks, e: ir.Expr) -> Any:
    """Return the value of an expression of arguments, None where the run decides."""
    if isinstance(e, ir.Literal):
        return e.value
    if isinstance(e, ir.Scalar) and e.name in walk.arguments:
        return walk.arguments[e.name][1]
    if not isinstance(e, ir.Op):
        return None
    values = [value_of(walk, a) for a in e.args]
    if any(v is None for v in values):
        return None
    literals: list[ir.Expr] = [operators.literal(v) for v in values]
    made = operators.cast(literals[0], e.type)
    if e.name != "cast":
        made = operators.apply(e.name, literals)
    return made.value if isinstance(made, ir.Literal) else None


def _step(update: ast.AST, var: str) -> int:
    """Return by how much a loop's variable changes; 0: that is not to be had."""
    if not isinstance(update, ast.Assign) or not isinstance(update.value, ast.BinOp):
        return 0
    value = update.value
    if ast.unparse(value.left) != var:
        return 0
    try:
        by = int(ast.literal_eval(value.right))
    except (ValueError, TypeError):
        return 0
    if isinstance(value.op, ast.Add):
        return by
    return -by if isinstance(value.op, ast.Sub) else 0
