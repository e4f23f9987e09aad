"""How long computations take: bytes over the rate of the memory that they come from."""

from __future__ import annotations

import numpy as np

from cpufree.machine.clusters import Cluster
from cpufree.simulate.graph import Numbers
from cpufree.simulate.way import Way
from cpufree.simulate.ways import OnCpu


def gpu_seconds(
    cluster: Cluster, bytes_: Numbers | float, working_set: Numbers | float, persistent: bool
) -> Numbers:
    """Return how long a phase takes on GPUs that move `bytes_` of a `working_set`.

    A persistent kernel keeps as much of the working set as fits in registers and shared memory. The
    rest stays in the cache where it fits. Where it is larger, what is needed next has been replaced
    the more often the larger it is, and of one twice as large nothing is left. The bytes come from
    these places in proportion.
    """
    c = cluster
    whole = np.maximum(np.asarray(working_set, dtype=np.float64), 1.0)
    kept = np.minimum(1.0, c["gpu.chip_bytes"] / whole) if persistent else np.zeros_like(whole)
    rest, cache = 1.0 - kept, c["gpu.cache_bytes"] / whole
    cached = np.minimum(rest, np.maximum(2 * cache - rest, 0.0))
    per_byte = (
        kept / c["gpu.chip_bandwidth"]
        + cached / c["gpu.cache_bandwidth"]
        + (rest - cached) / c["gpu.bandwidth"]
    )
    return np.asarray(np.asarray(bytes_, dtype=np.float64) * per_byte)


def cpu_seconds(cluster: Cluster, bytes_: Numbers | float, working_set: Numbers | float) -> Numbers:
    """Return how long a phase takes on all cores of a CPU."""
    c = cluster
    rate = np.where(
        np.asarray(working_set) <= c["cpu.cache_bytes"],
        c["cpu.cache_bandwidth"],
        c["cpu.bandwidth"],
    )
    return np.asarray(c["cpu.least"] + np.asarray(bytes_, dtype=np.float64) / rate)


def phase_seconds(
    way: Way,
    bytes_: Numbers | float,
    working_set: Numbers | float,
    entries: Numbers | float = 0.0,
) -> Numbers:
    """Return how long a phase takes where this way computes.

    `entries`: of a sparse matrix, that it multiplies; the slower of bytes and entries counts. On a
    GPU no phase is shorter than `gpu.least`.
    """
    if isinstance(way, OnCpu):
        return cpu_seconds(way.c, bytes_, working_set)
    by_bytes = gpu_seconds(way.c, bytes_, working_set, way.persistent)
    by_entries = np.asarray(entries, dtype=np.float64) / way.c["gpu.entries"]
    return np.maximum(np.maximum(by_bytes, by_entries), way.c["gpu.least"])


def reduce_seconds(cluster: Cluster, way: Way, part: float) -> float:
    """Return how long it takes to add a part of a vector to another one.

    On a GPU two parts are read and one is written, in memory, since one has just come from the
    network card. On a CPU one core of a library does it: fast where both parts fit into its own
    cache, into which a network card can write.
    """
    if isinstance(way, OnCpu):
        fits = 2 * part <= cluster["cpu.reduce_bytes"]
        return part / cluster["cpu.reduce_cached" if fits else "cpu.reduce"]
    return max(3 * part / cluster["gpu.bandwidth"], cluster["gpu.least"])
