"""Loops while they are lowered: their heads, their turns and their exits.

A loop is lowered once for all of its turns, for what its names stand for at its head. That is
what they stand for before the loop and at the end of each turn (meeting.py): the body is lowered
again, with variables for more numbers, and fewer names, until nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.front.flow.meeting import NO_VALUE, End, Join, Leaf, Meeting, end_here
from cpufree.compiler.front.numbers import kinds
from cpufree.compiler.front.protocols import Lowers
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    ScalarValue,
    Scope,
    TupleValue,
    Value,
    is_number,
    leaves,
    same,
    unpacked,
    with_leaves,
)
from cpufree.compiler.operations import Kind


class Frame:
    """What break and continue may leave: a loop, turns that are written out, a program."""

    is_barrier = True

    def __init__(self, lowering: Lowers, names: list[str] | None = None) -> None:
        self.lowering, self.names = lowering, names or []
        self.depth = lowering.depth
        self.turns: list[End] = []
        self.exits: list[End] = []

    def end_turn(self) -> None:
        """Note the end of a turn."""
        self.turns.append(end_here(self.lowering, self.names, "not every turn assigns it"))

    def exit(self) -> None:
        """Note a way out of the loop."""
        why = "the loop that assigns it may have no turn, or leave it before"
        self.exits.append(end_here(self.lowering, self.names, why))


class WrittenOut(Frame):
    """Turns that are lowered one after the other: a break of the run leaves them all."""

    is_barrier = False


class Region(Frame):
    """A loop of the run."""

    is_barrier = False

    def __init__(self, lowering: Lowers, node: ast.For | ast.While, copies: bool) -> None:
        super().__init__(lowering, assigned([node], scope=lowering.scope))
        self.node, self.copies = node, copies
        self.lost: dict[str, str] = {}
        """Names without a value at the head, and why."""
        self.kinds: dict[Leaf, Kind] = {}
        self.copied: set[str] = set()
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            self.lost[node.target.id] = f"{NO_VALUE}the loop may have no turn"

    def run(self, body: Callable[[], tuple[ir.Statement, ...]]) -> tuple[ir.Statement, ...]:
        """Lower the body until what its head stands for stays; return its statements."""
        state = State(self.lowering)
        while True:  # there are ever fewer names, and more kinds and copies
            self.turns, self.exits = [], []
            self._open()
            self.lowering.loops.insert(0, self)
            try:
                made = body()
            finally:
                self.lowering.loops.remove(self)
            met = Meeting(
                self.lowering, self.node, self.turns, self.head, self.variables, is_head=True
            )
            copyable = met.copyable - self.copied if self.copies else set()
            lost = {name: why for name, why in met.lost.items() if name not in copyable}
            if not (met.grown or met.lost):
                self._check_copies(made)
                return made
            self.copied |= copyable
            self.lost.update(lost)
            self.kinds.update(met.grown)
            state.restore()

    # --- the head ---

    def _open(self) -> None:
        """Set the names to what they stand for at the head."""
        scope = self.lowering.scope
        self.head: dict[str, Value] = {}
        self.variables: dict[Leaf, str] = {}
        self.entry = {n: unpacked(scope.names[n]) for n in self.names if n in scope.names}
        for name, value in self.entry.items():
            if name not in self.lost:
                self._check_entry(name, value)
            if name in self.lost:
                del scope.names[name]
                scope.unbound[name] = self.lost[name]
                continue
            made = [self._leaf((name, k), leaf) for k, leaf in enumerate(leaves(value))]
            self.head[name] = scope.names[name] = with_leaves(value, iter(made))

    def _check_entry(self, name: str, value: Value) -> None:
        """Lose a name whose number before the loop is another one in its variable."""
        for k, leaf in enumerate(leaves(value)):
            if (name, k) in self.kinds:
                number, kind = self.lowering.builder.operand(self.node, leaf), self.kinds[name, k]
                assert isinstance(number, ScalarValue)
                if not kinds.keeps_value(number, kind):
                    self.lost[name] = (
                        f"is {kinds.words(number.kind)} before the loop and "
                        f"{kinds.words(kind)} in it"
                    )

    def _leaf(self, at: Leaf, leaf: Value) -> Value:
        b = self.lowering.builder
        if is_number(leaf) and (at in self.kinds or not self._is_constant(at[0], leaf)):
            number = b.operand(self.node, leaf)
            assert isinstance(number, ScalarValue)
            kind = self.kinds.get(at, number.kind)
            variable = b.new_number(b.prefix + at[0], kind)
            self.variables[at] = variable
            made = b.number(variable, kind)
            b.out += b.set_number(self.node, made, number)
            return made
        if at[0] in self.copied and isinstance(leaf, ArrayValue):
            return copied(self.lowering, self.node, at[0], leaf)
        return leaf

    def _is_constant(self, name: str, leaf: Value) -> bool:
        """Return whether all assignments give a name the number that it has."""
        found = [n for n in ast.walk(self.node) if _stores(n, name)]
        return all(
            isinstance(s, ast.Assign)
            and isinstance(s.targets[0], ast.Name)
            and isinstance(s.value, ast.Constant)
            and same(Host(s.value.value), leaf)
            for s in found
        )

    def _check_copies(self, made: tuple[ir.Statement, ...]) -> None:
        """Refuse to write into an array that is the caller's on one way and a copy on another."""
        b = self.lowering.builder
        for name in self.copied:
            value = self.head.get(name)
            if not (isinstance(value, ArrayValue) and value.unless):
                continue
            why = (
                f"{name} stands for another array after each turn, and the one that it has before "
                "the loop is written in place"
            )
            for f in (value.field, value.unless[1].field):
                if any(isinstance(s, ir.Assign) and s.field == f for s in ir.walk(made)):
                    b.fail(self.node, why, f"begin with {name} = {name}.copy()", by_join=True)
                b.locked[f] = why

    # --- ends ---

    def after(self, certain: bool, before: Join | None) -> None:
        """Set the names behind the loop.

        `before` is the join in front of it, where it may end after a turn; `certain`: it has one.
        """
        ends = list(self.exits)
        if before is not None:
            ends = [self._after_turn(end) for end in self.turns] + ends
        if before is not None and not certain:
            why = "the loop that assigns it may have no turn"
            entry = {**self.entry, **self.head}
            unbound = dict.fromkeys(self.names, NO_VALUE + why)
            ends.insert(0, End(before, entry, unbound, may_move=False))
        set_names(self.lowering, self.node, self.names, ends, self.head, self.variables)

    def _after_turn(self, end: End) -> End:
        """Return an end of a turn with what names stand for at the head that follows."""
        b, names = self.lowering.builder, {}
        for name, value in end.names.items():
            found: list[Value] = []
            head = leaves(self.head[name]) if name in self.head else []
            for k, leaf in enumerate(leaves(value)):
                variable = self.variables.get((name, k))
                if name in self.head and variable:
                    number = b.operand(self.node, leaf)
                    assert isinstance(number, ScalarValue)
                    found.append(b.number(variable, number.kind))
                else:
                    found.append(head[k] if name in self.head else _relocated(leaf, end))
            names[name] = with_leaves(value, iter(found))
        return End(end.join, names, end.unbound, may_move=False)


