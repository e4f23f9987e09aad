"""Kernels of ranks for GPUs on the CPU engine: the same text, blocks as threads."""

from __future__ import annotations

from typing import Any

from grid_on_cpu import BlocksOnThreads

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.ranks.on_gpu import kernel_of_ranks
from cpufree.compiler.runner import Runner
from cpufree.engines.watch import Watch
from cpufree.laps import Laps


def run(lowered: Any, arguments: list[dict[str, Any]], blocks: int) -> None:
    """Run ranks by their kernel for GPUs, on threads of the CPU; arrays are written in place."""
    kernel = kernel_of_ranks(lowered.ranks, 1)
    engine = BlocksOnThreads(kernel.layout, kernel.text.text, blocks)
    given = [Arguments(lowered.ranks.name, arrays) for arrays in arguments]
    Runner(kernel.layout, engine, lowered.ranks.returned).run(
        given, lowered.data, lowered.scalars, 20.0, Watch(None), Laps()
    )
