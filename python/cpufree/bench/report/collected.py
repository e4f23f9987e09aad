"""Repeated measurements out of the files of runs, whatever was measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from cpufree.bench.core import gpu_versions, noise, records
from cpufree.bench.core.entry import OURS
from cpufree.bench.core.lines import (
    Check,
    End,
    Failure,
    Header,
    Lines,
    Load,
    Measurement,
    OfGroup,
    OfTask,
    Problem,
    Rate,
    Split,
)
from cpufree.bench.core.noise import Spread
from cpufree.bench.core.plan import VARIANTS, Task, matches
from cpufree.errors import InvalidInputError


@dataclass
class Measured:
    """The repeated measurements of a task in a group."""

    group: Any
    task: Task
    family: str
    lines: list[Measurement] = field(default_factory=list, kw_only=True)
    check: Check | None = field(default=None, kw_only=True)
    split_line: Split | None = field(default=None, kw_only=True)
    """Of the solve that was done for its split alone."""
    facts: dict[str, Any] = field(default_factory=dict, kw_only=True)
    problem: Problem = field(default_factory=Problem, kw_only=True)

    @property
    def name(self) -> str:
        """What it is called in tables: the contender, unless a subclass says more."""
        return self.task.contender

    def problems(self) -> list[str]:
        """Return why this does not count, nothing where it does."""
        return []

    @property
    def times(self) -> list[float]:
        """What is compared: seconds per iteration, unless a subclass says otherwise."""
        return self.per_iteration

    @property
    def median(self) -> float:
        """Median of what is compared."""
        return statistics.median(self.times)

    @cached_property
    def per_iteration(self) -> list[float]:
        """Seconds per iteration of each repeat."""
        return [line["seconds"] / line["iterations"] for line in self.lines]

    @cached_property
    def spread(self) -> Spread:
        """Spread of the seconds per iteration."""
        return Spread.of(self.per_iteration)

    @property
    def iterations(self) -> int:
        """Median of the iterations."""
        return int(statistics.median(line["iterations"] for line in self.lines))


G = TypeVar("G")
S = TypeVar("S", bound=Measured)


@dataclass(frozen=True)
class Comparison(Generic[S]):
    """Ours against the fastest of others, or the fastest of all against the rest."""

    ours: S
    theirs: S
    speedup: float
    """Their median over ours."""
    word: str


def fastest(series: Iterable[S]) -> S:
    """Return the series with the smallest median."""
    return min(series, key=lambda s: s.median)


def fastest_of_each(series: Iterable[S]) -> list[S]:
    """Return for each contender the series of its fastest method."""
    found: dict[str, list[S]] = {}
    for one in series:
        found.setdefault(one.task.contender, []).append(one)
    return [fastest(each) for each in found.values()]


class Collected(Generic[G, S]):
    """All series of some files, and the lines that go with them."""

    benchmark: ClassVar[str]

    def __init__(self, files: Sequence[Path]) -> None:
        """Read files of one machine.

        Raises FileFormatError for what is no result, InvalidInputError where files do not go
        together.
        """
        self.headers: list[Header] = []
        self.series: dict[tuple[G, Task], S] = {}
        self.failures: list[Failure] = []
        self.rates: list[Rate] = []
        self.ends: list[End] = []
        self.unfinished: list[str] = []
        """What is missing of each run that did not finish."""
        for file in files:
            lines = Lines.of(records.read(file, (self.benchmark,))[0], file)
            if self.headers and lines.header["machine"] != self.headers[0]["machine"]:
                raise InvalidInputError(f"'{file}' is of another machine than '{files[0]}'")
            _check_versions(list(zip(files, [*self.headers, lines.header], strict=False)))
            self._take(lines, file)
        self._by_group: dict[tuple[G, str], list[S]] = {}
        self._valid: dict[tuple[G, str], list[S]] = {}
        for (group, task), series in self.series.items():
            self._by_group.setdefault((group, task.variant), []).append(series)
        self.failures = [line for line in self.failures if not self._made_good(line)]

    def group_of(self, line: OfGroup) -> G:
        """Return the group that a line is of."""
        raise NotImplementedError

    def make_series(self, group: G, task: Task, load: Load, lines: Lines) -> S:
        """Return a series without measurements yet; `lines` are those of the file."""
        raise NotImplementedError

    def missing(self, header: Header, groups: Iterable[G]) -> str:
        """Return what a run was asked for and `groups`, which it measured, do not have."""
        return ""

    def _take(self, lines: Lines, file: Path) -> None:
        mine: dict[tuple[G, Task], S] = {}
        loads = {(self.group_of(x), x["contender"]): x for x in lines.loads}
        problems = {self.group_of(line): line for line in lines.problems}
        checks = {(self.group_of(line), _task(line)): line for line in lines.checks}
        splits = {(self.group_of(line), _task(line)): line for line in lines.splits}
        for line in lines.measurements:
            group, task = self.group_of(line), _task(line)
            if (group, task) not in mine:
                load = loads[group, task.contender]
                series = self.make_series(group, task, load, lines)
                series.check, series.facts = checks.get((group, task)), load["facts"]
                series.problem, series.split_line = problems[group], splits.get((group, task))
                mine[group, task] = series
            mine[group, task].lines.append(line)
        for group, task in mine:
            if (group, task) in self.series:
                case, pes = getattr(group, "case", group), getattr(group, "pes", "?")
                what = f"{task.contender} {task.method} on {case}, {pes} PEs"
                raise InvalidInputError(f"'{file}': {what} is in another of the files too")
        self.headers.append(lines.header)
        if not lines.finished:
            self.unfinished.append(self.missing(lines.header, {group for group, _ in mine}))
        self.series |= mine
        self.failures += lines.failures
        self.rates += lines.rates
        self.ends += lines.ends

    def _made_good(self, failure: Failure) -> bool:
        """Return whether what failed was measured when it was tried again."""
        repeats = self.headers[0]["configuration"]["repeats"]
        return any(
            len(series.lines) >= repeats
            for series in self.series.values()
            if matches(failure, series.group)
            and failure["contender"] == series.task.contender
            and failure["method"] in (None, series.task.method)
            and failure["variant"] in (None, series.task.variant)
        )

    def groups(self) -> list[G]:
        """Return the groups that something was measured of, in the order of the files."""
        return list(dict.fromkeys(group for group, _ in self.series))

    def of(self, group: G, variant: str = "full") -> list[S]:
        """Return the series of a group."""
        return self._by_group.get((group, variant), [])

    def valid(self, group: G, variant: str = "full") -> list[S]:
        """Return the series that count."""
        if (group, variant) not in self._valid:
            counted = [series for series in self.of(group, variant) if not series.problems()]
            self._valid[group, variant] = counted
        return self._valid[group, variant]

    def find(self, group: G, name: str, variant: str) -> S | None:
        """Return the series of a name that counts, None where there is none."""
        return next((s for s in self.valid(group, variant) if s.name == name), None)

    def names(self, group: G) -> list[str]:
        """Return the names of the series of a group, in the order in which they were asked for."""
        there = {s.name: s.task for variant in VARIANTS for s in self.of(group, variant)}
        asked = [header["configuration"] for header in self.headers]
        contenders = [name for one in asked for name in one["contenders"]]
        methods = [name for one in asked for name in one.get("methods", ())]

        def place(name: str) -> tuple[int, int]:
            task = there[name]
            method = methods.index(task.method) if task.method in methods else 0
            return contenders.index(task.contender), method

        return sorted(there, key=place)

    def host_driven(self, series: S) -> bool:
        """Return whether the CPU launches and orders each iteration of a contender."""
        raise NotImplementedError

    def against(
        self, group: G, those: Callable[[S], bool], method: str | None = None
    ) -> Comparison[S] | None:
        """Return ours against the fastest of those, None where either is not there.

        `method`: of both; None: each with the method that is fastest for it.
        """
        there = [s for s in self.valid(group) if method in (None, s.task.method)]
        ours = [s for s in there if s.family == OURS]
        theirs = [s for s in there if s.family != OURS and those(s)]
        if not ours or not theirs:
            return None
        a, b = fastest(ours), fastest(theirs)
        return Comparison(a, b, b.median / a.median, noise.compare(a.times, b.times))

    def winner(self, group: G) -> tuple[S, str] | None:
        """Return the fastest, and "wins" or why it does not; a contender has its fastest method."""
        best = {s.task.contender: s for s in fastest_of_each(self.valid(group))}
        if not best:
            return None
        name, word = noise.winner({key: series.times for key, series in best.items()})
        return best[name], word

    def overlap(self, group: G, name: str) -> float | None:
        """Return the share of the communication that goes on beside the computing.

        1 - (full - no-comm) / no-compute, of the medians of an iteration, between 0 and 1: what a
        full iteration takes longer than computing alone is communication that is not hidden. None
        where one of them is not there, and on one PE, which has no PE to communicate with.
        """
        if getattr(group, "pes", None) == 1:
            return None
        found = [self.find(group, name, v) for v in ("full", "no-comm", "no-compute")]
        if any(series is None for series in found):
            return None
        full, compute, communicate = (s.spread.median for s in found if s is not None)
        return min(1.0, max(0.0, 1.0 - (full - compute) / communicate))

    def saved(self, group: G, name: str) -> float | None:
        """Return by which share its communication alone is less than the best host-driven one's.

        Of the medians of an iteration without computing, by the same method; None where either is
        not there, and for that one itself.
        """
        mine = self.find(group, name, "no-compute")
        if mine is None:
            return None
        theirs = [
            s.spread.median
            for s in self.valid(group, "no-compute")
            if self.host_driven(s) and s is not mine and s.task.method == mine.task.method
        ]
        return 1.0 - mine.spread.median / min(theirs) if theirs else None

    def memory_rate(self) -> tuple[str, float] | None:
        """Return what was measured of memory, and its median bytes per second."""
        for line in self.rates:
            if "bytes_per_second" in line:
                return line["what"], statistics.median(line["bytes_per_second"])
        return None


AnyResults = Collected[Any, Any]


def _check_versions(headers: Sequence[tuple[Path, Header]]) -> None:
    """Refuse files that were measured with different drivers or libraries.

    Old files do not tell, and are taken as they are.
    """
    for name in gpu_versions.NAMES:
        known = [
            (file, line["versions"][name]) for file, line in headers if name in line["versions"]
        ]
        for file, version in known[1:]:
            first, other = known[0]
            if version != other:
                raise InvalidInputError(
                    f"'{file}' was measured with {name} {version}, '{first}' with {other}: "
                    "report on each by itself"
                )


def _task(line: OfTask) -> Task:
    return Task(line["contender"], line["method"], line["variant"])
