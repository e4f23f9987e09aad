"""What machines are like: the numbers that choices and predictions of engines rest on.

>>> from cpufree.machine import load
>>> load("h200").number("solver.chip_bandwidth", "B/s")
28000000000000.0

They are the section `choices` of machine files (`cpufree.machine.files`). A call that knows the
GPUs takes the machine `of_gpu`: the one that CPUFREE_MACHINE names, else the user's own file for
these GPUs, which `cpufree model calibrate` writes, else the one that comes along; where there is
none, the default machine's numbers hold, and `known` is False.
"""

from __future__ import annotations

import functools
import os
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cpufree import env
from cpufree.machine import files
from cpufree.machine.files import Field, Quantity

DEFAULT = "h200"
"""The machine whose numbers hold where there are no measurements."""
PLANNED = ("gpu.", "solver.block", "solver.cached", "solver.kept", "solver.least_kept", "stencil.")
"""Beginnings of the names of numbers that planners in C++ go by."""


@dataclass(frozen=True)
class Machine:
    """The choices of a machine by name.

    Raises KeyError for a name that is not there, ValueError for another unit or kind of value.
    """

    machine: str
    gpu: str
    """The name that the driver gives to its GPUs."""
    entries: Mapping[str, Quantity]
    origin: str = ""
    """The file, or the name of the one that comes along."""
    known: bool = True
    """Whether it was measured on such GPUs."""

    def number(self, name: str, unit: str) -> float:
        """Return a number that has this unit."""
        found = self._entry(name, unit)
        if found.table is not None:
            raise ValueError(f"{name} of {self.machine} is a table, not a number")
        return found.value

    def table(self, name: str, unit: str) -> dict[int, float]:
        """Return a table of numbers that have this unit."""
        found = self._entry(name, unit)
        if found.table is None:
            raise ValueError(f"{name} of {self.machine} is a number, not a table")
        return dict(found.table)

    def at(self, name: str, unit: str, place: float) -> float:
        """Return a number, of a table that at a place: on the line through the nearest two.

        Beyond its ends a table goes on as it ends.

        >>> load("h100").at("setup.context", "s", 3), load("h100").at("setup.context", "s", 16)
        (0.615, 2.0)
        """
        found = self._entry(name, unit)
        table = found.table or {0: found.value}
        after = bisect_left(known := sorted(table), place)
        if after in (0, len(known)):
            return table[known[max(after - 1, 0)]]
        low, high = known[after - 1], known[after]
        return table[low] + (table[high] - table[low]) * (place - low) / (high - low)

    def _entry(self, name: str, unit: str) -> Quantity:
        entry = self.entries[name]
        if entry.unit != unit:
            raise ValueError(f"{name} of {self.machine} is in {entry.unit}, not in {unit}")
        return entry


def load(name: str = DEFAULT) -> Machine:
    """Return the machine of that name, or of that file.

    Raises:
        InvalidInputError: neither is there. FileFormatError: it is damaged.
    """
    path = os.path.abspath(name) if os.path.exists(name) else ""
    return _load(name, os.stat(path).st_mtime_ns if path else 0)


@functools.cache
def _load(name: str, changed: int) -> Machine:
    return parse(files.find(name, "choices"), name)


def of_gpu(name: str) -> Machine:
    """Return the machine with GPUs whose name begins so, "": of which nothing is known yet.

    Then it is the one that the user has a file of, if there is just one with GPUs.

    >>> of_gpu("NVIDIA H100 80GB HBM3").gpu
    'NVIDIA H100'
    """
    if said := env.machine_file():
        return load(said)
    own = [own_file(name)] if name else sorted(env.machine_folder().glob("nvidia-*.json"))
    if len(own) == 1 and own[0].exists():
        return load(str(own[0]))
    found = load(like(name))
    return replace(found, known=not name or name.startswith(found.gpu))


def like(gpu: str) -> str:
    """Return the name of the machine that comes along for such GPUs, or of the default one."""
    found = (one for one in files.names("choices") if gpu and gpu.startswith(load(one).gpu))
    return next(found, DEFAULT)


def own_file(gpu: str) -> Path:
    """Return where the user's own file for machines with such GPUs is kept."""
    return env.machine_folder() / (re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".json")


def possible() -> list[Machine]:
    """Return all machines that this one may be, before its GPUs are looked at."""
    if said := env.machine_file():
        return [load(said)]
    own = sorted(env.machine_folder().glob("*.json"))
    return [load(str(file)) for file in own] or [load(name) for name in files.names("choices")]


def least(name: str) -> int:
    """Return a count before GPUs are looked at: the least of all machines that this may be."""
    return int(min(one.number(name, "1") for one in possible()))


def planner_numbers(known: Machine) -> dict[str, float]:
    """Return the numbers that planners in C++ go by (`tools/machine_header.py`)."""
    return {
        name: one.value
        for name, one in known.entries.items()
        if name.startswith(PLANNED) and one.table is None
    }


def parse(top: Field, origin: str = "") -> Machine:
    """Return the machine that the content of a file describes; FileFormatError for another one."""
    like = top.optional("like")
    entries = dict(load(top.at("like").text()).entries) if like else {}
    entries |= {name: place.quantity() for name, place in top.items_of("choices")}
    return Machine(top.at("machine").text(), top.at("gpu").text(), entries, origin)
