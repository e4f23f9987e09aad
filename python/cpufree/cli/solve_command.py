"""What `cpufree solve` does, in one process or as one of several ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from cpufree import distributed, options
from cpufree.cli import display, endings, timeline
from cpufree.cli.commands import (
    Outputs,
    check_length,
    describe_plan,
    load_system,
    read_partition,
    read_vector,
    right_hand_side,
    size_of,
    stage,
)
from cpufree.cli.option_types import with_options
from cpufree.cli.rank_commands import as_rank, can_write_together, write_together
from cpufree.cli.run_record import run_record
from cpufree.dtypes import vector_type
from cpufree.engines.progress_bar import ProgressBar, of_digits
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.laps import Laps
from cpufree.solvers.scipy_functions.answer_check import AnswerCheck, check_answer, judged
from cpufree.trace.asked import of_command

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cpufree.cli.distributed_input import DistributedInput
    from cpufree.matrix.given_factor import Factor
    from cpufree.partition.part_vector import PartitionLike
    from cpufree.solvers.result import Result
    from cpufree.solvers.solver import Solver


EPILOG = f"""
[bold]Examples[/bold]

  cpufree solve A.mtx.gz --rhs b.npy --rtol 1e-8 --out x.npy

  cpufree solve "gen:poisson3d?nx=60,ny=60,nz=60" --pes 4 --plot convergence.png

  cpufree solve A.npz --method cg --pc chebyshev --json report.json

  cpufree solve A.mtx --gpus 0-3

  cpufree solve A.mtx --pes 4 --trace out.pftrace

  cpufree solve A.mtx --pes 8 --partition A.mtx.part.8

[bold]Exit codes[/bold]

  0 converged · 1 unexpected error · 2 wrong usage · 3 wrong input or file · 4 engine failed or
  not available · 5 out of memory

  not converged: {endings.exit_codes()}
