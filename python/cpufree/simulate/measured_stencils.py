"""Simulated against measured: Jacobi iterations that the host drives, on 2 and 8 GPUs.

Baselines exchange halos in each iteration, as the simulated program does. That has no values which
stay on chip, nor several iterations in a pass: persistent kernels are left out.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpufree.errors import FileFormatError
from cpufree.machine.clusters import Cluster
from cpufree.simulate.measured import Summary
from cpufree.simulate.programs import jacobi
from cpufree.simulate.run import run

STENCIL_RECORDS = ("stencil-baselines-2x-2026-11-23.jsonl", "stencil-baselines-8x-2026-11-22.jsonl")
STENCIL_WAYS = {"copy": "hdn", "nccl": "nccl"}
"""Contender -> the way that it is simulated with."""
ITEM_BYTES = {"single": 4, "double": 8}


@dataclass(frozen=True)
class ComparedJacobi:
    """A measured iteration and the simulated one [s]."""

    contender: str
    case: str
    pes: int
    seconds: float
    simulated: float

    @property
    def error(self) -> float:
        """Relative error."""
        return self.simulated / self.seconds - 1


def compare_stencils(
    cluster: Cluster,
    folder: str | os.PathLike[str],
    records: Sequence[str] = STENCIL_RECORDS,
) -> list[ComparedJacobi]:
    """Simulate the squares of points of records that are in the folder.

    Raises:
        FileFormatError: a record is damaged.
    """
    found = []
    for file in (Path(folder) / name for name in records):
        if not file.is_file():
            continue
        for (contender, case, pes, precision), (points, seconds) in _times_of(file).items():
            program = jacobi(cluster, STENCIL_WAYS[contender], pes, points, ITEM_BYTES[precision])
            simulated = run(program.graph).per_round
            found.append(ComparedJacobi(contender, case, pes, seconds, simulated))
    return found


def _times_of(file: Path) -> dict[tuple[str, str, int, str], tuple[int, float]]:
    """Return by contender, case, PEs and precision the side of a PE's square, and the seconds."""
    sides: dict[Any, int] = {}
    times: dict[Any, list[float]] = defaultdict(list)
    try:
        for text in file.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if line["kind"] == "problem" and len(line["shape"]) == 2:
                key = (line["case"], line["pes"], line["precision"])
                sides[key] = math.isqrt(math.prod(line["shape"]) // line["pes"])
            elif line["kind"] == "measurement" and line["variant"] == "full":
                key = (line["case"], line["pes"], line["precision"])
                if line["contender"] in STENCIL_WAYS and key in sides:
                    one = line["seconds"] / line["iterations"]
                    times[(line["contender"], *key)].append(one)
        return {key: (sides[key[1:]], statistics.median(all_)) for key, all_ in times.items()}
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{file}: no record of stencils: {error!r}", file) from error


def stencil_summaries(compared: Sequence[ComparedJacobi]) -> list[Summary]:
    """Return the errors by contender and number of GPUs."""
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for one in compared:
        groups[one.contender, one.pes].append(one.error)
    return [
        Summary(
            f"Jacobi, {contender}, {pes} GPUs",
            len(errors),
            statistics.median(map(abs, errors)),
            statistics.fmean(errors),
            max(map(abs, errors)),
        )
        for (contender, pes), errors in sorted(groups.items())
    ]
