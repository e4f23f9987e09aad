"""Bounds of loops, and their values where arguments give them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

from dace.sdfg.analysis.schedule_tree import treenodes as tn

from cpufree.compiler import ir
from cpufree.dace.lowering.protocols import Walks
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine, plus
from cpufree.dace.values.refusal import Place

T = TypeVar("T")


def _parts(loop: Any, var: str, place: Place) -> tuple[ast.expr, ast.expr, type, ast.expr, bool]:
    """Return where a loop begins, what its variable is compared with and how, and its step.

    The last part says whether the step is subtracted.
    """
    init, test, update = (
        ast.parse(str(code.as_string).strip()).body[0]
        for code in (loop.init_statement, loop.loop_condition, loop.update_statement)
    )
    compare = test.value if isinstance(test, ast.Expr) else test
    by = update.value if isinstance(update, ast.Assign) else None
    if (
        not isinstance(init, ast.Assign)
        or not isinstance(compare, ast.Compare)
        or not isinstance(by, ast.BinOp)
        or not isinstance(by.op, ast.Add | ast.Sub)
        or ast.unparse(compare.left) != var
        or ast.unparse(by.left) != var
        or type(compare.ops[0]) not in _ENDS
    ):
        place.fail(f"the loop over {var} is none of range()", "write for ... in range(...)")
    sides = compare.comparators[0], type(compare.ops[0])
    return init.value, *sides, by.right, isinstance(by.op, ast.Sub)


_ENDS: dict[type, tuple[bool, int]] = {
    ast.Lt: (True, -1), ast.LtE: (True, 0), ast.Gt: (False, 1), ast.GtE: (False, 0)
}  # fmt: skip
"""Whether the loop goes upwards, and how far its last value is from what it is compared with."""


def ends(
    loop: Any, var: str, place: Place, whole: Callable[[ast.expr], Affine]
) -> tuple[Affine, Affine, Affine]:
    """Return the first and last value of a loop's variable, and its step, as sums."""
    start, stop, how, by, minus = _parts(loop, var, place)
    step = whole(by)
    if step.factors:
        _of_the_run(var, place)
    number = -int(step.constant) if minus else int(step.constant)
    _require_way(var, number, how, place)
    return whole(start), plus(whole(stop), Affine(_ENDS[how][1])), Affine(number)


def bounds(walk: Walks, loop: Any, var: str) -> tuple[ir.Expr, ir.Expr, int]:
    """Return where a loop begins, where it ends (not included), and its step."""
    start, stop, how, by, minus = _parts(loop, var, walk.place)
    value = value_of(walk, walk.whole(by))
    if value is None:
        _of_the_run(var, walk.place)
    step = -int(value) if minus else int(value)
    _require_way(var, step, how, walk.place)
    first, last = walk.whole(start), walk.whole(stop)
    upwards, more = _ENDS[how]
    if not more:
        last = operators.apply("add", [last, operators.literal(1 if upwards else -1)])
    return first, last, step


def _of_the_run(var: str, place: Place) -> None:
    place.fail(
        f"the step of the loop over {var} is a value of the run",
        "use a step that is a number or an argument",
    )


def _require_way(var: str, step: int, how: type, place: Place) -> None:
    if not step or (step > 0) != _ENDS[how][0]:
        place.fail(
            f"the loop over {var} has the step {step}, and its end lies the other way",
            "let the step be positive where the loop counts upwards, and negative downwards",
        )


def value_of(walk: Walks, e: ir.Expr) -> Any:
    """Return the value of an expression of arguments, None where the run decides."""
    if isinstance(e, ir.Literal):
        return e.value
    if isinstance(e, ir.Scalar) and e.name in walk.arguments:
        return walk.arguments[e.name][1].item()
    if not isinstance(e, ir.Op):
        return None
    values = [value_of(walk, a) for a in e.args]
    if any(v is None for v in values):
        return None
    literals: list[ir.Expr] = [operators.literal(v) for v in values]
    made = operators.cast(literals[0], e.type)
    if e.name != "cast":
        if e.name.removeprefix("py_") not in operators.FOLDED:
            return None
        made = operators.apply(e.name.removeprefix("py_"), literals)
    return made.value if isinstance(made, ir.Literal) else None


def assigned(children: list[Any]) -> set[str]:
    """Return the names that statements may set, containers among them."""
    found: set[str] = set()
    for child in children:
        if isinstance(child, tn.AssignNode):
            found.add(child.name)
        elif isinstance(child, tn.CopyNode):
            found.add(child.target)
        elif isinstance(child, tn.TaskletNode | tn.LibraryCall):
            memlets = child.out_memlets
            every = memlets.values() if isinstance(memlets, dict) else memlets
            found.update(m.data for m in every if m.data is not None)
        found |= assigned(getattr(child, "children", []))
    return found
