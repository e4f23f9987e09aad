"""The host-driven variant of a program: each group is a kernel of its own.

The sweeps are those of the persistent kernel (grid.py); barriers, halos, loops and scalars are the
host's. It is there to be compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cpufree.compiler import ir
from cpufree.compiler.emit.expressions import TYPES
from cpufree.compiler.emit.grid import register_fields
from cpufree.compiler.emit.sweep import Sweep
from cpufree.compiler.emit.tiles import STANDARD, SweepOptions, Tile, tiles
from cpufree.compiler.layout import GridLayout

_KERNEL = """
extern "C" __global__ void __launch_bounds__({threads})
stage_{number}(const __grid_constant__ HostedPlace place,
         const __grid_constant__ HostedArgs<{fields}, {values}> args) {{
  const LaunchedBlock me{{static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x),
                         static_cast<int>(threadIdx.x)}};
  HostedRuntime rt({place}, me, {rows});
"""
_WHOLE = "HostedPlace{place.heap, place.faults, 0, 1, {}}"
HEAD = (
    '#include "cpufree/programs/hosted_runtime.hpp"',
    "using namespace cpufree;",
    "using namespace cpufree::programs;",
)


@dataclass(frozen=True)
class HostedText:
    """The kernels of a program, one for each group, by their numbers."""

    text: str
    groups: tuple[ir.Group, ...]
    blocks: tuple[int, ...]
    """Of each kernel: one for each tile."""
    threads: int
    values: tuple[str, ...]
    """Scalars and variables, in the order in which kernels take them."""


def emit_hosted(
    program: ir.Program,
    layout: GridLayout,
    kept: Iterable[str],
    multiprocessors: int,
    options: SweepOptions = STANDARD,
) -> HostedText:
    """Return the kernels of a program of groups."""
    lines, groups, blocks = stage_kernels(program, layout, kept, multiprocessors, options)
    types = _values(program)
    text = "\n".join([*HEAD, *lines]) + "\n"
    return HostedText(text, tuple(groups), tuple(blocks), options.threads, tuple(types))


def stage_kernels(
    program: ir.Program,
    layout: GridLayout,
    kept: Iterable[str],
    multiprocessors: int,
    options: SweepOptions,
    first: int = 0,
    alone: bool = False,
) -> tuple[list[str], list[ir.Group], list[int]]:
    """Return the lines of a program's kernels, with their groups and blocks.

    `first` is the number of the first kernel; `alone`: a PE has all rows.
    """
    in_registers = register_fields(program, set(kept))
    types = _values(program)

    def choose(counts: tuple[int, ...], by_rows: bool) -> Tile:
        rows = min(layout.slabs.most, counts[0]) if by_rows else counts[0]
        return options.tile(counts, rows, multiprocessors)

    groups: list[ir.Group] = []
    blocks: list[int] = []
    lines: list[str] = []
    for s in ir.walk(program.body):
        if not isinstance(s, ir.Group) or s in groups:
            continue
        works = [stage.work for stage in s.stages]
        sweep = Sweep(program, layout, works, in_registers, choose, options, stores_ghosts=False)
        rows = min(layout.slabs.most, sweep.counts[0]) if sweep.by_rows else sweep.counts[0]
        head = _KERNEL.format(
            threads=options.threads,
            number=first + len(groups),
            fields=len(program.fields),
            values=max(1, len(types)),
            rows=layout.slabs.rows,
            place=_WHOLE if alone else "place",
        )
        lines += [head, *_names(program, types), *(f"  {line}" for line in sweep.lines()), "}"]
        groups.append(s)
        blocks.append(tiles(sweep.counts, rows, sweep.tile))
    return lines, groups, blocks


def _values(program: ir.Program) -> dict[str, str]:
    """Return the types of what a kernel takes as values."""
    return {**dict(program.scalars), **dict(program.variables)}


def _names(program: ir.Program, types: dict[str, str]) -> list[str]:
    lines = []
    for k, f in enumerate(program.fields):
        call = f"rt.field<{TYPES[f.type]}>(args.offsets[{k}], {f.shape[0]}, {k})"
        lines.append(f"  [[maybe_unused]] auto f_{f.name} = {call};")
    for k, (name, kind) in enumerate(types.items()):
        call = f"HostedRuntime::scalar<{TYPES[kind]}>(args.values[{k}])"
        lines.append(f"  [[maybe_unused]] const auto v_{name} = {call};")
    return lines
