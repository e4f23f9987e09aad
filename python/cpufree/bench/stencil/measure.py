"""Measures stencils: what is asked for, how the values are checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpufree.bench.core.interleave import InterleavedGroup, InterleavedRun
from cpufree.bench.core.plan import Task
from cpufree.bench.core.pool import Pool, Refused
from cpufree.bench.core.records import Line
from cpufree.bench.stencil.plan import Configuration, Group
from cpufree.bench.stencil.problem import check_iterations, expected, make_folder
from cpufree.stencil import count_updates


class StencilRun(InterleavedRun[Configuration]):
    """A configuration that is being measured; all that is found goes to the log."""

    def measure_group(self, group: Any, pool: Pool, scratch: Path, known: Sequence[Line]) -> None:
        """Measure one group, of which the lines `known` are there already."""
        StencilGroupRun(self, group, pool, known).measure()


class StencilGroupRun(InterleavedGroup[Configuration]):
    """The measurements of one group."""

    def __init__(self, run: StencilRun, group: Group, pool: Pool, known: Sequence[Line]) -> None:
        super().__init__(run, group, pool, known)
        self.iterations = run.configuration.iterations
        self.warm_up_iterations = min(50, self.iterations)
        self.shape = run.configuration.case(group.case).shape_for(group.pes)
        self.to_check = check_iterations(self.shape, self.iterations)
        self.expected = any(line["kind"] == "reference" for line in known)

    def prepare(self) -> Path:
        """Write the first values down, and what must come of them."""
        folder = make_folder(self.run.cache, self.shape, self.group.precision)
        periodic = [self.group.boundary == "periodic"] * len(self.shape)
        self.write_once(
            "problem", shape=list(self.shape), updates=count_updates(self.shape, periodic)
        )
        if not self.expected:
            found = expected(folder, self.shape, self.group.boundary, self.to_check)
            self.write("reference", **found)
        return folder

    def load_options(self) -> dict[str, Any]:
        """Return the options of contenders besides the number of PEs."""
        return {"boundary": self.group.boundary}

    def request(self, task: Task) -> dict[str, Any]:
        """Return the request of a task."""
        return {"iterations": self.iterations, "check": False}

    def warm_up(self, task: Task) -> None:
        """Run once untimed; check the values of a full run."""
        full = task.variant == "full" and task not in self.checked
        iterations = self.to_check if full else self.iterations
        answer = self.ask(task, check=full, iterations=iterations)
        if answer is None:
            return
        self.watch.advance()
        if not full:
            return
        found = answer.get("checksum")
        if not isinstance(found, str):
            self.fail(task, Refused("it gave no checksum of its values", False))
            return
        self.write("check", **task.key(), iterations=answer["iterations"], checksum=found)
