"""Where PEs are, and the way of a message between two of them: latency, links, bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError
from cpufree.machine.clusters import Cluster

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Hop:
    """A link between switches that some of the messages share."""

    messages: Numbers
    resource: Numbers
    seconds: Numbers


@dataclass(frozen=True)
class Route:
    """The ways of some messages. Ports are resources, times in seconds."""

    out_port: Numbers
    in_port: Numbers
    out_seconds: Numbers
    in_seconds: Numbers
    latency: Numbers
    hops: tuple[Hop, ...]


class Network:
    """The network between `pes` PEs, node after node, `node.gpus` to a node.

    Links between switches are bundles: a message holds its bundle for its bytes over the rate of
    all its links, as adaptive routing would have it. Bundles that are as fast as all ports behind
    them are left out, since those ports limit first.
    """

    def __init__(self, cluster: Cluster, pes: int) -> None:
        self.cluster, self.pes = cluster, pes
        self.per_node = cluster.count("node.gpus")
        self.nics = cluster.count("node.nics")
        if self.nics > self.per_node:
            raise InvalidInputError(
                f"{cluster.name}: fields.node.nics: more network cards than GPUs of a node: "
                "unsupported"
            )
        nodes = -(-pes // self.per_node)
        cards = nodes * self.nics
        # Resources: out and in of cards, of GPUs, FIFOs of cards, helper threads, bundles.
        self._in, self._gpu_out = cards, 2 * cards
        self._gpu_in = self._gpu_out + pes
        self._fifo = self._gpu_in + pes
        self._helper = self._fifo + cards
        self._bundle = self._helper + pes

    def node_of(self, pe: Numbers) -> Numbers:
        """Return the nodes of PEs."""
        return np.asarray(pe) // self.per_node

    def nic_of(self, pe: Numbers) -> Numbers:
        """Return the network cards of PEs; those of a node are shared out evenly."""
        local = np.asarray(pe) % self.per_node
        return np.asarray(self.node_of(pe) * self.nics + local * self.nics // self.per_node)

    def fifo_of(self, pe: Numbers) -> Numbers:
        """Return the resource that is the trigger FIFO of a PE's network card."""
        return self._fifo + self.nic_of(pe)

    def helper_of(self, pe: Numbers) -> Numbers:
        """Return the resource that is the helper thread of a PE."""
        return self._helper + np.asarray(pe)

    def same_node(self, src: Numbers, dst: Numbers) -> npt.NDArray[np.bool_]:
        """Return whether two PEs are in one node."""
        return np.asarray(self.node_of(src) == self.node_of(dst))

    def wire_latency(self, src: Numbers, dst: Numbers) -> Numbers:
        """Return the latency of links and switches between nodes, in seconds."""
        c = self.cluster
        link, switch = c["network.link_latency"], c["network.switch_latency"]
        a, b = self.node_of(src), self.node_of(dst)
        if c.topology == "star":
            return np.full(len(a), 2 * link + switch)
        if c.topology == "fat_tree":
            leaf, pod = c["network.leaf_nodes"], c["network.pod_nodes"]
            levels = (
                1 + (a // leaf != b // leaf) + ((a // pod != b // pod) & (a // leaf != b // leaf))
            )
            return np.asarray(2 * levels * link + (2 * levels - 1) * switch)
        at, group = c["network.switch_nodes"], c["network.group_nodes"]
        far, other = a // group != b // group, a // at != b // at
        near = np.where(other, 3 * link + 2 * switch, 2 * link + switch)
        return np.where(far, 4 * link + 4 * switch + c["network.global_latency"], near)

    def route(self, src: Numbers, dst: Numbers, bytes_: Numbers) -> Route:
        """Return the ways of messages."""
        c = self.cluster
        src, dst = np.asarray(src), np.asarray(dst)
        size = np.broadcast_to(np.asarray(bytes_, dtype=np.float64), len(src))
        inside = self.same_node(src, dst)
        wire = size / c["network.bandwidth"]
        direct = size / c["node.bandwidth"]
        latency = self.wire_latency(src, dst) + c["nic.send"] + c["nic.recv"]
        return Route(
            out_port=np.where(inside, self._gpu_out + src, self.nic_of(src)),
            in_port=np.where(inside, self._gpu_in + dst, self._in + self.nic_of(dst)),
            out_seconds=np.where(inside, direct, wire + c["nic.gap"]),  # LogGP: g + G m
            in_seconds=np.where(inside, direct, wire),
            latency=np.where(inside, c["node.latency"], latency),
            hops=tuple(self._hops(src, dst, size, inside)),
        )

    def _hops(self, src: Numbers, dst: Numbers, size: Numbers, inside: Numbers) -> list[Hop]:
        c = self.cluster
        a, b = self.node_of(src), self.node_of(dst)
        if c.topology == "fat_tree" and c["network.taper"] > 1:
            below = c.count("network.leaf_nodes")
            rate = below * self.nics * c["network.bandwidth"] / c["network.taper"]
        elif c.topology == "dragonfly":
            below = c.count("network.group_nodes")
            rate = c["network.global_bandwidth"]
            if rate >= below * self.nics * c["network.bandwidth"]:
                return []
        else:
            return []
        bundles = -(-self.pes // self.per_node) // below + 1
        there = np.flatnonzero((a // below != b // below) & ~inside)
        seconds = size[there] / rate
        up, down = a[there] // below, b[there] // below
        return [
            Hop(there, self._bundle + up, seconds),
            Hop(there, self._bundle + bundles + down, seconds),
        ]
