"""Benchmark records (`cpufree bench cg`, `cpufree bench stencil`), and predictions beside them.

A record tells of each system and grid how it lay on the GPUs, and how long iterations took. The
constants of machine files were taken from other programs and other matrices.
"""

from __future__ import annotations

import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpufree.errors import FileFormatError, InvalidInputError, unreadable
from cpufree.machine import Machine, of_gpu
from cpufree.model.solve import METHODS, SystemFacts, solve_seconds
from cpufree.model.stencils import StencilFacts, stencil_seconds
from cpufree.text import counted

PathLike = str | os.PathLike[str]
PRODUCT = "cpufree"
"""The contender whose iterations are predicted, and whose plans tell how systems lie."""
BYTES = {"single": 4, "double": 8}
ON_CHIP = ("registers", "registers_3d", "bricks")
"""Sweeps whose values stay in registers; bricks: what registers_3d was called before."""


@dataclass(frozen=True)
class Measured:
    """What an iteration took [s], with its share of the launch: a median."""

    record: str
    case: str
    contender: str
    method: str
    facts: SystemFacts | StencilFacts
    seconds: float
    iterations: int
    gpu: str = ""
    """Its name, where the record has one."""
    product_seconds: float | None = None
    """Of baselines: their own measurement of their product."""


@dataclass(frozen=True)
class Compared:
    """A measured time beside the predicted, or simulated, one."""

    measured: Measured
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured.seconds - 1.0


@dataclass(frozen=True)
class Summary:
    """Relative errors of some times."""

    name: str
    count: int
    median: float
    """Of their sizes."""
    mean: float
    """With their signs."""
    largest: float


def summary(name: str, compared: Sequence[Compared]) -> Summary:
    """Return the errors of some times; of at least one."""
    errors = [one.error for one in compared]
    sizes = [abs(error) for error in errors]
    median, mean = statistics.median(sizes), statistics.fmean(errors)
    return Summary(name, len(errors), median, mean, max(sizes))


def summaries(compared: Iterable[Compared], name: Callable[[Compared], str]) -> list[Summary]:
    """Return the errors of times that have the same name, by names."""
    groups: dict[str, list[Compared]] = defaultdict(list)
    for one in compared:
        groups[name(one)].append(one)
    return [summary(*group) for group in sorted(groups.items())]


def by_gpus(one: Compared) -> str:
    """Return what a time is of, and on how many GPUs."""
    what = "systems" if isinstance(one.measured.facts, SystemFacts) else "grids"
    return f"{what}, {counted(one.measured.facts.pes, 'GPU')}"


def compare(files: Sequence[PathLike], machine: Machine | None = None) -> list[Compared]:
    """Predict all iterations of records: of systems without a preconditioner, and of grids.

    `machine`: on which they ran; by default, the one with the GPUs that a record names.

    Raises:
        FileFormatError: a file cannot be read, or is no such record. InvalidInputError: they have
        nothing that can be predicted.
    """
    found = []
    for one in (one for file in files for one in read_record(file)):
        known = machine or of_gpu(one.gpu)
        if isinstance(one.facts, StencilFacts):
            seconds = stencil_seconds(one.facts, known).seconds
        else:
            whole = solve_seconds(one.facts, one.method, known, one.iterations).seconds
            seconds = whole / one.iterations
        found.append(Compared(one, seconds))
    if not found:
        names = ", ".join(map(str, files))
        raise InvalidInputError(f"{names}: no solve of {PRODUCT} without a preconditioner, no grid")
    return found


def read_record(path: PathLike, contenders: Sequence[str] = (PRODUCT,)) -> list[Measured]:
    """Return the iterations of a record: in full, of systems in double precision.

    Raises:
        FileFormatError: it cannot be read, or a line is not what such a record has.
    """
    problems: dict[Any, dict[str, Any]] = {}
    loads: dict[Any, dict[str, Any]] = {}
    times: dict[Any, list[float]] = defaultdict(list)
    gpu, lines = "", 0
    try:
        for line in record_lines(path):
            lines += 1
            if line["kind"] == "header":
                gpu = str((line.get("machine") or {}).get("gpus", "")).partition("× ")[2]
            if line["kind"] not in ("problem", "load", "measurement") or _is_other(line):
                continue
            place = (line["case"], line["precision"], line.get("boundary"), int(line["pes"]))
            if line["kind"] == "problem":
                problems[place] = line
            elif line["kind"] == "load":
                loads[place, line["contender"]] = line["facts"]
            elif line["variant"] == "full" and line["contender"] in contenders:
                count = int(line["iterations"])
                series = place, line["contender"], line["method"], count
                times[series].append(float(line["seconds"]) / count)
        found = []
        for (place, contender, method, count), seconds in times.items():
            facts = _facts(problems.get(place), loads.get((place, PRODUCT)), contender)
            own = loads.get((place, contender), {})
            if facts is not None:
                product = own["spmv_seconds"][own["spmv"]] if "spmv_seconds" in own else None
                told = Path(path).name, place[0], contender, method, facts
                took = statistics.median(seconds), count, gpu, product
                found.append(Measured(*told, *took))
        return found
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise FileFormatError(f"{path}, line {lines}: {error!r} in a record", path) from error


def record_lines(path: PathLike) -> Iterator[Any]:
    """Yield the lines of a record; FileFormatError where it cannot be read."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        yield from [json.loads(line) for line in text.splitlines()]
    except OSError as error:
        raise unreadable(f"{path}: cannot be read: {error.strerror}", path, error) from error
    except ValueError as error:
        raise FileFormatError(f"{path}: not a record in JSON lines: {error}", path) from error


def _is_other(line: dict[str, Any]) -> bool:
    """Return whether a line is of a system that is not predicted."""
    if "boundary" in line:
        return False
    others = line["kind"] == "measurement" and line["method"] not in METHODS
    return others or (line["precision"], line["preconditioner"]) != ("double", "none")


def _facts(
    problem: dict[str, Any] | None, load: dict[str, Any] | None, contender: str
) -> SystemFacts | StencilFacts | None:
    """Return how a system or a grid lay, None where that is not known or a CPU had it."""
    if problem is None:
        return None
    plan, pes = (load or {}).get("plan"), int(problem["pes"])
    if "shape" in problem:
        grid = tuple(map(int, problem["shape"])), pes, BYTES[problem["precision"]]
        if contender != PRODUCT:
            return StencilFacts(*grid)
        if plan is None or (load or {}).get("engine") != "cuda_p2p":
            return None
        return StencilFacts(*grid, plan["sweep"] in ON_CHIP, int(plan["halo_steps"]))
    if plan is None:
        return None
    return SystemFacts(
        int(problem["rows"]),
        int(problem["nnz"]),
        pes,
        float(plan["matrix_bytes"]),
        int(plan["halo_values"]),
        plan["halo"] != "stores",
        float(plan["imbalance"]),
        block_packets=plan.get("block_halo") == "packets",
        resident_vectors=plan.get("resident_vectors"),
        resident_matrix=plan.get("resident_matrix"),
    )
