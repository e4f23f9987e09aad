"""What a run of conjugate gradients measures: its axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cpufree.bench.cg.problems import Case
from cpufree.bench.core.entry import Entry
from cpufree.bench.core.plan import Plan, Task


@dataclass(frozen=True)
class Group:
    """What is compared with one another, interleaved: a system on a number of PEs."""

    case: str
    precision: str
    preconditioner: str
    pes: int

    def key(self) -> dict[str, Any]:
        """Return the group as part of a line of the file."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, kw_only=True)
class Configuration(Plan):
    """The axes of a run of conjugate gradients, and how it measures."""

    cases: tuple[Case, ...]
    methods: tuple[str, ...]
    preconditioners: tuple[str, ...]
    iterations: int | None
    """Fixed for all; None: to rtol."""
    rtol: float
    max_iterations: int
    partition: str

    def case(self, name: str) -> Case:
        """Return the case of this name."""
        return next(case for case in self.cases if case.name == name)

    def groups(self) -> list[Group]:
        """Return the groups, a matrix after the other."""
        return [
            Group(case.name, precision, preconditioner, pes)
            for case in self.cases
            for precision in self.precisions
            for preconditioner in self.preconditioners
            for pes in self.pes
        ]

    def tasks(self, entries: Iterable[Entry]) -> list[Task]:
        """Return what is asked for in each group."""
        return [
            Task(entry.name, method, variant)
            for entry in entries
            for method in self.methods
            if method in entry.methods
            for variant in self.variants
        ]