"""

# Options of Solver and of Solver.solve that are those of the command line.
SETUP = (
    *("gpus", "pes", "blocks", "partition_cache", "reorder"),
    *("pc", "pc_level", "nullspace"),
    *("near_nullspace", "coordinates", "unknowns"),
)
LIMITS = ("rtol", "atol", "maxiter", "time_limit", "wait_limit")
SINGLE = (np.float32, np.complex64)
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
    laps: Laps = field(default_factory=Laps)
    """Of the command, until now."""

    @property
    def check(self) -> bool:
        """Whether matrix and answer are checked."""
        return bool(self.given["check"])

    def dtype(self, matrix: Any) -> np.dtype[Any]:
        """Return the type of the solve."""
        precision = self.given["precision"]
        kind: np.dtype[Any] = np.dtype(
            "double" if precision == "mixed" else precision or matrix.dtype
        )
        return vector_type(kind, getattr(matrix, "of_complex", False))

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
        from cpufree.engines.asked import Asked
        from cpufree.engines.early import start_gpus

        self.laps.lap("imports")
        team = distributed.current()
        rhs, x0, how = (self.given[name] for name in ("rhs", "x0", "partition"))
        need = DistributedInputOptions(team, self.engine, self.outputs.out, (rhs, x0), how)
        rows = choose_rows(self.matrix, self.given["input"], need)
        if rows is None or team is None:
            pes = self.given["pes"] if team is None else team.size
            partition = read_partition(how, pes if isinstance(pes, int) else None)
            asked = Asked(self.engine, self.given["gpus"], self.given["pes"])
            if team is None:
                start_gpus(asked, Env.read(), self.matrix)
            system = load_system(self.matrix, notes)
            self.laps.lap("generating" if self.matrix.startswith("gen:") else "reading")
            check_length(partition, system, how)
            n, dtype = system.given_shape[0], self.dtype(system)
            b = right_hand_side(rhs, n, dtype)
            guess = None if x0 is None else read_vector(x0, n, dtype, "x0")
            return Problem(system, b, guess, float(np.linalg.norm(b)), partition)
        own = DistributedInput(rows, team, self.dtype(rows))
        b = own.right_hand_side(rhs)
        guess = None if x0 is None else own.vector(x0)
        return Problem(rows, b, guess, own.norm(b), own=own)

    def run(self, speaks: bool) -> int:
        """Solve; where this process speaks, report and write. Return the exit code."""
        laps = self.laps
        laps.lap("join")
        notes = Console(stderr=True, highlight=False, quiet=self.given["quiet"] or not speaks)
        problem = self.load(notes)
        laps.lap("vectors")
        gather = self.wants_all(problem.own is not None)
        tolerance = max(self.given["rtol"] * problem.norm, self.given["atol"])
        how = {name: self.given[name] for name in HOW}
        if self.given["factor"] is not None:
            how["pc"] = None  # that of the Solver
        with self._set_up(problem, notes) as solver:
            share = of_digits(problem.norm, tolerance)
            with ProgressBar(f"  solving to {tolerance:.1e}", share, notes) as progress:
                result = solver.solve(
                    problem.b, problem.guess, progress=progress, gather=gather,
                    trace=of_command(self.outputs.trace, self.given["trace_every"]), **how,
                )  # fmt: skip
            laps.lap("solve")
            if self.given["nullspace"] is not None:
                problem = dataclasses.replace(problem, b=solver.within_range(problem.b))
                tolerance = result.tolerance
            lines = []
            if self.outputs.out and not gather:
                lines.append(self._write_together(problem, solver, result))
                laps.lap("write")
            plan = solver.plan
        laps.lap("free")
        if speaks:
            result = self._report(problem, result, tolerance, plan, lines)
        return endings.ENDINGS[result.reason].exit_code

    def _set_up(self, problem: Problem, notes: Console) -> Solver:
        """Return the solver of a system."""
        from cpufree.engines.expected import Workload  # heavy imports, apart from the set-up
        from cpufree.solvers.forecast import ExpectedCall
        from cpufree.solvers.solver import Solver

        self.laps.lap("imports")
        setup = {name: self.given[name] for name in SETUP}
        if self.given["factor"] is not None:
            setup["pc"] = given_factor(self.given["factor"], self.given["pc"])
        setup |= {"engine": self.engine, "partition": problem.partition, "check": self.check}
        workload = Workload(self.given["solves"], self.given["rtol"], self.given["maxiter"])
        call = ExpectedCall(workload, method=self.given["method"])
        setup |= {"dtype": self.dtype(problem.matrix), "_call": call}
        setup["precision"] = "mixed" if self.given["precision"] == "mixed" else None
        solver = stage(
            notes,
            "setting up",
            lambda: Solver(problem.matrix, **setup),
            describe_plan,
        )
        self.laps.lap("setup")
        return solver

    def _report(
        self,
        problem: Problem,
        result: Result,
        tolerance: float,
        plan: Mapping[str, Any],
        lines: list[str],
    ) -> Result:
        """Check the answer, write what is still to be written, show the report.

        Return the result as the check leaves it.
        """
        laps, outputs = self.laps, self.outputs
        result = result.of_rhs(self.describe_rhs())
        if lines:  # x lies there
            outputs = dataclasses.replace(outputs, out=None)
        checked = None
        if self.check and problem.own is None:
            checked = check_answer(problem.matrix, problem.b, result.x, tolerance)
            result = judged(result, checked, tolerance)
            laps.lap("check")

        def facts() -> dict[str, Any]:
            laps.lap("write")
            return self._facts(problem, result, tolerance, checked)

        paper = display.report_console(stderr=outputs.json == "-")
        try:
            # First: the report may fail, on a full disk.
            lines = lines + outputs.write(result, problem.matrix, self.matrix, tolerance, facts)
            laps.lap("write")
        finally:
            if self.given["quiet"]:
                paper.print(Text(endings.verdict(result)))
            else:
                paper.print(Text(self.matrix, style="bold"))
                paper.print(display.result_report(result, tolerance, checked, plan))
                for line in lines:
                    paper.print(Text(f"  {line}"))
        laps.lap("report")
        if self.given["timings"]:
            paper.print(timeline.chart(timeline.phases(laps, result.timings)))
        return result

    def describe_rhs(self) -> str:
        """Return what b is: a word of --rhs, or a file."""
        rhs = self.given["rhs"]
        words = {"ones": "all ones (the default of --rhs)", "random": "random, standard normal"}
        return words.get(rhs, f"file {rhs}")

    def _write_together(self, problem: Problem, solver: Solver, result: Result) -> str:
        """Write x, each rank its own rows; return where it lies."""
        if problem.own is None:
            rows, mine = solver.rows, result.x[solver.rows]
        else:
            rows, mine = problem.own.places(result.x)
        assert self.outputs.out is not None
        shape = (size_of(problem.matrix)[0],)
        return write_together(self.outputs.out, shape, rows, mine, "solution")

    def _facts(
        self, problem: Problem, result: Result, tolerance: float, checked: AnswerCheck | None
    ) -> dict[str, Any]:
        """Return what the report in JSON says besides the result."""
        used = {name: getattr(result, name) for name in ("method", "pc", "engine", "pes", "blocks")}
        rows, nnz = size_of(problem.matrix)
        record = run_record(
            ("solve", self.matrix),
            options.SOLVE,
            self.given,
            **used,
            gpus=list(result.gpus),
            maxiter=10 * rows if self.given["maxiter"] is None else self.given["maxiter"],
            wait_limit=self.given["wait_limit"] or Env.read().wait_limit or options.WAIT_SECONDS,
            precision=self.given["precision"]
            or ("single" if self.dtype(problem.matrix) in SINGLE else "double"),
            input="whole" if problem.own is None else "rows",
        )
        workload = {"rtol": self.given["rtol"], "atol": self.given["atol"], "residual": tolerance}
        facts = {"problem": self.matrix, "rows": rows, "nnz": nnz}
        check = None if checked is None else dataclasses.asdict(checked)
        passed = timeline.phases(self.laps, result.timings)
        return {**record, **facts, "tolerances": workload, "check": check, "phases": passed}


def given_factor(path: str, pc: str) -> Factor:
    """Return the factor in a file; InvalidInputError where --pc names something else."""
    from cpufree.matrix.given_factor import given
    from cpufree.matrix.load import canonical_csr

    if pc not in ("auto", "fsai"):
        raise InvalidInputError(f"--factor gives a preconditioner, and --pc {pc} another one")
    return given(canonical_csr(path).given())


@dataclass(frozen=True)
class Problem:
    """A system as this process has it: all rows, or its own ones."""

    matrix: Any
    """It has a shape, and a number of entries, nnz. Solver takes it."""
    b: NDArray[Any]
    guess: NDArray[Any] | None
    norm: float
    """‖b‖₂, of all rows."""
    partition: PartitionLike = "auto"
    own: DistributedInput | None = None
    """This rank has its own rows alone, and vectors are those of these."""


@with_options(options.SOLVE)
def solve(
    matrix: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="The matrix: .mtx, .mtx.gz, .npz, .npy, .cpufree, or a generator "
            "(gen:NAME?key=value,...; see cpufree generate --list).",
        ),
    ],
    given: dict[str, Any],
) -> None:
    """Solve A x = b, A sparse, symmetric and positive definite."""
    laps = timeline.take()
    laps.lap("imports")
    of_command(given["trace"], given["trace_every"])
    outputs = Outputs(given["json"], given["plot"], given["out"], given["trace"])
    with as_rank(given["engine"]) as (engine, speaks):
        if speaks:
            outputs.check((matrix, given["rhs"], given["partition"]))
        code = SolveWork(matrix, given, engine, outputs, laps).run(speaks)
    raise typer.Exit(code)
