"""Loops and branches whose course is known only in the run."""

from __future__ import annotations

import ast

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import values
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.protocols import Lowers
from cpufree.compiler.front.regions import (
    Frame,
    Region,
    State,
    assigned,
    close,
    joined_or_fail,
    note_kind,
)
from cpufree.compiler.front.values import ArrayValue, Host, ScalarValue, TupleValue, Value
from cpufree.compiler.operations import Kind
from cpufree.errors import ProgramError

MOST_TURNS = 64
"""Of a loop that is written out."""
MOST_IN_ALL = 128
"""Turns of all loops of a program that are written out: compilers take seconds for some hundred
statements."""


def _lower_body(lowering: Lowers, body: list[ast.stmt]) -> tuple[ir.Statement, ...]:
    b = lowering.builder
    outer, b.out = b.out, []
    lowering.depth += 1
    try:
        lowering.block(body)
        return tuple(b.out)
    finally:
        b.out = outer
        lowering.depth -= 1


def _ends(body: tuple[ir.Statement, ...]) -> bool:
    return bool(body) and isinstance(body[-1], ir.Break | ir.Continue)


def leave(lowering: Lowers, node: ast.AST, statement: ir.Break | ir.Continue) -> None:
    """Lower break and continue: of the innermost loop."""
    for frame in lowering.loops:
        if frame.is_barrier:
            break
        if frame.is_loop:
            close(lowering, node, frame)
            lowering.builder.out.append(statement)
            return
    lowering.builder.fail(
        node, "break or continue in a loop that is written out", "decide by numbers known before"
    )


def _body(lowering: Lowers, node: ast.For | ast.While, frame: Frame) -> tuple[ir.Statement, ...]:
    """Lower the body of a loop, and close its frame."""
    body = _lower_body(lowering, node.body)
    if _ends(body):
        return body
    b = lowering.builder
    outer, b.out = b.out, list(body)
    try:
        close(lowering, node, frame)
        return tuple(b.out)
    finally:
        b.out = outer


def _after(lowering: Lowers, region: Region, frame: Frame, certain: bool) -> None:
    """Set the names after a loop: arrays are where the head has them."""
    scope = frame.scope
    for name, head in frame.arrays.items():
        scope.names[name] = values.whole(lowering.builder.fields[head])
    for variable, kind in frame.kinds.items():
        name = next(n for n, v in scope.carried.items() if v == variable)
        stored_type = lowering.builder.variables[variable]
        scope.names[name] = ScalarValue(ir.Scalar(variable, stored_type), kind)
    for name in [n for n in scope.names if n not in frame.entry]:
        value = scope.names[name]
        moved = isinstance(value, ArrayValue) and value.field in frame.moved
        if moved or (not certain and not isinstance(value, Host)):
            del scope.names[name]
            why = (
                "it stood for an array of the loop's last turn"
                if moved
                else ("the loop that assigns it may have no turn")
            )
            scope.unbound[name] = why
    region.release(scope)


def while_loop(lowering: Lowers, node: ast.While) -> None:
    """Lower a while loop."""
    b = lowering.builder
    _no_else(b, node)
    made: list[ir.Statement] = []

    def body(frame: Frame) -> None:
        outer, b.out = b.out, []
        try:
            condition = lowering.eval(node.test)
            if isinstance(condition, Host) and not condition.value:
                made[:] = []
                return
            head: list[ir.Statement] = list(b.out)
            if not isinstance(condition, Host):
                test = lowering.expressions.truth(node.test, condition)
                stop = ir.Op("logical_not", (test,), "bool")
                head = [*b.out, ir.If(stop, (ir.Break(),), (), b.line(node))]
            made[:] = [ir.Loop((*head, *_body(lowering, node, frame)), b.line(node))]
        finally:
            b.out = outer

    region = Region(lowering, node, assigned(node.body), True)
    frame = region.run(body)
    b.out += made
    _after(lowering, region, frame, certain=False)


def for_loop(lowering: Lowers, node: ast.For) -> None:
    """Lower a for loop: over a range, or written out."""
    b = lowering.builder
    _no_else(b, node)
    bounds = _range(lowering, node)
    if bounds is None:
        _write_out(lowering, node, _items(lowering, node))
        return
    turns = _turns(bounds)
    state = State(lowering)
    try:
        _range_loop(lowering, node, bounds, turns)
    except ProgramError:
        many = turns is None or turns > MOST_TURNS or b.written_out + turns > MOST_IN_ALL
        if many or not isinstance(node.target, ast.Name):
            raise
        state.restore()
        numbers = [v.value for v in bounds if isinstance(v, Host)]
        _write_out(lowering, node, [Host(k, literal=True) for k in range(*numbers)])


def _no_else(b: Builder, node: ast.For | ast.While) -> None:
    if node.orelse:
        b.fail(node.orelse[0], "else after a loop is not taken", "use a variable and an if")


