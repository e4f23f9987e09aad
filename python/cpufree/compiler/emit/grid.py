"""A program's kernel for GPUs: sweeps, barriers and reductions of a grid of threads.

Sizes, offsets and strides are in the text: NVRTC compiles in a second or two, and addresses become
constants. Values of scalars are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import BlockPlan
from cpufree.compiler.emit.expressions import TYPES
from cpufree.compiler.emit.kernel import KernelText
from cpufree.compiler.emit.names import in_ascii
from cpufree.compiler.emit.stream_plan import StreamPlan
from cpufree.compiler.emit.sweep import Sweep
from cpufree.compiler.emit.tiles import STANDARD, SweepOptions, Tile, tiles
from cpufree.compiler.layout import GridLayout, Key
from cpufree.compiler.passes.accesses import accesses
from cpufree.compiler.passes.barriers import joins
from cpufree.compiler.passes.points import at_own_point
from cpufree.compiler.passes.rows import Work, is_accurate, is_by_rows

_VALUE = 16  # bytes, the most that a value to be reduced has

_ON_GPU = """
extern "C" __global__ void __launch_bounds__({threads}, {resident})
run_on_gpu(const __grid_constant__ cpufree::gpu_p2p::Shared given_shared,
           const __grid_constant__ cpufree::programs::{args}<{scalars}> given_args) {{
  const auto& shared = cpufree::gpu_p2p::argument(given_shared, 0);
  const auto& args = cpufree::gpu_p2p::argument(given_args, sizeof shared);
  extern __shared__ double2 fast[];
  cpufree::gpu_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  {call}
}}
"""
_CALL = "run(port, args, shared.heaps[shared.pe]);"
_TRACED = f"cpufree::run_traced(port, args.traces, [&](auto& port) {{ {_CALL} }});"


@dataclass(frozen=True)
class GridText:
    """A kernel's text, over the port; and what its launch needs."""

    text: str
    scalars: int
    threads: int
    resident: int
    """Blocks of a multiprocessor that the kernel leaves registers for."""
    thread_bytes: int
    """Of a block's shared memory: a value that is reduced."""
    most_blocks: int
    """Of a PE: more would have nothing to do, or find no room."""
    barriers: int
    in_registers: tuple[str, ...]
    on_chip: BlockPlan | StreamPlan | None = None
    """How blocks divide a PE's points, where values stay on chip."""

    def on_gpu(self, traced: bool = False) -> str:
        """Return the text for the compiler of kernels of GPUs."""
        head = '#include "cpufree/engines/gpu_p2p/port.cuh"\n'
        head += '#include "cpufree/trace/traced.hpp"\n' if traced else ""
        sizes = {"threads": self.threads, "resident": self.resident, "scalars": self.scalars}
        kind = (
            {"args": "TracedArgs", "call": _TRACED}
            if traced
            else {"args": "GridArgs", "call": _CALL}
        )
        return head + self.text + _ON_GPU.format(**sizes, **kind)


def emit_grid(
    program: ir.Program,
    layout: GridLayout,
    kept: Iterable[str],
    multiprocessors: int,
    options: SweepOptions = STANDARD,
) -> GridText:
    """Return the kernel of a program of groups with barriers.

    Parameters
    ----------
    program : ir.Program
        After group_points and add_barriers.
    layout : GridLayout
        Of its fields.
    kept : iterable of str
        Fields that the caller gets, besides its arguments.
    multiprocessors : int
        Of a GPU: how many blocks should have something to do.
    options : SweepOptions
        How sweeps are done.
    """
    return Grid(program, layout, set(kept), multiprocessors, options).emit_grid()


