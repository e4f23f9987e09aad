"""The points of a group's stages, and which of them a thread of a sweep does."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cpufree.compiler import ir
from cpufree.compiler.emit.pointers import times
from cpufree.compiler.emit.tiles import SweepOptions, Tile, inner_tiles, rows_of_tile
from cpufree.compiler.passes.points import Lattice
from cpufree.compiler.passes.rows import Work


def choices(e: ir.Expr) -> Iterator[ir.Choice]:
    """Yield the choices in an expression."""
    if isinstance(e, ir.Choice):
        yield e
    for child in ir.children(e):
        yield from choices(child)


class SweepPoints:
    """Of one group."""

    works: list[Work]
    lattice: tuple[Lattice, ...]
    counts: tuple[int, ...]
    by_rows: bool
    """Whether rows are divided among PEs."""
    tile: Tile
    options: SweepOptions

    @property
    def dims(self) -> int:
        """The axes of the points."""
        return len(self.lattice)

    # --- the points of a stage ---

    def shift(self, work: Work, axis: int) -> int:
        """Return the q of the lattice at which a stage begins along an axis."""
        return (work.box[axis].start - self.lattice[axis].start) // self.lattice[axis].step

    def between(self, work: Work, axis: int) -> int:
        """Return how far the points of a stage lie behind those of the lattice."""
        return (work.box[axis].start - self.lattice[axis].start) % self.lattice[axis].step

    def are_together(self, one: Work, other: Work) -> bool:
        """Return whether a thread does the same points in two stages."""
        return all(self.between(one, k) == self.between(other, k) for k in range(self.dims))

    def covers(self, one: Work, other: Work) -> bool:
        """Return whether a stage has all points of another one."""
        return self.are_together(one, other) and all(
            self.shift(one, k) <= self.shift(other, k)
            and self.shift(one, k) + one.box[k].count >= self.shift(other, k) + other.box[k].count
            for k in range(self.dims)
        )

    def guard(self, work: Work, k: str) -> str:
        """Return the condition under which point k of a thread is one of the stage's."""
        q0 = "q0" if k == "0" else f"q0 + {times(k, self.row_step)}"
        conditions = [f"{q0} < {self.end(work)}"]
        if self.rows_between:
            conditions.append(f"{q0} >= a{self.between(work, 0)}")
        for axis in range(self.dims):
            q = f"({q0})" if axis == 0 else f"q{axis}"
            low, count = self.shift(work, axis), work.box[axis].count
            if low:
                conditions.append(f"{q} >= {low}")
            if low + count < self.counts[axis]:
                conditions.append(f"{q} < {low + count}")
        return " && ".join(conditions)

    @property
    def rows_between(self) -> list[int]:
        """How far behind the lattice's rows those of stages lie; empty: all on them."""
        found = {self.between(w, 0) for w in self.works} if self.by_rows else {0}
        return sorted(found) if len(found) > 1 else []

    def end(self, work: Work) -> str:
        """Return the name of the end of the rows of a stage that this PE has."""
        return f"b{self.between(work, 0)}" if self.rows_between else "b"

    @property
    def row_step(self) -> int:
        """The distance of a thread's points along the first axis."""
        return self.tile.threads if self.dims == 1 else 1

    def whole(self) -> str:
        """Return the condition under which all points of a thread are points of all stages."""
        last = (self.tile.rows - 1) * self.row_step
        low, high = self._inner(0)
        conditions = [f"q0 + {last} < {end}" for end in sorted({self.end(w) for w in self.works})]
        conditions += [f"q0 >= a{first}" for first in self.rows_between]
        if low:
            conditions.append(f"q0 >= {low}")
        if high < self.counts[0]:
            conditions.append(f"q0 + {last} < {high}")
        for axis in range(1, self.dims):
            low, high = self._inner(axis)
            if low:
                conditions.append(f"q{axis} >= {low}")
            if high < self.counts[axis]:
                conditions.append(f"q{axis} < {high}")
        return " && ".join(conditions)

    def _inner(self, axis: int) -> tuple[int, int]:
        """Return the first q along an axis of which all stages compute the same, and the end."""
        low, high = 0, self.counts[axis]
        for w in self.works:
            inside = [(0, w.box[axis].count), *(c.ranges[axis] for c in choices(w.value))]
            low = max(low, *(self.shift(w, axis) + a for a, _ in inside))
            high = min(high, *(self.shift(w, axis) + b for _, b in inside))
        return low, high

    def within(self, work: Work, ranges: tuple[tuple[int, int], ...], k: str) -> str:
        """Return the condition under which point k of a thread, one of a stage's, is in ranges."""
        conditions = []
        for axis, (low, high) in enumerate(ranges):
            q = f"q{axis}" if axis or k == "0" else f"(q0 + {times(k, self.row_step)})"
            if low > 0:
                conditions.append(f"{q} >= {self.shift(work, axis) + low}")
            if high < work.box[axis].count:
                conditions.append(f"{q} < {self.shift(work, axis) + high}")
        return " && ".join(conditions) or "true"

    def chooses(self) -> bool:
        """Return whether what a stage computes depends on where its point lies."""
        return any(True for w in self.works for _ in choices(w.value))

    # --- those of a thread ---

    def bounds(self) -> list[str]:
        """Return the statements that find the rows of this PE and count the tiles."""
        axis = self.lattice[0]
        first, end, lo = "std::int64_t{0}", f"std::int64_t{{{axis.count}}}", "std::int64_t{0}"
        if self.by_rows:
            first, lo = f"rt.first({axis.start}, {axis.step})", "rt.lo()"
            end = f"rt.end({axis.start}, {axis.step}, {axis.count})"
        rows = rows_of_tile(self.dims, self.tile)
        inner = math.prod(inner_tiles(self.counts, self.tile))
        lines = [f"const std::int64_t a = {first}, b = {end};"]
        if self.rows_between:
            lines = self._bounds_between(axis)
        return [
            *lines,
            f"[[maybe_unused]] const std::int64_t lo = {lo};",
            f"const int depth = static_cast<int>((b - a + {rows - 1}) / {rows});",
            f"const int tiles = b > a ? depth * {inner} : 0;",
        ]

    def _bounds_between(self, axis: Lattice) -> list[str]:
        """Return the statements that find the rows of stages that begin at different ones."""
        lines = []
        for k in self.rows_between:
            lines.append(f"const std::int64_t a{k} = rt.first({axis.start + k}, {axis.step});")
            end = f"rt.end({axis.start + k}, {axis.step}, {axis.count})"
            lines.append(f"const std::int64_t b{k} = {end};")
        first, last = f"a{self.rows_between[0]}", f"b{self.rows_between[0]}"
        for k in self.rows_between[1:]:
            first, last = f"minimum({first}, a{k})", f"maximum({last}, b{k})"
        return [*lines, f"const std::int64_t a = {first}, b = {last};"]

    def indices(self) -> list[str]:
        """Return the statements that find a thread's points; a thread without any leaves."""
        tile, dims = self.tile, self.dims
        rows = rows_of_tile(dims, tile)
        if dims == 1:
            return [f"const std::int64_t q0 = a + std::int64_t{{tile}} * {rows} + lane;"]
        lines = [f"const int x = lane % {tile.lanes}, y = lane / {tile.lanes};"]
        rest, conditions = "tile", []
        inner = inner_tiles(self.counts, tile)
        down = self.options.order == "down"
        if down:
            rest = "(tile / depth)"
        for axis in reversed(range(1, dims)):
            n = inner[axis - 1]
            place = f"{rest} % {n}"
            if axis == dims - 1:
                place = f"({place}) * {tile.lanes} + x"
            elif axis == dims - 2:
                place = f"({place}) * {tile.others} + y"
            lines.append(f"const std::int64_t q{axis} = {place};")
            conditions.append(f"q{axis} >= {self.counts[axis]}")
            rest = f"({rest} / {n})"
        rest = "(tile % depth)" if down else rest
        row = (
            f"({rest} * {tile.others} + y) * {tile.rows}" if dims == 2 else f"{rest} * {tile.rows}"
        )
        lines.append(f"const std::int64_t q0 = a + {row};")
        return [*lines, f"if ({' || '.join(conditions)}) return;"]