def _relocated(leaf: Value, end: End) -> Value:
    """Return an array where it is found after an end."""
    if not (isinstance(leaf, ArrayValue) and leaf.is_view and leaf.field in end.moved):
        return leaf
    assert isinstance(leaf.expr, ir.Read)
    return replace(leaf, expr=replace(leaf.expr, field=end.moved[leaf.field]))


def set_names(
    lowering: Lowers,
    node: ast.AST,
    names: list[str],
    ends: list[End],
    head: dict[str, Value],
    variables: dict[Leaf, str] | None = None,
) -> None:
    """Let ways meet, and set the names to what they stand for behind; `head`: before them."""
    scope = lowering.scope
    reference = dict(head)
    for end in ends:
        for name, value in end.names.items():
            reference.setdefault(name, value)
    found = Meeting(lowering, node, ends, reference, variables)
    for name in names:
        scope.names.pop(name, None)
        scope.unbound.pop(name, None)
        if name in found.after:
            scope.names[name] = found.after[name]
        elif ends:
            scope.unbound[name] = found.lost.get(name, ends[0].unbound[name])


def copied(lowering: Lowers, node: ast.AST, name: str, array: ArrayValue) -> ArrayValue:
    """Return a copy of an array for a name that may stand for another one later."""
    b = lowering.builder
    flag = b.new_number(f"{b.prefix}{name}_is_new", "int64")
    b.set_variable(node, flag, ir.Literal(0, "int64"))
    return replace(b.materialise(node, name, array), unless=(flag, array))


class State:
    """What lowering changes, to begin again."""

    def __init__(self, lowering: Lowers) -> None:
        self.lowering = lowering
        self.builder = lowering.builder.state()
        self.scopes = [(s, dict(s.names), dict(s.unbound)) for s in lowering.scopes]
        self.depth, self.loops = lowering.depth, list(lowering.loops)
        self.ends = [(f, list(f.turns), list(f.exits)) for f in lowering.loops]

    def restore(self) -> None:
        """Put everything back."""
        self.lowering.builder.restore(self.builder)
        for scope, names, unbound in self.scopes:
            scope.names, scope.unbound = dict(names), dict(unbound)
        self.lowering.depth, self.lowering.loops = self.depth, list(self.loops)
        for frame, turns, exits in self.ends:
            frame.turns, frame.exits = list(turns), list(exits)


def assigned(body: list[ast.stmt], and_grown: bool = True, scope: Scope | None = None) -> list[str]:
    """Return the names that statements assign, in order; with those of lists that grow.

    `scope`: with those of its lists of which they set items.
    """
    found = []
    for statement in body:
        for n in _of_function(statement):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                found.append(n.id)
            elif isinstance(n, ast.FunctionDef):
                found.append(n.name)
            elif scope and isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
                name = n.value.id if isinstance(n.value, ast.Name) else ""
                found += [name] if isinstance(scope.names.get(name), TupleValue) else []
            elif and_grown and isinstance(n, ast.Expr) and (name := grown_list(n.value)):
                found.append(name)
    return list(dict.fromkeys(found))


def grown_list(node: ast.expr) -> str:
    """Return the name of `name.append(...)` and `name.extend(...)`, "" of others."""
    f = node.func if isinstance(node, ast.Call) else None
    if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name):
        return f.value.id if f.attr in ("append", "extend") else ""
    return ""


def _of_function(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree but the names that comprehensions and functions in it have."""
    yield node
    for field, child in ast.iter_fields(node):
        is_own = isinstance(node, ast.comprehension) and field == "target"
        if is_own or (isinstance(node, ast.FunctionDef | ast.Lambda) and field == "body"):
            continue
        for part in child if isinstance(child, list) else [child]:
            if isinstance(part, ast.AST):
                yield from _of_function(part)


def _stores(node: ast.AST, name: str) -> bool:
    """Return whether a statement itself assigns a name."""
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return isinstance(node, ast.stmt) and any(
        isinstance(n, ast.Name) and n.id == name for t in targets if t for n in ast.walk(t)
    )
