"""For GPUs: where the blocks of a PE wait for one another, and for those of the PEs beside.

A point belongs to a thread within a group, and to any thread in the next one. So a group that
touches points which another group has written, or writes those that another one has read, needs a
barrier between the two: of the PE's own blocks. A row at the border of a PE is stored into the
ghosts of its neighbour when it is written (grid_runtime.hpp); who reads ghosts that have been
written, or writes rows whose ghosts have been read, needs the neighbours' blocks at the barrier.

A reduction is a barrier of all PEs. There is a barrier where accesses since the last one conflict,
and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import Access, accesses, region_access, scalar_accesses
from cpufree.compiler.passes.rows import is_by_rows
from cpufree.errors import EngineError


@dataclass(frozen=True)
class Since:
    """What has been done since the last barrier, and since the last one with the neighbours."""

    own: frozenset[Access] = frozenset()
    beside: frozenset[Access] = frozenset()

    def joined(self, other: Since) -> Since:
        """Return what may have been done on either way."""
        return Since(self.own | other.own, self.beside | other.beside)

    def after(self, done: list[Access]) -> Since:
        """Return this with more that has been done."""
        return Since(self.own | frozenset(done), self.beside | frozenset(done))

    def needs(self, wanted: list[Access]) -> ir.Barrier | None:
        """Return the barrier that must stand before accesses; None: none."""
        far = [(a, b) for a in self.beside for b in wanted if not (a.by_one and b.by_one)]
        if any(a.conflicts(b) and (a.ghosts or b.ghosts) for a, b in far):
            return ir.Barrier(neighbours=True)
        pairs = [(a, b) for a in self.own for b in wanted if a.conflicts(b)]
        if not all(a.by_one and b.by_one for a, b in pairs):
            return ir.Barrier(neighbours=False)
        met = all(a.met for a, _ in pairs)
        return None if met else ir.Barrier(neighbours=False, of_block=True)

    def at(self, barrier: ir.Barrier) -> Since:
        """Return what is left after a barrier."""
        if barrier.of_block:
            parts = self.own, self.beside
            return Since(*(frozenset(replace(a, met=a.by_one) for a in part) for part in parts))
        return Since() if barrier.neighbours else replace(self, own=frozenset())

    def permuted(self, s: ir.Permute) -> Since:
        """Return this after fields have changed their storage."""
        names = dict(zip(s.sources, s.fields, strict=True))
        own, beside = (
            frozenset(a.renamed(names) for a in part) for part in (self.own, self.beside)
        )
        return Since(own, beside)


MOST_POINTS = 600
"""Of the arrays of a group that one block does: a point or two for each of its threads."""


def by_one_block(program: ir.Program) -> ir.Program:
    """Return a program of one PE whose small groups are done by one block, which waits for itself.

    The coarse grids of a V-cycle then wait for no other block.
    """

    def block(body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        return tuple(statement(s) for s in body)

    def statement(s: ir.Statement) -> ir.Statement:
        if not isinstance(s, ir.Group):
            return ir.with_blocks(s, block)
        works = [stage.work for stage in s.stages]
        updates = [w for w in works if isinstance(w, ir.Assign) and is_by_rows(program, w)]
        small = all(math.prod(program.field(w.field).given_shape) <= MOST_POINTS for w in updates)
        return replace(s, by_one=small and len(updates) == len(works))

    return replace(program, body=block(program.body))


def add_barriers(program: ir.Program, alone: bool = False) -> ir.Program:
    """Return a program of groups with the barriers that it needs.

    `alone`: rows are not divided among PEs, no PE keeps ghosts of them.
    """

    def missing(barrier: ir.Barrier, out: list[ir.Statement], _: ir.Statement) -> None:
        out.append(barrier)

    body, _ = _Walk(program, missing, alone).block(program.body, Since())
    return replace(program, body=body)


def check_barriers(program: ir.Program, alone: bool = False) -> None:
    """Follow a program, whatever way it takes, and refuse one that lacks a barrier.

    Raises
    ------
    EngineError
        Two groups touch the same points, and nothing lies between them.
    """

    def missing(barrier: ir.Barrier, _: list[ir.Statement], s: ir.Statement) -> None:
        raise EngineError(f"{barrier} is missing before {s}")

    _Walk(program, missing, alone).block(program.body, Since())


Missing = Callable[[ir.Barrier, list[ir.Statement], ir.Statement], None]


class _Walk:
    def __init__(self, program: ir.Program, missing: Missing, alone: bool) -> None:
        self.program, self.missing, self.alone = program, missing, alone
        self.breaks: list[list[Since]] = []
        self.continues: list[list[Since]] = []

    def block(
        self, body: tuple[ir.Statement, ...], since: Since | None
    ) -> tuple[tuple[ir.Statement, ...], Since | None]:
        """Return statements with barriers, and what has been done after them; None: never there."""
        out: list[ir.Statement] = []
        for s in body:
            if since is None:
                out.append(s)
                continue
            since = self.statement(s, since, out)
        return tuple(out), since

    def statement(self, s: ir.Statement, since: Since, out: list[ir.Statement]) -> Since | None:
        if isinstance(s, ir.Barrier):
            out.append(s)
            return since.at(s)
        if isinstance(s, ir.Permute):
            out.append(s)
            return since.permuted(s)
        if isinstance(s, ir.Break | ir.Continue):
            out.append(s)
            (self.breaks if isinstance(s, ir.Break) else self.continues)[-1].append(since)
            return None
        if isinstance(s, ir.Grant | ir.Start | ir.Finish):
            return self.message(s, since, out)
        if isinstance(s, ir.PutSignal | ir.WaitSignal | ir.Get):
            return self.one_sided(s, since, out)
        if isinstance(s, ir.Group):
            wanted = [a for stage in s.stages for a in accesses(self.program, stage.work)]
            wanted = [replace(a, ghosts=False) for a in wanted] if self.alone else wanted
            wanted = [replace(a, by_one=True) for a in wanted] if s.by_one else wanted
        else:
            wanted = scalar_accesses(self.program, s)
        since = self.ready(wanted, since, out, s)
        if isinstance(s, ir.If):
            return self.branch(s, since, out)
        if isinstance(s, ir.For | ir.Loop):
            return self.loop(s, since, out)
        out.append(s)
        return Since() if isinstance(s, ir.Group) and joins(self.program, s) else since

    def message(self, s: ir.Statement, since: Since, out: list[ir.Statement]) -> Since:
        """Follow messages: what is sent is read, what is granted may be written by others.

        A grant needs all blocks to be done with its region, and counts for nothing afterwards:
        no block touches the region until the message has arrived, and then each block has waited
        itself. One block reads what is sent, until the messages are finished.
        """
        if isinstance(s, ir.Grant):
            wanted = [region_access(m.region, True) for m in s.receives]
            since = self.met(since.needs(wanted), since, out, s)
        elif isinstance(s, ir.Start | ir.Finish):
            since = self.ready([region_access(m.region, False) for m in s.sends], since, out, s)
        out.append(s)
        return since

    def one_sided(
        self, s: ir.PutSignal | ir.WaitSignal | ir.Get, since: Since, out: list[ir.Statement]
    ) -> Since:
        """Follow puts and gets: a signal tells others of all that the rank has done before."""
        if isinstance(s, ir.PutSignal):
            since = self.met(ir.Barrier(False) if since.own else None, since, out, s)
        if not isinstance(s, ir.WaitSignal) and s.region is not None:
            since = self.ready([region_access(s.region, isinstance(s, ir.Get))], since, out, s)
        out.append(s)
        return since

    def ready(
        self, wanted: list[Access], since: Since, out: list[ir.Statement], s: ir.Statement
    ) -> Since:
        """Add the barrier that accesses need; return what has been done after them."""
        return self.met(since.needs(wanted), since, out, s).after(wanted)

    def met(
        self, barrier: ir.Barrier | None, since: Since, out: list[ir.Statement], s: ir.Statement
    ) -> Since:
        """Add a barrier; return what has been done since."""
        if barrier is None:
            return since
        self.missing(barrier, out, s)
        return since.at(barrier)

    def branch(self, s: ir.If, since: Since, out: list[ir.Statement]) -> Since | None:
        then, one = self.block(s.then, since)
        otherwise, other = self.block(s.otherwise, since)
        out.append(replace(s, then=then, otherwise=otherwise))
        if one is None or other is None:
            return one or other
        return one.joined(other)

    def loop(self, s: ir.For | ir.Loop, since: Since, out: list[ir.Statement]) -> Since | None:
        """Follow a loop: its head is reached from before, from its end and by continue."""
        head = since
        while True:
            self.breaks.append([])
            self.continues.append([])
            body, after = self.block(s.body, head)
            breaks, continues = self.breaks.pop(), self.continues.pop()
            joined = head
            for state in (after, *continues):
                joined = joined if state is None else joined.joined(state)
            if joined == head:
                break
            head = joined
        out.append(replace(s, body=body))
        ends = [head, *breaks] if isinstance(s, ir.For) else breaks
        left: Since | None = None
        for state in ends:
            left = state if left is None else left.joined(state)
        return left


def joins(program: ir.Program, group: ir.Group) -> bool:
    """Return whether a group ends with a reduction over all PEs."""
    return any(
        isinstance(stage.work, ir.Reduce) and is_by_rows(program, stage.work)
        for stage in group.stages
    )
