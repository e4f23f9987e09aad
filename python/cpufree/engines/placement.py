"""What is placed on an engine, what is known of it for that, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cpufree.distributed import Team
from cpufree.engines import choices
from cpufree.engines.asked import Asked
from cpufree.engines.expected import Expected
from cpufree.engines.gpus import Gpu
from cpufree.env import Env
from cpufree.text import counted


@dataclass(frozen=True)
class Kind:
    """A kind of work: what errors and reasons call it, and what it can do."""

    name: str
    """Such as "system"."""
    array: str
    """What of it may lie on a GPU, such as "b"; `arrays`: what that is, such as "vectors"."""
    arrays: str
    done: str
    """What happens to it, such as "solved"."""
    in_nodes: bool = False
    """PEs may be in several nodes, which do not reach one another's memory."""
    in_blocks: bool = True
    """PEs on the CPU are divided into blocks, a thread for each."""
    pe: str = "PE"
    """What errors call a PE, such as "rank" where each has work of its own."""
    too_many: str = "ask for fewer, or leave pes to 'auto'"
    """What to do where there are fewer GPUs than PEs."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Engines that do not do it, and why not, in a sentence for the user."""


@dataclass(frozen=True)
class Chosen:
    """GPUs for the PEs, none for the CPU engine, and why these."""

    gpus: list[Gpu]
    why: str
    warnings: list[str] = field(default_factory=list)
    expected: Expected | None = None
    """The iterations by which they were chosen; None: they were not looked at."""


class Work(Protocol):
    """A system, a grid or a program that is to be placed."""

    @property
    def kind(self) -> Kind:
        """What it is."""

    def too_small(self) -> str:
        """Return why "auto" leaves it to the CPU whatever GPUs there are, "" if it does not."""

    def sooner_on_cpu(self, blocks: int) -> Chosen | None:
        """Return why the CPU, with N blocks, is done before CUDA has started, if it is sure.

        No GPU may be looked at: that may start the driver, which takes tenths of a second.
        """
        return None

    def best_gpus(self, there: Sequence[Gpu], blocks: int | None) -> Chosen:
        """Return how many of the GPUs are best, or the CPU.

        Args:
            there: the GPUs, at least one, in the order in which to take them.
            blocks: of all PEs of the CPU engine; None: that is not to be chosen.

        Raises:
            OutOfMemoryError: it does not fit even on all of them.
        """

    def fits(self, gpu: Gpu) -> bool:
        """Return whether one GPU has the memory."""

    def cpu_pes(self, asked: Asked, env: Env) -> tuple[int, str]:
        """Return the number of PEs on the CPU, and why."""
        return choices.choose_pes(asked.pes, env.pes)

    def cpu_blocks(
        self, asked: Asked, env: Env, pes: int, cores: int | None = None
    ) -> tuple[int, str]:
        """Return the blocks of each of N PEs, and why; 0: the engine decides.

        `cores`: for all of them; None: those of this process.
        """


@dataclass(frozen=True)
class Placement:
    """The engine and its PEs; `gpus` has one for each PE, none on the CPU engine."""

    engine: str
    pes: int
    blocks: int
    """Blocks for each PE; 0: the engine decides."""
    why: list[str] = field(default_factory=list)
    why_blocks: str = ""
    gpus: list[Gpu] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    team: Team | None = None
    """The processes with a PE each; None: this process has all PEs."""
    own_gpu: Gpu | None = None
    """With a team: the GPU of this process, one of `gpus`."""
    cores: int | None = None
    """Cores for all PEs of this machine; None: those of this process."""
    tuning: Mapping[str, Any] = field(default_factory=dict)
    """More for the compiled core."""
    expected: Expected | None = None
    """The iterations by which engine and GPUs were chosen; None: they were not looked at."""

    @property
    def own_devices(self) -> list[int]:
        """Numbers of the GPUs of this process."""
        return [gpu.index for gpu in (self.gpus if self.own_gpu is None else [self.own_gpu])]

    @property
    def gpu_name(self) -> str:
        """The name of the GPUs, "" of the CPU: of the first one, if they differ."""
        return self.gpus[0].name if self.gpus else ""


def too_few(count: int, unit: str, least: int) -> str:
    """Return why a count of nonzeros, updates or points is not for GPUs; "" from `least` on."""
    if count >= least:
        return ""
    return f"{counted(count, unit)}: set-up of a GPU pays from {least:,} on".replace(",", " ")
