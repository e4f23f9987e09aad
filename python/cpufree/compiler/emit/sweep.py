"""Groups as sweeps of a grid of threads: each point of a group has one thread."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.emit.expressions import TYPES, cxx
from cpufree.compiler.emit.pointers import Pointers, Position, at, folded, times
from cpufree.compiler.emit.sweep_points import SweepPoints
from cpufree.compiler.emit.tiles import SweepOptions, Tile, inner_tiles
from cpufree.compiler.emit.work import work_of
from cpufree.compiler.layout import GridLayout
from cpufree.compiler.passes.points import aligned_lattice, at_own_point, lattice_of
from cpufree.compiler.passes.rows import Work, is_accurate, is_by_rows, row_offset, rows_written


class Sweep(SweepPoints):
    """The text of one group."""

    def __init__(
        self,
        program: ir.Program,
        layout: GridLayout,
        works: list[Work],
        in_registers: set[str],
        choose: Callable[[tuple[int, ...], bool], Tile],
        options: SweepOptions,
        stores_ghosts: bool = True,
    ) -> None:
        self.program, self.layout, self.works = program, layout, works
        self.in_registers, self.stores_ghosts = in_registers, stores_ghosts
        self.options = options
        self.is_short = (
            False  # no thread has more than a point: tests of where it lies cost nothing
        )
        self.by_one = False
        """One block does all points."""
        self.queue = ""
        """The first arguments of a sweep whose tiles come from a queue; "": they do not."""
        lattice = lattice_of(works, between=True)
        assert lattice is not None
        self.lattice = aligned_lattice(lattice) if options.aligned else lattice
        self.counts = tuple(axis.count for axis in self.lattice)
        self.by_rows = is_by_rows(program, works[0])
        self.tile = choose(self.counts, self.by_rows)
        far = any(self.has_far_rows(r) for w in works for r in ir.reads(w.value))
        rows = 1 if far else work_of(program, works, in_registers).fitting(self.tile.rows)
        self.tile = replace(self.tile, rows=rows)
        self.pointers = Pointers(self.base)
        self.scalars: dict[ir.Expr, str] = {}
        self.scalar_lines: list[str] = []

    # --- addresses ---

    def has_far_rows(self, read: ir.Read) -> bool:
        """Return whether a thread has one row, as what is read of its rows goes around.

        Where the rows of a field are divided, those around the ring are ghosts.
        """
        divided = self._own_row(self.program.field(read.field))
        return any(a.wrap and a.dim == 0 for a in read.axes[1 if divided else 0 :])

    def base(self, name: str, kind: str) -> str:
        """Return the text of a pointer to a field's first value."""
        return f"f_{name}.base"

    def _own_row(self, f: ir.Field) -> bool:
        return f.distributed and self.by_rows

    def written(self, work: ir.Assign) -> tuple[str, Position]:
        """Return where a stage writes."""
        f = self.program.field(work.field)
        axes = tuple(s.axis(k) for k, s in enumerate(work.box))
        return self.position(f, axes, work, 0)

    def read(self, read: ir.Read, work: Work) -> tuple[str, Position]:
        """Return where a stage reads."""
        f = self.program.field(read.field)
        offset = 0
        if self._own_row(f):
            offset, _ = row_offset(read, work.box[0], f.shape[0], rows_written(self.program, work))
        return self.position(f, read.axes, work, offset)

    def position(
        self, f: ir.Field, axes: tuple[ir.Axis, ...], work: Work, offset: int
    ) -> tuple[str, Position]:
        """Return the pointer and the distance from it of a point of a field."""
        terms: list[str] = []
        distance = step = 0
        for axis, (a, stride) in enumerate(zip(axes, self.layout.strides(f), strict=True)):
            if axis == 0 and self._own_row(f):
                # The row is as far from the stage's own as `offset` says; ghosts come first.
                rows = self.lattice[0]
                first = rows.start + self.between(work, 0) + offset
                distance += (first + self.layout.reach(f).below) * stride
                step += rows.step * self.row_step * stride
                terms.append(f"({times('q0', rows.step)} - lo) * {stride}")
            elif a.dim < 0:
                distance += a.start * stride
                if a.index is not None:
                    terms.append(f"{self.scalar(a.index, work.line)} * {a.step * stride}")
            elif a.wrap:
                first = a.shift % a.wrap - self.shift(work, a.dim)  # q begins at that shift
                terms.append(f"once_around(q{a.dim} + {first}, {a.wrap}) * {a.step * stride}")
                distance += a.start * stride
            else:
                distance += (a.start - a.step * self.shift(work, a.dim)) * stride
                terms.append(f"q{a.dim} * {a.step * stride}")
                if a.dim == 0:
                    step += a.step * self.row_step * stride
        return self.pointers.get(f.name, TYPES[f.type], tuple(terms)), (distance, step)

    # --- values ---

    def value(self, number: int, k: str, guarded: bool) -> str:
        """Return the value that stage `number` computes at point k of a thread."""
        work = self.works[number]

        def leaf(e: ir.Expr) -> str | None:
            if isinstance(e, ir.Read):
                return self.read_text(e, number, k, guarded)
            if isinstance(e, ir.Choice):
                inside = cxx(e.inside, leaf, str(work.line))
                if not guarded:
                    return inside
                beside = cxx(e.beside, leaf, str(work.line))
                return f"({self.within(work, e.ranges, k)} ? {inside} : {beside})"
            if isinstance(e, ir.Literal) or any(True for _ in ir.reads(e)):
                return None
            return self.scalar(e, work.line)

        return cxx(work.value, leaf, str(work.line))

    def scalar(self, e: ir.Expr, line: int) -> str:
        """Return a scalar, which is computed once for all points, as NumPy does."""
        if e not in self.scalars:
            name = f"c{len(self.scalars)}"
            self.scalars[e] = name
            text = cxx(e, lambda part: None, str(line))
            self.scalar_lines.append(f"const {TYPES[e.type]} {name} = {text};")
        return self.scalars[e]

    def read_text(self, read: ir.Read, number: int, k: str, guarded: bool) -> str:
        """Return what a read gives: what an earlier stage has in a register, or from memory.

        Where nothing is guarded, all points of the thread are points of all stages.
        """
        work = self.works[number]
        earlier = [
            j
            for j, w in enumerate(self.works[:number])
            if isinstance(w, ir.Assign)
            and w.field == read.field
            and self.are_together(w, work)
            and at_own_point(read, work)
        ]
        # The last one that has the point; stores come after all stages, so memory has none of them.
        surely = [j for j in earlier if not guarded or self.covers(self.works[j], work)]
        maybe = [j for j in earlier if not surely or j > surely[-1]]
        text = f"v{surely[-1]}_{k}" if surely else self.loaded(read, work, k)
        for j in maybe:
            text = f"(g{j}_{k} ? v{j}_{k} : {text})"
        return text

    def loaded(self, read: ir.Read, work: Work, k: str) -> str:
        """Return the text of a load."""
        pointer, position = self.read(read, work)
        far = folded(read, self.layout.strides(self.program.field(read.field)))
        return f"{pointer}[{at(position, k)}{far}]"

    # --- the whole ---

    def points(self, ks: list[str], guarded: bool) -> list[str]:
        """Return the statements that do points `ks` of a thread in all stages.

        Stores come last. A stage reads nothing that another one of the group writes, but points of
        its own thread, which it gets from registers: so loads need not wait for stores, and a value
        that a later stage replaces need not be stored.
        """
        lines = []
        for k in ks:  # a row's values are done with before the next one's
            for box in self._boxes():
                lines += self._values(box, k, guarded)
        for number in range(len(self.works)):
            for k in ks:
                store = self.store(number, k)
                if store and not self.is_replaced(number, guarded):
                    lines.append(f"if (g{number}_{k}) {store}" if guarded else store)
        return lines

    def _boxes(self) -> list[list[int]]:
        """Return the numbers of stages that follow one another and have the same box."""
        numbers = range(len(self.works))
        return [list(part) for _, part in itertools.groupby(numbers, lambda n: self.works[n].box)]

    def _values(self, numbers: list[int], k: str, guarded: bool) -> list[str]:
        """Return the statements that compute point k in stages of one box."""
        kinds = {n: TYPES[self.type_of(self.works[n])] for n in numbers}
        values = {n: self.value(n, k, guarded) for n in numbers}
        if not guarded:
            return [f"[[maybe_unused]] const {kinds[n]} v{n}_{k} = {values[n]};" for n in numbers]
        first = numbers[0]
        return [
            f"[[maybe_unused]] const bool g{first}_{k} = {self.guard(self.works[first], k)};",
            *(f"[[maybe_unused]] const bool g{n}_{k} = g{first}_{k};" for n in numbers[1:]),
            *(f"{kinds[n]} v{n}_{k}{{}};" for n in numbers),
            f"if (g{first}_{k}) {{",
            *(f"  v{n}_{k} = {values[n]};" for n in numbers),
            "}",
        ]

    @property
    def writes_out_guarded(self) -> bool:
        """Whether a thread's points have a copy of the text each where there are conditions."""
        return False

    def is_replaced(self, number: int, guarded: bool) -> bool:
        """Return whether a later stage writes all points again that a stage has written."""
        work = self.works[number]
        return isinstance(work, ir.Assign) and any(
            isinstance(later, ir.Assign)
            and later.field == work.field
            and self.are_together(later, work)
            and (not guarded or self.covers(later, work))
            for later in self.works[number + 1 :]
        )

    def type_of(self, work: Work) -> str:
        """Return the type of what a stage computes."""
        if isinstance(work, ir.Assign):
            return self.program.field(work.field).type
        return work.value.type

    def store(self, number: int, k: str) -> str:
        """Return the statement that keeps a value of a stage; "": it stays in its register."""
        work = self.works[number]
        value = f"v{number}_{k}"
        if isinstance(work, ir.Reduce):
            total = f"total{number}"
            if is_accurate(work):
                return f"{total}.add({value});"
            f = {"sum": "plus", "max": "maximum", "min": "minimum"}[work.op]
            kind = TYPES[work.type]
            if work.op == "sum" and not work.type.startswith("int"):
                return f"{total} = static_cast<{kind}>({total} + {value});"
            return f"{total} = {f}({total}, static_cast<{kind}>({value}));"
        if work.field in self.in_registers:
            return ""
        pointer, position = self.written(work)
        to = f"{pointer} + {at(position, k)}"
        field = self.program.field(work.field)
        if not (self.stores_ghosts and self.layout.keeps_ghosts(field)):
            return f"*({to}) = {value};"
        first = self.lattice[0].start + self.between(work, 0)
        row = f"{times('q0', self.lattice[0].step)} - lo + {first}"
        more = f" + {k} * {self.row_step * self.lattice[0].step}" if k != "0" else ""
        return f"rt.store(ghosts_{work.field}, {to}, {row}{more}, {value});"

    def lines(self) -> list[str]:
        """Return the statements of the group, without what joins its reductions."""
        rows = range(self.tile.rows)
        several = len(rows) > 1 or len({w.box for w in self.works}) > 1 or self.chooses()
        if len(rows) == 1 and several and self.is_short:
            return self._swept(self.points(["0"], True))
        whole = self.points([str(k) for k in rows], False)
        inside = [f"if ({self.whole()}) {{", *(f"  {line}" for line in whole)]
        loops = len(rows) > 1 and not self.writes_out_guarded
        guarded = self.points(["k"] if loops else [str(k) for k in rows], True)
        if loops:
            loop = f"for (int k = 0; k < {len(rows)}; ++k) {{"
            guarded = ["CPUFREE_ONE_COPY", loop, *(f"  {line}" for line in guarded), "}"]
        inside += ["} else {", *(f"  {line}" for line in guarded)] if several else []
        return self._swept([*inside, "}"])

    def _swept(self, inside: list[str]) -> list[str]:
        """Return the statements that have all threads do something at their points."""
        inside = [*self._ends_first(), *self.indices(), *self.pointers.lines, *inside]
        return [
            *self.scalar_lines,
            *self.bounds(),
            f"rt.template {self.verb()}({self.queue}tiles, "
            "[&](int tile, [[maybe_unused]] int lane) {",
            *(f"  {line}" for line in inside),
            "});",
        ]

    def _ends_first(self) -> list[str]:
        """Return the statement that takes the last rows first, then those from the first one on.

        The neighbours' ghosts are on their way then, while the rows between are computed.
        """
        writes = [self.program.field(w.field) for w in self.works if isinstance(w, ir.Assign)]
        if (
            not (self.stores_ghosts and self.by_rows)
            or self.layout.slabs.pes == 1
            or self.options.order == "down"
            or not any(self.layout.keeps_ghosts(f) for f in writes)
        ):
            return []
        n = math.prod(inner_tiles(self.counts, self.tile))
        return [f"tile = tile < {n} ? tile + tiles - {n} : tile - {n};"]

    def verb(self) -> str:
        """Return the function of the runtime that goes over the tiles."""
        if self.queue:
            return f"sweep_queue<{self.tile.threads}>"
        if self.by_one:
            return f"sweep_of_one<{self.tile.threads}>"
        verb = "sweep" if self.by_rows or not self.reduces() else "sweep_alone"
        order = "chunks" if self.options.order in ("chunks", "down") else "strides"
        return f"{verb}<{self.tile.threads}, TileOrder::{order}>"

    def reduces(self) -> bool:
        """Return whether a stage is a reduction."""
        return any(isinstance(w, ir.Reduce) for w in self.works)
