"""What `cpufree solve` does, in one process or as one of several ranks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.text import Text

from cpufree import distributed
from cpufree.cli import display
from cpufree.cli.commands import (
    Outputs,
    check_answer,
    check_length,
    load_system,
    make_solver,
    read_partition,
    read_vector,
    right_hand_side,
    stage,
    tell_plan,
)
from cpufree.cli.rank_commands import can_write_together, write_together

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cpufree.cli.distributed_input import DistributedInput
    from cpufree.partition.part_vector import PartitionLike


@dataclass(frozen=True)
class SolveWork:
    """A system to be solved, and where the answer goes."""

    matrix: str
    rhs: str
    x0: str | None
    partition: str
    """A method, or a file."""
    check: bool
    input: str
    """Which rows each of several processes has: auto, whole, rows."""
    setup: dict[str, Any]
    """Options of Solver."""
    how: dict[str, Any]
    """Options of Solver.solve."""
    outputs: Outputs

    def wants_all(self, own: bool) -> bool:
        """Whether one process needs all of x: to check it, or for files that one process writes.

        Never where ranks have their own rows alone (`own`): `load` sees to that.
        """
        team = distributed.current()
        if team is None or own:
            return not own
        return self.check or not can_write_together(self.outputs.out, team)

    def load(self, notes: Console) -> Problem:
        """Read or make the system, all of it or this rank's rows."""
        from cpufree.cli.distributed_input import (  # heavy imports
            DistributedInput,
            DistributedInputOptions,
            choose_rows,
        )

        team = distributed.current()
        vectors = (self.rhs, self.x0)
        engine = self.setup["engine"]
        options = DistributedInputOptions(team, engine, self.outputs.out, vectors, self.partition)
        rows = choose_rows(self.matrix, self.input, options)
        if rows is None or team is None:
            pes = self.setup["pes"] if team is None else team.size
            partition = read_partition(self.partition, pes if isinstance(pes, int) else None)
            system = load_system(self.matrix, notes)
            check_length(partition, system, self.partition)
            b = right_hand_side(self.rhs, system)
            guess = None if self.x0 is None else read_vector(self.x0, system, "x0")
            return Problem(system, b, guess, float(np.linalg.norm(b)), partition)
        own = DistributedInput(rows, team)
        b = own.right_hand_side(self.rhs)
        guess = None if self.x0 is None else own.vector(self.x0)
        return Problem(rows, b, guess, own.norm(b), own=own)

    def run(self, quiet: bool, speaks: bool) -> int:
        """Solve; where this process speaks, report and write. Return the exit code."""
        notes = Console(stderr=True, highlight=False, quiet=quiet or not speaks)
        problem = self.load(notes)
        gather = self.wants_all(problem.own is not None)
        tolerance = max(self.how["rtol"] * problem.norm, self.how["atol"])
        setup = {**self.setup, "partition": problem.partition}
        with (
            stage(
                notes,
                "setting up",
                lambda: make_solver(problem.matrix, self.check, setup),
                tell_plan,
            ) as solver,
            display.SolveProgress(notes, tolerance) as progress,
        ):
            result = solver.solve(
                problem.b, problem.guess, progress=progress, gather=gather, **self.how
            )
        outputs, together = self.outputs, ""
        if outputs.out and not gather:
            if problem.own is None:
                rows, mine = solver.rows, result.x[solver.rows]
            else:
                rows, mine = problem.own.places(result.x)
            together = write_together(
                outputs.out, (problem.matrix.shape[0],), rows, mine, "solution"
            )
            outputs = dataclasses.replace(outputs, out=None)
        if speaks:
            checked = None
            if self.check and problem.own is None:
                checked = check_answer(problem.matrix, problem.b, result.x)
            lines = [together] if together else []
            try:
                # First: the report may fail, on a full disk.
                lines += outputs.write(result, problem.matrix, self.matrix, tolerance)
            finally:
                paper = display.report_console(stderr=self.outputs.json == "-", quiet=quiet)
                paper.print(Text(self.matrix, style="bold"))
                paper.print(display.result_report(result, tolerance, checked, solver.plan))
                for line in lines:
                    paper.print(Text(f"  {line}"))
        return display.ENDINGS[result.reason].exit_code


@dataclass(frozen=True)
class Problem:
    """A system as this process has it: all rows, or its own ones."""

    matrix: Any
    """What Solver takes; it has a shape, and a number of entries, nnz."""
    b: NDArray[Any]
    guess: NDArray[Any] | None
    norm: float
    """‖b‖₂, of all rows."""
    partition: PartitionLike = "auto"
    own: DistributedInput | None = None
    """This rank has its own rows alone, and vectors are those of these."""
