"""A program's kernel for GPUs whose values stay on chip: a tile of every field for each block."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import BlockPlan, choose_threads
from cpufree.compiler.emit.expressions import TYPES
from cpufree.compiler.emit.grid import Grid, GridText, field_place
from cpufree.compiler.emit.pointers import Position
from cpufree.compiler.emit.sweep import Sweep
from cpufree.compiler.emit.tiles import STANDARD, Tile, inner_tiles, rows_of_tile
from cpufree.compiler.emit.work import work_of
from cpufree.compiler.layout import GridLayout, TileLayout
from cpufree.compiler.passes.rounds import Rounds
from cpufree.compiler.passes.rows import Work, written
from cpufree.compiler.passes.tiles import Ghosts, offsets

_OPTIONS = replace(STANDARD, aligned=False)
_MOST_GUARDED = 96  # points of all stages whose conditions are written out


def emit_tiles(
    program: ir.Program, layout: TileLayout, kept: Iterable[str], plan: BlockPlan
) -> GridText:
    """Return the kernel of a program of groups with exchanges."""
    return Tiles(program, layout, set(kept), plan).emit_tiles()


class Tiles(Grid):
    """The text of a kernel whose blocks keep tiles of all fields on chip."""

    def __init__(
        self, program: ir.Program, layout: TileLayout, kept: set[str], plan: BlockPlan
    ) -> None:
        super().__init__(program, layout, kept, 1, STANDARD)
        self.tile_layout, self.plan, self.kept = layout, plan, kept
        self.tiled = [f for f in program.fields if f.name in plan.offsets]
        self.margin = Margin()

    def emit_tiles(self) -> GridText:
        p = self.plan
        head = [*self._fields(), *self._scalars()]
        head += [f"rt.load(f_{f.name}, s_{f.name});" for f in self.tiled] + ["rt.sync();"]
        if p.rounds is not None:
            names = tuple(f.name for f in self.tiled)
            head += self._statement(ir.Exchange(names))
        body = [*self._block(self.program.body), "rt.sync();"]
        body += [f"rt.store(f_{name}, s_{name});" for name in self._stored()]
        numbers = (p.rows, p.columns, p.width, p.room, self.tile_layout.tiles, p.size)
        start = f"TileRuntime<P, A> rt(port, args, heap, {self.grid_plan()}, {_list(numbers)});"
        text = self.text_of("tile_runtime", start, [*head, *body, *self._results()])
        exchanges = sum(isinstance(s, ir.Exchange) for s in ir.walk(self.program.body))
        return GridText(
            text,
            max(1, len(self.program.scalars)),
            p.threads,
            1,
            -(-p.size // p.threads),
            p.blocks,
            exchanges,
            tuple(sorted(self.in_registers)),
            p,
        )

    def _stored(self) -> list[str]:
        """Return the fields whose values may be those of an argument or of a result."""
        found = set(self.kept)
        for s in ir.walk(self.program.body):
            if isinstance(s, ir.Permute):
                found.update(s.fields)
            if isinstance(s, ir.Assign) and self.program.field(s.field).role == "argument":
                found.add(s.field)
        return [f.name for f in self.tiled if f.name in found]

    def _fields(self) -> list[str]:
        lines = []
        for k, f in enumerate(self.program.fields):
            kind, at = TYPES[f.type], self.layout.offsets[f.name]
            if f.name not in self.plan.offsets:
                call = f"rt.template field<{kind}>({field_place(f, self.layout, str(at), k)})"
                lines.append(f"[[maybe_unused]] auto f_{f.name} = {call};")
                continue
            tile = self.plan.offsets[f.name]
            lines += [
                f"auto f_{f.name} = rt.template tiled<{kind}>({at}, {f.shape[0]}, {k}, {tile});",
                f"constexpr TileShape s_{f.name}{self._shape(f)};",
                f"[[maybe_unused]] Epoch epoch_{f.name} = 0;",
            ]
        return lines

    def _shape(self, f: ir.Field) -> str:
        extent, g = self.plan.extent(f, self.layout.slabs), self.plan.ghosts[f.name]
        reach, strides = self.layout.reach(f), [*self.layout.strides(f), 1]
        shape = [*f.shape, 1]
        packets, slot = self.tile_layout.packets_of.get(f.name, (0, 0))
        return _list(
            (
                *(extent.rows, extent.columns, extent.depth, g.around, g.beside),
                *(shape[0], shape[1], g.ring0, g.ring1, g.corners),
                *(strides[0], strides[1], reach.below, reach.above, packets, slot),
            )
        )

    def _block(self, body: tuple[ir.Statement, ...]) -> list[str]:
        lines: list[str] = []
        ended = False  # by a barrier of the block
        for s in body:
            if isinstance(s, ir.Group) and not ended:
                lines.append("rt.sync();")
            lines += self._statement(s)
            ended = isinstance(s, ir.Exchange)
        return lines

    def _statement(self, s: ir.Statement) -> list[str]:
        if isinstance(s, ir.Exchange):
            fields = [self.program.field(name) for name in s.fields]
            parts = [f"Exchanged<{TYPES[f.type]}>{{f_{f.name}, s_{f.name}, epoch_{f.name}}}"
                     for f in fields]  # fmt: skip
            return [f"if (!rt.exchange({', '.join(parts)})) return false;"]
        return super()._statement(s)

    def _sweep(self, works: list[Work]) -> Sweep:
        return _TileSweep(
            self.program, self.layout, works, self.in_registers, self.plan, self.margin
        )

    def _control(self, s: ir.For | ir.Loop | ir.If) -> list[str]:
        rounds = self.plan.rounds
        return self._rounds(rounds) if rounds is not None else super()._control(s)

    def _rounds(self, rounds: Rounds) -> list[str]:
        """Return the loop in rounds of some turns, each after one exchange."""
        s, most = rounds.loop, self.plan.turns
        i, e = f"i_{s.var}", f"e_{s.var}"
        start, stop = self._scalar(s.start, s.line), self._scalar(s.stop, s.line)
        exchange = self._statement(ir.Exchange(rounds.exchanged)) if rounds.exchanged else []
        return [
            f"for (std::int64_t {i} = {start}, {e} = {stop}; {i} < {e};) {{",
            f"  const std::int64_t left = ({e} - {i} + {s.step - 1}) / {s.step};",
            f"  const int turns = left < {most} ? static_cast<int>(left) : {most};",
            f"  if (!rt.turn(true, {'true' if exchange else 'false'}, turns)) return false;",
            *(f"  {line}" for line in exchange),
            "  CPUFREE_ONE_COPY",
            f"  for (int turn = turns; --turn >= 0; {i} += {s.step}) {{",
            f"    v_{s.var} = {i};",
            *(f"    {line}" for line in self._turn_of_round(rounds)),
            "  }",
            "}",
        ]

    def _turn_of_round(self, rounds: Rounds) -> list[str]:
        """Return the statements of a turn, after which `turn` turns of the round follow."""
        lines = []
        after = iter(rounds.after)
        for s in rounds.loop.body:
            if isinstance(s, ir.Group):
                lines.append("rt.sync();")
                (rows, columns), (more, wider) = rounds.reach, next(after)
                turns = self.plan.turns - 1
                self.margin = Margin(
                    (f"turn * {rows} + {more}", f"turn * {columns} + {wider}"),
                    (turns * rows + more, turns * columns + wider),
                    rounds.ring,
                )
            lines += self._statement(s)
        return lines


@dataclass(frozen=True)
class Margin:
    """How far beyond a block's part a group computes: rows and columns, as texts; at most.

    Along axes that go around, `ring`, it may be beyond the ends of the field, too.
    """

    texts: tuple[str, str] = ("0", "0")
    most: tuple[int, int] = (0, 0)
    ring: tuple[bool, bool] = (False, False)


class _TileSweep(Sweep):
    """The text of one group, whose points lie in the block's tiles."""

    def __init__(
        self,
        program: ir.Program,
        layout: GridLayout,
        works: list[Work],
        in_registers: set[str],
        plan: BlockPlan,
        margin: Margin | None = None,
    ) -> None:
        self.plan, self.margin = plan, margin or Margin()
        reads = {r for w in works for r in ir.reads(w.value) if r.field not in in_registers}
        names = {*(r.field for r in reads), *map(written, works)} & set(plan.offsets)
        extents = [plan.extent(program.field(n), layout.slabs) for n in sorted(names)]
        self.largest = (
            max(e.rows for e in extents) + 2 * self.margin.most[0],
            max(e.columns for e in extents) + 2 * self.margin.most[1],
            max(e.depth for e in extents),
        )

        def choose(counts: tuple[int, ...], _: bool) -> Tile:
            sizes = tuple(map(min, counts, self.largest))
            return choose_threads(sizes, work_of(program, works, in_registers), plan.threads)

        super().__init__(
            program, layout, works, in_registers, choose, _OPTIONS, stores_ghosts=False
        )
        steps = [axis.step for axis in self.lattice]
        self.extents = tuple(
            -(-size // step) if ring else min(count, -(-size // step))
            for count, size, step, ring in zip(
                self.counts, self.largest, steps, (*self.margin.ring, False), strict=False
            )
        )

    def has_far_rows(self, read: ir.Read) -> bool:
        return read.field not in self.plan.offsets and super().has_far_rows(read)

    def base(self, name: str, kind: str) -> str:
        return f"rt.tile(f_{name})" if name in self.plan.offsets else super().base(name, kind)

    def written(self, work: ir.Assign) -> tuple[str, Position]:
        f = self.program.field(work.field)
        return self.in_tile(f, (0,) * len(f.shape))

    def read(self, read: ir.Read, work: Work) -> tuple[str, Position]:
        f = self.program.field(read.field)
        if f.name not in self.plan.offsets:
            return super().read(read, work)
        return self.in_tile(f, tuple(d for d, _ in offsets(self.program, read, work)))

    def in_tile(self, f: ir.Field, away: tuple[int, ...]) -> tuple[str, Position]:
        """Return the pointer and the distance from it of a point of a tile, so far away."""
        extent = self.plan.extent(f, self.layout.slabs)
        g: Ghosts = self.plan.ghosts[f.name]
        strides = ((extent.columns + 2 * g.beside) * extent.depth, extent.depth, 1)
        first = (g.around, g.beside, 0)
        distance = sum(
            (d + ghosts) * stride for d, ghosts, stride in zip(away, first, strides, strict=False)
        )
        terms = tuple(f"i{axis} * {strides[axis]}" for axis in range(self.dims))
        step = self.lattice[0].step * self.row_step * strides[0]
        return self.pointers.get(f.name, TYPES[f.type], terms), (distance, step)

    @property
    def writes_out_guarded(self) -> bool:
        return self.tile.rows * len(self.works) <= _MOST_GUARDED

    def verb(self) -> str:
        return f"sweep_tile<{self.plan.threads}>"

    def bounds(self) -> list[str]:
        lines = []
        for axis, (a, mine) in enumerate(zip(self.lattice, ("rows", "columns"), strict=False)):
            wider = f"rt.wider(rt.{mine}(), {self.margin.texts[axis]})"
            call = f"rt.part({wider}, {a.start}, {a.step}, {a.count})"
            lines.append(f"const Part part{axis} = {wider if self.margin.ring[axis] else call};")
        rows = rows_of_tile(self.dims, self.tile)
        inner = math.prod(inner_tiles(self.extents, self.tile))
        return [
            *lines,
            "const int a = part0.first, b = part0.end;",
            f"const int tiles = b > a ? (b - a + {rows - 1}) / {rows} * {inner} : 0;",
        ]

    def indices(self) -> list[str]:
        tile, dims = self.tile, self.dims
        rows = rows_of_tile(dims, tile)
        lines = [f"const int x = lane % {tile.lanes}, y = lane / {tile.lanes};"]
        conditions = [f"y >= {tile.others}"] if tile.threads < self.plan.threads else []
        rest = "tile"
        inner = inner_tiles(self.extents, tile)
        for axis in reversed(range(1, dims)):
            n = inner[axis - 1]
            threads = {dims - 1: f" * {tile.lanes} + x", dims - 2: f" * {tile.others} + y"}[axis]
            first, end = ("part1.first + ", "part1.end") if axis == 1 else ("", self.counts[axis])
            lines.append(f"const int q{axis} = {first}({rest} % {n}){threads};")
            conditions.append(f"q{axis} >= {end}")
            rest = f"({rest} / {n})"
        row = {1: f"{rest} * {rows} + x", 2: f"({rest} * {tile.others} + y) * {tile.rows}"}
        lines.append(f"const int q0 = a + {row.get(dims, f'{rest} * {tile.rows}')};")
        if conditions:
            lines.append(f"if ({' || '.join(conditions)}) return;")
        begins = ("rt.rows().first", "rt.columns().first", "0")
        for axis, a in enumerate(self.lattice):
            lines.append(f"const int i{axis} = {a.start} + q{axis} * {a.step} - {begins[axis]};")
        return lines


def _list(numbers: Iterable[int | bool]) -> str:
    """Return numbers as a list in braces."""
    words = ("true" if n is True else "false" if n is False else str(n) for n in numbers)
    return f"{{{', '.join(words)}}}"
