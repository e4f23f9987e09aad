"""The time of a Jacobi iteration on a grid, from the sweep that the engine takes and machine rates.

A sweep over values on chip takes what its points do, and an exchange in each iteration. One over
values in memory does several iterations in a pass, which takes what its bytes do, read and written
once, and an exchange. docs/model.md says which grids the constants come from, and which records it
is held against.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cpufree.errors import InvalidInputError
from cpufree.extension import load_core
from cpufree.machine import Machine
from cpufree.text import counted

PRECISIONS = {4: "single", 8: "double"}
CHIP_BYTES = 100_000
"""Of a grid of two dimensions that the registers of a block hold, about."""
LAYERS = {2: 4, 3: 2}
"""Iterations of a pass over values in memory, by the dimensions, where no plan tells."""


@dataclass(frozen=True)
class StencilFacts:
    """A grid on some PEs, as far as the time of an iteration depends on it."""

    shape: tuple[int, ...]
    pes: int
    value_bytes: int = 4
    on_chip: bool | None = None
    """Whether its values stay in registers, as a plan says. None: where they find room."""
    layers: int | None = None
    """Iterations of a pass, as a plan says."""

    @property
    def points(self) -> float:
        """Of a PE."""
        return math.prod(self.shape) / self.pes

    @property
    def face_bytes(self) -> float:
        """What a PE sends to a neighbour in an iteration, of slabs along the longest side."""
        return self.value_bytes * math.prod(self.shape) / max(self.shape)


def facts_of(
    shape: tuple[int, ...],
    value_bytes: int,
    periodic: tuple[bool, ...],
    source: bool,
    pes: int,
    blocks: int,
) -> StencilFacts:
    """Return how a grid would lie on N GPUs of `blocks` multiprocessors each.

    In three dimensions the engine keeps values in registers wherever its tiles hold them.
    """
    on_chip = len(shape) == 3 and load_core().fits_registers_3d(
        shape, periodic, value_bytes == 4, source, pes, blocks
    )
    return StencilFacts(shape, pes, value_bytes, on_chip)


@dataclass(frozen=True)
class StencilTime:
    """The predicted time of an iteration [s]."""

    seconds: float
    parts: Mapping[str, float]
    """Seconds of points on chip, of memory and of exchanges; they add up to `seconds`."""

    @property
    def bound(self) -> str:
        """What takes the largest part."""
        return max(self.parts, key=lambda name: self.parts[name])


def stencil_seconds(facts: StencilFacts, machine: Machine) -> StencilTime:
    """Predict the time of an iteration of `jacobi` (5 or 7 points).

    Raises:
        InvalidInputError: a grid that the engine has no sweep for, or without points.

    >>> from cpufree.machine import load
    >>> found = stencil_seconds(StencilFacts((8192, 8192), 1), load("h100"))
    >>> f"{found.seconds * 1e6:.0f} us, bound by {found.bound}"
    '59 us, bound by memory'
    """
    dims = len(facts.shape)
    if dims not in LAYERS or facts.value_bytes not in PRECISIONS:
        raise InvalidInputError(
            f"a grid of {counted(dims, 'dimension')} with values of {facts.value_bytes} B: "
            "predictions are for 2 and 3 dimensions, in single and double precision"
        )
    if min(facts.shape) < 1 or facts.pes < 1:
        raise InvalidInputError(f"grid {facts.shape} on {facts.pes} PEs: give at least one of each")
    precision = PRECISIONS[facts.value_bytes]
    blocks = machine.number("gpu.multiprocessors", "1")
    on_chip = facts.on_chip
    if on_chip is None:
        on_chip = facts.points * facts.value_bytes <= blocks * CHIP_BYTES
    layers = 1 if on_chip else facts.layers or LAYERS[dims]
    place = "chip" if on_chip else "memory"
    exchange = machine.table(f"stencil.{place}_exchange", "s")[dims]
    if facts.pes > 1:
        exchange += machine.at("stencil.exchange_between", "s", facts.pes)
        exchange += layers * facts.face_bytes / machine.number("link.store_rate", "B/s")
    points = memory = 0.0
    if on_chip:
        points = facts.points / machine.table(f"stencil.chip_points_{precision}", "1/s")[dims]
    else:
        rate = machine.table("stencil.memory_rate", "B/s")[dims]
        memory = 2.0 * facts.value_bytes * facts.points / rate
    parts = {"points": points, "memory": memory, "exchange": exchange}
    parts = {name: part / layers for name, part in parts.items()}
    return StencilTime(sum(parts.values()), parts)
