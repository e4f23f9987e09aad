"""The intermediate representation: fields, stages, reductions and control flow as plain data.

All front ends make it, all passes change it, all back ends read it. A tree of frozen dataclasses:
`show` prints it, `saved` writes it as JSON. Types are NumPy's names of dtypes.

A stage computes the points r = (r0, r1, ...) of a box of a field, 0 <= r_a < count_a; a point lies
at start_a + step_a r_a of the field. An expression reads fields at points that depend on r by
`Axis`, one for each axis of the field read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from cpufree.compiler.ir_expressions import (
    FIXED,
    FOLDED,
    Axis,
    Choice,
    Element,
    Expr,
    Fold,
    Literal,
    Op,
    Read,
    Scalar,
    Span,
    children,
    elements,
    reads,
    with_reads,
)

__all__ = [
    "FIXED", "FOLDED", "TYPES", "Assign", "Axis", "Barrier", "Break", "Choice", "Continue",
    "Element", "Exchange", "Expr", "Field", "Finish", "Fold", "For", "Get", "Grant", "Group",
    "Halo", "If", "Literal", "Loop", "Message", "Op", "Permute", "Program", "Put", "PutSignal",
    "Read", "Reduce", "Region", "Scalar", "Set", "Span", "Stage", "Start", "Statement", "Wait",
    "WaitSignal", "blocks", "children", "elements", "reads", "touched_fields", "walk",
    "with_blocks", "with_reads",
]  # fmt: skip

TYPES = ("bool", "int32", "int64", "float32", "float64")


@dataclass(frozen=True)
class Assign:
    """Computes the points of a box of a field."""

    field: str
    box: tuple[Span, ...]
    value: Expr
    line: int = 0


@dataclass(frozen=True)
class Reduce:
    """Sets the scalar `name` to the sum, max or min of a value over all points of a box.

    The box is of field `over`, "" where all PEs compute the same.
    """

    name: str
    op: str
    over: str
    box: tuple[Span, ...]
    value: Expr
    type: str
    line: int = 0


@dataclass(frozen=True)
class Set:
    """Sets a scalar variable."""

    name: str
    value: Expr
    line: int = 0


@dataclass(frozen=True)
class Permute:
    """Fields of one shape and type change their storage: fields[k] gets that of sources[k].

    The caller's arrays stand for storage. `values`: it is as if the values had been copied instead.
    """

    fields: tuple[str, ...]
    sources: tuple[str, ...]
    line: int = 0
    values: bool = False


@dataclass(frozen=True)
class For:
    """Repeats the body for var = start, start + step, ... below (step < 0: above) stop."""

    var: str
    start: Expr
    stop: Expr
    step: int
    body: tuple[Statement, ...]
    line: int = 0


@dataclass(frozen=True)
class Loop:
    """Repeats the body until a Break."""

    body: tuple[Statement, ...]
    line: int = 0


@dataclass(frozen=True)
class If:
    """Takes one of two ways; the condition is a scalar that all PEs know."""

    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Break:
    """Leaves the innermost loop."""


@dataclass(frozen=True)
class Continue:
    """Begins the innermost loop's next turn."""


@dataclass(frozen=True)
class Halo:
    """Rows of a field that come from the PE before (`below`) and from the one behind (`above`)."""

    field: str
    below: int
    above: int
    periodic: bool


@dataclass(frozen=True)
class Put:
    """Sends halos to the PEs beside: rows, then a flag. `channel` numbers the exchanges."""

    channel: int
    halos: tuple[Halo, ...]


@dataclass(frozen=True)
class Wait:
    """Waits for the flags of the Put of the same channel."""

    channel: int
    halos: tuple[Halo, ...]


@dataclass(frozen=True)
class Barrier:
    """All blocks of a PE wait for one another; `neighbours`: and for those of the PEs beside.

    `of_block`: the threads of each block alone do.
    """

    neighbours: bool
    of_block: bool = False


@dataclass(frozen=True)
class Exchange:
    """Blocks, each with a tile of every field on chip, bring one another's ghosts up to date."""

    fields: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """An Assign or Reduce in a group, `lag` rows behind the rows of the group.

    A PE does its own rows, and N rows before them and behind them.
    """

    work: Assign | Reduce
    lag: int
    below: int = 0
    above: int = 0


@dataclass(frozen=True)
class Group:
    """Stages that go over the rows of a PE together; `by_one`: one block does all points."""

    stages: tuple[Stage, ...]
    by_one: bool = False


@dataclass(frozen=True)
class Region:
    """The points of a box of a field."""

    field: str
    box: tuple[Span, ...]


@dataclass(frozen=True)
class Message:
    """A region that a rank sends or receives at a site; ranks/routes.py has the other end."""

    site: int
    region: Region
    line: int = 0


