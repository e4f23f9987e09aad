"""How the arrays of a rank lie in its heap, and where flags and the table of routes lie there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.layout import GridLayout, Layout
from cpufree.compiler.passes.fusion import Reach
from cpufree.compiler.ranks.routes import Ranks, SendRoute

FLAG = 128
SEND_WORDS = 8
RECEIVE_WORDS = 4
AXES = 3
"""Of a region that is sent."""


def axes_of(region: ir.Region) -> list[int]:
    """Return the axes of a region along which there are several points."""
    return [k for k, s in enumerate(region.box) if s.count != 1]


class MessagePlaces:
    """Where messages have their flags, and what the table of a rank says."""

    def __init__(self, layout: Layout, ranks: Ranks) -> None:
        self.layout, self.ranks = layout, ranks
        self.sends = max((len(s) for s in ranks.sends), default=0)
        self.receives = max((len(r) for r in ranks.receives), default=0)
        words = 1 + SEND_WORDS * self.sends + RECEIVE_WORDS * self.receives
        self.table = layout.reserve(8 * words)
        self.arrivals = layout.reserve(FLAG * max(1, self.receives))
        self.credits = layout.reserve(FLAG * max(1, self.sends))
        self.signals = layout.reserve(FLAG * max(1, ranks.signals))

    def table_of(self, rank: int, variant: int) -> npt.NDArray[np.int64]:
        """Return the table of a rank (cpufree/programs/messages.hpp), for a variant of the text."""
        table = np.full(1 + SEND_WORDS * self.sends + RECEIVE_WORDS * self.receives, -1, np.int64)
        table[0] = variant
        for k, route in enumerate(self.ranks.sends[rank]):
            at = 1 + SEND_WORDS * k
            table[at : at + SEND_WORDS] = self._send(k, route)
        first = 1 + SEND_WORDS * self.sends
        for k, source in enumerate(self.ranks.receives[rank]):
            at = first + RECEIVE_WORDS * k
            table[at : at + RECEIVE_WORDS] = (
                source.peer, self.arrivals + FLAG * k, self.credits + FLAG * source.site, 0,
            )  # fmt: skip
        return table

    def _send(self, site: int, route: SendRoute) -> tuple[int, ...]:
        if route.peer < 0 or route.region is None:
            return (route.peer, 0, 0, 0, 0, 0, 0, 0)
        f = next(f for f in self.ranks.fields if f.name == route.region.field)
        size, strides = np.dtype(f.type).itemsize, self.layout.strides(f)
        first = sum(s.start * d for s, d in zip(route.region.box, strides, strict=True))
        steps = [route.region.box[k].step * strides[k] for k in axes_of(route.region)]
        steps = [0] * (AXES - len(steps)) + steps
        credit = self.credits + FLAG * site
        arrival = self.arrivals + FLAG * route.site
        return (route.peer, self.layout.offsets[f.name] + first * size, *steps, arrival, credit, 0)


class RankLayout(Layout):
    """Offsets in the heap of a rank on CPUs: no rows of others are kept."""

    def __init__(self, program: ir.Program, ranks: Ranks) -> None:
        super().__init__(program, 1)
        self.messages = MessagePlaces(self, ranks)

    def reserve(self, size: int) -> int:
        """Return the offset of more memory."""
        return self._reserve(size)

    def reach(self, f: ir.Field) -> Reach:
        return Reach()


class RankGridLayout(GridLayout):
    """The same for PEs with many blocks: GPUs."""

    def __init__(self, program: ir.Program, ranks: Ranks) -> None:
        super().__init__(program, 1)
        self.ring = False
        self.messages = MessagePlaces(self, ranks)

    def reserve(self, size: int) -> int:
        """Return the offset of more memory."""
        return self._reserve(size)

    def reach(self, f: ir.Field) -> Reach:
        return Reach()

    def keeps_ghosts(self, f: ir.Field) -> bool:
        return False


def region_values(f: ir.Field, region: ir.Region, strides: tuple[int, ...]) -> Any:
    """Return where a region begins in its field, its counts and its strides, in values."""
    first = sum(s.start * d for s, d in zip(region.box, strides, strict=True))
    axes = axes_of(region)
    pad = AXES - len(axes)
    counts = [1] * pad + [region.box[k].count for k in axes]
    steps = [0] * pad + [region.box[k].step * strides[k] for k in axes]
    if any(s.count == 0 for s in region.box):
        counts = [0] * AXES
    assert math.prod(counts) >= 0 and f.name == region.field
    return first, counts, steps
