"""Boxes of points with strides: whether they meet, and what is left of one without another."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

from cpufree.compiler import ir

Line: TypeAlias = tuple[int, int, int]
"""The points first, first + step, ..., last along an axis."""


@dataclass(frozen=True)
class Box:
    """Points of a field: along each axis the first one, the last one, and their distance."""

    axes: tuple[Line, ...]

    @staticmethod
    def of_spans(spans: tuple[ir.Span, ...]) -> Box:
        """Return the points of a box of a stage."""
        return Box(tuple(s.line for s in spans))

    @staticmethod
    def of_read(read: ir.Read, spans: tuple[ir.Span, ...], shape: tuple[int, ...]) -> Box:
        """Return the points that a read takes for the points of a box."""
        axes = []
        for a, n in zip(read.axes, shape, strict=True):
            last = n - 1 if a.wrap else a.start + a.step * (a.values(spans) - 1)
            axes.append((0, last, 1) if a.wrap else (a.start, last, a.step))
        return Box(tuple(axes))

    @property
    def first_row(self) -> int:
        """The first index along the first axis."""
        return self.axes[0][0]

    @property
    def last_row(self) -> int:
        """The last index along the first axis."""
        return self.axes[0][1]

    def meets(self, other: Box) -> bool:
        """Return whether some point may be in both."""
        for (a, b, s), (c, d, t) in zip(self.axes, other.axes, strict=True):
            if b < c or d < a or (a - c) % math.gcd(s, t):
                return False
        return True

    def rows_within(self, first: int, last: int) -> Box | None:
        """Return the points whose rows are from `first` to `last`; None: there are none."""
        line = _cut(self.axes[0], first, last)
        return None if line is None else replace(self, axes=(line, *self.axes[1:]))

    def at_row(self, row: int) -> Boxes:
        """Return the points of a row."""
        found = self.rows_within(row, row)
        return frozenset() if found is None else frozenset({found})


Boxes: TypeAlias = frozenset[Box]
_MOST_PARTS = 16
"""Into which points are divided that lie closer than those that are taken away."""


def row_of(side: int, distance: int, rows: int) -> int:
    """Return the row of a field that lies so far before its first one or behind its last."""
    return rows - distance if side < 0 else distance - 1


def without(boxes: Boxes, taken: Box) -> Boxes:
    """Return the points that are not in one box; a few that are may be left."""
    return frozenset(part for box in boxes for part in _parts_without(box, taken))


def _parts_without(box: Box, taken: Box) -> list[Box]:
    if not box.meets(taken):
        return [box]
    left, rest = [], list(box.axes)
    for axis, line in enumerate(taken.axes):
        # What lies beside on this axis stays; the next axes divide what does not.
        parts = _parts_of(rest[axis], line)
        for part in parts:
            if not _is_in(part, line):
                left.append(Box((*rest[:axis], part, *rest[axis + 1 :])))
        inside = [part for part in parts if _is_in(part, line)]
        if not inside:
            return [box]
        rest[axis] = inside[0]
    return left


def _parts_of(line: Line, other: Line) -> list[Line]:
    """Return a line in parts, of which one at most has points of the other, and these alone."""
    start, end, step = line
    first, last, wide = other
    if wide % step == 0 and wide // step <= _MOST_PARTS:
        classes = [(start + k * step, end, wide) for k in range(wide // step)]
    elif step % wide == 0:
        classes = [line]
    else:
        return [line]
    parts: list[Line | None] = []
    for one in classes:
        if (one[0] - first) % wide:
            parts.append(_cut(one, start, end))
        else:
            cuts = ((start, first - 1), (first, last), (last + 1, end))
            parts += [_cut(one, a, b) for a, b in cuts]
    return [part for part in parts if part is not None]


def _is_in(line: Line, other: Line) -> bool:
    """Return whether all points of a line are points of another one."""
    (start, end, step), (first, last, wide) = line, other
    alike = start == end or step % wide == 0
    return first <= start and end <= last and alike and (start - first) % wide == 0


def _cut(line: Line, first: int, last: int) -> Line | None:
    """Return the points of a line from `first` to `last`; None: there are none."""
    start, end, step = line
    if start < first:
        start += -(-(first - start) // step) * step
    end = min(end, last)
    if end < start:
        return None
    return (start, end - (end - start) % step, step)
