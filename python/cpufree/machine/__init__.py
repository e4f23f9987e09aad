"""What machines are like, one JSON file each: the numbers that choices of engines rest on.

>>> from cpufree.machine import load
>>> load("h200").number("solver.memory_bandwidth", "B/s")
3000000000000.0

Every entry has a value, its unit, what it is of, and its provenance. Values are numbers, or tables
of numbers by whole numbers, such as latencies by the number of GPUs. A machine that is "like"
another has the entries of that one where it has none of its own.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT = "h200"
"""The machine whose numbers hold where nobody has measured."""


@dataclass(frozen=True)
class Entry:
    """A number, or a table of numbers, that describes a machine."""

    value: float | Mapping[int, float]
    unit: str
    """s, 1/s, B, B/s; 1 for counts."""
    what: str
    provenance: str
    """The record or command that it comes from, or that it is an estimate."""


@dataclass(frozen=True)
class Machine:
    """The entries of a machine by name.

    Raises KeyError for a name that is not there, ValueError for another unit or kind of value.
    """

    machine: str
    gpu: str
    """The name that the driver gives to its GPUs."""
    entries: Mapping[str, Entry]

    def number(self, name: str, unit: str) -> float:
        """Return a number that has this unit."""
        value = self._entry(name, unit).value
        if isinstance(value, Mapping):
            raise ValueError(f"{name} of {self.machine} is a table, not a number")
        return value

    def table(self, name: str, unit: str) -> dict[int, float]:
        """Return a table of numbers that have this unit."""
        value = self._entry(name, unit).value
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} of {self.machine} is a number, not a table")
        return dict(value)

    def _entry(self, name: str, unit: str) -> Entry:
        entry = self.entries[name]
        if entry.unit != unit:
            raise ValueError(f"{name} of {self.machine} is in {entry.unit}, not in {unit}")
        return entry


@functools.cache
def load(name: str = DEFAULT) -> Machine:
    """Return the machine in NAME.json of this folder.

    Raises:
        FileNotFoundError: there is none. ValueError: it is damaged.
    """
    file = Path(__file__).with_name(f"{name}.json")
    return parse(file.read_text(encoding="utf-8"), str(file))


@functools.cache
def of_gpu(name: str) -> Machine:
    """Return the machine with GPUs whose name begins so; the default where nobody has measured any.

    >>> of_gpu("NVIDIA H100 80GB HBM3").gpu
    'NVIDIA H100'
    """
    return next((one for one in every() if name.startswith(one.gpu)), load())


def every() -> list[Machine]:
    """Return all machines that have a file, by its name."""
    return [load(file.stem) for file in sorted(Path(__file__).parent.glob("*.json"))]


def parse(text: str, origin: str) -> Machine:
    """Return the machine that a JSON text describes; ValueError, with `origin`, for another one."""
    try:
        content = json.loads(text)
        entries = dict(load(content["like"]).entries) if "like" in content else {}
        entries |= {
            str(key): Entry(
                _value(one["value"]), str(one["unit"]), str(one["what"]), str(one["provenance"])
            )
            for key, one in content["entries"].items()
        }
        return Machine(str(content["machine"]), str(content["gpu"]), entries)
    except (KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        raise ValueError(f"{origin}: not the description of a machine: {error!r}") from error


def _value(given: Any) -> float | dict[int, float]:
    if isinstance(given, dict):
        return {int(key): float(number) for key, number in given.items()}
    return float(given)
