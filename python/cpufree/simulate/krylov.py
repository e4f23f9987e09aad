"""CG and pipelined CG as programs: phases by their bytes, halos, all-reduces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cpufree.machine.clusters import Cluster
from cpufree.simulate.collectives import all_reduce
from cpufree.simulate.graph import Builder, Flow, Numbers, begin
from cpufree.simulate.halo import VALUE, Shares
from cpufree.simulate.programs import Program
from cpufree.simulate.rates import phase_seconds
from cpufree.simulate.way import Way
from cpufree.simulate.ways import Persistent, way_of


@dataclass(frozen=True)
class Traffic:
    """Bytes that an iteration moves. The defaults: CSR in double precision with 32-bit columns."""

    entry: float = 12.0
    """Of an entry of the matrix in a product."""
    row: float = 20.0
    """Of a row in a product: its pointer, its operand and its result."""
    product_seconds: float | None = None
    """Of the product of the largest share, where that has been measured; None: by bytes."""
    hidden: bool = True
    """Whether kernels of a pipelined method's product run beside its all-reduce."""


class Krylov:
    """Phases of a method with a way of communication, on shares of a matrix."""

    def __init__(
        self, builder: Builder, way: Way, shares: Shares, traffic: Traffic, vectors: int
    ) -> None:
        self.b, self.way, self.shares, self.traffic = builder, way, shares, traffic
        self.held = traffic.entry * shares.entries + VALUE * vectors * shares.rows

    def product(self, flow: Flow, alongside: Callable[[Flow], None] | None = None) -> None:
        """Send boundary values, multiply rows that need none of others, receive, multiply the rest.

        `alongside`: what else is done while the values are on their way.
        """
        s, t = self.shares, self.traffic
        share = s.boundary_entries / np.maximum(s.entries, 1.0)
        inner = (1 - share) * (t.entry * s.entries + t.row * s.rows)
        outer = share * (t.entry * s.entries + t.row * s.rows)
        if not s.halo.count:
            self.multiply(flow, inner + outer, s.entries)
            return
        sent = self.way.send(flow, s.halo)
        if alongside is not None:
            alongside(flow)
        self.multiply(flow, inner, (1 - share) * s.entries, barrier=False)
        self.way.recv(flow, sent)
        self.multiply(flow, outer, share * s.entries)

    def multiply(self, flow: Flow, bytes_: Numbers, entries: Numbers, barrier: bool = True) -> None:
        """Multiply N entries; `barrier`: others need the result."""
        seconds = phase_seconds(self.way, bytes_, self.held, entries)
        if self.traffic.product_seconds is not None:
            whole = np.maximum(np.max(self.shares.entries), 1.0)
            seconds = self.traffic.product_seconds * np.asarray(entries) / whole
        self.way.kernel(flow, seconds, barrier)

    def phase(self, flow: Flow, bytes_: Numbers) -> None:
        """Compute for as long as these bytes take."""
        self.way.kernel(flow, phase_seconds(self.way, bytes_, self.held))

    def vectors(self, flow: Flow, values: float) -> None:
        """Read and write N values for each row."""
        self.phase(flow, values * VALUE * self.shares.rows)


def _cg(k: Krylov, flow: Flow) -> None:
    """Hestenes and Stiefel 1952, with two all-reduces."""
    k.product(flow)
    k.vectors(flow, 2)  # p . A p
    all_reduce(k.b, k.way, flow)
    k.vectors(flow, 7)  # x += alpha p; r -= alpha A p; r . r
    all_reduce(k.b, k.way, flow)
    k.vectors(flow, 3)  # p = r + beta p


def _prcg(k: Krylov, flow: Flow) -> None:
    """Predict and recompute (Chen and Carson 2020), with one all-reduce of several sums."""
    k.product(flow)
    k.vectors(flow, 4)  # the sums
    all_reduce(k.b, k.way, flow, 32)
    k.vectors(flow, 11)  # x, r, s, p


def _pipecg(k: Krylov, flow: Flow) -> None:
    """Ghysels and Vanroose 2014: the product runs while the sums are on their way."""
    k.vectors(flow, 3)  # r . r and w . r
    if isinstance(k.way, Persistent):
        before = flow.gpu
        all_reduce(k.b, k.way, flow, 16)
        summed = flow.gpu
        flow.gpu = before
        k.product(flow)
        flow.gpu = k.b.add("synchronize", k.b.all, 0.0, after=(flow.gpu, summed))
    elif k.traffic.hidden:
        _beside(k, flow)
    else:
        all_reduce(k.b, k.way, flow, 16)
        k.product(flow)
    k.vectors(flow, 18)  # z, s, p, x, r, w


def _beside(k: Krylov, flow: Flow) -> None:
    """The same with kernels: the library goes on with the all-reduce beside the stream."""
    k.way.before_collective(flow)
    aside = Flow(flow.cpu, flow.gpu, flow.posts, flow.begin, flow.noticed)
    all_reduce(k.b, k.way, aside, 16)
    flow.posts = aside.posts
    k.product(flow)
    flow.cpu = k.b.add("start", k.b.all, 0.0, after=(flow.cpu, aside.cpu))
    flow.gpu = k.b.add("wait", k.b.all, 0.0, after=(flow.gpu, aside.gpu))
    k.way.after_collective(flow)


METHODS: Mapping[str, tuple[Callable[[Krylov, Flow], None], int]] = {
    "cg": (_cg, 4),
    "prcg": (_prcg, 4),
    "pipecg": (_pipecg, 7),
}
"""Method -> one iteration, and how many vectors it holds."""


def krylov(
    cluster: Cluster, way_name: str, shares: Shares, method: str = "cg", rounds: int = 10,
    traffic: Traffic | None = None,
) -> Program:  # fmt: skip
    """Return iterations of a method on shares of a matrix; a round is an iteration."""
    iteration, vectors = METHODS[method]
    b = Builder(cluster, len(shares.rows))
    flow, way = begin(b), way_of(way_name, b)
    iteration(Krylov(b, way, shares, traffic or Traffic(), vectors), flow)
    way.end_round(flow)
    return Program(b.graph(rounds), way.once())
