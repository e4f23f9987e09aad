"""What `cpufree solve` does, in one process or as one of several ranks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.text import Text

from cpufree import distributed, options
from cpufree.cli import display
from cpufree.cli.answer_check import AnswerCheck, check_answer, judged
from cpufree.cli.commands import (
    Outputs,
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
from cpufree.cli.run_record import run_record
from cpufree.env import Env

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cpufree.cli.distributed_input import DistributedInput
    from cpufree.partition.part_vector import PartitionLike
    from cpufree.solvers.result import Result
    from cpufree.solvers.solver import Solver


# Options of Solver and of Solver.solve that are those of the command line.
SETUP = ("gpus", "pes", "blocks", "reorder")
LIMITS = ("rtol", "atol", "maxiter", "time_limit", "wait_limit")
HOW = (*LIMITS, "method", "pc", "replace_every", "chebyshev_degree")


@dataclass(frozen=True)
class SolveWork:
    """A system to be solved, and where the answer goes."""

    matrix: str
    given: dict[str, Any]
    """The options, by name."""
    engine: str
    """The one for all ranks where "auto" is given."""
    outputs: Outputs

    @property
    def check(self) -> bool:
        """Whether matrix and answer are checked."""
        return bool(self.given["check"])

    def dtype(self, matrix: Any) -> np.dtype[Any]:
        """Return the type of the solve."""
        kind: np.dtype[Any] = np.dtype(self.given["precision"] or matrix.dtype)
        return kind

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
        rhs, x0, how = (self.given[name] for name in ("rhs", "x0", "partition"))
        need = DistributedInputOptions(team, self.engine, self.outputs.out, (rhs, x0), how)
        rows = choose_rows(self.matrix, self.given["input"], need)
        if rows is None or team is None:
            pes = self.given["pes"] if team is None else team.size
            partition = read_partition(how, pes if isinstance(pes, int) else None)
            system = load_system(self.matrix, notes)
            check_length(partition, system, how)
            n, dtype = system.shape[0], self.dtype(system)
            b = right_hand_side(rhs, n, dtype)
            guess = None if x0 is None else read_vector(x0, n, dtype, "x0")
            return Problem(system, b, guess, float(np.linalg.norm(b)), partition)
        own = DistributedInput(rows, team, self.dtype(rows))
        b = own.right_hand_side(rhs)
        guess = None if x0 is None else own.vector(x0)
        return Problem(rows, b, guess, own.norm(b), own=own)

    def run(self, speaks: bool) -> int:
        """Solve; where this process speaks, report and write. Return the exit code."""
        quiet = self.given["quiet"]
        notes = Console(stderr=True, highlight=False, quiet=quiet or not speaks)
        problem = self.load(notes)
        gather = self.wants_all(problem.own is not None)
        tolerance = max(self.given["rtol"] * problem.norm, self.given["atol"])
        setup = {name: self.given[name] for name in SETUP}
        setup |= {"engine": self.engine, "partition": problem.partition}
        setup |= {"dtype": self.dtype(problem.matrix)}
        how = {name: self.given[name] for name in HOW}
        with (
            stage(
                notes,
                "setting up",
                lambda: make_solver(problem.matrix, self.check, setup),
                tell_plan,
            ) as solver,
            display.SolveProgress(notes, tolerance) as progress,
        ):
            result = solver.solve(problem.b, problem.guess, progress=progress, gather=gather, **how)
        outputs, together = self.outputs, ""
        if outputs.out and not gather:
            together = self._write_together(problem, solver, result)
            outputs = dataclasses.replace(outputs, out=None)
        if speaks:
            checked = None
            if self.check and problem.own is None:
                checked = check_answer(problem.matrix, problem.b, result.x, tolerance)
                result = judged(result, checked, tolerance)
            lines = [together] if together else []
            facts = self._facts(problem, result, tolerance, checked) if outputs.json else {}
            try:
                # First: the report may fail, on a full disk.
                lines += outputs.write(result, problem.matrix, self.matrix, tolerance, facts)
            finally:
                paper = display.report_console(stderr=self.outputs.json == "-")
                if quiet:
                    paper.print(Text(display.verdict(result)))
                else:
                    paper.print(Text(self.matrix, style="bold"))
                    paper.print(display.result_report(result, tolerance, checked, solver.plan))
                    for line in lines:
                        paper.print(Text(f"  {line}"))
        return display.ENDINGS[result.reason].exit_code

    def _write_together(self, problem: Problem, solver: Solver, result: Result) -> str:
        """Write x, each rank its own rows; return where it lies."""
        if problem.own is None:
            rows, mine = solver.rows, result.x[solver.rows]
        else:
            rows, mine = problem.own.places(result.x)
        assert self.outputs.out is not None
        shape = (problem.matrix.shape[0],)
        return write_together(self.outputs.out, shape, rows, mine, "solution")

    def _facts(
        self, problem: Problem, result: Result, tolerance: float, checked: AnswerCheck | None
    ) -> dict[str, Any]:
        """Return what the report in JSON says besides the result."""
        used = {name: getattr(result, name) for name in ("method", "pc", "engine", "pes", "blocks")}
        rows = problem.matrix.shape[0]
        record = run_record(
            ("solve", self.matrix),
            options.SOLVE,
            self.given,
            **used,
            gpus=list(result.gpus),
            maxiter=10 * rows if self.given["maxiter"] is None else self.given["maxiter"],
            wait_limit=self.given["wait_limit"] or Env.read().wait_limit or options.WAIT_SECONDS,
            precision="single" if self.dtype(problem.matrix) == np.float32 else "double",
            input="whole" if problem.own is None else "rows",
        )
        goal = {"rtol": self.given["rtol"], "atol": self.given["atol"], "residual": tolerance}
        facts = {"problem": self.matrix, "rows": rows, "nnz": int(problem.matrix.nnz)}
        check = None if checked is None else dataclasses.asdict(checked)
        return {**record, **facts, "tolerances": goal, "check": check}


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
