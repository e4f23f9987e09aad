"""What is known of a program, by which engine and GPUs are chosen for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cpufree import machine
from cpufree.compiler import ir
from cpufree.engines.asked import Asked
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import Chosen, Kind, Work, too_few
from cpufree.env import Env

LEAST_POINTS = int(machine.load().number("setup.least_points", "1"))
"""Of an array, from which on "auto" takes GPUs: with fewer, starting one takes longer."""
POINTS_OF_GPU = int(machine.load().number("program.points_of_gpu", "1"))
"""With fewer for each GPU, waiting for another one costs more than its help saves."""

PROGRAM = Kind(
    "program",
    array="an array",
    arrays="arrays",
    done="run",
    in_blocks=False,
    refused={
        "nvshmem": "programs do not run on engine 'nvshmem', as their kernels are compiled in the "
        "call, without its device library: choose cuda_p2p for the GPUs of a machine, or "
        "cpu_processes"
    },
)


@dataclass(frozen=True)
class ProgramWork(Work):
    """A program that is to be run."""

    program: ir.Program
    array: str = ""
    """The name of one that lies on a GPU, if any does."""

    @property
    def kind(self) -> Kind:
        """A program."""
        return replace(PROGRAM, array=self.array) if self.array else PROGRAM

    @property
    def _points(self) -> int:
        """Points of the largest array."""
        return max((math.prod(f.shape) for f in self.program.fields), default=1)

    def too_small(self) -> str:
        """Return why a GPU does not pay, "" where one may."""
        return too_few(self._points, "point", LEAST_POINTS)

    def best_gpus(self, there: Sequence[Gpu], blocks: int | None) -> Chosen:
        """Return as many GPUs as have enough points each."""
        count = max(1, min(len(there), self._points // POINTS_OF_GPU))
        why = f"{self._points} points, {POINTS_OF_GPU} or more for each"
        return Chosen(list(there[:count]), why)

    def fits(self, gpu: Gpu) -> bool:
        """Return True: how much memory it takes is known once its kernel is."""
        return True

    def cpu_pes(self, asked: Asked, env: Env) -> tuple[int, str]:
        """Leave their number to the layout, which knows how many rows each needs."""
        return 0, "as many as there are rows for"

    def cpu_blocks(
        self, asked: Asked, env: Env, pes: int, cores: int | None = None
    ) -> tuple[int, str]:
        """Return 0: PEs have no blocks."""
        return 0, ""
