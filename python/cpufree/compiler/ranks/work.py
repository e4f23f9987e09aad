"""Where programs of ranks run: on a GPU for each rank, or on threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cpufree.compiler.arguments import Arguments
from cpufree.engines.asked import Asked
from cpufree.engines.gpus import Gpu
from cpufree.engines.place import place
from cpufree.engines.placement import Chosen, Kind, Placement, Work
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.options import DISTRIBUTED
from cpufree.text import counted

MOST_ON_GPUS = 16
"""Ranks for which "auto" takes GPUs."""

RANKS = Kind(
    "program of ranks",
    array="an array",
    arrays="arrays",
    done="run",
    in_blocks=False,
    pe="rank",
    too_many="name one for each, as gpus=[0, 0, 1, 1]",
    refused={
        engine: f"programs of ranks do not run on engine '{engine}': choose cpu_threads or cuda_p2p"
        for engine in DISTRIBUTED
    },
)


@dataclass(frozen=True)
class RanksWork(Work):
    """A program of N ranks, each of which is a PE."""

    ranks: int
    array: str = ""
    """The name of one that lies on a GPU, if any does."""

    @property
    def kind(self) -> Kind:
        """A program of ranks."""
        return replace(RANKS, array=self.array) if self.array else RANKS

    def too_small(self) -> str:
        """Return why the CPU is taken, "" where GPUs may be: there are ranks for one each."""
        if self.ranks <= MOST_ON_GPUS:
            return ""
        return f"{self.ranks} ranks, and {MOST_ON_GPUS} are the most for which GPUs are taken"

    def best_gpus(self, there: Sequence[Gpu], blocks: int | None) -> Chosen:
        """Return one for each rank."""
        return Chosen(list(there[: self.ranks]), "one for each rank")

    def fits(self, gpu: Gpu) -> bool:
        """Return True: how much memory it takes is known once its kernel is."""
        return True

    def cpu_blocks(
        self, asked: Asked, env: Env, pes: int, cores: int | None = None
    ) -> tuple[int, str]:
        """Return 0: PEs have no blocks."""
        return 0, ""


def place_ranks(engine: str, gpus: Any, given: Sequence[Arguments], env: Env) -> Placement:
    """Return where ranks with these arguments run.

    Raises
    ------
    InvalidInputError, UnsupportedError, NotEnoughGpusError
        What is asked for is not available.
    """
    ranks, asked = len(given), Asked(engine, gpus)
    if not isinstance(asked.devices, str) and len(asked.devices) != ranks:
        raise InvalidInputError(
            f"gpus names {counted(len(asked.devices), 'device')} for {counted(ranks, 'rank')}: "
            "name one for each"
        )
    array = min((key for a in given for key in a.on_gpu), default="")
    near = next((a.near for a in given if a.on_gpu), None)
    return place(RanksWork(ranks, array), replace(asked, pes=ranks), env, near)
