"""How the arrays of a rank lie in its heap, and where flags and the table of routes lie there."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.layout import GridLayout, Layout
from cpufree.compiler.passes.fusion import Reach
from cpufree.compiler.ranks.routes import Ranks, SendRoute

Words: TypeAlias = "dict[int, npt.NDArray[np.int64]]"

FLAG = 128
HEAD_WORDS = 16
SEND_WORDS = 16
RECEIVE_WORDS = 2
SLICE = 4096
"""Bytes of a message that a block of a GPU sends: a value for each of its threads."""
MOST_SLICES = 32
"""Of a message: more blocks store no faster over NVLink."""
WARP = 32
BLOCK = 1 << 20
"""Threads that copy a message: all that a block has."""
PUTS = ("auto", "thread", "warp", "block", "mapped")
"""How messages are put: by one thread, a warp, a block, all blocks; or as their size asks for."""
ARRIVED = 1 << 62
"""An epoch that no exchange reaches."""
AXES = 3
"""Of a region that is sent."""


class MessagePlaces:
    """Where messages have their flags, and what the table of a rank says."""

    def __init__(
        self,
        layout: OfRanks,
        ranks: Ranks,
        most_slices: int,
        puts: str = "auto",
    ) -> None:
        self.layout, self.ranks, self.puts = layout, ranks, puts
        self.most_slices = most_slices if puts in ("auto", "mapped") else 1
        self.slices = max(
            (self.slices_of(r.region) for of_rank in ranks.sends for r in of_rank), default=1
        )
        self.sends = max((len(s) for s in ranks.sends), default=0)
        self.receives = max((len(r) for r in ranks.receives), default=0)
        size = 8 * (HEAD_WORDS + SEND_WORDS * self.sends + RECEIVE_WORDS * self.receives)
        self.table = layout.reserve(size)
        self.arrivals = layout.reserve(FLAG * self.slices * max(1, self.receives))
        self.credits = layout.reserve(FLAG * max(1, self.sends))
        self.signals = layout.reserve(FLAG * max(1, ranks.signals))

    @property
    def plan(self) -> tuple[int, ...]:
        """What kernels know: of programs::MessagePlan the members."""
        return (
            self.table, self.sends, self.arrivals, self.credits, self.signals, self.slices,
        )  # fmt: skip

    def slices_of(self, region: ir.Region | None) -> int:
        """Return into how many slices a message is cut: a block sends each."""
        if region is None:
            return 1
        size = math.prod(s.count for s in region.box) * np.dtype(self._field(region).type).itemsize
        return max(1, min(self.most_slices, -(-size // SLICE)))

    def threads_of(self, values: int) -> int:
        """Return how many threads of a block copy a message of N values.

        One thread, or one warp, need not meet the others before the flag is raised.
        """
        if self.puts == "auto":
            return 1 if values == 1 else WARP if values <= WARP else BLOCK
        return {"thread": 1, "warp": WARP}.get(self.puts, BLOCK)

    def words_of(self, rank: int, variant: int, program: ir.Program) -> Words:
        """Return what lies in a rank's heap before it begins, by its place there.

        `variant` is that of the text. Without a sender a flag says that all has arrived.
        """
        table = np.zeros(
            HEAD_WORDS + SEND_WORDS * self.sends + RECEIVE_WORDS * self.receives, np.int64
        )
        table[0] = variant
        own = own_regions(program)
        for k, route in enumerate(self.ranks.sends[rank]):
            at = HEAD_WORDS + SEND_WORDS * k
            table[at : at + SEND_WORDS] = self._send(route, own.get(k))
        first = HEAD_WORDS + SEND_WORDS * self.sends
        flags = np.full((max(1, self.receives), self.slices, FLAG // 8), ARRIVED, np.int64)
        for k, source in enumerate(self.ranks.receives[rank]):
            at = first + RECEIVE_WORDS * k
            table[at : at + RECEIVE_WORDS] = source.peer, self.credits + FLAG * source.site
            if source.peer >= 0:
                sent = self.ranks.sends[source.peer][source.site].region
                flags[k, : self.slices_of(sent)] = 0
        granted = np.full((max(1, self.sends), FLAG // 8), ARRIVED, np.int64)
        for k, route in enumerate(self.ranks.sends[rank]):
            granted[k] = 0 if route.peer >= 0 else ARRIVED
        return {
            self.table: table,
            self.arrivals: flags.reshape(-1),
            self.credits: granted.reshape(-1),
        }

    def _send(self, route: SendRoute, own: ir.Region | None) -> tuple[int, ...]:
        """Return what programs::SendSite has of a site."""
        if route.peer < 0:
            return (-1, *[0] * (SEND_WORDS - 1))
        if route.region is None or own is None:  # a signal alone
            return (route.peer, *[0] * (SEND_WORDS - 1))
        to, to_steps, _ = self.place(route.region)
        start, steps, counts = self.place(own)
        size = np.dtype(self._field(own).type).itemsize
        arrival = self.arrivals + FLAG * self.slices * max(0, route.site)
        slices = self.slices_of(route.region)
        threads = self.threads_of(math.prod(counts))
        return (route.peer, arrival, threads, size, to, *to_steps, start, *steps, *counts, slices)

    def _field(self, region: ir.Region) -> ir.Field:
        return next(f for f in self.ranks.fields if f.name == region.field)

    def place(self, region: ir.Region) -> tuple[int, list[int], list[int]]:
        """Return the offset of a region, its steps in values, and its counts; three axes."""
        f = self._field(region)
        strides, size = self.layout.strides(f), np.dtype(f.type).itemsize
        first = sum(s.start * d for s, d in zip(region.box, strides, strict=True))
        axes = [k for k, s in enumerate(region.box) if s.count != 1]
        pad = AXES - len(axes)
        steps = [0] * pad + [region.box[k].step * strides[k] for k in axes]
        counts = [1] * pad + [region.box[k].count for k in axes]
        return self.layout.offsets[f.name] + first * size, steps, counts


def own_regions(program: ir.Program) -> dict[int, ir.Region]:
    """Return the rank's own region of each site of sending, or of fetching."""
    found = {}
    for s in ir.walk(program.body):
        if isinstance(s, ir.Start):
            found.update({m.site: m.region for m in s.sends})
        elif isinstance(s, ir.PutSignal | ir.Get) and s.region is not None:
            found[s.site] = s.region
    return found


