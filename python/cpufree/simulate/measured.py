"""Simulated against measured: the records of benchmarks of CG on 1 to 8 GPUs."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.errors import FileFormatError, InvalidInputError
from cpufree.machine.clusters import Cluster, load_cluster
from cpufree.simulate.halo import VALUE, Shares
from cpufree.simulate.krylov import METHODS, Traffic, krylov
from cpufree.simulate.run import run
from cpufree.simulate.way import Messages

RECORDS = (
    "cg-1x-2026-11-24.jsonl", "cg-2x-sorted-2026-11-23.jsonl", "cg-4x-2026-11-22.jsonl",
    "cg-8x-2026-11-22.jsonl", "cg-1x-2026-11-25.jsonl", "cg-1x-rest-2026-11-25.jsonl",
    "cg-2x-2026-11-25.jsonl",
)  # fmt: skip
CLUSTERS = {"NVIDIA H100": "h100"}
"""The beginning of a GPU's name -> the machine that it is simulated on; else the one given."""
WAY_OF = {"cpufree": "native", "nccl": "nccl", "mpi": "hdn"}
"""Contender of a benchmark -> the way of communication that it is simulated with."""
CALIBRATED = ("cg-2x-sorted-2026-11-23.jsonl", "cpufree", "prcg")
"""Record, contender and method that constants of the machine h200 were chosen by."""
ROW_BYTES = 2 * VALUE
"""Of a row of a product: operand and result; the rest is in the bytes of the matrix."""
NEIGHBOURS = 4
"""A record has the values of all halos together, not who sends to whom: N PEs, at most."""
LARGEST_ERROR = 0.10


@dataclass(frozen=True)
class Case:
    """A measured time. Seconds of an iteration."""

    record: str
    matrix: str
    contender: str
    method: str
    pes: int
    rows: int
    entries: int
    halo_values: int
    matrix_bytes: float
    product_seconds: float | None
    """Of baselines: their own measurement of their product."""
    seconds: float
    gpu: str = ""
    """Its name, where the record has one."""


@dataclass(frozen=True)
class Compared:
    """A measured time and the simulated one."""

    case: Case
    simulated: float

    @property
    def error(self) -> float:
        """Relative error."""
        return self.simulated / self.case.seconds - 1

    @property
    def calibrated(self) -> bool:
        """Whether constants were chosen by this time."""
        return (self.case.record, self.case.contender, self.case.method) == CALIBRATED


def read_cases(folder: str | os.PathLike[str], records: Sequence[str] = RECORDS) -> list[Case]:
    """Return the measured times of records.

    Raises:
        InvalidInputError: none of the records is there. FileFormatError: one is damaged.
    """
    there = [Path(folder) / name for name in records if (Path(folder) / name).is_file()]
    if not there:
        raise InvalidInputError(f"{folder}: none of the records {', '.join(records)}")
    return [case for file in there for case in _cases_of(file)]


def _cases_of(file: Path) -> list[Case]:
    problems: dict[tuple[str, int], Mapping[str, Any]] = {}
    facts: dict[tuple[str, int, str], Mapping[str, Any]] = {}
    times: dict[tuple[str, int, str, str], list[float]] = defaultdict(list)
    gpu = ""
    try:
        for line in file.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            if one["kind"] == "header":
                gpu = str(one.get("machine", {}).get("gpus", "")).partition("× ")[2]
            elif one["kind"] == "problem":
                problems[one["case"], one["pes"]] = one
            elif one["kind"] == "load":
                facts[one["case"], one["pes"], one["contender"]] = one["facts"]
            elif one["kind"] == "measurement" and one["variant"] == "full":
                key = (one["case"], one["pes"], one["contender"], one["method"])
                times[key].append(one["seconds"] / one["iterations"])
        return [
            dataclasses.replace(_case(file.name, key, problems, facts, seconds), gpu=gpu)
            for key, seconds in times.items()
            if key[2] in WAY_OF and (*key[:2], "cpufree") in facts and key[3] in METHODS
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{file}: no record of a benchmark of CG: {error!r}", file) from error


def _case(
    record: str, key: tuple[str, int, str, str], problems: Mapping[Any, Any],
    facts: Mapping[Any, Any], seconds: list[float],
) -> Case:  # fmt: skip
    matrix, pes, contender, method = key
    problem = problems[matrix, pes]
    own = facts[matrix, pes, contender]
    return Case(
        record=record, matrix=matrix, contender=contender, method=method, pes=pes,
        rows=problem["rows"], entries=problem["nnz"],
        halo_values=problem["layout"].get("halo_values") or 0,
        matrix_bytes=facts[matrix, pes, "cpufree"]["plan"]["matrix_bytes"],
        product_seconds=own["spmv_seconds"][own["spmv"]] if "spmv_seconds" in own else None,
        seconds=statistics.median(seconds),
    )  # fmt: skip


def shares_of_case(case: Case) -> Shares:
    """Return equal shares; the halo goes to up to four neighbours of each PE."""
    steps = (1, -1, 2, -2)[: min(case.pes - 1, NEIGHBOURS)]
    src = np.repeat(np.arange(case.pes), len(steps))
    dst = (src + np.tile(steps, case.pes)) % case.pes if steps else src
    per_pe = case.entries / case.pes
    # Each ghost makes about one row of the other side a boundary row.
    boundary = min(case.halo_values / case.rows, 0.9) * per_pe
    bytes_ = VALUE * case.halo_values / max(len(src), 1)
    return Shares(
        rows=np.full(case.pes, case.rows / case.pes),
        entries=np.full(case.pes, per_pe),
        boundary_entries=np.full(case.pes, boundary),
        halo=Messages(src, dst, np.full(len(src), bytes_)),
        model="values of the record, on up to four neighbours",
    )


def compare(cluster: Cluster, cases: Iterable[Case]) -> list[Compared]:
    """Simulate measured cases, each on the machine of its GPUs, or else on this one."""
    found = []
    for case in cases:
        mine = next((load_cluster(name) for gpu, name in CLUSTERS.items()
                     if case.gpu.startswith(gpu)), cluster)  # fmt: skip
        traffic = Traffic(case.matrix_bytes / case.entries, ROW_BYTES, case.product_seconds)
        program = krylov(mine, WAY_OF[case.contender], shares_of_case(case), case.method, 8,
                         traffic)  # fmt: skip
        found.append(Compared(case, run(program.graph).per_round))
    return found


@dataclass(frozen=True)
class Summary:
    """Errors of some cases."""

    name: str
    count: int
    median: float
    """Of the absolute relative errors."""
    mean: float
    """Of the relative errors, with their signs."""
    largest: float


def summary(name: str, compared: Sequence[Compared]) -> Summary:
    """Return the errors of some cases; of at least one."""
    errors = [one.error for one in compared]
    return Summary(
        name, len(errors), statistics.median(map(abs, errors)), statistics.fmean(errors),
        max(map(abs, errors)),
    )  # fmt: skip


def summaries(compared: Sequence[Compared]) -> list[Summary]:
    """Return the errors by contender and number of GPUs, then of all that nothing was chosen by."""
    groups: dict[tuple[str, int], list[Compared]] = defaultdict(list)
    for one in compared:
        groups[one.case.contender, one.case.pes].append(one)
    found = [
        summary(f"{contender}, {pes} GPU{'s' if pes > 1 else ''}", group)
        for (contender, pes), group in sorted(groups.items())
    ]
    rest = [one for one in compared if not one.calibrated]
    for contender in WAY_OF:
        of_one = [one for one in rest if one.case.contender == contender]
        if of_one:
            found.append(summary(f"{contender}, all but the calibration", of_one))
    return found
