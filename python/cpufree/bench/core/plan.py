"""What every run measures: its axes, and the order, which a seed shuffles."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cpufree.bench.core.entry import Entry

VARIANTS = ("full", "no-compute", "no-comm")


class Keyed(Protocol):
    """A part of the key of a line."""

    def key(self) -> dict[str, Any]:
        """Return it as part of a line of the file."""


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


def matches(line: Mapping[str, object], *parts: Keyed) -> bool:
    """Return whether a line of the file is of this group, or this task."""
    keys = {name: value for part in parts for name, value in part.key().items()}
    return all(line.get(name) == value for name, value in keys.items())
