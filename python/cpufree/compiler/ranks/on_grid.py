"""The kernel of ranks where a PE has many blocks: GPUs.

Sizes are in the text, so each variant of the program has a function of its own, and a PE calls that
of its rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpufree.compiler import ir
from cpufree.compiler.emit.grid import Grid, GridText, reduces
from cpufree.compiler.emit.names import in_ascii
from cpufree.compiler.emit.sweep import Sweep
from cpufree.compiler.emit.tiles import STANDARD, SweepOptions, tiles
from cpufree.compiler.ranks.layout import RankGridLayout
from cpufree.compiler.ranks.on_rows import MESSAGES, exchanges_of, message_lines
from cpufree.compiler.ranks.prune import regions
from cpufree.compiler.ranks.roles import Divided, dividable, divided
from cpufree.compiler.ranks.routes import Ranks
from cpufree.errors import UnsupportedError

_MOST_SLICES = 64
"""That a block keeps account of: bits of Exchange::left in programs/messages.hpp."""

_ENTRY = """
// Arguments of this rank: its part of the results.
struct RankArgs {{
  std::int64_t* results;
  std::int64_t* faults;
  const std::int64_t* scalars;
}};

template <GridPort P, class A>
CPUFREE_KERNEL_FN bool run(P& port, const A& args, std::byte* heap) {{
  Messages<P> messages(port, heap, {{{plan}}});
  std::int64_t* const mine = args.results + std::int64_t{{port.pe()}} * {words};
  const RankArgs own{{mine, mine + {results}, args.scalars}};
  SoloPort<P> solo(port);
  switch (messages.variant()) {{
{cases}
    default:
      return false;
  }}
}}
"""


FEW_POINTS = 1 << 22
"""Of a rank that exchanges: up to this number, one block for each multiprocessor is taken.