@dataclass(frozen=True)
class Grant:
    """The regions of the next messages of an exchange may be written by others from now on."""

    exchange: int
    receives: tuple[Message, ...]


@dataclass(frozen=True)
class Start:
    """Begins to put the regions that an exchange sends."""

    exchange: int
    sends: tuple[Message, ...]


@dataclass(frozen=True)
class Finish:
    """Ends an exchange's puts, goes on with those of `others`, and waits for its receives."""

    exchange: int
    sends: tuple[Message, ...]
    receives: tuple[Message, ...]
    others: tuple[int, ...] = ()


@dataclass(frozen=True)
class PutSignal:
    """Puts a region (or none) to a rank, ungranted, then raises a signal there (-1: none)."""

    site: int
    region: Region | None
    signal: int
    value: Expr


@dataclass(frozen=True)
class WaitSignal:
    """Waits until a signal of this rank has reached a value."""

    signal: int
    value: Expr


@dataclass(frozen=True)
class Get:
    """Fetches a region of another rank's into one of this rank's."""

    site: int
    region: Region


Statement: TypeAlias = (
    "Assign | Reduce | Set | Permute | For | Loop | If | Break | Continue | Put | Wait | Barrier "
    "| Exchange | Group | Grant | Start | Finish | PutSignal | WaitSignal | Get"
)


@dataclass(frozen=True)
class Field:
    """An array: of the caller (argument), of the program's text (constant), or the program's own.

    Distributed fields are divided along axis 0; of others every PE has a copy. `axis` is the one
    of the caller's array that is axis 0 here; the others follow in their order. Row k of that array
    is row first + k * apart here: those of a coarse grid lie where the fine ones lie that they
    stand for.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    role: str
    distributed: bool = True
    axis: int = 0
    apart: int = 1
    first: int = 0
    plane: tuple[str, int] | None = None
    """Of a plane: the array that it is of, and its index along that array's first axis."""

    @property
    def steps(self) -> tuple[int, ...]:
        """The distance of the points along each axis."""
        return (self.apart, *[1] * (len(self.shape) - 1))

    @property
    def given_shape(self) -> tuple[int, ...]:
        """The points along each axis: without the rows between, which nothing uses."""
        return (-(-(self.shape[0] - self.first) // self.apart), *self.shape[1:])

    @property
    def whole(self) -> tuple[Span, ...]:
        """The box of all points."""
        first, *others = zip(self.steps, self.given_shape, strict=True)
        return (Span(self.first, *first), *(Span(0, d, n) for d, n in others))

    @property
    def is_dense(self) -> bool:
        """Whether all rows are the caller's."""
        return self.apart == 1 and not self.first

    @property
    def rows(self) -> slice:
        """The rows that are the caller's."""
        return slice(self.first, None, self.apart)


@dataclass(frozen=True)
class Program:
    """A program for arrays of given shapes and types."""

    name: str
    fields: tuple[Field, ...]
    scalars: tuple[tuple[str, str], ...]
    """Arguments: name and type."""
    variables: tuple[tuple[str, str], ...]
    """Scalars that the program sets: name and type."""
    body: tuple[Statement, ...]
    results: tuple[str, ...] = ()
    """Variables that the caller gets."""
    lines: dict[str, str] = field(default_factory=dict, compare=False)
    """The text of the lines that statements are of, by number, for display."""

    def field(self, name: str) -> Field:
        """Return the field of a name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {f.name: f for f in self.fields}

    @cached_property
    def written(self) -> frozenset[str]:
        """The names of the fields that the program writes."""
        return frozenset(touched_fields(self.body))


def blocks(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """Return the lists of statements inside a statement."""
    if isinstance(statement, For | Loop):
        return (statement.body,)
    return (statement.then, statement.otherwise) if isinstance(statement, If) else ()


def with_blocks(
    statement: Statement, change: Callable[[tuple[Statement, ...]], tuple[Statement, ...]]
) -> Statement:
    """Return a statement whose lists of statements are changed."""
    if isinstance(statement, For | Loop):
        return dataclasses.replace(statement, body=change(statement.body))
    if isinstance(statement, If):
        then, otherwise = change(statement.then), change(statement.otherwise)
        return dataclasses.replace(statement, then=then, otherwise=otherwise)
    return statement


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield all statements, those inside others and in groups too."""
    for statement in body:
        yield statement
        if isinstance(statement, Group):
            yield from (stage.work for stage in statement.stages)
        for block in blocks(statement):
            yield from walk(block)


def touched_fields(body: tuple[Statement, ...]) -> set[str]:
    """Return the fields that statements write, or whose storage they change."""
    found: set[str] = set()
    for s in walk(body):
        if isinstance(s, Assign):
            found.add(s.field)
        if isinstance(s, Permute):
            found.update(s.fields)
    return found
