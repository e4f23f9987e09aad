"""Measures a declared benchmark: case after case, all contenders of one interleaved in rounds."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cpufree.bench.core.records import Line, Log
from cpufree.bench.declared.declaration import Bench, Call, Case

LONGEST_ERROR = 600  # characters that are kept


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a run measures; a record is gone on with where this is the same."""

    axes: dict[str, list[str]]
    contenders: tuple[str, ...]
    """Empty: all."""
    repeats: int
    seed: int
    gpus: tuple[int, ...] | None


class Measurement:
    """A run of a benchmark; all that is found goes to the log at once."""

    def __init__(
        self,
        bench: Bench,
        chosen: Chosen,
        log: Log,
        tell: Callable[[str], None],
        seconds: float | None = None,
    ) -> None:
        """`tell` hears what is done; after `seconds` no case is begun."""
        self._bench, self._chosen, self._log, self._tell = bench, chosen, log, tell
        self._end = None if seconds is None else time.monotonic() + seconds
        self._known = list(log.lines)

    def measure(self, cases: Sequence[Case]) -> list[Case]:
        """Measure what the log lacks; return the cases for which there was no time."""
        left = []
        for case in cases:
            if self._is_done(case):
                continue
            if self._end is not None and time.monotonic() > self._end:
                left.append(case)
                continue
            self._tell(case.name)
            try:
                with contextlib.contextmanager(self._bench.set_up)(case) as calls:
                    self._write("problem", case, **case.facts)
                    self._rounds(case, {n: c for n, c in calls.items() if case.asks(n)})
            except Exception as error:  # other cases go on
                self._fail(case, None, error)
            else:
                self._write("done", case)
        return left

    def _is_done(self, case: Case) -> bool:
        return any(line["kind"] == "done" and line["case"] == case.name for line in self._known)

    def _rounds(self, case: Case, calls: dict[str, Call]) -> None:
        """Call each once, which warms up, then once a round in a new random order."""
        done = {
            (line["contender"], line["round"])
            for line in self._known
            if line["kind"] == "measurement" and line["case"] == case.name
        }
        for name in list(calls) if not self._bench.cold else ():
            self._time(case, calls, name, "first", {})
        for number in range(self._chosen.repeats):
            order = random.Random(f"{self._chosen.seed} {case.name} {number}")
            some = list(calls)
            for name in some if self._bench.ordered else order.sample(some, len(some)):
                if name in calls and (name, number) not in done:
                    time.sleep(self._bench.pause)
                    self._time(case, calls, name, "measurement", {"round": number})

    def _time(
        self, case: Case, calls: dict[str, Call], name: str, kind: str, more: dict[str, Any]
    ) -> None:
        """Call a contender and write what it took; one that fails is left out from then on."""
        begin = time.perf_counter()
        try:
            outcome = calls[name]()
            wall = time.perf_counter() - begin
            told = outcome if isinstance(outcome, Mapping) else {}
            value = wall if outcome is None else outcome
            told = told or {self._bench.value: value}
            self._write(kind, case, contender=name, **more, **told)
        except Exception as error:  # the others go on
            self._fail(case, name, error)
            del calls[name]

    def _fail(self, case: Case, contender: str | None, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
        self._tell(f"{case.name}{f', {contender}' if contender else ''}: {text}")
        self._write("failure", case, contender=contender, error=text)

    def _write(self, kind: str, case: Case, **content: Any) -> None:
        self._log.write({"kind": kind, "case": case.name, **case.labels, **content})


def measurements(lines: Sequence[Line]) -> Iterator[tuple[str, dict[str, list[Line]]]]:
    """Yield each case of a record with its measurements by contender."""
    found: dict[str, dict[str, list[Line]]] = {}
    for line in lines:
        if line["kind"] in ("first", "measurement"):  # contenders in the order of the set-up
            measured = found.setdefault(line["case"], {}).setdefault(line["contender"], [])
            measured += [line] if line["kind"] == "measurement" else []
    for case, of in found.items():
        yield case, {name: measured for name, measured in of.items() if measured}