class Grid(KernelText):
    """The text of a kernel of many blocks."""

    def __init__(
        self,
        program: ir.Program,
        layout: GridLayout,
        kept: set[str],
        multiprocessors: int,
        options: SweepOptions,
    ) -> None:
        super().__init__(program)
        self.layout, self.multiprocessors, self.options = layout, multiprocessors, options
        self.most_tiles = 1
        self.queues = 0
        self.after_barrier = False
        self.in_registers = register_fields(program, kept)
        self.ids_are_places = not any(s.values for s in _permutes(program))

    def number(self, key: Key) -> str:
        return str(self.layout.number(key))

    def emit_grid(self) -> GridText:
        head = [*self._fields(), *self._scalars()]
        body = self._block(self.program.body)
        head += [f"Epoch queue{k} = 0;" for k in range(self.queues)]
        start = f"GridRuntime<P, A> rt(port, args, heap, {self.grid_plan()});"
        text = self.text_of("grid_runtime", start, [*head, *body, *self._results()])
        barriers = sum(
            isinstance(s, ir.Barrier) and not s.of_block for s in ir.walk(self.program.body)
        )
        return GridText(
            text,
            max(1, len(self.program.scalars)),
            self.options.threads,
            self.options.resident,
            _VALUE if reduces(self.program) else 0,
            min(self.most_tiles, self.options.resident * self.multiprocessors),
            barriers,
            tuple(sorted(self.in_registers)),
        )

    def grid_plan(self) -> str:
        """Return the text of a GridPlan."""
        places = ", ".join(
            self.number((what, 0)) for what in ("counter", "flags", "packets", "stop")
        )
        ring = "true" if self.layout.ring else "false"
        return f"{{{self.layout.slabs.rows}, {places}, {ring}, {self.layout.slabs.pes}}}"

    def text_of(self, header: str, start: str, inside: list[str]) -> str:
        """Return the whole text, of a kernel that begins with making its runtime."""
        lines = [
            f'#include "cpufree/programs/{header}.hpp"',
            "",
            "namespace {",
            "using namespace cpufree;",
            "using namespace cpufree::programs;",
            "",
            "template <GridPort P, class A>",
            "CPUFREE_KERNEL_FN bool run(P& port, const A& args, std::byte* heap) {",
            f"  {start}",
            *(f"  {line}" for line in inside),
            "  return !rt.failed();",
            "}",
            "}  // namespace",
            "",
        ]
        return in_ascii("\n".join(lines))

    def _results(self) -> list[str]:
        names, count = [name for name, _ in self.program.variables], len(self.program.fields)
        lines = [f"rt.result({k}, v_{name});" for k, name in enumerate(names)]
        first = len(names)
        lines += [f"rt.count_results({at}, {count});" for at in (first, first + count)]
        moved = {name for s in _permutes(self.program) for name in s.fields}
        if not moved:
            return lines
        places = ", ".join(
            f"{{{at}, {k}}}"
            for k, f in enumerate(self.program.fields)
            if f.name in moved
            for at in self.layout.places(f)
        )
        lines.append(f"static constexpr FieldPlace places[] = {{{places}}};")
        for k, f in enumerate(self.program.fields):
            if f.name in moved:
                place = f"rt.number_at(f_{f.name}.base, places)"
                own = place if self.ids_are_places else f"std::int64_t{{f_{f.name}.id}}"
                lines.append(f"rt.result({first + k}, {own});")
                lines.append(f"rt.result({first + count + k}, {place});")
        return lines

    def _fields(self) -> list[str]:
        lines = []
        for k, f in enumerate(self.program.fields):
            place = field_place(f, self.layout, str(self.layout.offsets[f.name]), k)
            call = f"rt.template field<{TYPES[f.type]}>({place})"
            lines.append(f"[[maybe_unused]] auto f_{f.name} = {call};")
            if self.layout.keeps_ghosts(f):
                reach, stride = self.layout.reach(f), self.layout.strides(f)[0]
                sizes = f"{f.shape[0]}, {stride}, {reach.below}, {reach.above}"
                lines.append(f"[[maybe_unused]] const auto ghosts_{f.name} = rt.ghosts({sizes});")
        return lines

    def _block(self, body: tuple[ir.Statement, ...]) -> list[str]:
        lines: list[str] = []
        before: ir.Statement | None = None
        for s in body:
            self.after_barrier = isinstance(before, ir.Barrier)
            lines += self._statement(s)
            before = s
        return lines

    def _statement(self, s: ir.Statement) -> list[str]:
        if isinstance(s, ir.Barrier) and s.of_block:
            return ["rt.wait_in_block();"]
        if isinstance(s, ir.Barrier):
            return [f"if (!rt.barrier({'true' if s.neighbours else 'false'})) return false;"]
        return super()._statement(s)

    def _turn(self, s: ir.For | ir.Loop, outermost: str) -> str:
        has_barrier = any(_always_meets(self.program, part) for part in s.body)
        return f"if (!rt.turn({outermost}, {'true' if has_barrier else 'false'})) return false;"

    def _group(self, s: ir.Group) -> list[str]:
        works = [stage.work for stage in s.stages]
        sweep = self._sweep_of_one(works) if s.by_one else self._sweep(works)
        inside = [line for k, w in enumerate(works) for line in _total(w, k)]
        inside += sweep.lines()
        for k, work in enumerate(works):
            if isinstance(work, ir.Reduce):
                inside += _joined(work, k, sweep.by_rows)
        return ["{", *(f"  {line}" for line in inside), "}"]

    def _sweep_of_one(self, works: list[Work]) -> Sweep:
        def tile(counts: tuple[int, ...], _: bool) -> Tile:
            return replace(self.options, resident=1).tile(counts, counts[0], 1)

        sweep = Sweep(self.program, self.layout, works, self.in_registers, tile, self.options)
        sweep.by_one = True
        return sweep

    def _sweep(self, works: list[Work]) -> Sweep:
        sweep = Sweep(self.program, self.layout, works, self.in_registers, self._tile, self.options)
        rows = self.layout.slabs.most if sweep.by_rows else sweep.counts[0]
        rows = min(rows, sweep.counts[0])
        number = tiles(sweep.counts, rows, sweep.tile)
        sweep.is_short = number <= self.options.resident * self.multiprocessors
        self.most_tiles = max(self.most_tiles, number)
        may = sweep.by_rows and self.after_barrier and not sweep.reduces()
        if self.options.order == "queue" and may and self.queues < self.layout.MOST_QUEUES:
            sweep.queue = f"{self.layout.queue(self.queues)}, queue{self.queues}, "
            self.queues += 1
        return sweep

    def _tile(self, counts: tuple[int, ...], by_rows: bool) -> Tile:
        rows = min(self.layout.slabs.most, counts[0]) if by_rows else counts[0]
        return self.options.tile(counts, rows, self.multiprocessors)


