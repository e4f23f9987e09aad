"""What is known of iterations on a grid, by which engine and GPUs are chosen for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cpufree import machine
from cpufree.engines import choices
from cpufree.engines.asked import Asked
from cpufree.engines.gpu_choice import Size, choose, fits
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import Chosen, Kind, Work, too_few
from cpufree.env import Env
from cpufree.extension import load_core
from cpufree.model.stencils import facts_of, stencil_seconds

GRID = Kind("grid", array="u0", arrays="values", done="done")


@dataclass(frozen=True)
class GridWork(Work):
    """Iterations on a grid."""

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    value_bytes: int
    updates: int
    """Points that all iterations together update, at most."""
    source: bool = False

    @property
    def kind(self) -> Kind:
        """A grid."""
        return GRID

    @property
    def points(self) -> int:
        """Points of the grid."""
        return math.prod(self.shape)

    @property
    def _size(self) -> Size:
        return Size(self.points, 0, self.value_bytes, what="grid", vectors=4)

    def too_small(self) -> str:
        """Return why a GPU does not pay, "" where one may."""
        return too_few(self.updates, "update", machine.least("setup.least_updates"))

    def best_gpus(self, there: Sequence[Gpu], blocks: int | None) -> Chosen:
        """Return the GPUs for which no other number saves much of an iteration."""
        known = machine.of_gpu(there[0].name)
        each = min(gpu["multiprocessors"] for gpu in load_core().gpus())

        def seconds(count: int) -> float:
            grid = self.shape, self.value_bytes, self.periodic, self.source
            return stencil_seconds(facts_of(*grid, count, each), known).seconds

        return Chosen(*choose(self._size, there, Gpu.room, seconds))

    def fits(self, gpu: Gpu) -> bool:
        """Return whether one GPU has the memory."""
        return fits(self._size, 1, gpu.room())

    def cpu_blocks(
        self, asked: Asked, env: Env, pes: int, cores: int | None = None
    ) -> tuple[int, str]:
        """Return the blocks that are asked for, 0 where none are."""
        blocks = env.blocks if asked.blocks == "auto" else asked.blocks
        return 0 if blocks is None else choices.count("blocks", blocks), ""
