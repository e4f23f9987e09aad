"""For GPUs: several turns of a loop between two exchanges, by computing ghosts, too.

In a round of some turns a group computes its points beyond the block's own part, as far as what
follows in the round reads them: its margin. Ghosts must be that much wider, and blocks compute some
points twice; in return they wait for one another once in a round.

The margins. Let R be how far a group reads, along an axis. Of the last turn the last group needs
no margin; each group before needs the sum of the R of all that follow it. With S the sum of R over
all groups of a turn, a group of turn s of n has the margin (n - 1 - s) S + (sum of R of the groups
after it in the turn). It reads R more. So ghosts of n S suffice, along a ring as long as they do
not go around it more than once.

Which ghosts must be fresh when a round begins: of fields whose points are read before they are
computed in the round. A field whose first stage is a write, and which no stage writes outside of
that box, needs no exchange: inside the box the round computes its ghosts itself, and outside they
never change.
"""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.compiler import ir
from cpufree.compiler.passes.tiles import Ghosts, NotOnChip, ghosts_of, ghosts_of_stage

_MOST_TURNS = 24
"""Turns that are followed until storage has gone round."""
Reach = tuple[int, int]
"""Rows, columns."""


@dataclass(frozen=True)
class Rounds:
    """What rounds of a program's loop are.

    Attributes
    ----------
    loop : ir.For
        All of the program.
    reach : tuple of int
        How far a turn reads: rows, columns.
    after : tuple
        For each group of the loop, how far those after it read in the same turn.
    exchanged : tuple of str
        Fields whose ghosts must be fresh when a round begins.
    ring : tuple of bool
        Whether rows, columns go around.
    """

    loop: ir.For
    reach: Reach
    after: tuple[Reach, ...]
    exchanged: tuple[str, ...]
    ring: tuple[bool, bool]


def rounds_of(program: ir.Program) -> Rounds | None:
    """Return the rounds of a program of groups; None: it has none.

    Raises
    ------
    NotOnChip
        Its points do not lie in tiles.
    """
    if len(program.body) != 1 or not isinstance(program.body[0], ir.For):
        return None
    loop = program.body[0]
    if loop.step < 1 or not all(isinstance(s, ir.Group | ir.Permute) for s in loop.body):
        return None
    groups = [s for s in loop.body if isinstance(s, ir.Group)]
    works = [stage.work for g in groups for stage in g.stages]
    if not groups or any(isinstance(w, ir.Reduce) for w in works):
        return None
    ghosts = ghosts_of(program)
    ring = any(g.ring0 for g in ghosts.values()), any(g.ring1 for g in ghosts.values())
    if not _ends_are_alike(program, ring) or _reads_factors_around(program, works, ring):
        return None
    reaches = [_reach(program, g) for g in groups]
    after = tuple(_sum(reaches[k + 1 :]) for k in range(len(groups)))
    return Rounds(loop, _sum(reaches), after, _exchanged(program, loop), ring)


def ghosts_in_rounds(program: ir.Program, rounds: Rounds, turns: int) -> dict[str, Ghosts]:
    """Return the ghosts that rounds of N turns need, of each distributed field.

    Raises
    ------
    NotOnChip
        They would go around a ring more than once.
    """
    for f in program.fields:
        for axis, n in enumerate(f.shape[:2] if f.distributed else ()):
            if rounds.ring[axis] and turns * rounds.reach[axis] > n:
                raise NotOnChip(f"{turns} turns would go around {f.name}, of {n} points, twice")
    rows, columns = (turns * r for r in rounds.reach)
    wide = Ghosts(rows, columns, *rounds.ring, corners=bool(rows and columns))
    return {f.name: wide for f in program.fields if f.distributed}


def _sum(reaches: list[Reach]) -> Reach:
    return sum(r for r, _ in reaches), sum(c for _, c in reaches)


def _reach(program: ir.Program, group: ir.Group) -> Reach:
    found = [g for s in group.stages for g in ghosts_of_stage(program, s.work).values()]
    rows = max((g.around for g in found), default=0)
    return rows, max((g.beside for g in found), default=0)


def _ends_are_alike(program: ir.Program, ring: tuple[bool, bool]) -> bool:
    """Return whether along axes that go around all points are computed, of fields of one size.

    Points beyond an end are then those of the other end, computed alike.
    """
    for axis, goes_around in enumerate(ring):
        if not goes_around:
            continue
        sizes = {f.shape[axis] for f in program.fields if f.distributed}
        if len(sizes) > 1:
            return False
        whole = ir.Span(0, 1, sizes.pop())
        for s in ir.walk(program.body):
            if isinstance(s, ir.Assign) and s.box[axis] != whole:
                return False
    return True


def _reads_factors_around(
    program: ir.Program, works: list[ir.Assign | ir.Reduce], ring: tuple[bool, bool]
) -> bool:
    """Return whether a stage reads an array that has no ghosts along an axis that goes around.

    A margin may lie beyond the ends there.
    """
    around = {axis for axis, goes in enumerate(ring) if goes}
    reads = (r for w in works for r in ir.reads(w.value))
    return any(
        a.dim in around for r in reads if not program.field(r.field).distributed for a in r.axes
    )


def _exchanged(program: ir.Program, loop: ir.For) -> tuple[str, ...]:
    """Return the fields of which a round reads points that it has not computed."""
    return _followed(program, loop)[0]


def first_boxes(program: ir.Program, loop: ir.For) -> dict[str, tuple[ir.Span, ...]]:
    """Return, of fields that a round computes before it reads them, the box that is computed."""
    return _followed(program, loop)[1]


Boxes = dict[str, tuple[ir.Span, ...]]


def _followed(program: ir.Program, loop: ir.For) -> tuple[tuple[str, ...], Boxes]:
    """Follow some turns; return the fields whose ghosts must be fresh, and the first writes."""
    names = [f.name for f in program.fields if f.distributed]
    holds = {name: name for name in names}  # name: the one that had its storage at the begin
    first: Boxes = {}
    stale: set[str] = set()
    written = {s.field for s in ir.walk(loop.body) if isinstance(s, ir.Assign)}
    written |= {n for s in ir.walk(loop.body) if isinstance(s, ir.Permute) for n in s.fields}
    for _ in range(_MOST_TURNS):
        for s in loop.body:
            if isinstance(s, ir.Permute):
                moved = {f: holds[g] for f, g in zip(s.fields, s.sources, strict=True)}
                holds.update(moved)
                continue
            assert isinstance(s, ir.Group)
            for stage in s.stages:
                work = stage.work
                read = {r.field for r in ir.reads(work.value)} & set(names)
                stale |= {holds[n] for n in read if holds[n] not in first and n in written}
                if isinstance(work, ir.Assign):
                    mine = holds[work.field]
                    if not _inside(work.box, first.setdefault(mine, work.box)):
                        stale.add(mine)
        if all(name == held for name, held in holds.items()):
            return tuple(sorted(stale)), first
    return tuple(sorted(written)), {}


def _inside(box: tuple[ir.Span, ...], other: tuple[ir.Span, ...]) -> bool:
    return all(
        a.start >= b.start and a.stop <= b.stop and b.step == 1
        for a, b in zip(box, other, strict=True)
    )
