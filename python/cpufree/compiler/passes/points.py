"""For GPUs: stages that follow one another are done point by point, by the same thread.

On a CPU a PE is one thread that goes over rows, and stages may lag behind one another. On a GPU a
point has a thread, so stages go together only where each reads of the others nothing but the point
that it computes itself. What they hand on stays in registers. Between groups that touch the same
points there is a barrier (barriers.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import accesses, element_access, read_access
from cpufree.compiler.passes.rows import Work, is_by_rows, scalars_of, written

MOST_STAGES = 48
"""Of a group: its text is to stay short."""
LEAST_SHARE = 0.5
"""Of the points of a group that each of its stages computes: else threads have nothing to do."""


@dataclass(frozen=True)
class Lattice:
    """The points of a group along one axis: start + step q for 0 <= q < count, all its stages'."""

    start: int
    step: int
    count: int


def group_points(program: ir.Program) -> ir.Program:
    """Return a program whose stages are in groups, each done in one go over its points."""
    return replace(program, body=_block(program, program.body))


def _block(program: ir.Program, body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
    out: list[ir.Statement] = []
    group: list[Work] = []

    def close() -> None:
        if group:
            out.append(ir.Group(tuple(ir.Stage(work, 0) for work in group)))
            group.clear()

    for s in body:
        if isinstance(s, ir.Assign | ir.Reduce):
            if group and not goes_with(program, group, s):
                close()
            group.append(s)
        else:
            close()
            out.append(ir.with_blocks(s, lambda inner: _block(program, inner)))
    close()
    return tuple(out)


def goes_with(program: ir.Program, group: list[Work], work: Work) -> bool:
    """Return whether a stage can be done by the threads of a group, after its stages."""
    if len(group) >= MOST_STAGES or not (
        is_by_rows(program, group[0]) and is_by_rows(program, work)
    ):
        return False
    if any(isinstance(w, ir.Reduce) and w.name in scalars_of(work) for w in group):
        return False
    lattices = lattice_of([*group, work])
    if lattices is None:
        return False
    if not _are_shared([*group, work], lattices):
        return False
    return all(hands_on_points(program, earlier, work) for earlier in group)


def interleave(program: ir.Program) -> ir.Program:
    """Return a program in which groups that follow one another share a thread where they may.

    Unlike stages of one group, theirs may be of points between one another's: even points, and odd
    ones. What lies in a line of memory is then loaded and stored once.
    """
    return replace(program, body=_interleaved(program, program.body))


def _interleaved(program: ir.Program, body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
    out: list[ir.Statement] = []
    for s in body:
        before = out[-1] if out else None
        if isinstance(s, ir.Group) and isinstance(before, ir.Group):
            stages = (*before.stages, *s.stages)
            if _may_interleave(program, before, s):
                out[-1] = ir.Group(stages)
                continue
        out.append(ir.with_blocks(s, lambda inner: _interleaved(program, inner)))
    return tuple(out)


def _may_interleave(program: ir.Program, one: ir.Group, other: ir.Group) -> bool:
    first, second = ([stage.work for stage in group.stages] for group in (one, other))
    works = [*first, *second]
    if len(works) > MOST_STAGES or any(isinstance(w, ir.Reduce) for w in works):
        return False
    if not all(is_by_rows(program, w) for w in works):
        return False
    if any(span.index is not None for w in works for span in w.box):
        return False
    lattice = lattice_of(works, between=True)
    if lattice is None or not _are_shared(works, lattice):
        return False
    return all(hands_on_points(program, a, b) for a in first for b in second)


def _are_shared(works: list[Work], lattice: tuple[Lattice, ...]) -> bool:
    """Return whether each stage has many of the points of a lattice."""
    points = math.prod(axis.count for axis in lattice)
    return all(math.prod(s.count for s in w.box) >= LEAST_SHARE * points for w in works)


def lattice_of(works: list[Work], between: bool = False) -> tuple[Lattice, ...] | None:
    """Return the points that stages have together; None: they do not lie on one lattice.

    `between`: they may begin anywhere between two points of the lattice.
    """
    dims = len(works[0].box)
    if any(len(w.box) != dims for w in works):
        return None
    found = []
    for axis in range(dims):
        spans = [w.box[axis] for w in works]
        steps = {s.step for s in spans if s.count > 1} or {1}
        start, stop = min(s.start for s in spans), max(s.stop for s in spans)
        step = min(steps)
        if len(steps) > 1 or (not between and any((s.start - start) % step for s in spans)):
            return None
        if between:
            count = max((s.start - start) // step + s.count for s in spans)
        else:
            count = max(0, -(-(stop - start) // step))
        found.append(Lattice(start, step, count))
    return tuple(found)


def aligned_lattice(lattice: tuple[Lattice, ...]) -> tuple[Lattice, ...]:
    """Return a lattice whose last axis begins where lines of memory do."""
    last = lattice[-1]
    more = last.start // last.step
    wider = Lattice(last.start - more * last.step, last.step, last.count + more)
    return (*lattice[:-1], wider) if len(lattice) > 1 else lattice


def hands_on_points(program: ir.Program, earlier: Work, later: Work) -> bool:
    """Return whether two stages touch the same points of a field by the same threads only."""
    for a in (later, earlier):
        b = earlier if a is later else later
        name = written(b)
        write = [x for x in accesses(program, b) if x.writes]
        for read in ir.reads(a.value):
            if read.field == name and not at_own_point(read, a):
                access = read_access(program, a, read)
                if access.ghosts or any(access.conflicts(w) for w in write):
                    return False
        if any(element_access(program, e).field == name for e in ir.elements(a.value)):
            return False
    return True


def at_own_point(read: ir.Read, work: Work) -> bool:
    """Return whether a read is of the point of the field that has the stage's own indices."""
    return len(read.axes) == len(work.box) and all(
        not a.wrap
        and a.dim > ir.FOLDED
        and span.index is None
        and a.start == span.start
        and (span.count == 1 or (a.dim == k and a.step == span.step))
        for k, (a, span) in enumerate(zip(read.axes, work.box, strict=True))
    )
