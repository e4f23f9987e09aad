"""The programs that can be simulated: a message, Jacobi iterations, all-reduces, training steps.

CG is in `krylov`. A program adds one round to a builder; rounds follow one another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpufree.errors import InvalidInputError
from cpufree.machine.clusters import Cluster
from cpufree.simulate.collectives import ring
from cpufree.simulate.graph import Builder, Flow, Graph, Ids, begin
from cpufree.simulate.rates import phase_seconds
from cpufree.simulate.way import Messages, Way
from cpufree.simulate.ways import OnCpu, Persistent, way_of


@dataclass(frozen=True)
class Program:
    """A graph, and what it leaves out."""

    graph: Graph
    once: float = 0.0
    """Seconds before the first round and after the last: a persistent kernel's launch and end."""


@dataclass(frozen=True)
class OneMessage:
    """The operations of a single message whose times tell something."""

    program: Program
    arrival: Ids
    kernel_end: Ids


def one_message(cluster: Cluster, way_name: str, bytes_: int = 64) -> OneMessage:
    """Return the program of LeBeane et al. 2017, 5.2: a kernel copies a cache line and sends it.

    All launches and ends of kernels are in the graph. What is posted is posted beforehand, beside
    the launch.
    """
    b = Builder(cluster, 2 * cluster.count("node.gpus"))
    flow, way = begin(b), way_of(way_name, b)
    message = Messages(np.array([0]), np.array([cluster.count("node.gpus")]), np.array([bytes_]))
    if isinstance(way, Persistent):
        flow.gpu = b.add("launch", b.all, cluster["gpu.launch"], after=(flow.gpu,))
        flow.gpu = b.add("compute", b.all, cluster["gpu.least"], after=(flow.gpu,))
        sent = way.send(flow, message)
        flow.gpu = b.add("teardown", b.all, cluster["gpu.teardown"], after=(flow.gpu,))
        end = flow.gpu
    else:
        way.kernel(flow, cluster["cpu.least" if isinstance(way, OnCpu) else "gpu.least"])
        end = flow.cpu if isinstance(way, OnCpu) else flow.gpu
        sent = way.send(flow, message)
    return OneMessage(Program(b.graph()), sent.arrival, end[:1])


def grid_of(pes: int) -> tuple[int, int]:
    """Return two factors of a number of PEs that are as near as can be, the larger first."""
    across = int(pes**0.5)
    while pes % across:
        across -= 1
    return pes // across, across


def jacobi(
    cluster: Cluster, way_name: str, pes: int, points: int, item: int = 4, rounds: int = 20
) -> Program:
    """Return Jacobi iterations on `points` x `points` points of each PE, PEs in a closed grid.

    Each PE sends a line of `points` to each of up to four neighbours, waits for theirs, and updates
    all points: no overlap, as LeBeane et al. 2017, 5.3. `item`: bytes of a point. The PEs' grid is
    closed in both directions, so that all PEs have the same work.
    """
    if points < 1:
        raise InvalidInputError(f"{points} points in a direction: give at least one")
    b = Builder(cluster, pes)
    flow, way = begin(b), way_of(way_name, b)
    bytes_ = 2 * item * points**2
    way.kernel(flow, phase_seconds(way, bytes_, bytes_))
    messages = _neighbours(b, item * points)
    if messages.count:
        way.recv(flow, way.send(flow, messages))
    way.end_round(flow)
    return Program(b.graph(rounds), way.once())


def _neighbours(b: Builder, bytes_: int) -> Messages:
    rows, columns = grid_of(b.pes)
    row, column = b.all // columns, b.all % columns
    src, dst = [], []
    for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        other = (row + down) % rows * columns + (column + right) % columns
        there = other != b.all
        src.append(b.all[there])
        dst.append(other[there])
    whole = np.concatenate(src)
    return Messages(whole, np.concatenate(dst), np.full(len(whole), bytes_))


def vector_all_reduce(
    cluster: Cluster, way_name: str, pes: int, bytes_: float, pieces: int | None = None
) -> Program:
    """Return one all-reduce of a vector around a ring, with launches and ends of kernels."""
    if bytes_ <= 0 or (pieces is not None and pieces < 1):
        raise InvalidInputError("an all-reduce needs bytes, and at least one piece of each part")
    b = Builder(cluster, pes)
    flow, way = begin(b), way_of(way_name, b)
    _whole_kernel(b, way, flow, lambda: ring(b, way, flow, bytes_, pieces))
    way.end_round(flow)
    return Program(b.graph())


def _whole_kernel(b: Builder, way: Way, flow: Flow, body: object) -> None:
    if way.persistent:
        flow.gpu = b.add("launch", b.all, b.cluster["gpu.launch"], after=(flow.gpu,))
    body()  # type: ignore[operator]
    if way.persistent:
        flow.gpu = b.add("teardown", b.all, b.cluster["gpu.teardown"], after=(flow.gpu,))


@dataclass(frozen=True)
class Workload:
    """A training run in which all-reduces block (LeBeane et al. 2017, table 3).

    `blocked`: the share of time that the host-driven run is blocked in all-reduces. `sizes`: bytes
    of all-reduces, and how often each occurs.
    """

    name: str
    domain: str
    blocked: float
    reductions: int
    sizes: tuple[tuple[float, float], ...] = ()

    def bound(self) -> float:
        """Return the greatest speed-up that all-reduces without cost would give (Amdahl)."""
        return 1 / (1 - self.blocked)

    def speedup(self, seconds: float, baseline: float, host_driven: float) -> float:
        """Return by how much a run with all-reduces of `seconds` beats one with `baseline`.

        All are mean times of an all-reduce of this workload; `host_driven` is that of the run whose
        share was measured. The rest of the run takes the same time in all of them.
        """
        rest = host_driven * (1 - self.blocked) / self.blocked
        return (rest + baseline) / (rest + seconds)
