"""What names stand for where ways of a program meet.

Ways meet at the head of a loop (from before it, and from the end of each turn), behind a loop,
and behind a branch. There the values that a name has on all of them are compared, of whatever kind,
leaf by leaf of a tuple:

- they are the same: the name keeps the value;
- they are numbers: a variable of the program gets the value at the end of each way;
- they are arrays: fields change their storage at the end of a way, so that all find the array in
  one field;
- else the name has no value from there on, and to use it is an error that says why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from cpufree.compiler import ir
from cpufree.compiler.front.numbers import kinds
from cpufree.compiler.front.protocols import Lowers
from cpufree.compiler.front.text.helpers import helper_of
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    ScalarValue,
    TupleValue,
    Value,
    form,
    is_number,
    leaves,
    same,
    unpacked,
    with_leaves,
)
from cpufree.compiler.operations import Kind, kinds_of, stored

NO_VALUE = "may have no value here: "
Leaf: TypeAlias = "tuple[str, int]"
"""A name, and the number of a leaf of its value."""


@dataclass(eq=False)
class Join:
    """Takes the place of statements at the end of a way, until all ways have been lowered."""

    statements: list[ir.Statement] = field(default_factory=list)


@dataclass(eq=False)
class End:
    """The end of a way: what the names stand for there."""

    join: Join
    names: dict[str, Value]
    unbound: dict[str, str]
    fixed: frozenset[str] = frozenset()
    """Fields that are seen by names which stand for the same before and behind."""
    may_move: bool = True
    """Fields may change their storage here."""
    moved: dict[str, str] = field(default_factory=dict)
    """Of arrays whose field changes: which one has it behind the join."""
    sources: frozenset[str] = frozenset()
    """Fields whose array a name has behind the join."""


def end_here(lowering: Lowers, names: list[str], why: str) -> End:
    """Return the end of the way that is being lowered, with its join; `why` a name has no value."""
    scope = lowering.scope
    fixed = {
        seen
        for s in lowering.scopes
        for name, value in s.names.items()
        for leaf in leaves(value)
        for seen in _fields_seen(leaf, s is scope and name in names)
    }
    end = End(
        Join(),
        {name: unpacked(scope.names[name]) for name in names if name in scope.names},
        {name: scope.unbound.get(name, NO_VALUE + why) for name in names},
        frozenset(fixed),
    )
    lowering.builder.out.append(end.join)  # type: ignore[arg-type]
    return end


def without_joins(body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
    """Return statements with those of joins in their places."""
    out: list[ir.Statement] = []
    for s in body:
        out += s.statements if isinstance(s, Join) else [ir.with_blocks(s, without_joins)]
    return tuple(out)


class Meeting:
    """Lets ways meet: `after` is what names stand for behind, `lost` why others do no more.

    `reference` says where arrays are to be found. `variables` are those that numbers have already;
    at a loop's head (`is_head`) the numbers of no others may change: `grown` has the kinds of those
    that need a variable, or one of other kinds.
    """

    def __init__(
        self,
        lowering: Lowers,
        node: ast.AST,
        ends: list[End],
        reference: dict[str, Value],
        variables: dict[Leaf, str] | None = None,
        is_head: bool = False,
    ) -> None:
        self.lowering, self.node, self.ends, self.is_head = lowering, node, ends, is_head
        self.variables = variables or {}
        self.after: dict[str, Value] = {}
        self.lost: dict[str, str] = {}
        self.grown: dict[Leaf, Kind] = {}
        self.copyable: set[str] = set()
        """Names that are lost, and would not be if they stood for a copy of their array."""
        self.slots: list[tuple[str, ArrayValue, list[ArrayValue]]] = []
        self.numbers: list[tuple[Leaf, list[ScalarValue], ScalarValue]] = []
        for name, value in reference.items():
            self._meet(name, value)
        while not all(self._finds_storage(k) for k in range(len(ends))):
            pass
        if not (is_head and (self.lost or self.grown)):
            self._write()

    # --- values ---

    def _meet(self, name: str, value: Value) -> None:
        found = []
        for end in self.ends:
            if name not in end.names:
                self.lost[name] = end.unbound[name]
                return
            found.append(end.names[name])
        for other in found:
            if form(other) != form(value):
                self._differ(name, value, other)
                return
        out: list[Value] = []
        rows = zip(leaves(value), *map(leaves, found), strict=True)
        for k, (leaf, *ways) in enumerate(rows):
            made = self._leaf((name, k), leaf, ways)
            if made is None:
                other = next((w for w in ways if not same(w, leaf)), leaf)
                self._differ(name, leaf, other)
                return
            out.append(made)
        self.after[name] = with_leaves(value, iter(out))

    def _leaf(self, at: Leaf, leaf: Value, ways: list[Value]) -> Value | None:
        if isinstance(leaf, ArrayValue):
            arrays = [w for w in ways if isinstance(w, ArrayValue) and _may_change(leaf, w)]
            self.slots.append((at[0], leaf, arrays))
            return leaf if len(arrays) == len(ways) else None
        if at not in self.variables and all(same(leaf, w) for w in ways):
            return leaf
        if all(is_number(v) for v in (leaf, *ways)):
            return self._number(at, leaf, ways)
        return None

    def _number(self, at: Leaf, leaf: Value, ways: list[Value]) -> Value | None:
        b = self.lowering.builder
        operands = [b.operand(self.node, v) for v in (leaf, *ways)]
        head, *numbers = [o for o in operands if isinstance(o, ScalarValue)]
        kind = kinds.either(n.kind for n in ((head, *numbers) if self.is_head else numbers))
        if not all(kinds.keeps_value(n, kind) for n in numbers):
            return None
        if self.is_head and (at not in self.variables or kind != head.kind):
            self.grown[at] = kind
            return head
        variable = self.variables.get(at)
        if variable is None or not self._holds(variable, kind):
            if all(n.expr == numbers[0].expr and n.tag == numbers[0].tag for n in numbers):
                return numbers[0]
            variable = b.new_number(b.prefix + at[0], kind)
        made = b.number(variable, kind)
        self.numbers.append((at, numbers, made))
        return made

    def _holds(self, variable: str, kind: Kind) -> bool:
        variables = self.lowering.builder.variables
        tagged = variable in self.lowering.builder.tags
        return variables[variable] == stored(kind) and (tagged or len(kinds_of(kind)) == 1)

    def _differ(self, name: str, one: Value, other: Value) -> None:
        where = "on one way", "on another"
        if self.is_head:
            where = "before the loop", "at the end of a turn"
        words = _words(one), _words(other)
        if words[0] == words[1]:
            words = "one thing", f"another one ({words[1]})"
        self.lost[name] = f"is {words[0]} {where[0]} and {words[1]} {where[1]}"

    # --- storage ---

    def _finds_storage(self, k: int) -> bool:
        """Find what has to move at an end; False: a name has been lost, others may move now."""
        b, end = self.lowering.builder, self.ends[k]
        claims = {name: name for name in end.fixed}
        of_name: dict[str, str] = {}
        slots = [(n, leaf, ways[k]) for n, leaf, ways in self.slots if n not in self.lost]
        for name, leaf, now in sorted(slots, key=lambda s: s[1].field != s[2].field):
            to, here = leaf.field, now.field
            if claims.get(to) == here:
                continue
            there, has = b.fields[to], b.fields[here]
            alike = (there.given_shape, there.type) == (has.given_shape, has.type)
            if alike and there.distributed != has.distributed:
                return self._lose(name, "is divided among PEs on one way, and not on another")
            if not (alike and b.grids.tie(to, here, Fraction(1))):
                changes = f"{there.type} {there.given_shape} to {has.type} {has.given_shape}"
                return self._lose(name, f"changes from {changes}")
            if to in claims or here in claims.values():
                return self._lose(name, _SHARED, copyable=to in end.fixed)
            if to != here and ("constant" in (there.role, has.role) or not end.may_move):
                why = "is another array on one way than on another"
                return self._lose(name, why, copyable=there.role == "constant")
            claims[to], of_name[to] = here, name
        end.moved = {}
        moves = {to: here for to, here in claims.items() if to != here}
        for to in moves:
            if to not in moves.values() and b.fields[to].role == "argument":
                return self._lose(of_name[to], _OF_CALLER, copyable=True)
        if moves:
            full = _closed(moves)
            end.sources = frozenset(moves.values())
            end.moved = {here: to for to, here in full.items()}
        return True

    def _lose(self, name: str, why: str, copyable: bool = False) -> bool:
        self.lost[name] = why
        if copyable:
            self.copyable.add(name)
        return False

    # --- statements ---

    def _write(self) -> None:
        b = self.lowering.builder
        line = b.line(self.node)
        for name in self.lost:
            self.after.pop(name, None)
        for k, end in enumerate(self.ends):
            out = end.join.statements
            for at, numbers, made in self.numbers:
                if at[0] not in self.lost:
                    out += b.set_number(self.node, made, numbers[k])
            for name, leaf, ways in self.slots:
                if name not in self.lost and leaf.unless and not ways[k].unless:
                    out.append(ir.Set(leaf.unless[0], ir.Literal(1, "int64"), line))
            if end.moved:
                lost = frozenset(to for to in end.moved.values() if to not in end.sources)
                b.permutes.append((self.node, frozenset(end.moved), lost))
                out.append(ir.Permute(tuple(end.moved.values()), tuple(end.moved), line))


_SHARED = "is the array of another name on one way, and not on another"
_OF_CALLER = "is the caller's array on one way, and an array of the program's own on another"


def _fields_seen(leaf: Value, may_change: bool) -> Iterator[str]:
    """Yield the fields that an array shows; `may_change`: only of those that must stay."""
    if not (isinstance(leaf, ArrayValue) and leaf.is_view):
        return
    if not may_change:
        yield leaf.field
    if leaf.unless:
        yield from _fields_seen(leaf.unless[1], False)


def _may_change(leaf: Value, now: Value) -> bool:
    """Return whether one value becomes the other one where fields change their storage."""
    if not (isinstance(leaf, ArrayValue) and isinstance(now, ArrayValue)):
        return False
    if not (leaf.is_view and now.is_view) or (now.unless and now.unless != leaf.unless):
        return False
    assert isinstance(now.expr, ir.Read)
    return same(replace(now, expr=replace(now.expr, field=leaf.field), unless=leaf.unless), leaf)


def _closed(moves: dict[str, str]) -> dict[str, str]:
    """Return the permutation that has these moves: chains are closed to circles."""
    full = dict(moves)
    for first in [f for f in moves if f not in moves.values()]:
        last = first
        while last in moves:
            last = moves[last]
        full[last] = first
    return full


def _words(value: Value) -> str:
    """Return what a value is, for an error."""
    if isinstance(value, Host):
        if helper_of(value.value):
            return "a function"
        text = repr(value.value)
        return text if len(text) < 30 else f"a {type(value.value).__name__}"
    if isinstance(value, TupleValue):
        return "a list" if value.is_list else "a tuple"
    if isinstance(value, ScalarValue):
        return kinds.words(value.kind)
    assert isinstance(value, ArrayValue)
    return f"an array of shape {value.shape}" if not value.is_part else "a part of an array"
