"""Where iterations on a grid are done: which engine, which GPUs, how many PEs and blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cpufree import machine
from cpufree.engines import choices
from cpufree.engines.asked import Asked
from cpufree.engines.chosen_gpus import choose_gpus
from cpufree.engines.gpu_choice import MODEL, Bytes, Size, latency, predict
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import GPU_NNZ, choose_engine
from cpufree.env import Env
from cpufree.errors import InvalidInputError, OutOfMemoryError
from cpufree.extension import load_core

# From so many updates of points on, "auto" takes GPUs. Below, cores are done before a GPU has been
# set up.
GPU_UPDATES = int(machine.load().number("setup.least_updates", "1"))

# Each value counts as read and written once in an iteration, whatever the caches save.
_BYTES = {8: Bytes(0, 16, 0, 4 * 8), 4: Bytes(0, 8, 0, 4 * 4)}
_RATES = machine.load().table("stencil.bandwidth", "B/s")
_LATENCY = machine.load().table("stencil.latency", "s")


@dataclass(frozen=True)
class Work:
    """What is to be done."""

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    value_bytes: int
    updates: int
    """Points that all iterations together update, at most."""
    source: bool = False

    @property
    def points(self) -> int:
        """Points of the grid."""
        return math.prod(self.shape)

    @property
    def dims(self) -> int:
        """Dimensions of the grid."""
        return len(self.shape)

    def seconds_in_registers_3d(self, gpus: int, blocks: int) -> float:
        """Return those of an iteration with values in registers; 0: they do not hold the grid."""
        if self.dims != 3:
            return 0.0
        single = self.value_bytes == 4
        found = load_core().registers_3d_seconds(
            list(self.shape), list(self.periodic), single, self.source, gpus, blocks
        )
        return float(found)


@dataclass(frozen=True)
class StencilPlacement:
    """The engine, its PEs and blocks; `gpus` has one for each PE, none on the CPU engine."""

    engine: str
    pes: int
    blocks: int
    """Blocks for each PE; 0: the engine decides."""
    gpus: list[Gpu] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    own_gpu: Gpu | None = None
    """Of several processes: the GPU of this one, one of `gpus`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """More for the compiled core."""

    @property
    def devices(self) -> list[int]:
        """Numbers of the GPUs of this process."""
        return [gpu.index for gpu in ([self.own_gpu] if self.own_gpu else self.gpus)]


def place(asked: Asked, env: Env, work: Work, near: int | None = None) -> StencilPlacement:
    """Return where the work is to be done, by this process alone.

    Args:
        asked: by the call. env: by the environment.
        work: grid and iterations.
        near: number of the GPU on which u0 lies; None: on the host.

    Raises:
        InvalidInputError, UnsupportedError, NotEnoughGpusError: what is asked for cannot be had.
        OutOfMemoryError: the GPUs asked for have not the memory.
    """
    named = env.engine if asked.engine == "auto" else asked.engine
    if near is not None and named == "cpu_threads":
        raise InvalidInputError(
            "u0 lies on a GPU, but engine 'cpu_threads' is asked for: leave the engine out, or "
            "pass a copy on the host (u0.get() in CuPy, u0.cpu() in PyTorch)"
        )
    large = work.updates >= GPU_UPDATES
    engine, _, notes = choose_engine(asked, env, GPU_NNZ if large else 0, near is not None)
    notes = [note.replace("solved on", "done on") for note in notes]
    if engine == "cpu_threads":
        return _on_cpu(asked, env, notes)
    open_to_choice = asked.engine == env.engine == asked.devices == "auto" and near is None
    rate = _RATES[work.dims]
    model = replace(
        MODEL, bytes_of=_BYTES, memory_bandwidth=rate, chip_bandwidth=rate, latency=_LATENCY
    )
    size = Size(work.points, 0, work.value_bytes, what="grid")

    def seconds(count: int) -> float:
        # In three dimensions the engine keeps values in registers wherever they fit.
        blocks = min(gpu["multiprocessors"] for gpu in load_core().gpus())
        in_registers = work.seconds_in_registers_3d(count, blocks)
        if in_registers == 0.0:
            return predict(size, count, model)
        return in_registers + latency(count, model) - latency(1, model)

    try:
        chosen, _, notes = choose_gpus(asked, env, size, near, model, seconds)
    except OutOfMemoryError as error:
        if not open_to_choice or asked.pes != "auto":
            raise
        return _on_cpu(asked, env, [f"done on the CPU: {error}"])
    # The environment's number of blocks is meant for the engine that it names, threads by default.
    blocks = asked.blocks
    if blocks == "auto" and not open_to_choice and env.blocks is not None:
        blocks = env.blocks
    return StencilPlacement(
        engine, len(chosen), 0 if blocks == "auto" else choices.count("blocks", blocks),
        chosen, notes,
    )  # fmt: skip


def _on_cpu(asked: Asked, env: Env, notes: list[str]) -> StencilPlacement:
    blocks = env.blocks if asked.blocks == "auto" else asked.blocks
    return StencilPlacement(
        "cpu_threads",
        choices.choose_pes(asked.pes, env.pes)[0],
        0 if blocks is None else choices.count("blocks", blocks),
        warnings=notes,
    )