def _permutes(program: ir.Program) -> list[ir.Permute]:
    return [s for s in ir.walk(program.body) if isinstance(s, ir.Permute)]


_OF_BLOCK = ir.Barrier(neighbours=False, of_block=True)


def _always_meets(program: ir.Program, s: ir.Statement) -> bool:
    """Return whether blocks wait for one another in a statement, whatever way it takes."""
    return (isinstance(s, ir.Barrier | ir.Exchange) and s != _OF_BLOCK) or (
        isinstance(s, ir.Group) and joins(program, s)
    )


def reduces(program: ir.Program) -> bool:
    """Return whether a program has reductions."""
    groups = (s for s in ir.walk(program.body) if isinstance(s, ir.Group))
    return any(isinstance(stage.work, ir.Reduce) for s in groups for stage in s.stages)


def _total(work: Work, k: int) -> list[str]:
    if not isinstance(work, ir.Reduce):
        return []
    if is_accurate(work):
        return [f"Accurate total{k};"]
    kind = TYPES[work.type]
    limits = f"std::numeric_limits<{kind}>"
    start = {
        "sum": f"{kind}(0)",
        "max": f"-{limits}::infinity()" if "float" in work.type else f"{limits}::lowest()",
        "min": f"{limits}::infinity()" if "float" in work.type else f"{limits}::max()",
    }[work.op]
    return [f"{kind} total{k} = {start};"]


def _joined(work: ir.Reduce, k: int, among_pes: bool) -> list[str]:
    """Return the statements that bring the parts of a reduction together."""
    total = f"total{k}"
    f = {"sum": "Plus{}", "max": "Max{}", "min": "Min{}"}[work.op]
    f = "JoinedSums{}" if is_accurate(work) else f
    value = f"{total}.value()" if is_accurate(work) else total
    call = (
        f"if (!rt.join({total}, {f})) return false;"
        if among_pes
        else f"rt.join_block({total}, {f});"
    )
    return [call, f"v_{work.name} = static_cast<{TYPES[work.type]}>({value});"]


def field_place(f: ir.Field, layout: GridLayout, offset: str, number: int) -> str:
    """Return where a field is, for `field` of a runtime: offset, rows, number, strides."""
    strides = layout.strides(f)[:-1]
    return ", ".join(map(str, (offset, f.shape[0], number, *strides)))


def register_fields(program: ir.Program, kept: set[str]) -> set[str]:
    """Return the program's own fields that need no memory.

    All uses are in one group; each read is of the point that an earlier stage of the group has
    computed, at all points of the reader.
    """
    groups = [s for s in ir.walk(program.body) if isinstance(s, ir.Group)]
    permuted = {n for s in _permutes(program) for n in s.fields}
    users: dict[str, list[ir.Group]] = {}
    for g in groups:
        for name in {a.field for s in g.stages for a in accesses(program, s.work)}:
            users.setdefault(name, []).append(g)
    found = set()
    for f in program.fields:
        if f.role not in ("local", "temporary") or f.name in kept | permuted:
            continue
        uses = users.get(f.name, [])
        if len(uses) == 1 and _is_handed_on(program, uses[0], f):
            found.add(f.name)
    return found


def _is_handed_on(program: ir.Program, group: ir.Group, f: ir.Field) -> bool:
    works = [stage.work for stage in group.stages]
    if not is_by_rows(program, works[0]):
        return False
    for number, work in enumerate(works):
        for read in ir.reads(work.value):
            if read.field != f.name:
                continue
            writers = [w for w in works[:number] if isinstance(w, ir.Assign) and w.field == f.name]
            if not writers or not at_own_point(read, work) or not _has_all(writers[-1], work):
                return False
    return True


def _has_all(one: Work, other: Work) -> bool:
    return all(
        a.start <= b.start and a.stop >= b.stop and (b.start - a.start) % a.step == 0
        for a, b in zip(one.box, other.box, strict=True)
    )
