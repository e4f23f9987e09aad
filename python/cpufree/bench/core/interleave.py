"""Measures: groups one after the other, within a group all contenders interleaved.

What a problem is, and how an answer is checked, the subclasses know: `measure`, `stencil.measure`.
"""

from __future__ import annotations

import math
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

from cpufree.bench.core.entry import Entry
from cpufree.bench.core.plan import Plan, Task, matches
from cpufree.bench.core.pool import Pool, Refused
from cpufree.bench.core.protocol import SolveAnswer
from cpufree.bench.core.records import Line, Log
from cpufree.bench.core.worker_process import WorkerFailure
from cpufree.text import counted

P = TypeVar("P", bound=Plan)
GIVEN_UP_AFTER = 2  # processes that fail before they have ever loaded


class Watch(Protocol):
    """Follows the run."""

    def begin(self, steps: int) -> None:
        """N solves are to be done."""

    def at(self, what: str) -> None:
        """This is being done."""

    def advance(self, steps: int = 1) -> None:
        """N solves are done, or will not be."""


class InterleavedRun(ABC, Generic[P]):
    """A configuration that is being measured; all that is found goes to the log."""

    def __init__(
        self,
        configuration: P,
        entries: Sequence[Entry],
        log: Log,
        cache: Path,
        watch: Watch,
        retry: bool = False,
    ) -> None:
        """`retry`: try again what failed when the log was written before."""
        self.configuration, self.entries, self.log = configuration, entries, log
        self.cache, self.watch = cache, watch
        self.tasks = configuration.tasks(entries)
        self._known = [line for line in log.lines if not (retry and line["kind"] == "failure")]
        self.loaded: set[str] = set()
        self.failed_starts: Counter[str] = Counter()

    def measure(self) -> None:
        """Measure what the log does not have yet."""
        groups = self.configuration.groups()
        steps = self.configuration.repeats + 1
        self.watch.begin(len(groups) * len(self.tasks) * steps)
        self.cache.mkdir(parents=True, exist_ok=True)
        with Pool(self.configuration) as pool, tempfile.TemporaryDirectory() as scratch:
            for group in groups:
                known = [line for line in self._known if matches(line, group)]
                self.measure_group(group, pool, Path(scratch), known)

    @abstractmethod
    def measure_group(self, group: Any, pool: Pool, scratch: Path, known: Sequence[Line]) -> None:
        """Measure one group, of which the lines `known` are there already."""


