"""The host-driven variant of a program: each group is a kernel of its own.

The sweeps are those of the persistent kernel (grid.py); barriers, halos, loops and scalars are the
host's. It is there to be compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from cpufree.compiler import ir
from cpufree.compiler.emit.expressions import TYPES
from cpufree.compiler.emit.grid import field_place, register_fields
from cpufree.compiler.emit.names import in_ascii
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


Kernels: TypeAlias = "dict[ir.Group, tuple[int, int]]"
"""Of each group: the number of its kernel, and its blocks, one for each tile."""


@dataclass(frozen=True)
class HostedText:
    """The kernels of a program, one for each group."""

    text: str
    kernels: Kernels
    threads: int


def emit_hosted(
    program: ir.Program,
    layout: GridLayout,
    kept: Iterable[str],
    multiprocessors: int,
    options: SweepOptions = STANDARD,
) -> HostedText:
    """Return the kernels of a program of groups."""
    lines, kernels = stage_kernels(program, layout, kept, multiprocessors, options)
    return HostedText(in_ascii("\n".join([*HEAD, *lines]) + "\n"), kernels, options.threads)


def stage_kernels(
    program: ir.Program,
    layout: GridLayout,
    kept: Iterable[str],
    multiprocessors: int,
    options: SweepOptions,
    first: int = 0,
    alone: bool = False,
) -> tuple[list[str], Kernels]:
    """Return the lines of a program's kernels, and the kernels.

    `first` is the number of the first kernel; `alone`: a PE has all rows.
    """
    in_registers = register_fields(program, set(kept))
    types = values_of(program)

    def choose(counts: tuple[int, ...], by_rows: bool) -> Tile:
        rows = min(layout.slabs.most, counts[0]) if by_rows else counts[0]
        return options.tile(counts, rows, multiprocessors)

    kernels: Kernels = {}
    lines: list[str] = []
    for s in ir.walk(program.body):
        if not isinstance(s, ir.Group) or s in kernels:
            continue
        works = [stage.work for stage in s.stages]
        sweep = Sweep(program, layout, works, in_registers, choose, options, stores_ghosts=False)
        rows = min(layout.slabs.most, sweep.counts[0]) if sweep.by_rows else sweep.counts[0]
        head = _KERNEL.format(
            threads=options.threads,
            number=first + len(kernels),
            fields=len(program.fields),
            values=max(1, len(types)),
            rows=layout.slabs.rows,
            place=_WHOLE if alone else "place",
        )
        names = _names(program, layout, types)
        lines += [head, *names, *(f"  {line}" for line in sweep.lines()), "}"]
        kernels[s] = first + len(kernels), tiles(sweep.counts, rows, sweep.tile)
    return lines, kernels


def values_of(program: ir.Program) -> dict[str, str]:
    """Return the types of what kernels take as values, by name, in order."""
    return {**dict(program.scalars), **dict(program.variables)}


def _names(program: ir.Program, layout: GridLayout, types: dict[str, str]) -> list[str]:
    lines = []
    for k, f in enumerate(program.fields):
        call = f"rt.field<{TYPES[f.type]}>({field_place(f, layout, f'args.offsets[{k}]', k)})"
        lines.append(f"  [[maybe_unused]] auto f_{f.name} = {call};")
    for k, (name, kind) in enumerate(types.items()):
        call = f"HostedRuntime::scalar<{TYPES[kind]}>(args.values[{k}])"
        lines.append(f"  [[maybe_unused]] const auto v_{name} = {call};")
    return lines
