"""How a matrix would lie on N GPUs, before it is laid out: what predictions rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cpufree.engines.partition_gain import gain_on
from cpufree.extension import load_core
from cpufree.machine import DEFAULT, Machine
from cpufree.machine.clusters import has_cluster, load_cluster
from cpufree.model.gathers import gathered_bytes
from cpufree.model.solve import IterationTime, SystemFacts
from cpufree.model.stored import has_block_packets, stored_bytes
from cpufree.partition.methods import partition
from cpufree.simulate.sweep import Problem

if TYPE_CHECKING:
    from cpufree.matrix.problem import CsrMatrix

MOST_PACKETS = 16384
"""Ghosts of a PE up to which halos travel as packets (docs/design/kernels.md)."""
GATHER_SAMPLES = 6
"""Places in a matrix where what a product gathers is counted."""


def facts_of(
    matrix: CsrMatrix,
    numbers: Sequence[int],
    machine: Machine,
    method: str = "auto",
    mixed: bool = False,
) -> list[SystemFacts]:
    """Return how a matrix would lie on each of these numbers of GPUs.

    Args:
        matrix: canonical. numbers: of GPUs, each at most the rows. machine: with the entries of
        solvers. method: of the partition. mixed: products read values in single precision.
    """
    gathered = gathered_bytes(matrix, samples=GATHER_SAMPLES)
    found = [_facts_on(matrix, pes, machine, gathered, method) for pes in numbers]
    if not mixed:
        return found
    return [replace(one, **_in_mixed(matrix, one, machine)) for one in found]


def _in_mixed(matrix: CsrMatrix, one: SystemFacts, machine: Machine) -> dict[str, Any]:
    """Return what is other in mixed precision: bytes of A, which does not stay on chip then."""
    blocks = one.pes * int(machine.number("gpu.multiprocessors", "1"))
    singles = replace(matrix, data=matrix.data.astype(np.float32))
    stored = stored_bytes(singles, blocks, one.block_packets)
    return {"matrix_bytes": min(stored, one.matrix_bytes), "resident_matrix": False}


def _facts_on(
    matrix: CsrMatrix, pes: int, machine: Machine, gathered: float, method: str
) -> SystemFacts:
    report = partition(matrix, pes, method, gain_on("cuda_p2p")).report
    found = undivided_facts(matrix, pes, machine, gathered)
    return replace(
        found,
        halo_values=report.halo_values,
        packets=found.block_packets or max(report.ghosts) <= MOST_PACKETS,
        imbalance=report.imbalance,
    )


def undivided_facts(matrix: Any, pes: int, machine: Machine, gathered: float) -> SystemFacts:
    """Return the same but for what depends on how the matrix is divided among GPUs."""
    blocks = pes * int(machine.number("gpu.multiprocessors", "1"))
    room = blocks * machine.number("solver.block_bytes", "B")
    few = matrix.nnz <= load_core().most_block_halo_nonzeros
    packets = few and has_block_packets(matrix, blocks, room)
    return SystemFacts(
        matrix.shape[0],
        matrix.nnz,
        pes,
        stored_bytes(matrix, blocks, packets),
        value_bytes=matrix.data.dtype.itemsize,
        block_packets=packets,
        gathered_bytes=gathered,
    )


def over_network(
    matrix: CsrMatrix, one: IterationTime, pes: int, method: str, machine: Machine
) -> IterationTime:
    """Return the time of an iteration with its messages simulated, where GPUs are of several nodes.

    What a GPU moves takes as long as predicted (`one`). The messages are those of persistent
    kernels that ring network cards themselves. The interval has them halved and doubled.
    """
    cluster = load_cluster(machine.origin if has_cluster(machine.origin) else DEFAULT)
    if pes <= cluster.count("node.gpus"):
        return one
    seconds, _ = Problem(method, matrix=matrix).seconds(cluster, "native", pes)
    parts = {name: one.parts[name] for name in ("matrix", "vectors", "loops")}
    own = sum(parts.values())
    parts["network"] = max(seconds - own, one.seconds - own)
    low, high = (
        factor * (own + times * parts["network"]) / one.seconds
        for factor, times in ((one.low, 0.5), (one.high, 2.0))
    )
    return IterationTime(own + parts["network"], low, high, parts)
