"""What is kept of loops and branches while they are lowered.

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

from cpufree.compiler import ir
from cpufree.compiler.front import values
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.protocols import Lowers
from cpufree.compiler.front.values import ArrayValue, Host, ScalarValue, Scope, Value
from cpufree.compiler.operations import Kind, joined, python_kind, stored


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


class Region:
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
            elif value is not None and is_number(value):
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
        state = State(self.lowering)
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


class State:
    """What a region changes, to begin anew."""

    def __init__(self, lowering: Lowers) -> None:
        self.lowering = lowering
        b = lowering.builder
        self.out = list(b.out)
        self.written_out = b.written_out
        tables: list[dict[str, Any]] = [b.fields, b.variables]
        self.tables = [(t, dict(t)) for t in tables]
        self.scopes = [
            (s, dict(s.names), dict(s.carried), dict(s.unbound)) for s in lowering.scopes
        ]
        self.depth = lowering.depth

    def restore(self) -> None:
        """Put everything back."""
        self.lowering.builder.out = list(self.out)
        self.lowering.builder.written_out = self.written_out
        for table, content in self.tables:
            table.clear()
            table.update(content)
        for scope, names, carried, unbound in self.scopes:
            scope.names, scope.carried = dict(names), dict(carried)
            scope.unbound = dict(unbound)
        self.lowering.depth = self.depth


def is_number(value: Value) -> bool:
    """Return whether a value is a number."""
    if isinstance(value, Host):
        number = value.value
        return python_kind(number) is not None or isinstance(number, np.bool_)
    return isinstance(value, ScalarValue)


def close(lowering: Lowers, node: ast.AST, frame: Frame) -> None:
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
