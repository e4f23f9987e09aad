"""A program's kernel for GPUs whose warps stream rows of memory through registers.

For loops of sweeps over arrays of two dimensions. A warp goes down a strip of columns, each lane
some columns side by side, and does several turns of the loop on the way (passes/levels.py): no
shared memory, no barrier but one for a round. stream_runtime.hpp has the memory's side.
"""

from __future__ import annotations

from cpufree.compiler import ir
from cpufree.compiler.emit.expressions import TYPES
from cpufree.compiler.emit.grid import Grid, GridText
from cpufree.compiler.emit.stream_pass import StreamPass
from cpufree.compiler.emit.stream_plan import StreamPlan
from cpufree.compiler.emit.tiles import STANDARD
from cpufree.compiler.layout import RoundLayout
from cpufree.compiler.passes.levels import chain_of


def emit_streams(
    program: ir.Program, layout: RoundLayout, kept: set[str], plan: StreamPlan
) -> GridText:
    """Return the kernel of a program of groups whose loop is streamed."""
    return _Streams(program, layout, kept, plan).emit_streams()


class _Streams(Grid):
    def __init__(
        self, program: ir.Program, layout: RoundLayout, kept: set[str], plan: StreamPlan
    ) -> None:
        super().__init__(program, layout, kept, 1, STANDARD)
        self.in_memory, self.plan, self.ids_are_places = layout, plan, False
        self.tiled = [
            f for f in program.fields if f.distributed and f.name not in self.in_registers
        ]
        self.changed = [f for f in self.tiled if f.name in layout.others]

    def emit_streams(self) -> GridText:
        """Return the text."""
        p = self.plan
        head = [
            *self._fields(),
            *self._scalars(),
            f"constexpr int C = {p.strip} / P::warp_width;  // columns of a lane",
        ]
        for f in self.tiled:
            reach, stride = self.layout.reach(f), self.layout.strides(f)[0]
            ring = "true" if p.rounds.ring[1] else "false"
            sizes = f"{f.shape[0]}, {f.shape[1]}, {stride}, {reach.below}, {reach.above}, {ring}"
            head.append(f"constexpr RowsShape s_{f.name}{{{sizes}}};")
        for f in self.changed:
            at, stride = self.in_memory.others[f.name], self.layout.strides(f)[0]
            reach, values = self.layout.reach(f), self._values(f)
            head.append(f"auto* o_{f.name} = rt.template at<{TYPES[f.type]}>({at});")
            sizes = f"{f.shape[0]}, {stride}, {reach.below}, {reach.above}"
            head.append(f"const auto g_{f.name} = rt.ghosts({sizes});")
            head.append(f"rt.copy(o_{f.name}, f_{f.name}.base, {values});")
        start = f"StreamRuntime<P, A> rt(port, args, heap, {self.grid_plan()});"
        body = self._block(self.program.body)
        return GridText(
            self.text_of("stream_runtime", start, [*head, *body, *self._results()]),
            max(1, len(self.program.scalars)),
            p.threads,
            p.resident,
            0,
            p.blocks,
            1,
            tuple(sorted(self.in_registers)),
            p,
        )

    def _values(self, f: ir.Field) -> int:
        return self.in_memory.rows(f) * self.in_memory.strides(f)[0]

    # --- the loop ---

    def _control(self, s: ir.For | ir.Loop | ir.If) -> list[str]:
        """Return the loop in rounds: of `turns` turns, and of one for what is left."""
        rounds, most = self.plan.rounds, self.plan.turns
        loop = rounds.loop
        i, e = f"i_{loop.var}", f"e_{loop.var}"
        start, stop = self._scalar(loop.start, loop.line), self._scalar(loop.stop, loop.line)
        swaps = [
            f"{{ auto* const first = f_{f.name}.base; f_{f.name}.base = o_{f.name}; "
            f"o_{f.name} = first; }}"
            for f in self.changed
        ]
        copies = [f"rt.copy(o_{f.name}, f_{f.name}.base, {self._values(f)});" for f in self.changed]
        passes = [*self._pass("round_of_one", 1, i)]
        call = f"round_of_one({i}, is_last);"
        if most > 1:
            passes += self._pass("round", most, i)
            call = f"if (turns == 1) {call[:-1]};\nelse round({i}, is_last);"
        return [
            *passes,
            "bool in_second = false;  // of the two copies",
            f"for (std::int64_t {i} = {start}, {e} = {stop}; {i} < {e};) {{",
            f"  const std::int64_t left = ({e} - {i} + {loop.step - 1}) / {loop.step};",
            f"  const int turns = left < {most} ? 1 : {most};",
            "  [[maybe_unused]] const bool is_last = left == turns;",
            "  if (!rt.turn(true, true, turns) || !rt.barrier(true)) return false;",
            f"  rt.section({loop.line});",
            *(f"  {line}" for line in call.split("\n")),
            *(f"  {line}" for line in (*self._ids(), *swaps)),
            "  in_second = !in_second;",
            f"  v_{loop.var} = {i} + (turns - 1) * {loop.step};",
            f"  {i} += turns * {loop.step};",
            "}",
            "if (in_second) {",
            "  if (!rt.barrier(true)) return false;",
            *(f"  {line}" for line in copies),
            "}",
        ]

    def _ids(self) -> list[str]:
        """Return the statements that have storage change its names as often as there were turns."""
        moves = []
        for s in self.plan.rounds.loop.body:
            if isinstance(s, ir.Permute) and not s.values:
                olds = [f"const int old_{f} = f_{f}.id;" for f in s.fields]
                pairs = zip(s.fields, s.sources, strict=True)
                moves += ["{", *olds, *(f"f_{f}.id = old_{g};" for f, g in pairs), "}"]
        if not moves:
            return []
        return ["for (int turn = 0; turn < turns; ++turn) {", *(f"  {m}" for m in moves), "}"]

    def _pass(self, name: str, turns: int, i: str) -> list[str]:
        """Return the function that does a round of N turns."""
        chain = chain_of(self.program, self.plan.rounds, turns, self.in_registers)
        return StreamPass(self, self.tiled, self.plan, chain, turns).lines(name)
