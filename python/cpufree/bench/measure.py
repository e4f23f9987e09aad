"""Measures: groups one after the other, within a group all contenders interleaved."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..result import counted
from .contenders import Entry
from .plan import Configuration, Group, Task, matches
from .pool import Pool, Refused
from .problem_folder import read_facts
from .problems import Problem
from .records import Line, Log
from .worker_process import WorkerFailure

# A fixed number of iterations is cut where CG would have reached this: beyond lie rounding errors,
# which some stop at and others iterate on with.
RTOL_OF_LIMIT = {"double": 1e-8, "single": 1e-3}
GIVEN_UP_AFTER = 2  # processes that fail before they have ever loaded
WARM_UP_ITERATIONS = 10  # before each timed solve, as Trotter et al. 2025 do


class Watch(Protocol):
    """Is told how the run goes."""

    def begin(self, steps: int) -> None:
        """So many solves are to be done."""

    def at(self, what: str) -> None:
        """This is being done."""

    def advance(self, steps: int = 1) -> None:
        """So many solves are done, or will not be."""


class Run:
    """A configuration that is being measured; all that is found goes to the log."""

    def __init__(
        self,
        configuration: Configuration,
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
        self.limits: dict[tuple[str, str, str], int | None] = {
            (line["case"], line["precision"], line["preconditioner"]): line["iterations"]
            for line in log.lines
            if line["kind"] == "iterations"
        }

    def measure(self) -> None:
        """Measure what the log does not have yet."""
        groups = self.configuration.groups()
        steps = self.configuration.repeats + 1
        self.watch.begin(len(groups) * len(self.tasks) * steps)
        self.cache.mkdir(parents=True, exist_ok=True)
        with Pool(self.configuration) as pool, tempfile.TemporaryDirectory() as scratch:
            for group in groups:
                known = [line for line in self._known if matches(line, group)]
                GroupRun(self, group, pool, Path(scratch) / "x.npy", known).measure()


class GroupRun:
    """The measurements of one group."""

    def __init__(
        self, run: Run, group: Group, pool: Pool, saved: Path, known: Sequence[Line]
    ) -> None:
        self.run, self.group, self.pool, self.saved = run, group, pool, saved
        self.configuration, self.watch = run.configuration, run.watch
        self.tasks = list(run.tasks)
        self.done: dict[Task, set[int]] = {task: set() for task in self.tasks}
        self.out: set[Task] = set()
        self.checked: set[Task] = set()
        self.tell_split: set[str] = set()
        """Contenders that can be asked for their split."""
        self.told: set[Task] = set()
        """Tasks whose split is known."""
        self.iterations = run.limits.get(_system_of(group), self.configuration.iterations)
        for line in known:
            self._recall(line)

    def _recall(self, line: Line) -> None:
        """Take in what an earlier run of this group has written."""
        for task in self.tasks:
            if line["kind"] == "measurement" and matches(line, task):
                self.done[task].add(line["round"])
            elif line["kind"] == "check" and matches(line, task):
                self.checked.add(task)
            elif line["kind"] == "split" and matches(line, task):
                self.told.add(task)
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
        return able and task not in self.told

    def measure(self) -> None:
        """Load, warm up, measure in rounds, and ask for splits."""
        todo = self.open()
        per_task = self.configuration.repeats + 1
        self.watch.advance((len(self.tasks) - len(todo)) * per_task)
        if not todo:
            return
        self.watch.at(f"{self.group.case}: making the matrix")
        self.problem = Problem(
            self.configuration.case(self.group.case),
            self.group.precision,
            self.run.cache,
            self.configuration.partition,
        )
        self.folder = self.problem.for_pes(self.group.pes)
        self._write_problem()
        for entry in self.run.entries:
            if any(task.contender == entry.name for task in todo):
                self._load(entry)
        self._limit_iterations()
        for task in self.open():
            self._warm_up(task)
        for number, order in self.configuration.rounds(self.group, self.tasks):
            for task in order:
                if task not in self.out and number not in self.done[task]:
                    self._time(task, number)
        for task in self.open():
            self._ask_split(task)

    def _write(self, kind: str, **content: Any) -> None:
        self.run.log.write({"kind": kind, **self.group.key(), **content})

    def _write_problem(self) -> None:
        facts = {key: self.problem.facts[key] for key in ("rows", "nnz", "source")}
        layout = read_facts(self.folder)
        line = {"kind": "problem", **self.group.key(), **facts, "layout": layout}
        if line not in self.run.log.lines:
            self.run.log.write(line)

    def _load(self, entry: Entry) -> None:
        """Have a contender load."""
        self.watch.at(f"{self._system()}: {entry.name} loads")
        run = self.run
        try:
            if run.failed_starts[entry.name] >= GIVEN_UP_AFTER and entry.name not in run.loaded:
                raise Refused(f"given up after {GIVEN_UP_AFTER} starts that failed", False)
            facts = self.pool.load(entry, self.group, self.folder)
        except (WorkerFailure, Refused) as error:
            run.failed_starts[entry.name] += isinstance(error, WorkerFailure)
            self._fail(Task(entry.name, "", ""), error)
            return
        run.loaded.add(entry.name)
        self._take_facts(entry.name, facts)
        self._write("load", contender=entry.name, family=entry.family, facts=facts)

    def _fail(self, task: Task, error: WorkerFailure | Refused) -> None:
        """Note that a task cannot be measured; without a method, that the contender cannot."""
        unsupported = isinstance(error, Refused) and error.unsupported
        names = {"method": task.method or None, "variant": task.variant or None}
        self._write(
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

    def _ask(self, task: Task, stop: bool = True, **changes: Any) -> dict[str, Any] | None:
        """Return the answer to a solve; None where there is none, which has been noted."""
        request = {
            "do": "solve",
            "method": task.method,
            "variant": task.variant,
            "iterations": self.iterations,
            "rtol": self.configuration.rtol,
            "max_iterations": self.configuration.max_iterations,
            "save": None,
        }
        try:
            answer = self.pool.ask(task.contender, {**request, **changes}, stop)
            return _checked(answer)
        except (WorkerFailure, Refused) as error:
            self._fail(task, error)
            return None

    def _limit_iterations(self) -> None:
        """Cut a fixed number of iterations to what CG needs to come near rounding errors.

        Once for a system, so that all numbers of PEs do the same.
        """
        if self.configuration.iterations is None or _system_of(self.group) in self.run.limits:
            return
        rtol = RTOL_OF_LIMIT[self.group.precision]
        full = [task for task in self.open() if task.variant == "full"]
        for task in sorted(full, key=lambda task: task.method != "cg"):
            answer = self._ask(
                task, iterations=None, rtol=rtol, max_iterations=self.configuration.iterations
            )
            if answer is None:
                continue
            if str(answer.get("reason", "")).startswith("CONVERGED"):
                self.iterations = max(1, answer["iterations"])
            self.run.limits[_system_of(self.group)] = self.iterations
            self._write("iterations", iterations=self.iterations, rtol=rtol, by=task.contender)
            return

    def _warm_up(self, task: Task) -> None:
        """Solve once untimed; check the x of a full solve."""
        self.watch.at(self._describe(task, "warm-up"))
        full = task.variant == "full"
        self.saved.unlink(missing_ok=True)
        answer = self._ask(task, save=str(self.saved) if full else None)
        if answer is None:
            return
        self.watch.advance()
        if not full or task in self.checked:
            return
        try:
            found = self.problem.check(np.load(self.saved))
        except (OSError, ValueError) as error:
            self._fail(task, Refused(f"the x that it saved cannot be read: {error}", False))
            return
        kept = {key: answer.get(key) for key in ("iterations", "reason", "residual", "note")}
        self._write("check", **task.key(), **kept, **_finite(found))

    def _time(self, task: Task, number: int) -> None:
        """Measure a task once, after some iterations that bring it back to work."""
        self.watch.at(self._describe(task, f"round {number + 1}"))
        if self._ask(task, stop=False, iterations=WARM_UP_ITERATIONS) is None:
            return
        answer = self._ask(task)
        if answer is None:
            return
        kept = {key: answer.get(key) for key in ("seconds", "iterations", "reason", "residual")}
        self._write("measurement", **task.key(), round=number, **kept, split=answer.get("split"))
        self.done[task].add(number)
        self.watch.advance()

    def _ask_split(self, task: Task) -> None:
        """Ask for a solve more, which tells where its time goes. No round has the cost of that."""
        self.watch.at(self._describe(task, "split"))
        if self._ask(task, stop=False, iterations=WARM_UP_ITERATIONS, split=True) is None:
            return
        answer = self._ask(task, split=True)
        if answer is None or not answer.get("split"):
            return
        kept = {key: answer[key] for key in ("seconds", "iterations", "split")}
        self._write("split", **task.key(), **kept)
        self.told.add(task)

    def _describe(self, task: Task, what: str) -> str:
        variant = "" if task.variant == "full" else f" ({task.variant})"
        return f"{self._system()}: {task.contender} {task.method}{variant}, {what}"

    def _system(self) -> str:
        return f"{self.group.case}, {counted(self.group.pes, 'PE')}"


def _system_of(group: Group) -> tuple[str, str, str]:
    return group.case, group.precision, group.preconditioner


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer to a solve; Refused where what must be there is not, or makes no sense."""
    seconds, iterations = answer.get("seconds"), answer.get("iterations")
    timed = isinstance(seconds, (int, float)) and math.isfinite(seconds) and seconds > 0
    if not timed or not isinstance(iterations, int) or iterations < 1:
        what = f"seconds {seconds!r}, iterations {iterations!r}"
        raise Refused(f"it answered what cannot be: {what}", False)
    return answer


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    """Return values with None for those that JSON does not have."""
    return {key: value if math.isfinite(value) else None for key, value in values.items()}
