"""The measurement of wall times: processes in random order, a line of the file for each."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cpufree.bench.core.plan import Plan
from cpufree.bench.time.programs import KINDS, program
from cpufree.env import for_worker


@dataclass(frozen=True, kw_only=True)
class Times(Plan):
    """What `cpufree bench time` measures."""

    matrices: tuple[str, ...]
    kinds: tuple[str, ...] = KINDS
    rtol: float
    max_iterations: int
    solves: int
    """Of a program that solves often."""
    engine: str

    def all_contenders(self) -> tuple[str, ...]:
        """Return the contenders, and with each of `pes` what cpufree's command could choose."""
        return (*self.contenders, *(f"cpufree on {pes}" for pes in self.pes))


@dataclass(frozen=True)
class Timed:
    """A program that is measured."""

    case: str
    kind: str
    contender: str

    def key(self) -> dict[str, Any]:
        """Return it as part of a line of the file."""
        return {"case": self.case, "method": self.kind, "contender": self.contender}


def programs(times: Times) -> list[Timed]:
    """Return what there is to measure, once each."""
    return [
        Timed(matrix, kind, contender)
        for matrix in times.matrices
        for kind in times.kinds
        for contender in times.all_contenders()
        if _words(times, Timed(matrix, kind, contender)) is not None
    ]


def rounds(times: Times) -> Iterator[tuple[int, Timed]]:
    """Yield each round's programs in random order, the same whenever it is asked for."""
    for number in range(times.repeats):
        order = random.Random(f"{times.seed} {number}")
        every = programs(times)
        yield from ((number, one) for one in order.sample(every, len(every)))


def _words(times: Times, one: Timed) -> list[str] | None:
    limits = (times.rtol, times.max_iterations, times.solves, times.engine)
    return program(one.contender, one.kind, one.case, *limits)


def run(times: Times, one: Timed) -> dict[str, Any]:
    """Run a program; return its wall time, phases, iterations and error, or why it failed."""
    words = _words(times, one)
    assert words is not None
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=times.timeout, env=for_worker()
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"it took more than {times.timeout:g} s"}
    wall = time.perf_counter() - begin
    try:
        told = json.loads(done.stdout if one.kind == "command" else done.stdout.splitlines()[-1])
        phases = {str(name): float(seconds) for name, seconds in told["phases"].items()}
        iterations = int(told["iterations"])
        error = float(told["error" if one.kind != "command" else "relative_residual"])
    except (IndexError, KeyError, TypeError, ValueError):
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        return {"failure": last}
    # What scripts do to check x is not what is measured; a command checks x for its user.
    wall -= phases.pop("check", 0.0) if one.kind != "command" else 0.0
    phases["outside"] = max(0.0, wall - sum(phases.values()))
    found = {"seconds": wall, "phases": phases, "iterations": iterations, "error": error}
    return found | {"parts": parts} if (parts := told.get("parts")) else found


def measure(
    times: Times,
    write: Callable[[dict[str, Any]], None],
    there: Callable[[int, Timed], bool],
    tell: Callable[[str], None],
) -> None:
    """Measure all that is not there yet; a line of the file for each program and round."""
    failed: set[Timed] = set()
    for number, one in rounds(times):
        if one in failed or there(number, one):
            continue
        tell(f"round {number + 1} of {times.repeats}: {one.case}, {one.kind} of {one.contender}")
        found = run(times, one)
        if "failure" in found:
            failed.add(one)
            write({"kind": "failure", **one.key(), "error": found["failure"]})
        else:
            write({"kind": "measurement", **one.key(), "round": number, **found})