class OfRanks(Layout):
    """Each rank has arrays of its own, and a PE with the whole of them: no rows of others."""

    messages: MessagePlaces
    texts: Sequence[int]
    """Of each variant of the program that of the kernel's text."""

    @property
    def ranks(self) -> Ranks:
        """The programs, as they are laid out."""
        return self.messages.ranks

    @property
    def pes(self) -> int:
        return self.ranks.count

    def program_of(self, owner: int) -> ir.Program:
        return self.ranks.variants[self.ranks.variant_of[owner]]

    def written(self, owner: int) -> Set[str]:
        return self.ranks.written(self.program_of(owner))

    def tables(self, owner: int) -> Words:
        text = self.texts[self.ranks.variant_of[owner]]
        return self.messages.words_of(owner, text, self.program_of(owner))

    def reserve(self, size: int) -> int:
        """Return the offset of more memory."""
        return self._reserve(size)

    def reach(self, f: ir.Field) -> Reach:
        return Reach()


class RankLayout(OfRanks):
    """Offsets in the heap of a rank on CPUs."""

    def __init__(self, ranks: Ranks, texts: Sequence[int]) -> None:
        super().__init__(ranks.variants[0], 1)
        self.messages, self.texts = MessagePlaces(self, ranks, 1), texts


class RankGridLayout(OfRanks, GridLayout):
    """The same for PEs with many blocks: GPUs."""

    def __init__(self, ranks: Ranks, puts: str = "auto") -> None:
        super().__init__(ranks.variants[0], 1)
        self.ring = False
        self.messages = MessagePlaces(self, ranks, MOST_SLICES, puts)
        self.texts = range(len(ranks.variants))

    @property
    def results(self) -> int:
        return super().results + 2  # and the faults of the rank

    def faults_in(self, results: npt.NDArray[np.int64]) -> list[int]:
        found: list[int] = results[:, -2:].ravel().tolist()
        return found
