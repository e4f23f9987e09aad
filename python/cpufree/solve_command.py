"""What `cpufree solve` does, in one process or as one of several ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from . import display
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
            result = solver.solve(b, guess, progress=progress, **self.how)
        if speaks:
            checked = check_answer(system, b, result.x) if self.check else None
            paper = display.report_console(stderr=self.outputs.json == "-", quiet=quiet)
            paper.print(Text(self.matrix, style="bold"))
            paper.print(display.result_report(result, tolerance, checked))
            for line in self.outputs.write(result, system, self.matrix, tolerance):
                paper.print(Text(f"  {line}"))
        return display.ENDINGS[result.reason].exit_code
