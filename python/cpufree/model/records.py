"""Predictions of iterations held against benchmark records (`cpufree bench cg`).

A record tells of each system how it lay on the GPUs, and how long solves took. The constants of
the machine file were taken from other programs and other matrices.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.errors import FileFormatError, InvalidInputError, unreadable
from cpufree.machine import Machine, of_gpu
from cpufree.model.solve import METHODS, SystemFacts, solve_seconds

PathLike = str | os.PathLike[str]
PRODUCT = "cpufree"
"""The contender whose solves are predicted."""


@dataclass(frozen=True)
class Measured:
    """Solves of a system by a method, as a record has them: without a preconditioner."""

    record: str
    case: str
    method: str
    facts: SystemFacts
    iterations: int
    seconds: float
    """The median of an iteration, with its share of the launch."""
    gpu: str = ""
    """Its name, where the record has one."""


@dataclass(frozen=True)
class Compared:
    """A measured time beside the predicted one."""

    measured: Measured
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured.seconds - 1.0


@dataclass(frozen=True)
class Comparison:
    """Records beside predictions."""

    lines: tuple[Compared, ...]

    def errors(self, pes: int | None = None) -> np.ndarray:
        """Return |error| of all lines, or of those on so many GPUs."""
        chosen = [one for one in self.lines if pes in (None, one.measured.facts.pes)]
        return np.abs([one.error for one in chosen])

    def pes(self) -> list[int]:
        """Return the numbers of GPUs."""
        return sorted({one.measured.facts.pes for one in self.lines})

    def ratios(self) -> tuple[float, float]:
        """Return measured over predicted: the ends of the middle 95 %."""
        low, high = np.quantile([1.0 / (1.0 + one.error) for one in self.lines], (0.025, 0.975))
        return float(low), float(high)

    def lost(self) -> np.ndarray:
        """Return for each system what is lost by the method with the least predicted time.

        Its measured time over that of the best method, less 1.
        """
        groups: dict[Any, list[Compared]] = defaultdict(list)
        for one in self.lines:
            groups[one.measured.record, one.measured.case, one.measured.facts.pes].append(one)
        return np.array([_lost(group) for group in groups.values()])

    def lost_with_gpus(self) -> np.ndarray:
        """Return the same of method and number of GPUs together, of systems on several numbers.

        Systems are known by their names, on the same kind of GPU.
        """
        groups: dict[Any, list[Compared]] = defaultdict(list)
        for one in self.lines:
            groups[one.measured.gpu, one.measured.case].append(one)
        several = [
            group for group in groups.values() if len({one.measured.facts.pes for one in group}) > 1
        ]
        return np.array([_lost(group) for group in several])


def _lost(group: Sequence[Compared]) -> float:
    """Return by how much the one with the least predicted time is slower than the fastest."""
    chosen = min(group, key=lambda one: one.predicted)
    return chosen.measured.seconds / min(one.measured.seconds for one in group) - 1.0


def compare(files: Sequence[PathLike], machine: Machine | None = None) -> Comparison:
    """Predict all solves of records, without a preconditioner and in double precision.

    `machine`: on which they ran; by default, the one with the GPUs that a record names.

    Raises:
        FileFormatError: a file cannot be read, or is no such record. InvalidInputError: they have
        no solve that can be predicted.
    """
    lines = []
    for file in files:
        known = machine or of_gpu(gpu_of(file))
        for one in read_record(file):
            found = solve_seconds(one.facts, one.method, known, one.iterations)
            lines.append(Compared(one, found.seconds / one.iterations))
    if not lines:
        names = ", ".join(map(str, files))
        raise InvalidInputError(f"{names}: no solve of {PRODUCT} without a preconditioner")
    return Comparison(tuple(lines))


def gpu_of(path: PathLike) -> str:
    """Return the name of the GPUs that a record was measured on, "" where it names none."""
    for line in record_lines(path):
        machine = line.get("machine") if line.get("kind") == "header" else None
        named = str(machine.get("gpus", "")) if isinstance(machine, dict) else ""
        return named.partition("× ")[2]
    return ""


def read_record(path: PathLike) -> list[Measured]:
    """Return the solves of a record of `cpufree bench cg`.

    Raises:
        FileFormatError: it cannot be read, or a line is not what such a record has.
    """
    systems: dict[tuple[str, int], dict[str, Any]] = {}
    plans: dict[tuple[str, int], dict[str, Any]] = {}
    times: dict[tuple[str, int, str, int], list[float]] = defaultdict(list)
    gpu = gpu_of(path)
    for number, line in enumerate(record_lines(path), 1):
        try:
            if line["kind"] not in ("problem", "load", "measurement") or _is_other(line):
                continue
            key = (str(line["case"]), int(line["pes"]))
            if line["kind"] == "problem":
                systems[key] = line
            elif line["kind"] == "load":
                plans[key] = line["facts"]["plan"]
            elif line["method"] in METHODS and line["variant"] == "full":
                count = int(line["iterations"])
                solve = (*key, str(line["method"]), count)
                times[solve].append(float(line["seconds"]) / count)
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise FileFormatError(f"{path}, line {number}: {error!r} in a record", path) from error
    return [
        Measured(
            Path(path).name,
            case,
            method,
            _facts(systems[case, pes], plans[case, pes], pes),
            count,
            float(np.median(seconds)),
            gpu,
        )
        for (case, pes, method, count), seconds in times.items()
        if (case, pes) in systems and (case, pes) in plans
    ]


def record_lines(path: PathLike) -> Iterator[Any]:
    """Yield the lines of a record.

    Raises:
        FileFormatError: it cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        yield from (json.loads(line) for line in text.splitlines())
    except OSError as error:
        raise unreadable(f"{path}: cannot be read: {error.strerror}", path, error) from error
    except ValueError as error:
        raise FileFormatError(f"{path}: not a record in JSON lines: {error}", path) from error


def _is_other(line: dict[str, Any]) -> bool:
    plain = (line["precision"], line["preconditioner"]) == ("double", "none")
    return not plain or bool(line.get("contender", PRODUCT) != PRODUCT)


def _facts(system: dict[str, Any], plan: dict[str, Any], pes: int) -> SystemFacts:
    return SystemFacts(
        int(system["rows"]),
        int(system["nnz"]),
        pes,
        float(plan["matrix_bytes"]),
        int(plan["halo_values"]),
        plan["halo"] != "stores",
        float(plan["imbalance"]),
        block_packets=plan.get("block_halo") == "packets",
        resident_vectors=plan.get("resident_vectors"),
        resident_matrix=plan.get("resident_matrix"),
    )
