"""What is known of a program, by which engine and GPUs are chosen for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cpufree import machine
from cpufree.compiler import ir
from cpufree.compiler.layout import choose_pes
from cpufree.distributed import Team
from cpufree.engines import choices
from cpufree.engines.asked import Asked
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import Chosen, Kind, Work, too_few
from cpufree.env import Env
from cpufree.errors import ProgramError
from cpufree.options import PROCESSES_ON_GPUS

PROGRAM = Kind(
    "program",
    array="an array",
    arrays="arrays",
    done="run",
    in_blocks=False,
    refused={
        engine: f"programs do not run on engine '{engine}', as their kernels are compiled in the "
        "call, without its device library: choose cuda_p2p for the GPUs of a machine, or "
        "cpu_processes"
        for engine in PROCESSES_ON_GPUS
    },
)


def on_one_pe(name: str, why: str, asked: Asked, team: Team | None) -> Asked:
    """Ask for one PE, as a program's rows cannot be divided; ProgramError where more are wanted."""
    named = 1 if isinstance(asked.devices, str) else len(asked.devices)
    for pes in (asked.pes, named, 1 if team is None else team.size):
        if pes not in ("auto", 1):
            raise ProgramError(
                f"{name} runs on one PE, not on {pes}: {why}; rows of the first axis are divided "
                "among PEs, and are read at a constant distance from those that are written"
            )
    return replace(asked, pes=1)


@dataclass(frozen=True)
class ProgramWork(Work):
    """A program that is to be run."""

    program: ir.Program
    on_rows: Callable[[], ir.Program]
    """Makes it ready for the CPU engine, which tells how many rows a PE needs."""
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
        return too_few(self._points, "point", machine.least("setup.least_points"))

    def best_gpus(self, there: Sequence[Gpu], blocks: int | None) -> Chosen:
        """Return as many GPUs as have enough points each."""
        # With fewer for each GPU, waiting for another one costs more than its help saves.
        least = int(machine.of_gpu(there[0].name).number("program.points_of_gpu", "1"))
        count = max(1, min(len(there), self._points // least))
        why = f"{self._points} points, {least} or more for each"
        return Chosen(list(there[:count]), why)

    def fits(self, gpu: Gpu) -> bool:
        """Return True: how much memory it takes is known once its kernel is."""
        return True

    def cpu_pes(self, asked: Asked, env: Env) -> tuple[int, str]:
        """Return a PE for each core that has enough to do, or as many as have rows."""
        pes = choose_pes(self.on_rows(), asked.pes, env.pes)
        wanted = env.pes if asked.pes == "auto" else asked.pes
        if wanted is None:
            return pes, "one for each core, if there are points and rows enough"
        if pes < int(wanted):
            return pes, f"for {wanted}, as are asked for, there are too few rows"
        return pes, choices.choose_pes(asked.pes, env.pes)[1]

    def cpu_blocks(
        self, asked: Asked, env: Env, pes: int, cores: int | None = None
    ) -> tuple[int, str]:
        """Return 0: PEs have no blocks."""
        return 0, ""
