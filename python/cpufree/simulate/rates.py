"""How long computations take: bytes over the rate of the memory that they come from."""

from __future__ import annotations

import numpy as np

from cpufree.machine.clusters import Cluster
from cpufree.simulate.graph import Numbers
from cpufree.simulate.ways import OnCpu, Way


def gpu_seconds(cluster: Cluster, bytes_: Numbers | float, working_set: Numbers | float) -> Numbers:
    """Return how long a phase takes on GPUs that move `bytes_` of a `working_set`.

    So much of the working set as fits stays on the chip from one phase to the next; of the bytes
    the same share comes from there. No phase is shorter than `gpu.least`.
    """
    c = cluster
    whole = np.maximum(np.asarray(working_set, dtype=np.float64), 1.0)
    resident = np.minimum(1.0, c["gpu.chip_bytes"] / whole)
    moved = np.asarray(bytes_, dtype=np.float64)
    seconds = moved * (resident / c["gpu.chip_bandwidth"] + (1 - resident) / c["gpu.bandwidth"])
    return np.maximum(seconds, c["gpu.least"])


def cpu_seconds(cluster: Cluster, bytes_: Numbers | float, working_set: Numbers | float) -> Numbers:
    """Return how long a phase takes on all cores of a CPU."""
    c = cluster
    rate = np.where(
        np.asarray(working_set) <= c["cpu.cache_bytes"],
        c["cpu.cache_bandwidth"],
        c["cpu.bandwidth"],
    )
    return np.asarray(c["cpu.least"] + np.asarray(bytes_, dtype=np.float64) / rate)


def phase_seconds(way: Way, bytes_: Numbers | float, working_set: Numbers | float) -> Numbers:
    """Return how long a phase takes where this way computes."""
    by_cpu = isinstance(way, OnCpu)
    return (cpu_seconds if by_cpu else gpu_seconds)(way.c, bytes_, working_set)


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
