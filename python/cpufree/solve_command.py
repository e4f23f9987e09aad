"""What `cpufree solve` does, in one process or as one of several ranks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from . import display, ranks
from .commands import (
    Outputs,
    check_answer,
    load_system,
    make_solver,
    read_vector,
    right_hand_side,
    stage,
    tell_plan,
)
from .rank_commands import write_together


@dataclass(frozen=True)
class SolveWork:
    """A system to be solved, and where the answer goes."""

    matrix: str
    rhs: str
    x0: str | None
    check: bool
    setup: dict[str, Any]
    """Options of Solver."""
    how: dict[str, Any]
    """Options of Solver.solve."""
    outputs: Outputs

    @property
    def wants_all(self) -> bool:
        """Whether one process needs all of x: to check it, or for files that one process writes."""
        team, out = ranks.current(), self.outputs.out
        if team is None or self.check:
            return True
        # Machines that map one file do not see one another's writes on every file system.
        return bool(out) and (team.size_here < team.size or not str(out).endswith(".npy"))

    def run(self, quiet: bool, speaks: bool) -> int:
        """Solve; where this process speaks, report and write. Return the exit code."""
        notes = Console(stderr=True, highlight=False, quiet=quiet or not speaks)
        system = load_system(self.matrix, notes)
        b = right_hand_side(self.rhs, system)
        guess = None if self.x0 is None else read_vector(self.x0, system, "x0")
        tolerance = max(self.how["rtol"] * float(np.linalg.norm(b)), self.how["atol"])
        with (
            stage(
                notes,
                "setting up",
                lambda: make_solver(system, self.check, self.setup),
                tell_plan,
            ) as solver,
            display.SolveProgress(notes, tolerance) as progress,
        ):
            result = solver.solve(b, guess, progress=progress, gather=self.wants_all, **self.how)
            rows = solver.rows
        outputs, together = self.outputs, ""
        if outputs.out and not self.wants_all:
            together = write_together(outputs.out, result.x.shape, rows, result.x[rows], "solution")
            outputs = dataclasses.replace(outputs, out=None)
        if speaks:
            checked = check_answer(system, b, result.x) if self.check else None
            paper = display.report_console(stderr=self.outputs.json == "-", quiet=quiet)
            paper.print(Text(self.matrix, style="bold"))
            paper.print(display.result_report(result, tolerance, checked))
            lines = [together] if together else []
            for line in [*lines, *outputs.write(result, system, self.matrix, tolerance)]:
                paper.print(Text(f"  {line}"))
        return display.ENDINGS[result.reason].exit_code
