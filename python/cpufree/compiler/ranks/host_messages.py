"""Messages between ranks that the host drives: which ones are under way, and how they go."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import numpy as np

from cpufree.compiler.hosted import COPY, MEET, Command
from cpufree.compiler.ranks.layout import RankGridLayout, own_regions
from cpufree.compiler.ranks.routes import Ranks

WAYS = ("copies", "stores")
Kernel = tuple[str, int, tuple[int, ...]]
"""What it does (pack, unpack or put), of which rank, and for which sites: unpack of receiving."""


@dataclass(frozen=True)
class Sent:
    """A message that a rank has begun to send, by its number in the exchange."""

    rank: int
    site: int
    epoch: int


@dataclass(frozen=True)
class Part:
    """A region as memory: its offset in bytes, steps in values along three axes, and counts."""

    offset: int
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    size: int

    @property
    def values(self) -> int:
        """How many there are."""
        return math.prod(self.counts)

    @property
    def bytes(self) -> int:
        """Bytes of all values."""
        return self.values * self.size

    def packed(self, offset: int) -> Part:
        """Return the same values side by side."""
        _, n1, n2 = self.counts
        return replace(self, offset=offset, steps=(n1 * n2, n2, 1))

    @property
    def is_dense(self) -> bool:
        """Return whether there are no gaps."""
        expected = 1
        for step, count in reversed(list(zip(self.steps, self.counts, strict=True))):
            if count != 1 and step != expected:
                return False
            expected *= count
        return True


class HostMessages:
    """Messages that are under way, and how they go."""

    def __init__(self, ranks: Ranks, layout: RankGridLayout, way: str) -> None:
        """`way` is one of WAYS."""
        self.ranks, self.layout, self.way = ranks, layout, way
        self.pending: list[Sent] = []
        self.sent: Counter[tuple[int, int]] = Counter()
        """How many messages of a rank's site have gone."""
        self.arrived: Counter[tuple[int, int]] = Counter()
        self.granted: Counter[tuple[int, int]] = Counter()
        """Of a rank's site of receiving."""
        self.own = [own_regions(p) for p in ranks.variants]
        sizes: dict[tuple[bool, int], int] = defaultdict(int)
        for rank, routes in enumerate(ranks.sends):
            for site, route in enumerate(routes):
                if route.peer < 0:
                    continue
                size = self.part(True, rank, site).bytes
                for key in ((True, site), (False, route.site)):
                    sizes[key] = max(sizes[key], size)
        self.stagings = {key: layout.reserve(size) for key, size in sizes.items()}

    def part(self, sends: bool, rank: int, site: int) -> Part:
        """Return the memory of a region that a rank sends, or receives."""
        ranks = self.ranks
        if sends:
            region = self.own[ranks.variant_of[rank]][site]
        else:
            source = ranks.receives[rank][site]
            found = ranks.sends[source.peer][source.site].region
            assert found is not None
            region = found
        offset, steps, counts = self.layout.messages.place(region)
        size = np.dtype(next(f for f in ranks.fields if f.name == region.field).type).itemsize
        return Part(offset, tuple(steps), tuple(counts), size)

    def ends(self, what: str, rank: int, site: int) -> tuple[Part, Part, int]:
        """Return what a kernel reads, what it writes, and on which rank."""
        part = self.part(what != "unpack", rank, site)
        if what == "put":
            route = self.ranks.sends[rank][site]
            return part, self.part(False, route.peer, route.site), route.peer
        packed = part.packed(self.stagings[what == "pack", site])
        return (part, packed, rank) if what == "pack" else (packed, part, rank)

    def deliver(self) -> list[Command | Kernel]:
        """Return what the host does for all messages whose regions are granted, in order."""
        routes = self.ranks.sends
        ready = []
        for m in self.pending:
            route = routes[m.rank][m.site]
            if self.granted[route.peer, route.site] >= m.epoch:
                ready.append(m)
        if not ready:
            return []
        for m in ready:
            route = routes[m.rank][m.site]
            self.pending.remove(m)
            self.sent[m.rank, m.site] += 1
            self.arrived[route.peer, route.site] += 1
        if self.way == "copies":
            return self._copied(ready)
        puts: dict[int, list[int]] = defaultdict(list)
        for m in ready:
            puts[m.rank].append(m.site)
        return [[MEET], *(("put", rank, tuple(sites)) for rank, sites in puts.items()), [MEET]]

    def _copied(self, ready: list[Sent]) -> list[Command | Kernel]:
        packs: dict[int, list[int]] = defaultdict(list)
        unpacks: dict[int, list[int]] = defaultdict(list)
        copies: list[Command] = []
        for m in ready:
            route = self.ranks.sends[m.rank][m.site]
            own, there = self.part(True, m.rank, m.site), self.part(False, route.peer, route.site)
            at, to = own.offset, there.offset
            if not own.is_dense:
                packs[m.rank].append(m.site)
                at = self.stagings[True, m.site]
            if not there.is_dense:
                unpacks[route.peer].append(route.site)
                to = self.stagings[False, route.site]
            copies.append([COPY, m.rank, route.peer, at, to, own.bytes])
        return [
            *(("pack", rank, tuple(sites)) for rank, sites in packs.items()),
            *([MEET], *copies, [MEET]),
            *(("unpack", rank, tuple(sites)) for rank, sites in unpacks.items()),
        ]
