"""A program's kernel for GPUs whose values lie in memory, and come on chip for rounds of turns.

For arrays that are too large to stay on chip. A block brings a tile with wide ghosts, does some
turns of the loop on it, and brings it back; then the next one. Fields that change have two copies:
a round reads one and writes the other. Between two rounds is a barrier with the neighbours: what a
round reads was written before it, and what it writes was read before it.
"""

from __future__ import annotations

from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import BlockPlan
from cpufree.compiler.emit.expressions import TYPES
from cpufree.compiler.emit.grid import GridText
from cpufree.compiler.emit.resident import Tiles
from cpufree.compiler.layout import RoundLayout
from cpufree.compiler.passes.rounds import Rounds, first_boxes


def changed_fields(program: ir.Program, plan: BlockPlan) -> list[str]:
    """Return the fields with tiles that a program writes, or whose storage it changes."""
    touched = ir.touched_fields(program.body)
    return [f.name for f in program.fields if f.name in touched and f.name in plan.offsets]


def emit_rounds(
    program: ir.Program, layout: RoundLayout, kept: set[str], plan: BlockPlan
) -> GridText:
    """Return the kernel of a program of groups whose loop is done in rounds from memory."""
    return _MemoryRounds(program, layout, kept, plan).emit_rounds()


class _MemoryRounds(Tiles):
    def __init__(
        self, program: ir.Program, layout: RoundLayout, kept: set[str], plan: BlockPlan
    ) -> None:
        super().__init__(program, layout, kept, plan)
        self.in_memory, self.ids_are_places = layout, False
        self.changed = [program.field(name) for name in changed_fields(program, plan)]

    def emit_rounds(self) -> GridText:
        """Return the text."""
        p = self.plan
        head = [*self._fields(), *self._scalars()]
        for f in self.changed:
            at, n = self.in_memory.others[f.name], self._values(f)
            head.append(f"auto* o_{f.name} = rt.template at<{TYPES[f.type]}>({at});")
            reach, stride = self.in_memory.reach(f), self.in_memory.strides(f)[0]
            sizes = f"{f.shape[0]}, {stride}, {reach.below}, {reach.above}"
            head.append(f"const auto g_{f.name} = rt.ghosts({sizes});")
            head.append(f"rt.copy(o_{f.name}, f_{f.name}.base, {n});")
        start = (
            f"TileRuntime<P, A> rt(port, args, heap, {self.grid_plan()}, "
            f"{{1, 1, {p.width}, {p.room}, {self.in_memory.tiles}, {p.size}}});"
        )
        body = self._block(self.program.body)
        text = self.text_of("tile_runtime", start, [*head, *body, *self._results()])
        return GridText(
            text,
            max(1, len(self.program.scalars)),
            p.threads,
            p.resident,
            -(-p.size // p.threads),
            p.blocks,
            1,
            tuple(sorted(self.in_registers)),
            p,
        )

    def _values(self, f: ir.Field) -> int:
        return self.in_memory.rows(f) * self.in_memory.strides(f)[0]

    def _rounds(self, rounds: Rounds) -> list[str]:
        s, most = rounds.loop, self.plan.turns
        assert self.plan.tile is not None
        i, e = f"i_{s.var}", f"e_{s.var}"
        start, stop = self._scalar(s.start, s.line), self._scalar(s.stop, s.line)
        swaps = [
            f"{{ auto* const first = f_{f.name}.base; f_{f.name}.base = o_{f.name}; "
            f"o_{f.name} = first; }}"
            for f in self.changed
        ]
        copies = [f"rt.copy(o_{f.name}, f_{f.name}.base, {self._values(f)});" for f in self.changed]
        return [
            "bool in_second = false;  // of the two copies",
            f"for (std::int64_t {i} = {start}, {e} = {stop}; {i} < {e};) {{",
            f"  const std::int64_t left = ({e} - {i} + {s.step - 1}) / {s.step};",
            f"  const int turns = left < {most} ? static_cast<int>(left) : {most};",
            f"  [[maybe_unused]] const bool is_last = left <= {most};",
            "  if (!rt.turn(true, true, turns) || !rt.barrier(true)) return false;",
            f"  rt.section({s.line});",
            *(f"  {line}" for line in self._tiles(rounds)),
            *(f"  {line}" for line in (*self._ids(rounds), *swaps)),
            "  in_second = !in_second;",
            f"  v_{s.var} = {i} + (turns - 1) * {s.step};",
            f"  {i} += turns * {s.step};",
            "}",
            "if (in_second) {",
            "  if (!rt.barrier(true)) return false;",
            *(f"  {line}" for line in copies),
            "}",
        ]

    def _tiles(self, rounds: Rounds) -> list[str]:
        """Return the statements that go over the tiles of a round."""
        assert self.plan.tile is not None
        high, wide = self.plan.tile
        across = -(-self.plan.width // wide)
        s = rounds.loop
        inside = [f"auto f_{f.name} = h_{f.name};" for f in self.tiled]
        inside += [f"rt.place(tile, {high}, {wide}, {across});", "rt.sync();"]
        inside += [line for f in self.tiled for line in self._load(rounds, f)]
        inside += [
            "CPUFREE_ONE_COPY",
            "for (int turn = turns; --turn >= 0;) {",
            f"  v_{s.var} = i_{s.var} + (turns - 1 - turn) * {s.step};",
            *(f"  {line}" for line in self._turn_of_round(rounds)),
            "}",
            "rt.sync();",
        ]
        for f in self.changed:
            store = f"rt.store_at(f_{f.name}, s_{f.name}, o_{f.name}, g_{f.name});"
            when = self._must_store(rounds, f)
            inside.append(f"if ({when}) {store}" if when else store)
        return [
            *(f"const auto h_{f.name} = f_{f.name};" for f in self.tiled),
            f"const int tiles_of_pe = rt.tiles({high}, {across});",
            "CPUFREE_ONE_COPY",
            "for (int tile = rt.block(); tile < tiles_of_pe; tile += rt.blocks()) {",
            *(f"  {line}" for line in inside),
            "}",
        ]

    def _load(self, rounds: Rounds, f: ir.Field) -> list[str]:
        """Return the statement that brings a tile, where the round does not compute all of it."""
        load = f"rt.load(f_{f.name}, s_{f.name});"
        inside = self._is_computed(rounds, f)
        return [f"if (!{inside}) {load}" if inside else load]

    def _must_store(self, rounds: Rounds, f: ir.Field) -> str:
        """Return the condition under which a tile is brought back; "": in any case.

        What the next round reads of it: all, or what is beside the box that it computes first. That
        never changes, but goes with the storage where fields change places. The last round brings
        back all.
        """
        moved = [name for names in self._moves(rounds) for name in names]
        if f.name in rounds.exchanged:
            return ""
        if f.name not in moved:
            return "is_last"
        inside = self._is_computed(rounds, f)
        return f"is_last || !{inside}" if inside else ""

    def _moves(self, rounds: Rounds) -> list[tuple[str, ...]]:
        """Return the fields that change places in a turn, for each statement."""
        permutes = (s for s in rounds.loop.body if isinstance(s, ir.Permute) and not s.values)
        return [s.fields for s in permutes]

    def _with_history(self, rounds: Rounds) -> set[str]:
        """Return the fields whose storage may hold, at the end, what an earlier round computed.

        Two that change places do not: a turn reads one, which is brought, and computes the other.
        """
        moves = self._moves(rounds)
        several = [name for names in moves for name in names]
        return {n for names in moves for n in names if len(names) > 2 or several.count(n) > 1}

    def _is_computed(self, rounds: Rounds, f: ir.Field) -> str:
        """Return the condition under which a round computes a tile before it reads it."""
        box = first_boxes(self.program, rounds.loop).get(f.name)
        if f.name in rounds.exchanged or f.name in self._with_history(rounds) or box is None:
            return ""
        if len(f.shape) > 2 and box[2] != ir.Span(0, 1, f.shape[2]):
            return ""
        spans = [*box, ir.Span(0, 1, 1)][:2]
        rows, columns = (f"Part{{{span.start}, {span.stop}}}" for span in spans)
        return f"rt.is_inside(s_{f.name}, {rows}, {columns})"

    def _ids(self, rounds: Rounds) -> list[str]:
        """Return the statements that have storage change its names as often as there were turns."""
        moves = []
        for s in rounds.loop.body:
            if isinstance(s, ir.Permute) and not s.values:
                olds = [f"const int old_{f} = f_{f}.id;" for f in s.fields]
                pairs = zip(s.fields, s.sources, strict=True)
                moves += ["{", *olds, *(f"f_{f}.id = old_{g};" for f, g in pairs), "}"]
        if not moves:
            return []
        return ["for (int turn = 0; turn < turns; ++turn) {", *(f"  {m}" for m in moves), "}"]
