"""For GPUs: values that stay on chip. Which programs can, and where blocks exchange ghosts.

A block owns a tile of every field: the points whose indices along the first two axes are in its
part. Around it lie ghosts, copies of points of other blocks (tile_runtime.hpp). A group computes
the points of the block's own part. It may read ghosts that are fresh: loaded at the begin, or
exchanged after their points were written. Blocks need no other barrier: a ghost is a copy, which
its owner overwrites in an exchange alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.passes.rows import Work, is_by_rows, written
from cpufree.errors import EngineError

Body = tuple[ir.Statement, ...]


@dataclass(frozen=True)
class Ghosts:
    """What blocks keep around a tile of a field: rows, columns, of either side."""

    around: int = 0
    beside: int = 0
    ring0: bool = False
    ring1: bool = False
    corners: bool = False

    def joined(self, other: Ghosts) -> Ghosts:
        """Return what two fields need that change places."""
        return Ghosts(
            max(self.around, other.around),
            max(self.beside, other.beside),
            self.ring0 or other.ring0,
            self.ring1 or other.ring1,
            self.corners or other.corners,
        )


class NotOnChip(Exception):
    """Why a program's values do not stay on chip."""


def offsets(program: ir.Program, read: ir.Read, work: Work) -> tuple[tuple[int, bool], ...]:
    """Return how far a read is from a stage's point along each axis, and whether it goes around.

    Raises
    ------
    NotOnChip
        The distance is not the same for all points.
    """
    if len(read.axes) != len(work.box):
        raise NotOnChip(
            f"line {work.line}: {read.field} has other dimensions than what is computed"
        )
    if any(a.dim <= ir.FOLDED for a in read.axes):
        raise NotOnChip(f"line {work.line}: all points of {read.field} along an axis are joined")
    shape = program.field(read.field).shape
    sizes = program.field(work.field if isinstance(work, ir.Assign) else work.over).shape
    found = []
    for k, (a, span, n, size) in enumerate(zip(read.axes, work.box, shape, sizes, strict=True)):
        if a.wrap:
            if a.dim != k or a.start or a.step != 1 or span.step != 1 or not a.wrap == n == size:
                raise NotOnChip(f"line {work.line}: {read.field} is rolled along another axis")
            shift = (a.shift - span.start) % n
            shift = shift - n if shift > n // 2 else shift
            found.append((shift, shift != 0))
        elif span.count == 1:
            distance = a.start - span.start
            # Opposite ends are neighbours, of axes that blocks divide, and fields of one size.
            around = k < 2 and n == size and abs(distance) > n // 2
            found.append((distance - (n if distance > 0 else -n) if around else distance, around))
        elif a.dim == k and a.step == span.step:
            found.append((a.start - span.start, False))
        else:
            raise NotOnChip(
                f"line {work.line}: {read.field} is not read at a constant distance along axis {k}"
            )
    return tuple(found)


def ghosts_of(program: ir.Program) -> dict[str, Ghosts]:
    """Return the ghosts of each distributed field.

    Raises
    ------
    NotOnChip
        The program does not qualify.
    """
    found = {f.name: Ghosts() for f in program.fields if f.distributed}
    dims = {len(f.shape) for f in program.fields if f.distributed}
    if len(dims) != 1:
        raise NotOnChip("its arrays have different numbers of dimensions")
    if max(dims) > 3:
        raise NotOnChip("its arrays have more than three dimensions")
    for s in ir.walk(program.body):
        if isinstance(s, ir.Assign | ir.Reduce):
            for name, ghosts in ghosts_of_stage(program, s).items():
                found[name] = found[name].joined(ghosts)
    changed = True
    while changed:  # fields that change places are kept alike
        changed = False
        for s in ir.walk(program.body):
            if isinstance(s, ir.Permute):
                if not found.keys() >= set(s.fields):
                    raise NotOnChip(f"line {s.line}: arrays that every PE has change places")
                joined = Ghosts()
                for name in s.fields:
                    joined = joined.joined(found[name])
                changed = changed or any(found[name] != joined for name in s.fields)
                found.update(dict.fromkeys(s.fields, joined))
    return found


