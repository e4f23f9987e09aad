"""What is to be measured: the axes of a run, and the order, which a seed shuffles."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .contenders import Entry
from .problems import Case

VARIANTS = ("full", "no-compute", "no-comm")


class Keyed(Protocol):
    """A part of the key of a line."""

    def key(self) -> dict[str, Any]:
        """Return it as part of a line of the file."""


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


@dataclass(frozen=True)
class Task:
    """What a contender is asked for in a group."""

    contender: str
    method: str
    variant: str

    def key(self) -> dict[str, Any]:
        """Return the task as part of a line of the file."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the configurations of all benchmarks have."""

    contenders: tuple[str, ...]
    variants: tuple[str, ...]
    pes: tuple[int, ...]
    precisions: tuple[str, ...]
    repeats: int
    seed: int
    gpus: tuple[int, ...] | None
    """None: on the CPU."""
    timeout: float
    tuning: dict[str, dict[str, Any]]
    peers: dict[str, list[str]]
    """Commands of contenders that are not built in."""

    def groups(self) -> Sequence[Any]:
        """Return what is measured one after the other; each has key(), case and pes."""
        raise NotImplementedError

    def tasks(self, entries: Iterable[Entry]) -> list[Task]:
        """Return what is asked for in each group."""
        raise NotImplementedError

    def rounds(self, group: Keyed, tasks: Sequence[Task]) -> Iterator[tuple[int, list[Task]]]:
        """Yield each round and its tasks in random order, the same whenever it is asked for."""
        for number in range(self.repeats):
            order = random.Random(f"{self.seed} {group} {number}")
            yield number, order.sample(list(tasks), len(tasks))


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


def matches(line: dict[str, Any], *parts: Keyed) -> bool:
    """Return whether a line of the file is of this group, or this task."""
    keys = {name: value for part in parts for name, value in part.key().items()}
    return all(line.get(name) == value for name, value in keys.items())
