"""Where the time goes: of a set-up, of a solve, of a whole command."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from cpufree.host import read_text

REST = "_rest"
"""Ends the name of what a phase takes besides its parts."""


class Laps:
    """Seconds of what is done one after the other, by name.

    Args:
        begin: when the first lap began, in seconds of `time.perf_counter`; None: now.
    """

    def __init__(self, begin: float | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._begin = self._last = time.perf_counter() if begin is None else begin

    def lap(self, name: str, parts: Mapping[str, float] | None = None) -> None:
        """Note what has passed since the lap before, or since this was made, and its parts."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now
        for part, seconds in (parts or {}).items():
            self.seconds[f"{name}_{part}"] = seconds

    def total(self) -> float:
        """Return what has passed since this was made."""
        return time.perf_counter() - self._begin

    def named(self, whole: str) -> dict[str, float]:
        """Return the laps as parts of a whole: "setup_join" and so on."""
        return {f"{whole}_{name}": seconds for name, seconds in self.seconds.items()}


def disjoint(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return phases that do not overlap, in order; their sum is that of the wholes.

    "setup_check" and "setup_place" are parts of "setup". In the place of a phase that has parts are
    these, and what it takes besides as "setup_rest".

    >>> disjoint({"setup": 3.0, "setup_check": 1.0, "setup_place": 1.5, "solve": 2.0})
    {'setup_check': 1.0, 'setup_place': 1.5, 'setup_rest': 0.5, 'solve': 2.0}
    """
    parts: dict[str, list[str]] = {name: [] for name in seconds}
    wholes: list[str] = []
    for name in seconds:
        above = _whole_of(name, seconds)
        (parts[above] if above else wholes).append(name)
    found: dict[str, float] = {}

    def add(name: str) -> None:
        for part in parts[name]:
            add(part)
        own = seconds[name] - sum(seconds[part] for part in parts[name])
        if own > 0.0 or not parts[name]:
            found[name + REST if parts[name] else name] = own

    for name in wholes:
        add(name)
    return found


def _whole_of(name: str, names: Mapping[str, float]) -> str:
    """Return the least phase that this one is a part of, "" where there is none."""
    whole = name.rpartition("_")[0]
    while whole and whole not in names:
        whole = whole.rpartition("_")[0]
    return whole


def process_start() -> float:
    """Return when this process began, in seconds of `time.perf_counter`: to 10 ms, on Linux.

    Now, where the system does not tell.
    """
    now = time.perf_counter()
    # The name of the program, in brackets, may hold blanks; the 22nd field is the start (proc(5)).
    fields = read_text("/proc/self/stat").rpartition(")")[2].split()
    try:
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (AttributeError, IndexError, OSError, ValueError):
        return now
    return now - max(age, 0.0)