def ghosts_of_stage(program: ir.Program, work: Work) -> dict[str, Ghosts]:
    """Return the ghosts that a stage reads, by field; NotOnChip where it does not qualify."""
    if not is_by_rows(program, work):
        raise NotOnChip(f"line {work.line} computes an array that every PE has whole")
    found: dict[str, Ghosts] = {}
    places = [span.index for span in work.box]
    places += [a.index for r in ir.reads(work.value) for a in r.axes]
    if any(place is not None for place in places):
        raise NotOnChip(f"line {work.line} has an index of the run")
    for e in ir.elements(work.value):
        if program.field(e.field).distributed:
            raise NotOnChip(f"line {work.line} reads {e.field} at an index of the run")
    for read in ir.reads(work.value):
        f = program.field(read.field)
        if not f.distributed:
            continue
        away = [*offsets(program, read, work), (0, False), (0, False)]
        if len(f.shape) > 2 and away[2][1]:
            raise NotOnChip(f"line {work.line}: {f.name} is periodic along its last axis")
        (rows, ring0), (columns, ring1) = away[0], away[1] if len(f.shape) > 1 else (0, False)
        ghosts = Ghosts(abs(rows), abs(columns), ring0, ring1, bool(rows and columns))
        found[f.name] = found.get(f.name, Ghosts()).joined(ghosts)
    return found


def ghosts_read(program: ir.Program, group: ir.Group) -> set[str]:
    """Return the fields of which a group reads points of other blocks."""
    return {
        name
        for stage in group.stages
        for name, ghosts in ghosts_of_stage(program, stage.work).items()
        if ghosts.around or ghosts.beside
    }


def add_exchanges(program: ir.Program) -> ir.Program:
    """Return a program of groups with exchanges where they are needed and nowhere else."""

    def missing(fields: set[str], out: list[ir.Statement]) -> None:
        out.append(ir.Exchange(tuple(sorted(fields))))

    body, _ = _Walk(program, missing).block(program.body, frozenset())
    return replace(program, body=body)


def check_exchanges(program: ir.Program) -> None:
    """Follow a program, whatever way it takes, and refuse one that reads a stale ghost.

    Raises
    ------
    EngineError
        An exchange is missing.
    """

    def missing(fields: set[str], _: list[ir.Statement]) -> None:
        raise EngineError(f"an exchange of {', '.join(sorted(fields))} is missing")

    _Walk(program, missing).block(program.body, frozenset())


Stale = frozenset[str]
Missing = Callable[[set[str], list[ir.Statement]], None]


class _Walk:
    """Follows which ghosts are stale: those of fields written since they were exchanged."""

    def __init__(self, program: ir.Program, missing: Missing) -> None:
        self.program, self.missing = program, missing

    def block(self, body: Body, stale: Stale) -> tuple[Body, Stale]:
        out: list[ir.Statement] = []
        for s in body:
            if isinstance(s, ir.Exchange):
                stale -= set(s.fields)
                out.append(s)
            elif isinstance(s, ir.Group):
                needed = ghosts_read(self.program, s) & stale
                if needed:
                    self.missing(needed, out)
                    stale -= needed
                stale |= {written(stage.work) for stage in s.stages} - {""}
                out.append(s)
            elif isinstance(s, ir.Permute):
                names = dict(zip(s.sources, s.fields, strict=True))
                stale = frozenset(names.get(name, name) for name in stale)
                out.append(s)
            elif isinstance(s, ir.If):
                then, one = self.block(s.then, stale)
                otherwise, other = self.block(s.otherwise, stale)
                out.append(replace(s, then=then, otherwise=otherwise))
                stale = one | other
            elif isinstance(s, ir.For | ir.Loop):
                made, stale = self.loop(s, stale)
                out.append(made)
            else:
                out.append(s)
        return tuple(out), stale

    def loop(self, s: ir.For | ir.Loop, stale: Stale) -> tuple[ir.Statement, Stale]:
        """Follow a loop. Its head is reached from its end, too; a break may leave all stale."""
        has_exits = any(isinstance(x, ir.Break | ir.Continue) for x in ir.walk(s.body))
        head = stale | ir.touched_fields(s.body) if has_exits else stale
        while True:
            body, after = self.block(s.body, head)
            if after <= head:
                return replace(s, body=body), head
            head |= after
