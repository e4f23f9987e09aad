"""Measures conjugate gradients: what is asked for, how x is checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.bench.cg.configuration import Configuration, Group
from cpufree.bench.cg.problems import Problem
from cpufree.bench.core.entry import Entry
from cpufree.bench.core.interleave import InterleavedGroup, InterleavedRun, Watch
from cpufree.bench.core.plan import Task
from cpufree.bench.core.pool import Pool, Refused
from cpufree.bench.core.problem_folder import read_facts
from cpufree.bench.core.records import Line, Log
from cpufree.errors import FileFormatError, MatrixError

# A fixed number of iterations is cut where CG would have reached this: beyond lie rounding errors,
# which some stop at and others iterate on with.
RTOL_OF_LIMIT = {"double": 1e-8, "single": 1e-3}


class Run(InterleavedRun[Configuration]):
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
        super().__init__(configuration, entries, log, cache, watch, retry)
        self.limits: dict[tuple[str, str, str], int | None] = {
            (line["case"], line["precision"], line["preconditioner"]): line["iterations"]
            for line in log.lines
            if line["kind"] == "iterations"
        }

    def measure_group(self, group: Any, pool: Pool, scratch: Path, known: Sequence[Line]) -> None:
        """Measure one group, of which the lines `known` are there already."""
        GroupRun(self, group, pool, scratch / "x.npy", known).measure()


class GroupRun(InterleavedGroup[Configuration]):
    """The measurements of one group."""

    warm_up_iterations = 10  # before each timed solve, as Trotter et al. 2025 do

    def __init__(
        self, run: Run, group: Group, pool: Pool, saved: Path, known: Sequence[Line]
    ) -> None:
        super().__init__(run, group, pool, known)
        self.limits, self.saved = run.limits, saved
        self.iterations = run.limits.get(_system_of(group), self.configuration.iterations)

    def measure(self) -> None:
        """Measure what is left; of several matrices, one that cannot be solved ends nothing."""
        try:
            super().measure()
        except (MatrixError, FileFormatError) as error:
            if len(self.configuration.cases) == 1:
                raise
            for name in dict.fromkeys(task.contender for task in self.open()):
                self.fail(Task(name, "", ""), Refused(str(error), False))

    def prepare(self) -> Path:
        """Make the matrix and its shares."""
        self.problem = Problem(
            self.configuration.case(self.group.case),
            self.group.precision,
            self.run.cache,
            self.configuration.partition,
        )
        folder = self.problem.for_pes(self.group.pes)
        told, names = self.problem.facts, ("rows", "nnz", "distinct", "zeros", "source")
        facts = {key: told[key] for key in names if key in told}  # folders of older runs lack some
        self.write_once("problem", **facts, layout=read_facts(folder))
        return folder

    def load_options(self) -> dict[str, Any]:
        """Return the options of contenders besides the number of PEs."""
        return {"preconditioner": self.group.preconditioner}

    def request(self, task: Task) -> dict[str, Any]:
        """Return the request of a task."""
        return {
            "iterations": self.iterations,
            "rtol": self.configuration.rtol,
            "max_iterations": self.configuration.max_iterations,
            "save": None,
        }

    def begin(self) -> None:
        """Cut a fixed number of iterations to what CG needs to come near rounding errors.

        Once for a system, so that all numbers of PEs do the same.
        """
        if self.configuration.iterations is None or _system_of(self.group) in self.limits:
            return
        rtol = RTOL_OF_LIMIT[self.group.precision]
        full = [task for task in self.open() if task.variant == "full"]
        for task in sorted(full, key=lambda task: task.method != "cg"):
            answer = self.ask(
                task, iterations=None, rtol=rtol, max_iterations=self.configuration.iterations
            )
            if answer is None:
                continue
            if str(answer.get("reason", "")).startswith("CONVERGED"):
                self.iterations = max(1, answer["iterations"])
            self.limits[_system_of(self.group)] = self.iterations
            self.write("iterations", iterations=self.iterations, rtol=rtol, by=task.contender)
            return

    def warm_up(self, task: Task) -> None:
        """Solve once untimed; check the x of a full solve."""
        full = task.variant == "full"
        self.saved.unlink(missing_ok=True)
        answer = self.ask(task, save=str(self.saved) if full else None)
        if answer is None:
            return
        self.watch.advance()
        if not full or task in self.checked:
            return
        try:
            found = self.problem.check(np.load(self.saved))
        except (OSError, ValueError) as error:
            self.fail(task, Refused(f"the x that it saved cannot be read: {error}", False))
            return
        kept = {key: answer.get(key) for key in ("iterations", "reason", "residual", "note")}
        self.write("check", **task.key(), **kept, **_finite(found))


def _system_of(group: Group) -> tuple[str, str, str]:
    return group.case, group.precision, group.preconditioner


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    """Return values with None for those that JSON does not have."""
    return {key: value if math.isfinite(value) else None for key, value in values.items()}
