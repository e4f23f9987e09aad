"""Loops and branches whose course is known only in the run.

A name that is assigned in a loop and has a number before it becomes a variable of the program. A
name that stands for an array and gets another one in the loop (u, v = v, u; or u = u + ...) keeps
its field: at the end of each turn the fields change their storage, so that every name finds what
the next turn expects.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cpufree.compiler import ir, values
from cpufree.compiler.builder import Builder
from cpufree.compiler.operations import Kind, joined, python_kind, stored
from cpufree.compiler.protocols import Lowers
from cpufree.compiler.values import ArrayValue, Host, ScalarValue, Scope, TupleValue, Value
from cpufree.errors import ProgramError

MOST_TURNS = 64
"""Of a loop that is written out."""


class KindChanged(Exception):
    """A variable has another kind than was assumed: its loop is lowered anew."""

    def __init__(self, variable: str, kind: Kind) -> None:
        super().__init__(variable)
        self.variable, self.kind = variable, kind


@dataclass
class Frame:
    """A loop or branch that is being lowered."""

    scope: Scope
    arrays: dict[str, str] = field(default_factory=dict)
    """Names of fields at its head."""
    kinds: dict[str, Kind] = field(default_factory=dict)
    """Of variables, at its head."""
    seen: dict[str, Kind] = field(default_factory=dict)
    """Of variables: the kinds that they may have at its head, so far."""
    entry: frozenset[str] = frozenset()
    """All names that have a value at its head."""
    moved: set[str] = field(default_factory=set)
    """Fields that change their storage."""
    is_loop: bool = True
    is_barrier: bool = False

    @classmethod
    def barrier(cls) -> Frame:
        """Return what separates the loops of a program from those of the one that calls it."""
        return cls(Scope(""), is_loop=False, is_barrier=True)


def note_kind(frames: list[Frame], variable: str, kind: Kind) -> None:
    """Note that a variable has got a value of a kind."""
    for frame in frames:
        if variable in frame.kinds:
            known = frame.seen.get(variable, frame.kinds[variable])
            frame.seen[variable] = joined(known, kind) or kind


def joined_or_fail(b: Builder, node: ast.AST, name: str, before: Kind, now: Kind) -> Kind:
    """Return the kind of a variable that has both."""
    kind = joined(before, now)
    if kind is None:
        b.fail(
            node,
            f"{name} is {stored(before)} on one way and {stored(now)} on another",
            "let it begin with a number of the same type",
        )
    return kind


def assigned(body: list[ast.stmt]) -> list[str]:
    """Return the names that statements assign, in order."""
    found = (
        n.id
        for statement in body
        for n in ast.walk(statement)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    return list(dict.fromkeys(found))


class _Region:
    """Lowers the body of a loop or branch, as often as its kinds change."""

    def __init__(self, lowering: Lowers, node: ast.AST, names: list[str], is_loop: bool) -> None:
        self.lowering, self.node, self.names, self.is_loop = lowering, node, names, is_loop
        self.kinds: dict[str, Kind] = {}
        self.copies: set[str] = set()
        self.owned: dict[str, str] = {}

    def frame(self) -> Frame:
        """Make variables and arrays of the names; return the frame of the region."""
        scope, b = self.lowering.scope, self.lowering.builder
        frame = Frame(scope, entry=frozenset(scope.names), is_loop=self.is_loop)
        for name in self.names:
            value = scope.names.get(name)
            if isinstance(value, ArrayValue) and values.is_whole(value, b.fields[value.field]):
                if name in self.copies:
                    value = b.materialise(self.node, name, value)
                    scope.names[name] = value
                frame.arrays[name] = value.field
            elif value is not None and _is_number(value):
                self._carry(frame, name, b.operand(self.node, value))
        return frame

    def _carry(self, frame: Frame, name: str, operand: Any) -> None:
        scope, b = self.lowering.scope, self.lowering.builder
        kind: Kind = operand.kind
        if name not in scope.carried:
            kind = self.kinds.get(name, kind)
            variable = b.new_variable(scope.prefix + name, kind)
            b.set_variable(self.node, variable, operand.expr)
            scope.carried[name] = variable
            self.owned[variable] = name
        variable = scope.carried[name]
        kind = self.kinds.get(name, kind)
        frame.kinds[variable] = kind
        scope.names[name] = ScalarValue(ir.Scalar(variable, b.variables[variable]), kind)

    def release(self, scope: Scope) -> None:
        """Let the names that this region has made variables of be names like others again."""
        for name in self.owned.values():
            scope.carried.pop(name, None)

    def run(self, body: Callable[[Frame], Any]) -> Frame:
        """Lower the body until all kinds and copies are right; return its frame."""
        state = _State(self.lowering)
        for _ in range(3 * len(self.names) + 3):
            frame = self.frame()
            self.lowering.loops.insert(0, frame)
            try:
                body(frame)
            except KindChanged as change:
                if change.variable not in self.owned:
                    raise
                self.kinds[self.owned[change.variable]] = change.kind
            except _NeedsCopy as copy:
                if copy.frame is not frame or copy.name in self.copies:
                    raise
                self.copies.add(copy.name)
            else:
                changed = {v: k for v, k in frame.seen.items() if k != frame.kinds[v]}
                if not changed or not self.is_loop:
                    return frame
                names = {v: n for n, v in frame.scope.carried.items()}
                self.kinds.update({names[v]: k for v, k in changed.items()})
            finally:
                self.lowering.loops.remove(frame)
            state.restore()
            self.owned.clear()
        raise AssertionError("kinds of variables do not settle")


class _NeedsCopy(Exception):
    """A name must stand for an array of its own before the loop begins."""

    def __init__(self, frame: Frame, name: str) -> None:
        super().__init__(name)
        self.frame, self.name = frame, name


class _State:
    """What a region changes, to begin anew."""

    def __init__(self, lowering: Lowers) -> None:
        self.lowering = lowering
        b = lowering.builder
        self.out = list(b.out)
        tables: list[dict[str, Any]] = [b.fields, b.variables]
        self.tables = [(t, dict(t)) for t in tables]
        self.scopes = [
            (s, dict(s.names), dict(s.carried), dict(s.unbound)) for s in lowering.scopes
        ]
        self.depth = lowering.depth

    def restore(self) -> None:
        """Put everything back."""
        self.lowering.builder.out = list(self.out)
        for table, content in self.tables:
            table.clear()
            table.update(content)
        for scope, names, carried, unbound in self.scopes:
            scope.names, scope.carried = dict(names), dict(carried)
            scope.unbound = dict(unbound)
        self.lowering.depth = self.depth


def _is_number(value: Value) -> bool:
    if isinstance(value, Host):
        number = value.value
        return python_kind(number) is not None or isinstance(number, np.bool_)
    return isinstance(value, ScalarValue)


def _close(lowering: Lowers, node: ast.AST, frame: Frame) -> None:
    """Let all arrays of a frame be found where its head expects them."""
    b, names = lowering.builder, frame.scope.names
    moves: dict[str, str] = {}
    moved_names: dict[str, str] = {}
    for name, head in frame.arrays.items():
        value = names[name]
        if not isinstance(value, ArrayValue) or not values.is_whole(value, b.fields[value.field]):
            b.fail(
                node,
                f"{name} is a whole array before, and something else after",
                "use two names, or copy the part (.copy())",
            )
        if value.field == head:
            continue
        there, here = b.fields[head], b.fields[value.field]
        if (there.shape, there.type) != (here.shape, here.type):
            b.fail(
                node,
                f"{name} changes from {there.type} {there.shape} to {here.type} {here.shape}",
                "use two names",
            )
        if head in moves or value.field in moves.values():
            b.fail(node, f"{name} and another name stand for the same array", "copy it: .copy()")
        moves[head], moved_names[name] = value.field, head
    if not moves:
        return
    _check_others(lowering, node, frame, moves, moved_names)
    frame.moved |= {*moves, *moves.values()}
    b.out.append(_permutation(moves, b.line(node)))


def _check_others(
    lowering: Lowers,
    node: ast.AST,
    frame: Frame,
    moves: dict[str, str],
    moved_names: dict[str, str],
) -> None:
    """Refuse or copy where an array is seen by others, and its storage gets a newer one.

    Names that change places among themselves (u, v = v, u) keep all arrays as NumPy does: storage
    stays that of the caller's arrays. Where an array is made in each turn (u = u + ...), it takes
    the storage of the array that it replaces, which nobody else may see.
    """
    b = lowering.builder
    if any(b.fields[f].role == "constant" for f in (*moves, *moves.values())):
        b.fail(node, "a constant changes its place", "copy it before the loop: .copy()")
    for name, head in moved_names.items():
        last = head
        while last in moves and moves[last] != head:
            last = moves[last]
        is_circle = last in moves
        seen = _seen_by_others(lowering, frame, head)
        if not seen and (is_circle or b.fields[head].role != "argument"):
            continue
        written = any(isinstance(s, ir.Assign) and s.field == head for s in ir.walk(tuple(b.out)))
        if is_circle or written or not frame.is_loop:
            b.fail(
                node,
                f"{name} stands for another array after each turn, and the old one is written, "
                "or seen by another name",
                f"write in place ({name}[...] = ...), or begin with {name} = {name}.copy()",
            )
        raise _NeedsCopy(frame, name)


def _seen_by_others(lowering: Lowers, frame: Frame, head: str) -> bool:
    """Return whether a name that stays stands for a field."""
    return any(
        isinstance(value, ArrayValue)
        and value.is_view
        and value.field == head
        and not (scope is frame.scope and (name in frame.arrays or name not in frame.entry))
        for scope in lowering.scopes
        for name, value in scope.names.items()
    )


def _permutation(moves: dict[str, str], line: int) -> ir.Permute:
    """Return the permutation that has these moves: chains are closed to circles."""
    full = dict(moves)
    for first in [f for f in moves if f not in moves.values()]:
        last = first
        while last in moves:
            last = moves[last]
        full[last] = first
    return ir.Permute(tuple(full), tuple(full.values()), line)


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
            _close(lowering, node, frame)
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
        _close(lowering, node, frame)
        return tuple(b.out)
    finally:
        b.out = outer


def _after(lowering: Lowers, region: _Region, frame: Frame, certain: bool) -> None:
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

    region = _Region(lowering, node, assigned(node.body), True)
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
    state = _State(lowering)
    try:
        _range_loop(lowering, node, bounds, turns)
    except ProgramError:
        if turns is None or turns > MOST_TURNS or not isinstance(node.target, ast.Name):
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
    region = _Region(lowering, node, names, True)
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
                _close(lowering, node, frame)
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
    region = _Region(lowering, node, names, False)
    region.run(both)
    b.out += made
    region.release(scope)
    for name in names:
        if name not in before:
            scope.names.pop(name, None)
            scope.unbound[name] = "only one way through the if above may assign it"
