"""Programs as graphs: operations of all PEs, and what waits for what.

A `Builder` adds operations for many PEs in one call; what it returns are their numbers. Times are
given in seconds and kept in picoseconds, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError
from cpufree.machine.clusters import Cluster
from cpufree.simulate.network import Network

Ids = npt.NDArray[np.int32]
Numbers = npt.NDArray[Any]
FROM_START, NEXT_ROUND = 1, 2
PLAIN, POST, TRIGGER = 0, 1, 2
NONE = -1
PICO = 1e12

LANES = ("CPU", "helper thread", "GPU", "network card", "out", "in")
LANE_OF = {
    "start": "CPU", "compute on CPU": "CPU", "issue": "CPU", "notice": "CPU", "send": "CPU",
    "receive": "CPU", "handshake": "network card", "post": "CPU", "proxy": "helper thread",
    "kernel": "GPU", "compute": "GPU", "launch": "GPU", "teardown": "GPU", "doorbell": "GPU",
    "wait": "GPU", "fence": "GPU", "store": "GPU", "poll": "GPU", "build": "GPU", "queue": "GPU",
    "synchronize": "GPU", "match": "network card", "message": "out", "arrival": "in",
    "hop": "out",
}  # fmt: skip
"""What an operation is -> where a timeline shows it."""
KINDS = tuple(LANE_OF)
TYPES: dict[str, Any] = {
    "kind": np.uint8, "edge": np.uint8, "role": np.uint8,
    "busy": np.int64, "latency": np.int64, "bytes": np.int64,
}  # fmt: skip
"""Of the columns that are not int32."""


@dataclass(frozen=True)
class Graph:
    """One round of a program in arrays, by operation; and edges. Times in picoseconds."""

    kind: npt.NDArray[np.uint8]
    pe: Ids
    resource: Ids
    busy: npt.NDArray[np.int64]
    latency: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    """Of messages; else 0."""
    from_: Ids
    to: Ids
    edge: npt.NDArray[np.uint8]
    role: npt.NDArray[np.uint8]
    operand: Ids
    nic: Ids
    threshold: Ids
    rounds: int
    entries: int
    spill: int
    pes: int

    @property
    def size(self) -> int:
        """Operations of a round."""
        return len(self.kind)

    def name(self, operation: int, round_: int = 0) -> str:
        """Return what errors and timelines call an operation."""
        what = f"{KINDS[self.kind[operation]]} {operation} of PE {self.pe[operation]}"
        return what if self.rounds == 1 else f"{what} in round {round_}"


class Builder:
    """A graph in the making, for `pes` PEs of a machine.

    Raises:
        InvalidInputError: no PEs, or a time that is negative or no number.
    """

    def __init__(self, cluster: Cluster, pes: int) -> None:
        if pes < 1:
            raise InvalidInputError(f"{pes} PEs: give at least one")
        self.cluster, self.pes = cluster, pes
        self.network = Network(cluster, pes)
        self.all = np.arange(pes, dtype=np.int32)
        self._size = 0
        self._columns: dict[str, list[Numbers]] = {
            name: []
            for name in ("kind", "pe", "resource", "busy", "latency", "bytes",
                         "role", "operand", "nic", "threshold", "from_", "to", "edge")
        }  # fmt: skip

    def add(
        self,
        kind: str,
        pe: Numbers,
        seconds: float | Numbers,
        *,
        after: Sequence[Ids | None] = (),
        resource: Numbers | None = None,
        latency: float | Numbers = 0.0,
        bytes_: Numbers | int = 0,
        triggers: tuple[int, Ids, int | Numbers] | None = None,
    ) -> Ids:
        """Add an operation for each of `pe`; return their numbers.

        `after`: each waits for its counterpart in each of these (None: for nothing). `latency`
        belongs to the edges from its start. `triggers`: role, the operations that these post or
        trigger, and the threshold of a post.
        """
        n = len(pe)
        ids = np.arange(self._size, self._size + n, dtype=np.int32)
        self._size += n
        busy, later = _picoseconds(seconds, n, kind), _picoseconds(latency, n, kind)
        role, operand, threshold = triggers or (PLAIN, np.full(n, NONE, np.int32), 0)
        nic = self.network.nic_of(pe) if role != PLAIN else np.full(n, NONE)
        taken = np.full(n, NONE) if resource is None else resource
        for name, values in (
            ("kind", np.full(n, KINDS.index(kind))), ("pe", pe), ("resource", taken),
            ("busy", busy), ("latency", later), ("bytes", np.broadcast_to(bytes_, n)),
            ("role", np.full(n, role)), ("operand", operand), ("nic", nic),
            ("threshold", np.broadcast_to(threshold, n)),
        ):  # fmt: skip
            self._columns[name].append(np.asarray(values, TYPES.get(name, np.int32)))
        for first in after:
            if first is not None:
                self.after(first, ids)
        return ids

    def after(self, first: Ids, second: Ids, bits: int = 0) -> None:
        """Let each of `second` wait for its counterpart in `first`."""
        if len(first) != len(second):
            raise ValueError("edges need as many operations at both ends")
        self._columns["from_"].append(first)
        self._columns["to"].append(second)
        self._columns["edge"].append(np.full(len(first), bits, np.uint8))

    def chain(
        self, kind: str, owner: Numbers, seconds: float | Numbers, flow: Ids,
        after: Sequence[Ids] = (), posts: Ids | None = None,
    ) -> tuple[Ids, Ids]:  # fmt: skip
        """Add operations that each PE does one after another; `owner` must not decrease.

        `flow`: by PE, what its first one follows. `posts`: what they post, for one trigger each.
        Return the numbers, and the new flow.
        """
        triggers = None if posts is None else (POST, posts, 1)
        ids = self.add(kind, owner, seconds, after=after, triggers=triggers)
        if not len(ids):
            return ids, flow
        first = np.concatenate(([True], owner[1:] != owner[:-1]))
        before = np.where(first, flow[owner], np.concatenate(([0], ids[:-1]))).astype(np.int32)
        self.after(before, ids)
        flow = flow.copy()
        last = np.concatenate((first[1:], [True]))
        flow[owner[last]] = ids[last]
        return ids, flow

    def message(
        self, src: Numbers, dst: Numbers, bytes_: Numbers, after: Ids | None
    ) -> tuple[Ids, Ids]:
        """Add messages: onto the wire, and off it. Return both numbers.

        A message holds the sender's port while it is sent, and the receiver's while it comes in:
        it cuts through, so both overlap.
        """
        route = self.network.route(src, dst, bytes_)
        out = self.add("message", src, route.out_seconds, after=(after,), resource=route.out_port,
                       latency=route.latency, bytes_=bytes_)  # fmt: skip
        last = out.copy()
        for hop in route.hops:
            there = hop.messages
            ids = self.add("hop", src[there], hop.seconds, resource=hop.resource)
            # The latency of the whole way is on the first edge; later ones cut through at once.
            self.after(last[there], ids, FROM_START)
            last[there] = ids
        arrival = self.add("arrival", dst, route.in_seconds, resource=route.in_port)
        self.after(last, arrival, FROM_START)
        return out, arrival

    def graph(self, rounds: int = 1) -> Graph:
        """Return the graph, done `rounds` times."""
        arrays: dict[str, Any] = {
            name: np.concatenate([np.empty(0, TYPES.get(name, np.int32)), *parts])
            for name, parts in self._columns.items()
        }
        if not np.any(arrays["role"]):
            arrays.update({key: np.empty(0, TYPES.get(key, np.int32))
                           for key in ("role", "operand", "nic", "threshold")})  # fmt: skip
        return Graph(
            **arrays, rounds=rounds, entries=self.cluster.count("nic.entries"),
            spill=int(_picoseconds(self.cluster["nic.spill"], 1, "spill")[0]), pes=self.pes,
        )  # fmt: skip


def _picoseconds(seconds: float | Numbers, n: int, kind: str) -> npt.NDArray[np.int64]:
    values = np.broadcast_to(np.asarray(seconds, dtype=np.float64), n)
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InvalidInputError(
            f"an operation '{kind}' takes {np.min(values)} s: it must be a time"
        )
    return np.rint(values * PICO).astype(np.int64)


@dataclass
class Flow:
    """By PE, the last operation on its CPU and on its GPU."""

    cpu: Ids
    gpu: Ids
    posts: Ids
    """Of a thread that posts ahead."""
    begin: tuple[Ids, Ids, Ids] = field(repr=False)
    """The first ones of the round."""
    noticed: bool = True
    """Whether the CPU knows that the GPU is done."""


def begin(builder: Builder) -> Flow:
    """Return the flow of a round that begins."""
    first = tuple(builder.add("start", builder.all, 0.0) for _ in range(3))
    cpu, gpu, posts = first
    return Flow(cpu, gpu, posts, (cpu, gpu, posts))


def repeat(builder: Builder, flow: Flow) -> None:
    """Let the next round follow what this one ends with."""
    for last, first in zip((flow.cpu, flow.gpu, flow.posts), flow.begin, strict=True):
        builder.after(last, first, NEXT_ROUND)