Measured with half a million points and with two (docs/dace.md): 10 and 20 % faster than as many
blocks as find room.
"""


def kept_fields(ranks: Ranks, program: ir.Program) -> set[str]:
    """Return the fields that are used outside of sweeps: by messages, and by the caller."""
    found = {r.region.field for of_rank in ranks.sends for r in of_rank if r.region is not None}
    found |= {r.field for s in ir.walk(program.body) for r in regions(s)}
    return found | {f.name for f in program.fields if f.name.startswith("__return")}


def _waits_often(ranks: Ranks, programs: list[ir.Program]) -> bool:
    """Return whether ranks wait for messages, and have few points to do between."""
    waits = any(
        isinstance(s, ir.WaitSignal) or (isinstance(s, ir.Finish) and s.receives)
        for p in programs
        for s in ir.walk(p.body)
    )
    return waits and max(math.prod(f.shape) for f in ranks.fields) <= FEW_POINTS


@dataclass(frozen=True)
class _Made:
    text: str
    most_tiles: int
    in_registers: tuple[str, ...]


def emit_ranks(
    ranks: Ranks,
    programs: list[ir.Program],
    layout: RankGridLayout,
    multiprocessors: int,
    options: SweepOptions = STANDARD,
    roles: bool = True,
) -> GridText:
    """Return the kernel of ranks; `programs` are the variants after the passes for GPUs.

    `roles`: where it can be, blocks are divided between what needs messages and what does not.
    """
    made = []
    for k, p in enumerate(programs):
        arriving = {
            site
            for rank, variant in enumerate(ranks.variant_of)
            if variant == k
            for site, route in enumerate(ranks.receives[rank])
            if route.peer >= 0
        }
        variant = _Variant(p, layout, kept_fields(ranks, p), multiprocessors, options)
        variant.arriving = arriving if roles else set()
        variant.dividable = dividable(p)
        made.append(variant.whole())
    lines = [
        '#include "cpufree/programs/grid_runtime.hpp"',
        '#include "cpufree/programs/solo_port.hpp"',
        '#include "cpufree/programs/messages.hpp"',
        "",
        "namespace {",
        "using namespace cpufree;",
        "using namespace cpufree::programs;",
        "",
    ]
    for k, text in enumerate(made):
        lines += [f"namespace variant{k} {{", text.text, f"}}  // namespace variant{k}"]
    cases = "\n".join(
        f"    case {k}:\n      return variant{k}::run(solo, messages, own, heap);"
        for k in range(len(made))
    )
    entry = _ENTRY.format(
        plan=", ".join(map(str, layout.messages.plan)),
        words=layout.results,
        results=layout.results - 2,  # behind them are the faults
        cases=cases,
    )
    sends = max((len(s.sends) for p in programs for s in ir.walk(p.body)
                 if isinstance(s, ir.Start)), default=0)  # fmt: skip
    barriers = sum(isinstance(s, ir.Barrier) for p in programs for s in ir.walk(p.body))
    blocks = min(
        max(sends * layout.messages.slices, *(m.most_tiles for m in made)),
        multiprocessors * (1 if _waits_often(ranks, programs) else options.resident),
    )
    _check_slices(ranks, sends * layout.messages.slices, blocks)
    return GridText(
        "\n".join([*lines, entry, "}  // namespace", ""]),
        max(1, len(programs[0].scalars)),
        options.threads,
        options.resident,
        16 if any(reduces(p) for p in programs) else 0,
        blocks,
        barriers,
        tuple(sorted({n for m in made for n in m.in_registers})),
    )


def _check_slices(ranks: Ranks, slices: int, blocks: int) -> None:
    """Refuse exchanges of which a block would send more slices than it can keep account of."""
    senders = max(1, min(slices, blocks // 4))  # divide_roles in programs/solo_port.hpp
    if slices > _MOST_SLICES * senders:
        raise UnsupportedError(
            f"{ranks.name} sends {slices} slices of messages at once with {senders} blocks, which "
            f"keep account of {_MOST_SLICES} each: give ranks more of a GPU, or send less at once"
        )


class _Variant(Grid):
    layout: RankGridLayout
    arriving: set[int]
    """Sites at which some rank receives something; none: no roles."""
    dividable: set[int]
    """Ids of Starts whose exchange may be divided."""

    def _block(self, body: tuple[ir.Statement, ...]) -> list[str]:
        lines, k = [], 0
        while k < len(body):
            found = None
            self.after_barrier = False  # no queues of tiles: roles share blocks out
            if self.arriving and id(body[k]) in self.dividable:
                found = divided(body[k], body[k + 1], body[k + 2], self.arriving)
            if found is None:
                lines += self._statement(body[k])
                k += 1
            else:
                lines += self._in_roles(found)
                k += 3
        return lines

    def _in_roles(self, d: Divided) -> list[str]:
        """Return the statements of an exchange and of the sweep behind it, by roles of blocks."""
        start, finish = (message_lines(s, str) for s in (d.start, d.finish))
        slices = len(d.start.sends) * self.layout.messages.slices
        outside = sum(self._work(g) for g in d.rims)
        work = f"{outside}, {self._work(d.inside)}, {slices}"
        put = start[0].replace(");", ", roles.boundary);")
        rims = [line for g in d.rims for line in self._statement(g)]
        return [
            "{",
            f"  const Roles roles = divide_roles(port.blocks(), {work});",
            "  const int block = port.block();",
            f"  {put}",
            "  if (roles.inside(block)) {",
            "    port.only(roles.first_inside(), roles.count_inside());",
            *(f"    {line}" for line in self._statement(d.inside)),
            "    port.only(0, 0);",
            "  }",
            "  if (roles.at_boundary(block)) {",
            f"    {finish[0]}",
            "    port.only(0, roles.boundary);",
            *(f"    {line}" for line in rims),
            "    port.only(0, 0);",
            "  }",
            "}",
        ]

    def _work(self, group: ir.Group) -> int:
        """Return the work of a sweep: rows of its tiles."""
        works = [stage.work for stage in group.stages]
        sweep = Sweep(self.program, self.layout, works, self.in_registers, self._tile, self.options)
        return tiles(sweep.counts, sweep.counts[0], sweep.tile) * sweep.tile.rows

    def whole(self) -> _Made:
        """Return the function of a variant."""
        head = [*self._fields(), *self._scalars()]
        head += [f"Exchange x{k};" for k in range(exchanges_of(self.program))]
        body = self._block(self.program.body)
        lines = [
            "template <GridPort P, class M, class A>",
            "CPUFREE_KERNEL_FN bool run(P& port, [[maybe_unused]] M& messages, const A& args,",
            "                           std::byte* heap) {",
            f"  GridRuntime<P, A> rt(port, args, heap, {self.grid_plan()});",
            *(f"  {line}" for line in (*head, *body, *self._results())),
            "  return !rt.failed();",
            "}",
        ]
        return _Made(in_ascii("\n".join(lines)), self.most_tiles, tuple(self.in_registers))

    def _statement(self, s: ir.Statement) -> list[str]:
        if isinstance(s, MESSAGES):
            return message_lines(s, lambda e: self._scalar(e, 0))
        return super()._statement(s)
