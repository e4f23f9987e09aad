"""Kernels for GPUs on the CPU engine: the same text over another port, blocks as threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.build import build
from cpufree.compiler.emit.tiles import STANDARD, SweepOptions
from cpufree.compiler.grid import (
    GridKernel,
    grid_groups,
    grid_kernel,
    returned_fields,
    round_kernel,
    stream_kernel,
    swept_groups,
    tile_kernel,
    with_barriers,
)
from cpufree.compiler.launch import Threads
from cpufree.compiler.layout import Layout, most_pes
from cpufree.compiler.runner import Runner
from cpufree.engines.watch import Watch
from cpufree.extension import load_core
from cpufree.laps import Laps
from cpufree.trace.asked import Recording
from cpufree.trace.finished import finished
from cpufree.trace.records import Trace


def kernel_for(
    program: Any,
    args: tuple[Any, ...],
    pes: int,
    multiprocessors: int = 132,
    options: SweepOptions = STANDARD,
    named: Mapping[str, Any] | None = None,
) -> Any:
    """Return the arguments of a call, what it lowers to, and its kernel for GPUs."""
    arguments = Arguments.of(program.signature, program.name, args, dict(named or {}))
    lowered = program._lowered(arguments)
    arguments.check(lowered.program)
    kept = returned_fields(lowered.result)
    groups = swept_groups(lowered.program, kept)
    pes = most_pes(groups, pes)
    made = with_barriers(groups, pes)
    kernel = grid_kernel(made, pes, kept, multiprocessors, options)
    return arguments, lowered, kernel


def call(
    program: Any,
    args: tuple[Any, ...],
    pes: int,
    blocks: int,
    options: SweepOptions = STANDARD,
    named: Mapping[str, Any] | None = None,
) -> Any:
    """Call a program by its kernel for GPUs, on threads of the CPU."""
    arguments, lowered, kernel = kernel_for(program, args, pes, 1, options, named)
    arrays, scalars = run_kernel(kernel, arguments, lowered, blocks)
    return arguments.returned(lowered, arrays, scalars)


def call_on_chip(
    program: Any,
    args: tuple[Any, ...],
    pes: int,
    blocks: int,
    turns: int | None = 0,
    tile: tuple[int, int] | None = None,
) -> Any:
    """Call a program by its kernel whose values stay on chip; NotOnChip where it has none.

    Returns what the program returns, and the kernel.
    """
    arguments = Arguments.of(program.signature, program.name, args, {})
    lowered = program._lowered(arguments)
    arguments.check(lowered.program)
    kept = returned_fields(lowered.result)
    groups = grid_groups(lowered.program, kept)
    pes = most_pes(groups, pes)
    if tile is None:
        kernel = tile_kernel(groups, pes, kept, blocks, turns=turns, tiles_in_heap=True)
    else:
        given = {"tile": tile, "turns": turns, "tiles_in_heap": True}
        kernel = round_kernel(groups, pes, kept, blocks, **given)
    arrays, scalars = run_kernel(kernel, arguments, lowered, kernel.text.most_blocks)
    return arguments.returned(lowered, arrays, scalars), kernel


def call_streams(
    program: Any,
    args: tuple[Any, ...],
    pes: int,
    blocks: int,
    turns: int,
    strip: int,
    chunks: int,
) -> Any:
    """Call a program by its kernel that streams rows; NotOnChip where it has none.

    Returns what the program returns, and the kernel.
    """
    arguments = Arguments.of(program.signature, program.name, args, {})
    lowered = program._lowered(arguments)
    arguments.check(lowered.program)
    kept = returned_fields(lowered.result)
    groups = grid_groups(lowered.program, kept)
    pes = most_pes(groups, pes)
    kernel = stream_kernel(groups, pes, kept, blocks, turns, strip, chunks)
    arrays, scalars = run_kernel(kernel, arguments, lowered, blocks)
    return arguments.returned(lowered, arrays, scalars), kernel


def on_threads(text: str, heaps: list[Any], tables: list[int], blocks: int) -> None:
    """Run a kernel on the CPU engine's threads."""
    addresses = [h.ctypes.data for h in heaps]
    load_core().run_program(build(text).address, addresses, tables, 60.0, None, blocks=blocks)


class BlocksOnThreads(Threads):
    """Threads that run the kernel of GPUs: several blocks for each PE."""

    def __init__(self, layout: Layout, text: str, blocks: int, runner: Any = on_threads) -> None:
        super().__init__(layout, 0, np.zeros(1, np.int64))
        self.text, self.blocks, self.runner = text, blocks, runner

    def _run(
        self, tables: list[int], wait_limit: float, watch: Any, tracing: Any
    ) -> tuple[float, bool, None]:
        assert tracing is None
        self.runner(self.text, self.heaps, tables, self.blocks)
        return 0.0, False, None


def run_kernel(
    kernel: GridKernel, arguments: Any, lowered: Any, blocks: int, runner: Any = on_threads
) -> Any:
    """Load, run and store; return arrays and scalars."""
    return run_by(
        BlocksOnThreads(kernel.layout, kernel.text.text, blocks, runner), arguments, lowered
    )


EVERYTHING = Recording()


def traced_kernel(
    kernel: GridKernel,
    arguments: Any,
    lowered: Any,
    blocks: int,
    events: int,
    wait_limit: float = 60.0,
    recording: Recording = EVERYTHING,
) -> tuple[Any, Trace]:
    """Load, run and store; return arrays, and the trace of the run."""
    kept: list[Trace] = []

    def runner(text: str, heaps: list[Any], tables: list[int], blocks: int) -> None:
        kernel_at, addresses = build(text, traced=True).address, [h.ctypes.data for h in heaps]
        more: Any = {"blocks": blocks, "trace": {**recording.core(), "events": events}}
        *_, raw = load_core().run_program(kernel_at, addresses, tables, wait_limit, None, **more)
        facts = {"engine": "cpu_threads", "pes": len(heaps), "blocks": blocks}
        kept.append(finished(raw, facts, recording, speaks=False))

    arrays, _ = run_kernel(kernel, arguments, lowered, blocks, runner)
    return arrays, kept[0]


def run_by(engine: Threads, arguments: Any, lowered: Any) -> Any:
    """Load, run and store; return arrays and scalars."""
    ran = Runner(engine.layout, engine, returned_fields(lowered.result)).run(
        [arguments], lowered.data, lowered.scalars, 60.0, Watch(None), Laps()
    )
    return ran.arrays[0], ran.scalars[0]
