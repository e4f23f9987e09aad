"""All-reduces: of a few numbers, by recursive doubling, and of long vectors, around a ring."""

from __future__ import annotations

import numpy as np

from cpufree.simulate.graph import Builder, Flow, Ids, Numbers
from cpufree.simulate.rates import reduce_seconds
from cpufree.simulate.way import Messages, Sent, Way
from cpufree.simulate.ways import HostDriven, LibraryKernels, OnCpu, Persistent


def all_reduce(b: Builder, way: Way, flow: Flow, bytes_: int = 8) -> None:
    """Add up a few numbers of all PEs, such that each has the sum.

    Recursive doubling (Thakur, Rabenseifner, Gropp 2005, Optimization of Collective Communication
    Operations in MPICH): after step k a PE has the sum of 2^(k+1). Persistent kernels first
    exchange within each node at once; then only PEs at the same place of their nodes exchange.
    """
    way.before_collective(flow)
    stride = 1
    if way.persistent and b.network.per_node > 1:
        stride = _within_nodes(b, way, flow, bytes_)
    count = -(-b.pes // stride)
    if count > 1:
        _doubling(b, way, flow, bytes_, stride, count)
    way.after_collective(flow)


def _within_nodes(b: Builder, way: Way, flow: Flow, bytes_: int) -> int:
    """Exchange within nodes; return how many PEs a node has."""
    size = min(b.network.per_node, b.pes)
    shift = np.arange(1, size)
    src = np.repeat(b.all, size - 1)
    first = src // size * size
    dst = first + (src - first + np.tile(shift, b.pes)) % size
    there = dst < b.pes
    messages = Messages(src[there], dst[there], np.full(np.count_nonzero(there), bytes_))
    if messages.count:
        way.exchange_in_node(flow, messages)
    return size


def _doubling(b: Builder, way: Way, flow: Flow, bytes_: int, stride: int, count: int) -> None:
    """Double among the groups of `stride` PEs; those beyond a power of two join a partner."""
    power = 1 << (count.bit_length() - 1)
    group = b.all // stride
    extra = b.all[group >= power]
    if len(extra):
        _step(way, flow, extra, extra - power * stride, bytes_)
    active = b.all[group < power]
    distance = 1
    while distance < power:
        partner = (active // stride ^ distance) * stride + active % stride
        there = partner < b.pes
        _step(way, flow, active[there], partner[there], bytes_)
        distance *= 2
    if len(extra):
        _step(way, flow, extra - power * stride, extra, bytes_)


def _step(way: Way, flow: Flow, src: Numbers, dst: Numbers, bytes_: int) -> None:
    sent = way.send(flow, Messages(src, dst, np.full(len(src), bytes_)))
    way.recv(flow, sent)
    way.combine(flow, 0.0)


MOST_PIECES, LARGEST_PIECE = 16, 65536
"""A work-group adds this many bytes and sends them on its own; more where there would be more
work-groups than entries of the network card."""


def ring(b: Builder, way: Way, flow: Flow, bytes_: float, pieces: int | None = None) -> None:
    """Add up a vector of all PEs around a ring (LeBeane et al. 2017, 5.4.1).

    In each of P - 1 steps a PE sends a P-th of the vector to the next one, which adds it to its
    own; in P - 1 more the sums go around. A running kernel sends each work-group's piece when it is
    ready, so that pieces are added up while others are on their way, and so does the kernel of a
    library; other ways send whole parts.
    `pieces`: of a part; None: one for each 64 KiB, up to 16.
    """
    if b.pes == 1:
        return
    part = bytes_ / b.pes
    if pieces is None:
        pieces = int(min(max(-(-part // LARGEST_PIECE), 1), MOST_PIECES))
    seconds = reduce_seconds(b.cluster, way, part)
    if isinstance(way, LibraryKernels):  # all steps in one kernel of the library
        way.before_collective(flow)
        _ring_in_pieces(b, way.inner, flow, part, seconds, pieces)
        way.after_collective(flow)
        return
    if isinstance(way, Persistent):
        _ring_in_pieces(b, way, flow, part, seconds, pieces)
        return
    next_ = (b.all + 1) % b.pes
    messages = Messages(b.all, next_, np.full(b.pes, part))
    for step in range(2 * (b.pes - 1)):
        way.recv(flow, way.send(flow, messages))
        if step < b.pes - 1:
            way.kernel(flow, seconds)
    if isinstance(way, (HostDriven, OnCpu)):
        way.notice(flow)


def _ring_in_pieces(
    b: Builder, way: Persistent, flow: Flow, part: float, seconds: float, pieces: int
) -> None:
    """One flow for each work-group: poll, add, fence, send; the compute units work side by side."""
    piece = Messages(b.all, (b.all + 1) % b.pes, np.full(b.pes, part / pieces))
    flows: list[Ids] = [flow.gpu] * pieces
    for step in range(2 * (b.pes - 1)):
        for k in range(pieces):
            flow.gpu = flows[k]
            sent: Sent = way.send(flow, piece)
            arrived = np.empty(b.pes, np.int32)
            arrived[piece.dst] = sent.arrival
            flow.gpu = b.add("poll", b.all, b.cluster["gpu.poll"], after=(flow.gpu, arrived))
            if step < b.pes - 1:  # a group has a share of the units, and of their bandwidth
                flow.gpu = b.add("compute", b.all, seconds, after=(flow.gpu,))
            flows[k] = flow.gpu
    done = b.add("synchronize", b.all, b.cluster["gpu.sync"])
    for one in flows:
        b.after(one, done)
    flow.gpu = done
