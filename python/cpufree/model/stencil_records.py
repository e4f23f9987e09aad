"""Predictions of stencils held against benchmark records (`cpufree bench stencil`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.errors import FileFormatError
from cpufree.machine import Machine, of_gpu
from cpufree.model.records import PRODUCT, PathLike, gpu_of, record_lines
from cpufree.model.stencils import StencilFacts, stencil_seconds

BYTES = {"single": 4, "double": 8}
ON_CHIP = ("registers", "registers_3d", "bricks")
"""Sweeps whose values stay in registers; bricks: what registers_3d was called before."""


@dataclass(frozen=True)
class ComparedStencil:
    """The measured time of an iteration beside the predicted one [s]."""

    record: str
    case: str
    facts: StencilFacts
    seconds: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.seconds - 1.0


def is_stencil_record(path: PathLike) -> bool:
    """Return whether a file is a record of `cpufree bench stencil`."""
    header: Any = next(iter(record_lines(path)), {})
    return isinstance(header, dict) and header.get("benchmark") == "stencil"


def compare_stencils(
    files: Sequence[PathLike], machine: Machine | None = None
) -> list[ComparedStencil]:
    """Predict all grids of records; `machine` as in `cpufree.model.records.compare`.

    Raises:
        FileFormatError: a file cannot be read, or is no such record.
    """
    found = []
    for file in files:
        known = machine or of_gpu(gpu_of(file))
        for case, facts, seconds in read_stencils(file):
            predicted = stencil_seconds(facts, known).seconds
            found.append(ComparedStencil(Path(file).name, case, facts, seconds, predicted))
    return found


def read_stencils(path: PathLike) -> list[tuple[str, StencilFacts, float]]:
    """Return the grids of a record that GPUs iterated on: name, facts, seconds of an iteration.

    Raises:
        FileFormatError: it cannot be read, or a line is not what such a record has.
    """
    shapes: dict[tuple[Any, ...], tuple[int, ...]] = {}
    plans: dict[tuple[Any, ...], dict[str, Any]] = {}
    times: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for number, line in enumerate(record_lines(path), 1):
        try:
            if line["kind"] not in ("problem", "load", "measurement"):
                continue
            key = (line["case"], line["precision"], line["boundary"], int(line["pes"]))
            if line["kind"] == "problem":
                shapes[key] = tuple(map(int, line["shape"]))
            elif line["contender"] != PRODUCT:
                continue
            elif line["kind"] == "load":
                plans[key] = line["facts"]
            elif line["variant"] == "full":
                times[key].append(float(line["seconds"]) / int(line["iterations"]))
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise FileFormatError(f"{path}, line {number}: {error!r} in a record", path) from error
    found = []
    for key, seconds in times.items():
        if key not in shapes or plans.get(key, {}).get("engine") != "cuda_p2p":
            continue
        plan = plans[key]["plan"]
        facts = StencilFacts(
            shapes[key],
            key[3],
            BYTES[key[1]],
            plan["sweep"] in ON_CHIP,
            int(plan["halo_steps"]),
        )
        found.append((f"{key[0]}, {key[1]}", facts, float(np.median(seconds))))
    return found
