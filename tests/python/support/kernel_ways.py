"""Ways to make a program's kernel, for tests that put one in the place of `chosen_kernel`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cpufree.compiler.grid import grid_kernel, round_kernel, stream_kernel, tile_kernel
from cpufree.compiler.passes.barriers import add_barriers


def in_memory(groups: Any, pes: int, kept: Any, multiprocessors: int, *more: Any) -> Any:
    """Return the kernel whose values do not stay on chip, of the groups made for it."""
    swept = more[-1] if more else groups
    return grid_kernel(add_barriers(swept), pes, kept, multiprocessors)


def exchanges(groups: Any, pes: int, kept: Any, multiprocessors: int, memory: int, *_: Any) -> Any:
    """Return the kernel of tiles that exchange their edges after each group."""
    return tile_kernel(groups, pes, kept, multiprocessors, memory, turns=0)


def rounds(groups: Any, pes: int, kept: Any, multiprocessors: int, memory: int, *_: Any) -> Any:
    """Return the kernel of tiles that exchange their edges every three turns."""
    return tile_kernel(groups, pes, kept, multiprocessors, memory, turns=3)


def rounds_from_memory(
    groups: Any, pes: int, kept: Any, multiprocessors: int, memory: int, *_: Any
) -> Any:
    """Return the kernel of tiles that are loaded for two turns at a time."""
    tile = (24, 40) if groups.name != "jacobi_1d" else (200, 1)
    return round_kernel(groups, pes, kept, multiprocessors, memory, tile, 2)


def streamed(turns: int) -> Callable[..., Any]:
    """Return what makes the kernel that streams rows through registers, `turns` at a time."""

    def make(groups: Any, pes: int, kept: Any, multiprocessors: int, *_: Any) -> Any:
        return stream_kernel(groups, pes, kept, multiprocessors, turns)

    return make


WAYS = {
    "in memory": in_memory,
    "exchanges": exchanges,
    "rounds": rounds,
    "rounds from memory": rounds_from_memory,
    "streamed": streamed(2),
}
