"""Simulated against measured: records of benchmarks of CG and of Jacobi on 1 to 8 GPUs.

Jacobi iterations are those that the host drives, with halos in each iteration: the simulated
program has no values that stay on chip, nor several iterations in a pass.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from cpufree.errors import InvalidInputError
from cpufree.machine.clusters import Cluster, load_cluster
from cpufree.model.records import Compared, Measured, Summary, read_record, summaries, summary
from cpufree.model.solve import SystemFacts
from cpufree.model.stencils import StencilFacts
from cpufree.simulate.halo import VALUE, Shares
from cpufree.simulate.krylov import Traffic, krylov
from cpufree.simulate.programs import jacobi
from cpufree.simulate.run import run
from cpufree.simulate.way import Messages
from cpufree.text import counted

RECORDS = (
    "cg-1x-2026-11-24.jsonl", "cg-2x-sorted-2026-11-23.jsonl", "cg-4x-2026-11-22.jsonl",
    "cg-8x-2026-11-22.jsonl", "cg-1x-2026-11-25.jsonl", "cg-1x-rest-2026-11-25.jsonl",
    "cg-2x-2026-11-25.jsonl",
    "stencil-baselines-2x-2026-11-23.jsonl", "stencil-baselines-8x-2026-11-22.jsonl",
)  # fmt: skip
CLUSTERS = {"NVIDIA H100": "h100"}
"""The beginning of a GPU's name -> the machine that it is simulated on; else the one given."""
WAY_OF = {"cpufree": "native", "nccl": "nccl", "mpi": "hdn"}
WAY_OF_GRIDS = {"copy": "hdn", "nccl": "nccl"}
"""Contender of a benchmark -> the way of communication that it is simulated with."""
CALIBRATED = ("cg-2x-sorted-2026-11-23.jsonl", "cpufree", "prcg")
"""Record, contender and method that constants of the machine h200 were chosen by."""
ROW_BYTES = 2 * VALUE
"""Of a row of a product: operand and result; the rest is in the bytes of the matrix."""
NEIGHBOURS = 4
"""A record has the values of all halos together, not who sends to whom: N PEs, at most."""
LARGEST_ERROR = 0.10


def calibrated(one: Compared) -> bool:
    """Return whether constants were chosen by a time."""
    return (one.measured.record, one.measured.contender, one.measured.method) == CALIBRATED


def read_cases(folder: str | os.PathLike[str], records: Sequence[str] = RECORDS) -> list[Measured]:
    """Return the measured times of records: of systems, and of grids of two dimensions.

    Raises:
        InvalidInputError: none of the records is there. FileFormatError: one is damaged.
    """
    there = [Path(folder) / name for name in records if (Path(folder) / name).is_file()]
    if not there:
        raise InvalidInputError(f"{folder}: none of the records {', '.join(records)}")
    found = [one for file in there for one in read_record(file, (*WAY_OF, *WAY_OF_GRIDS))]
    return [one for one in found if one.contender in ways_of(one.facts)]


def ways_of(facts: SystemFacts | StencilFacts) -> Mapping[str, str]:
    """Return the contenders that can be simulated, with their ways."""
    if isinstance(facts, SystemFacts):
        return WAY_OF
    return WAY_OF_GRIDS if len(facts.shape) == 2 else {}


def shares_of(facts: SystemFacts) -> Shares:
    """Return equal shares; the halo goes to up to four neighbours of each PE."""
    pes = facts.pes
    steps = (1, -1, 2, -2)[: min(pes - 1, NEIGHBOURS)]
    src = np.repeat(np.arange(pes), len(steps))
    dst = (src + np.tile(steps, pes)) % pes if steps else src
    per_pe = facts.nnz / pes
    # Each ghost makes about one row of the other side a boundary row.
    boundary = min(facts.halo_values / facts.rows, 0.9) * per_pe
    bytes_ = VALUE * facts.halo_values / max(len(src), 1)
    return Shares(
        rows=np.full(pes, facts.rows / pes),
        entries=np.full(pes, per_pe),
        boundary_entries=np.full(pes, boundary),
        halo=Messages(src, dst, np.full(len(src), bytes_)),
        model="values of the record, on up to four neighbours",
    )


def compare(cluster: Cluster, cases: Iterable[Measured]) -> list[Compared]:
    """Simulate measured cases, each on the machine of its GPUs, or else on this one."""
    found = []
    for one in cases:
        mine = next((load_cluster(name) for gpu, name in CLUSTERS.items()
                     if one.gpu.startswith(gpu)), cluster)  # fmt: skip
        found.append(Compared(one, simulated(one, mine)))
    return found


def simulated(one: Measured, cluster: Cluster) -> float:
    """Return the simulated seconds of an iteration."""
    facts = one.facts
    if isinstance(facts, StencilFacts):
        side = math.isqrt(math.prod(facts.shape) // facts.pes)
        way = WAY_OF_GRIDS[one.contender]
        program = jacobi(cluster, way, facts.pes, side, facts.value_bytes)
    else:
        traffic = Traffic(facts.matrix_bytes / facts.nnz, ROW_BYTES, one.product_seconds)
        shares = shares_of(facts)
        program = krylov(cluster, WAY_OF[one.contender], shares, one.method, 8, traffic)
    return run(program.graph).per_round


def named(one: Compared) -> str:
    """Return contender and number of GPUs."""
    grid = "Jacobi, " * isinstance(one.measured.facts, StencilFacts)
    return f"{grid}{one.measured.contender}, {counted(one.measured.facts.pes, 'GPU')}"


def errors_of(compared: Sequence[Compared]) -> list[Summary]:
    """Return the errors by contender and number of GPUs, then of all that nothing was chosen by."""
    rest = [one for one in compared if not calibrated(one)]
    found = summaries(compared, named)
    for contender in WAY_OF:
        those = [one for one in rest if named(one).startswith(contender)]
        found += [summary(f"{contender}, all but the calibration", those)] if those else []
    return found + ([summary("all but the calibration", rest)] if rest else [])
