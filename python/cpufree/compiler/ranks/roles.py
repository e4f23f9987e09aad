"""Blocks in roles: those at the boundary communicate, while the others compute inside.

After the thread-block specialization of Ismayilov et al. (2023). Where a sweep follows an exchange,
most of its points read nothing that arrives. They are done meanwhile by most blocks; the others
send, wait, and do the points that are left. The next barrier is for all of them, as before.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import Access, region_access
from cpufree.compiler.ranks.grants import touched

LEAST_INSIDE = 0.5
"""Of a sweep's points must be inside."""


@dataclass(frozen=True)
class Divided:
    """An exchange, and the sweep behind it: inside, and the rims that need what arrives."""

    start: ir.Start
    finish: ir.Finish
    inside: ir.Group
    rims: tuple[ir.Group, ...]


def divided(
    start: ir.Statement, finish: ir.Statement, group: ir.Statement, arriving: Collection[int]
) -> Divided | None:
    """Return three statements that follow one another in roles; None: they stay as they are.

    `arriving` are the sites at which something is received on some rank.
    """
    if not (
        isinstance(start, ir.Start)
        and isinstance(finish, ir.Finish)
        and isinstance(group, ir.Group)
        and start.exchange == finish.exchange
        and not finish.others
    ):
        return None
    works = [stage.work for stage in group.stages]
    if any(not isinstance(w, ir.Assign) or w.box != works[0].box for w in works):
        return None
    written = {w.field for w in works if isinstance(w, ir.Assign)}
    if written & {m.region.field for m in (*finish.sends, *finish.receives)}:
        return None  # what is sent, or arrives, must be left alone meanwhile
    box = works[0].box
    margins = [[0, 0] for _ in box]
    for m in finish.receives:
        if m.site not in arriving:
            continue
        for work in works:
            for read in ir.reads(work.value):
                if read.field == m.region.field and not _widen(margins, box, read, m.region):
                    return None
    return _parts(start, finish, group, margins)


def _widen(
    margins: list[list[int]], box: tuple[ir.Span, ...], read: ir.Read, region: ir.Region
) -> bool:
    """Let margins hold all points at which a read is in a region; False: they cannot."""
    touched = []  # of each axis of the box the first point and the one behind the last
    for axis, span in zip(read.axes, region.box, strict=True):
        if axis.wrap or axis.step != 1 or span.step != 1 or axis.dim <= ir.FOLDED:
            return False
        if axis.dim == ir.FIXED:
            if not span.start <= axis.start < span.stop:
                return True
            continue
        n = box[axis.dim].count
        first, end = max(0, span.start - axis.start), min(n, span.stop - axis.start)
        if first >= end:
            return True  # no point of the box reads the region
        touched.append((end - first, axis.dim, first, end, n))
    for _, dim, first, end, n in sorted(touched):
        low, high = margins[dim]
        if first >= n - high or end <= low:
            return True
        if first == 0:
            margins[dim][0] = max(low, end)
            return True
        if end == n:
            margins[dim][1] = max(high, n - first)
            return True
    return False


def _parts(
    start: ir.Start, finish: ir.Finish, group: ir.Group, margins: list[list[int]]
) -> Divided | None:
    box = group.stages[0].work.box
    left = [(0, span.count) for span in box]
    rims = []
    for dim, (low, high) in enumerate(margins):
        first, end = left[dim]
        if low + high >= end - first:
            return None
        for part in ((first, first + low), (end - high, end)):
            if part[0] < part[1]:
                rims.append(_part(group, [*left[:dim], part, *left[dim + 1 :]]))
        left[dim] = (first + low, end - high)
    inside = math.prod(end - first for first, end in left)
    if not rims or inside < LEAST_INSIDE * math.prod(span.count for span in box):
        return None
    return Divided(start, finish, _part(group, left), tuple(rims))


def _part(group: ir.Group, part: list[tuple[int, int]]) -> ir.Group:
    """Return a group for a part of its box."""
    stages = []
    for stage in group.stages:
        work = stage.work
        box = tuple(
            replace(s, start=s.start + s.step * first, count=end - first)
            for s, (first, end) in zip(work.box, part, strict=True)
        )

        def moved(read: ir.Read) -> ir.Expr:
            axes = tuple(
                a if a.dim < 0 else replace(a, start=a.start + a.step * part[a.dim][0])
                for a in read.axes
            )
            return replace(read, axes=axes)

        value = ir.with_reads(work.value, moved)
        stages.append(replace(stage, work=replace(work, box=box, value=value)))
    return ir.Group(tuple(stages))


def dividable(program: ir.Program) -> set[int]:
    """Return the ids of those Starts whose exchange may be divided.

    Blocks inside do not wait for what arrives. So before anything else uses it, there must be a
    barrier, whatever way the program takes: behind the sweep, or, where that is the last of a
    loop's turn, at the loop's head and behind the loop.
    """
    found: set[int] = set()
    _look(program, program.body, (), found)
    return found


_After = tuple[tuple[ir.Statement, ...], ...]
"""What follows a block: each is done, if anything is, behind the block's end."""


def _look(
    program: ir.Program, body: tuple[ir.Statement, ...], after: _After, found: set[int]
) -> None:
    for k, s in enumerate(body):
        rest = body[k + 1 :]
        if isinstance(s, ir.Start) and len(rest) > 1 and isinstance(rest[0], ir.Finish):
            regions = [region_access(m.region, True) for m in rest[0].receives]
            if _closed(program, body[k + 3 :], after, regions):
                found.add(id(s))
        inner = (rest, *after) if not isinstance(s, ir.For | ir.Loop) else (s.body, rest, *after)
        for block in ir.blocks(s):
            _look(program, block, inner, found)


def _closed(
    program: ir.Program,
    rest: tuple[ir.Statement, ...],
    after: _After,
    regions: list[Access],
) -> bool:
    """Return whether a barrier comes before regions are touched."""
    lists = [rest, *after]
    for n, statements in enumerate(lists):
        met = False
        for s in statements:
            if isinstance(s, ir.Barrier):
                met = True
                break
            if any(a.conflicts(r) for a in touched(program, s) for r in regions):
                return False
        if met and n == 0:
            return True
        if not met and n > 0 and n + 1 < len(lists):
            return False
    return True
