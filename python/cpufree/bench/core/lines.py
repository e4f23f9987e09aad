"""The lines of the file of a run, by kind: what each holds, and what a report needs of it.

They are the objects of the JSON text, as TypedDicts: what is written is what is read. Lines of old
files lack what was added since; `Lines.of` refuses those that lack what every report needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from cpufree.errors import FileFormatError


class Header(TypedDict):
    """The first line: what was asked for, and where it runs."""

    kind: Literal["header"]
    benchmark: str
    schema: int
    date: str
    command: str
    seed: int
    commit: str | None
    modified: bool | None
    machine: dict[str, Any]
    versions: dict[str, str]
    configuration: dict[str, Any]


class Rate(TypedDict, total=False):
    """What was measured of the memory, or why not."""

    kind: Literal["rate"]
    what: str
    bytes_per_second: list[float]
    error: str


class End(TypedDict):
    """The last line: the share of the processor that other programs took."""

    kind: Literal["end"]
    date: str
    others: float | None


class OfGroup(TypedDict, total=False):
    """The group that a line is of: one benchmark has preconditioners, the other boundaries."""

    case: str
    precision: str
    preconditioner: str
    boundary: str
    pes: int


class OfTask(OfGroup):
    """The task in a group."""

    contender: str
    method: str
    variant: str


class Problem(OfGroup, total=False):
    """The system or the grid of a group."""

    kind: Literal["problem"]
    rows: int
    nnz: int
    distinct: int
    zeros: int
    """Stored entries that are 0; records up to 2026-11-25 do not tell."""
    source: str
    layout: dict[str, Any]
    shape: list[int]
    updates: int


class Limit(OfGroup):
    """The fixed number of iterations of a system, as it was cut."""

    kind: Literal["iterations"]
    iterations: int
    rtol: float
    by: str


class Reference(OfGroup):
    """What the values of a grid must be; the checksum is None where it is unknown."""

    kind: Literal["reference"]
    iterations: int
    checksum: str | None
    by: str


class Load(OfGroup):
    """What a contender says of itself once it has loaded."""

    kind: Literal["load"]
    contender: str
    family: str
    facts: dict[str, Any]


class Check(OfTask, total=False):
    """What came of the untimed solve of a task."""

    kind: Literal["check"]
    iterations: int
    reason: str
    residual: float | None
    note: str | None
    true_residual: float | None
    error: float | None
    checksum: str


class Solve(OfTask):
    """A timed solve."""

    seconds: float
    iterations: int
    split: dict[str, float | None] | None


class Measurement(Solve):
    """A repeat of a task."""

    kind: Literal["measurement"]
    round: int
    reason: str
    residual: float | None


class Split(Solve):
    """A solve that was done for its split alone."""

    kind: Literal["split"]


class Failure(OfGroup):
    """What could not be measured: a method and variant, or, where these are None, a contender."""

    kind: Literal["failure"]
    contender: str
    method: str | None
    variant: str | None
    error: str
    unsupported: bool


# What a report needs of each kind of line, whatever the benchmark, besides its group.
_NEEDED: dict[str, tuple[str, ...]] = {
    "header": ("benchmark", "machine", "versions", "configuration", "command", "date"),
    "rate": ("what",),
    "end": ("others",),
    "problem": (),
    "iterations": ("iterations",),
    "reference": ("checksum", "by"),
    "load": ("contender", "family", "facts"),
    "check": ("contender", "method", "variant"),
    "measurement": ("contender", "method", "variant", "round", "seconds", "iterations"),
    "split": ("contender", "method", "variant", "seconds", "iterations", "split"),
    "failure": ("contender", "method", "variant", "error"),
}
_OF_NO_GROUP = ("header", "rate", "end")


@dataclass
class Lines:
    """The lines of a file by kind, in the order of the file."""

    header: Header
    rates: list[Rate] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    finished: bool = False
    """The last line is that of the end: nothing was begun after it."""

    @classmethod
    def of(cls, lines: Iterable[Mapping[str, Any]], file: Path) -> Lines:
        """Return the lines of a file, of which the first one is the header.

        Lines of kinds that are not known here are left out.

        Raises:
            FileFormatError: a line lacks what reports need; it names the line.
        """
        first, *rest = lines
        _require(first, 1, file)
        found = cls(cast(Header, first))
        places: dict[str, list[Any]] = {
            "rate": found.rates,
            "problem": found.problems,
            "iterations": found.limits,
            "reference": found.references,
            "load": found.loads,
            "check": found.checks,
            "measurement": found.measurements,
            "split": found.splits,
            "failure": found.failures,
            "end": found.ends,
        }
        for number, line in enumerate(rest, 2):
            if line["kind"] in places:
                _require(line, number, file)
                places[line["kind"]].append(line)
                found.finished = line["kind"] == "end"
        return found


def _require(line: Mapping[str, Any], number: int, file: Path) -> None:
    """Raise FileFormatError where a line lacks what reports need."""
    needed = _NEEDED[line["kind"]]
    if line["kind"] not in _OF_NO_GROUP:
        needed = ("case", "precision", "pes", *needed)
    missing = [name for name in needed if name not in line]
    if missing:
        what = f"line {number}, a {line['kind']}, has no {', '.join(missing)}"
        raise FileFormatError(f"{file}: {what}", file)