class InterleavedGroup(ABC, Generic[P]):
    """The measurements of one group."""

    warm_up_iterations = 10

    def __init__(
        self, run: InterleavedRun[P], group: Any, pool: Pool, known: Sequence[Line]
    ) -> None:
        self.run, self.group, self.pool, self.watch = run, group, pool, run.watch
        self.configuration = run.configuration
        self.tasks = list(run.tasks)
        self.done: dict[Task, set[int]] = {task: set() for task in self.tasks}
        self.out: set[Task] = set()
        self.checked: set[Task] = set()
        self.tell_split: set[str] = set()
        """Contenders that can be asked for their split."""
        self.reported: set[Task] = set()
        """Tasks whose split is known."""
        for line in known:
            self._recall(line)

    @abstractmethod
    def prepare(self) -> Path:
        """Make the problem, write the line `problem`; return the folder that contenders load."""

    @abstractmethod
    def load_options(self) -> dict[str, Any]:
        """Return the options of contenders besides the number of PEs."""

    @abstractmethod
    def request(self, task: Task) -> dict[str, Any]:
        """Return the request of a task."""

    def begin(self) -> None:
        """Do what is to be done when all have loaded."""

    @abstractmethod
    def warm_up(self, task: Task) -> None:
        """Solve once untimed, check what comes of it, and write that down."""

    def _recall(self, line: Line) -> None:
        """Take in what an earlier run of this group has written."""
        for task in self.tasks:
            if line["kind"] == "measurement" and matches(line, task):
                self.done[task].add(line["round"])
            elif line["kind"] == "check" and matches(line, task):
                self.checked.add(task)
            elif line["kind"] == "split" and matches(line, task):
                self.reported.add(task)
            elif line["kind"] == "load" and line["contender"] == task.contender:
                self._take_facts(line["contender"], line["facts"])
            elif line["kind"] == "failure" and line["contender"] == task.contender:
                whole = line["method"] is None
                self.out |= {task} if whole or matches(line, task) else set()

    def _take_facts(self, contender: str, facts: dict[str, Any]) -> None:
        if facts.get("tells_split"):
            self.tell_split.add(contender)

    def open(self) -> list[Task]:
        """Return the tasks that have rounds left, or their split."""
        repeats = self.configuration.repeats
        left = [t for t in self.tasks if len(self.done[t]) < repeats or self._is_untold(t)]
        return [task for task in left if task not in self.out]

    def _is_untold(self, task: Task) -> bool:
        able = task.variant == "full" and task.contender in self.tell_split
        return able and task not in self.reported

    def measure(self) -> None:
        """Load, warm up, measure in rounds, and ask for splits."""
        todo = self.open()
        per_task = self.configuration.repeats + 1
        self.watch.advance((len(self.tasks) - len(todo)) * per_task)
        if not todo:
            return
        self.watch.at(f"{self.group.case}: making the problem")
        self.folder = self.prepare()
        for entry in self.run.entries:
            if any(task.contender == entry.name for task in todo):
                self._load(entry)
        self.begin()
        for task in self.open():
            self.watch.at(self._describe(task, "warm-up"))
            self.warm_up(task)
        for number, order in self.configuration.rounds(self.group, self.tasks):
            for task in order:
                if task not in self.out and number not in self.done[task]:
                    self._time(task, number)
        for task in self.open():
            self._ask_split(task)

    def write(self, kind: str, **content: Any) -> None:
        """Write a line of this group."""
        self.run.log.write({"kind": kind, **self.group.key(), **content})

    def write_once(self, kind: str, **content: Any) -> None:
        """Write a line of this group unless it is there."""
        line = {"kind": kind, **self.group.key(), **content}
        if line not in self.run.log.lines:
            self.run.log.write(line)

    def _load(self, entry: Entry) -> None:
        """Have a contender load."""
        self.watch.at(f"{self._system()}: {entry.name} loads")
        run = self.run
        try:
            if run.failed_starts[entry.name] >= GIVEN_UP_AFTER and entry.name not in run.loaded:
                raise Refused(f"given up after {GIVEN_UP_AFTER} starts that failed", False)
            facts = self.pool.load(entry, self.group.pes, self.folder, self.load_options())
        except (WorkerFailure, Refused) as error:
            run.failed_starts[entry.name] += isinstance(error, WorkerFailure)
            self.fail(Task(entry.name, "", ""), error)
            return
        run.loaded.add(entry.name)
        self._take_facts(entry.name, facts)
        self.write("load", contender=entry.name, family=entry.family, facts=facts)

    def fail(self, task: Task, error: WorkerFailure | Refused) -> None:
        """Note that a task cannot be measured; without a method, that the contender cannot."""
        unsupported = isinstance(error, Refused) and error.unsupported
        names = {"method": task.method or None, "variant": task.variant or None}
        self.write(
            "failure", contender=task.contender, **names, error=str(error), unsupported=unsupported
        )
        for other in self.open():
            if other == task or (not task.method and other.contender == task.contender):
                self.out.add(other)
                self.watch.advance(self.configuration.repeats + 1 - len(self.done[other]))
        if isinstance(error, WorkerFailure) and task.method:
            self._reload(task.contender)

    def _reload(self, contender: str) -> None:
        """Start a contender again whose process has failed, if it has something left to do."""
        if any(task.contender == contender for task in self.open()):
            self._load(next(entry for entry in self.run.entries if entry.name == contender))

    def ask(self, task: Task, stop: bool = True, **changes: Any) -> SolveAnswer | None:
        """Return the answer to a solve; None where there is none, which has been noted."""
        request = {"do": "solve", "method": task.method, "variant": task.variant}
        try:
            answer = self.pool.ask(
                task.contender, {**request, **self.request(task), **changes}, stop
            )
            return _checked(answer)
        except (WorkerFailure, Refused) as error:
            self.fail(task, error)
            return None

    def _time(self, task: Task, number: int) -> None:
        """Measure a task once, after some iterations that bring it back to work."""
        self.watch.at(self._describe(task, f"round {number + 1}"))
        if self.ask(task, stop=False, iterations=self.warm_up_iterations) is None:
            return
        answer = self.ask(task)
        if answer is None:
            return
        kept = {key: answer.get(key) for key in ("seconds", "iterations", "reason", "residual")}
        self.write("measurement", **task.key(), round=number, **kept, split=answer.get("split"))
        self.done[task].add(number)
        self.watch.advance()

    def _ask_split(self, task: Task) -> None:
        """Ask for a solve more, which tells where its time goes. No round has the cost of that."""
        self.watch.at(self._describe(task, "split"))
        if self.ask(task, stop=False, iterations=self.warm_up_iterations, split=True) is None:
            return
        answer = self.ask(task, split=True)
        if answer is None or not answer.get("split"):
            return
        kept = {key: answer[key] for key in ("seconds", "iterations", "split")}
        self.write("split", **task.key(), **kept)
        self.reported.add(task)

    def _describe(self, task: Task, what: str) -> str:
        variant = "" if task.variant == "full" else f" ({task.variant})"
        return f"{self._system()}: {task.contender} {task.method}{variant}, {what}"

    def _system(self) -> str:
        return f"{self.group.case}, {counted(self.group.pes, 'PE')}"


def _checked(answer: dict[str, Any]) -> SolveAnswer:
    """Return an answer to a solve; Refused where what must be there is not, or makes no sense."""
    seconds, iterations = answer.get("seconds"), answer.get("iterations")
    timed = isinstance(seconds, (int, float)) and math.isfinite(seconds) and seconds > 0
    if not timed or not isinstance(iterations, int) or iterations < 1:
        what = f"seconds {seconds!r}, iterations {iterations!r}"
        raise Refused(f"it answered what cannot be: {what}", False)
    return cast(SolveAnswer, answer)
