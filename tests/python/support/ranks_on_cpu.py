"""Kernels of ranks for GPUs on the CPU engine: the same text, blocks as threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpufree.compiler.build import build
from cpufree.compiler.launch import aligned_heap, results_of, scalar_table
from cpufree.compiler.ranks.layout import RankGridLayout
from cpufree.compiler.ranks.live import without_idle_sites
from cpufree.compiler.ranks.on_cpu import touched_fields
from cpufree.compiler.ranks.on_gpu import grid_programs
from cpufree.compiler.ranks.on_grid import emit_ranks, result_words
from cpufree.compiler.ranks.routes import Ranks
from cpufree.extension import load_core


def grid_kernel(ranks: Ranks, multiprocessors: int = 132) -> Any:
    """Return the programs, the layout and the text of ranks for GPUs."""
    ranks = without_idle_sites(ranks)
    programs = grid_programs(ranks)
    layout = RankGridLayout(programs[0], ranks)
    return programs, layout, emit_ranks(ranks, programs, layout, multiprocessors)


def run(lowered: Any, arguments: list[dict[str, Any]], blocks: int) -> None:
    """Run ranks by their kernel for GPUs, on threads of the CPU; arrays are written in place."""
    programs, layout, text = grid_kernel(lowered.ranks, 1)
    ranks = layout.messages.ranks
    heaps = [aligned_heap(layout.size) for _ in range(ranks.count)]
    for rank, heap in enumerate(heaps):
        for f in programs[0].fields:
            given = (
                arguments[rank].get(f.name) if f.role == "argument" else lowered.data.get(f.name)
            )
            if given is not None:
                layout.load(f, given, heap, 0)
        variant = ranks.variant_of[rank]
        words = layout.messages.words_of(rank, variant, programs[variant])
        for at, table in words.items():
            heap[at : at + table.nbytes] = table.view(np.uint8)
    scalars = scalar_table(programs[0], lowered.scalars)
    words = result_words(programs[0])
    results = np.zeros(ranks.count * (words + 2), np.int64)
    tables = [t.ctypes.data for t in (results, scalars, results, results)]
    built = build(text.text)
    load_core().run_program(
        built.address, [h.ctypes.data for h in heaps], tables, 20.0, None, blocks=blocks
    )
    for rank, heap in enumerate(heaps):
        program = programs[ranks.variant_of[rank]]
        found = results.reshape(ranks.count, -1)[rank]
        assert not found[-2:].any()
        results_of(
            program,
            arguments[rank],
            touched_fields(ranks, program),
            found[:-2].copy(),
            lambda f, array, heap=heap: layout.unload(f, array, heap, 0),
        )