def _range(lowering: Lowers, node: ast.For) -> list[Value] | None:
    """Return start, stop and step of a loop over range, None of another loop."""
    call = node.iter
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords):
        return None
    function = lowering.eval(call.func)
    if not isinstance(function, Host) or function.value is not range:
        return None
    given = [lowering.eval(a) for a in call.args]
    for k, value in enumerate(given):
        number = value.value if isinstance(value, Host) else None
        whole = isinstance(number, int | np.integer) and not isinstance(number, np.bool_)
        device = isinstance(value, ScalarValue) and value.kind in ("int", "int64", "int32")
        if not whole and not device:
            lowering.builder.fail(call.args[k], "range takes whole numbers", "write int(...)")
    one = Host(1, literal=True)
    if len(given) == 1:
        return [Host(0, literal=True), given[0], one]
    return [*given, one] if len(given) == 2 else given


def _turns(bounds: list[Value]) -> int | None:
    if not all(isinstance(v, Host) for v in bounds):
        return None
    return len(range(*(int(v.value) for v in bounds if isinstance(v, Host))))


def _range_loop(lowering: Lowers, node: ast.For, bounds: list[Value], turns: int | None) -> None:
    b, scope = lowering.builder, lowering.scope
    step = bounds[2]
    if not isinstance(node.target, ast.Name) or not isinstance(step, Host) or not step.value:
        b.fail(node, "a loop over range has one name, and a step known beforehand", "write it so")
    name = node.target.id
    start, stop = (b.cast(b.operand(node, v).expr, "int64") for v in bounds[:2])
    made: list[ir.Statement] = []

    def body(frame: Frame) -> None:
        variable = scope.carried.get(name) or b.new_variable(scope.prefix + name, "int")
        if b.variables[variable] != "int64":
            b.fail(node, f"{name} is no whole number before the loop", "use another name")
        note_kind(lowering.loops, variable, "int")
        scope.unbound.pop(name, None)
        scope.names[name] = ScalarValue(ir.Scalar(variable, "int64"), "int")
        statements = _body(lowering, node, frame)
        line = b.line(node)
        made[:] = [ir.For(variable, start, stop, int(step.value), statements, line)]

    names = [n for n in assigned(node.body) if n != name]
    region = Region(lowering, node, names, True)
    frame = region.run(body)
    b.out += made
    has_break = any(isinstance(n, ast.Break) for n in ast.walk(node))
    _after(lowering, region, frame, certain=bool(turns) and not has_break)


def _items(lowering: Lowers, node: ast.For) -> list[Value]:
    """Return what a loop goes over that is written out."""
    value = lowering.eval(node.iter)
    if isinstance(value, TupleValue):
        return list(value.items)
    if isinstance(value, Host):
        try:
            items: list[Value] = [Host(v) for v in value.value]
        except TypeError:
            items = []
        if 0 < len(items) <= MOST_TURNS:
            return items
    lowering.builder.fail(
        node.iter, "loops go over range(...), or over a short tuple", "write for k in range(n)"
    )


def _write_out(lowering: Lowers, node: ast.For, items: list[Value]) -> None:
    """Lower the body once for each item."""
    lowering.loops.insert(0, Frame.barrier())
    lowering.builder.written_out += len(items)
    try:
        for item in items:
            lowering.assign(node.target, item)
            lowering.block(node.body)
    finally:
        lowering.loops.pop(0)


def branches(lowering: Lowers, node: ast.If, test: ir.Expr) -> None:
    """Lower an if statement that is decided in the run."""
    b, scope = lowering.builder, lowering.scope
    before = set(scope.names)
    made: list[ir.Statement] = []

    def both(frame: Frame) -> None:
        entry = dict(scope.names)
        parts = []
        kinds: dict[str, list[Kind]] = {}
        for body in (node.body, node.orelse):
            scope.names = dict(entry)
            part = _lower_body(lowering, body)
            if not _ends(part):
                outer, b.out = b.out, list(part)
                close(lowering, node, frame)
                part, b.out = tuple(b.out), outer
                for name in scope.carried:
                    value = scope.names.get(name)
                    if isinstance(value, ScalarValue):
                        kinds.setdefault(name, []).append(value.kind)
            parts.append(part)
        scope.names = dict(entry)
        for name, found in kinds.items():
            value = scope.names[name]
            if isinstance(value, ScalarValue):
                kind = found[0]
                for other in found[1:]:
                    kind = joined_or_fail(b, node, name, kind, other)
                scope.names[name] = ScalarValue(value.expr, kind)
        made[:] = [ir.If(test, parts[0], parts[1], b.line(node))]

    names = assigned([*node.body, *node.orelse])
    region = Region(lowering, node, names, False)
    region.run(both)
    b.out += made
    region.release(scope)
    for name in names:
        if name not in before:
            scope.names.pop(name, None)
            scope.unbound[name] = "only one way through the if above may assign it"
