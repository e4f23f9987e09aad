"""The command `cpufree stencil`: Jacobi iterations on a grid."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from cpufree import distributed, options
from cpufree.cli import display
from cpufree.cli.commands import (
    check_can_write,
    check_different,
    parse_count,
    parse_gpus,
    save_grid,
    write_json,
)
from cpufree.cli.option_types import Choice, as_option, choice
from cpufree.cli.rank_commands import as_rank, can_write_together, write_together
from cpufree.cli.stencil_input import FirstValues, parse
from cpufree.errors import CpufreeError
from cpufree.text import counted

if TYPE_CHECKING:
    from cpufree.stencil import StencilResult

EPILOG = """
[bold]Examples[/bold]

  cpufree stencil jacobi2d --grid 8192x8192 --iters 10000

  cpufree stencil jacobi2d --grid 8192x8192 --iters 10000 --gpus 0,1

  cpufree stencil jacobi3d --grid 256^3 --iters 1000 --precision single --boundary periodic

  cpufree run -n 8 stencil jacobi2d --grid 8192x8192 --iters 10000

  cpufree stencil jacobi2d --init u0.npy --iters 100000 --tol 1e-8 --output u.npy

[bold]Exit codes[/bold]

  0 done, or converged · 1 unexpected error · 2 wrong usage · 3 wrong input or file · 4 engine
  failed or not available, or --check found a difference · 5 out of memory

  not finished: 10 iterations (--iters) · 12 time limit · 130 interrupted (Ctrl-C; the values so
  far are kept)
"""

EXIT_CODES = {
    "CONVERGED_ITS": 0,
    "CONVERGED_ATOL": 0,
    "DIVERGED_ITS": 10,
    "TIME_LIMIT": 12,
    "DIVERGED_NANORINF": 13,
    "INTERRUPTED": 130,
}


class Kind(str, Enum):
    """Stencils."""

    jacobi2d = "jacobi2d"
    jacobi3d = "jacobi3d"

    @property
    def dims(self) -> int:
        """Dimensions of the grid."""
        return 2 if self is Kind.jacobi2d else 3


if TYPE_CHECKING:
    Precision: TypeAlias = Choice
    Engine: TypeAlias = Choice
else:
    Precision, Engine = choice(options.PRECISION), choice(options.ENGINE)


class Mismatch(CpufreeError):
    """A result is not what the reference computes."""


def stencil(
    kind: Annotated[Kind, typer.Argument(help="5 points in two dimensions, or 7 in three.")],
    iters: Annotated[int, as_option(options.ITERS)],
    grid: Annotated[str | None, as_option(options.GRID)] = options.GRID.preset,
    init: Annotated[str | None, as_option(options.INIT)] = options.INIT.preset,
    boundary: Annotated[str, as_option(options.BOUNDARY)] = options.BOUNDARY.preset,
    precision: Annotated[Precision | None, as_option(options.PRECISION)] = options.PRECISION.preset,
    tol: Annotated[float | None, as_option(options.TOL)] = options.TOL.preset,
    check_every: Annotated[int | None, as_option(options.CHECK_EVERY)] = options.CHECK_EVERY.preset,
    gpus: Annotated[str, as_option(options.GPUS)] = options.GPUS.preset,
    pes: Annotated[str, as_option(options.PES)] = options.PES.preset,
    blocks: Annotated[str, as_option(options.BLOCKS)] = options.BLOCKS.preset,
    engine: Annotated[Engine, as_option(options.STENCIL_ENGINE)] = options.STENCIL_ENGINE.preset,
    halo_steps: Annotated[str, as_option(options.HALO_STEPS)] = options.HALO_STEPS.preset,
    time_limit: Annotated[float | None, as_option(options.TIME_LIMIT)] = options.TIME_LIMIT.preset,
    check: Annotated[bool, as_option(options.COMPARE)] = options.COMPARE.preset,
    output: Annotated[str | None, as_option(options.OUTPUT)] = options.OUTPUT.preset,
    json_: Annotated[str | None, as_option(options.JSON, "--json")] = options.JSON.preset,
    quiet: Annotated[bool, as_option(options.QUIET, "--quiet", "-q")] = options.QUIET.preset,
) -> None:
    """Do Jacobi iterations on a grid: each value becomes the mean of its neighbours."""
    from cpufree.stencil.grid_input import as_boundary

    how: dict[str, Any] = {
        "pes": parse_count(pes, "--pes"),
        "blocks": parse_count(blocks, "--blocks"),
        "gpus": parse_gpus(gpus),
        "halo_steps": parse_count(halo_steps, "--halo-steps"),
        "tol": tol,
        "check_every": check_every,
        "time_limit": time_limit,
    }
    dtype: type[np.float32] | type[np.float64] | None = None
    if precision is not None:
        dtype = np.float32 if precision.value == "single" else np.float64
    first = parse(init or "hot-wall", grid, kind.dims, dtype)
    names = boundary.split(",") if "," in boundary else boundary
    with as_rank(engine.value) as (chosen, speaks):
        if speaks:
            check_can_write(output, (".npy",))
            check_can_write(json_)
            check_different(output, json_)
        as_boundary(names, kind.dims)
        how |= {"engine": chosen, "boundary": names}
        work = StencilWork(kind, first, iters, how, check, output, json_)
        code = work.run(quiet, speaks)
    raise typer.Exit(code)


@dataclass(frozen=True)
class StencilWork:
    """Iterations to be done, and where the values go."""

    kind: Kind
    first: FirstValues
    iters: int
    how: dict[str, Any]
    """Options of jacobi."""
    check: bool
    output: str | None
    json: str | None

    @property
    def together(self) -> bool:
        """Whether each of several ranks writes its own part of the values."""
        team = distributed.current()
        return team is not None and not self.check and can_write_together(self.output, team)

    def run(self, quiet: bool, speaks: bool) -> int:
        """Iterate; where this process speaks, report and write. Return the exit code."""
        from cpufree.stencil import jacobi
        from cpufree.stencil.grid_input import whole

        notes = Console(stderr=True, highlight=False, quiet=quiet or not speaks)
        paper = display.report_console(stderr=self.json == "-", quiet=quiet or not speaks)
        start = self.first.open()
        u0: Any = start.function
        given: dict[str, Any] = {"shape": start.shape, "dtype": start.dtype}
        if distributed.current() is None:
            u0, given = start.part(whole(start.shape)), {}
        gather = self.check or (self.output is not None and not self.together)
        with Follow(notes, "iterating", self.iters) as follow:
            result = jacobi(u0, self.iters, progress=follow, gather=gather, **given, **self.how)
        where = self._save(result, speaks)
        if self.json and speaks:
            facts = {"stencil": self.kind.value, "boundary": self.boundary}
            write_json(self.json, {**facts, **result.to_dict()})
        paper.print(report(self.kind, result))
        if where:
            paper.print(Text(f"  {where}"))
        if self.check and speaks:
            compare(result, start.part(whole(start.shape)), self.how["boundary"], notes)
            paper.print(Text("  check: equal to the serial reference, bit for bit", style="green"))
        return EXIT_CODES[result.reason.value]

    @property
    def boundary(self) -> str:
        """The boundary as it was asked for."""
        names = self.how["boundary"]
        return names if isinstance(names, str) else ",".join(names)

    def _save(self, result: StencilResult, speaks: bool) -> str:
        """Write the values where that is asked for; return where they are."""
        if self.output is None:
            return ""
        if self.together:
            return write_together(self.output, result.shape, result.box, result.u, "values")
        if speaks:
            save_grid(self.output, result.u)
        return f"values in {self.output}"


def report(kind: Kind, result: StencilResult) -> RenderableType:
    """Return what is reported at the end of a run."""
    plan = result.plan
    count = counted(result.iterations, "iteration")
    grid = " × ".join(map(str, result.shape))
    rows = [
        ("grid", f"{grid}, {result.u.dtype}, {display.number(result.updates)} points updated"),
        ("ended", f"{result.reason.meaning} ({result.reason})"),
        ("time", f"{display.seconds(result.seconds)}, {display.seconds(result.per_iteration)} per "
         "iteration"),
    ]  # fmt: skip
    if not math.isnan(result.glups):
        rate = result.moved_bytes / result.per_iteration * 1e-9
        moved = f"{display.size(result.moved_bytes)} per iteration, were each value read and "
        rows.append(("rate", f"{result.glups:.4g} GLUP/s"))
        rows.append(("bytes", f"{moved}written once: {rate:.3g} GB/s at this rate"))
    if not math.isnan(result.residual):
        rows.append(("last change", f"{result.residual:.3e} at most"))
    where = f"{counted(result.pes, 'PE')} × {counted(result.blocks, 'block')}"
    rows.append(("engine", f"{result.engine}: {where}"))
    if "halo" in plan and plan["halo"] != "none":
        every = counted(result.halo_steps, "iteration")
        rows.append(
            (
                "halos",
                f"{display.number(plan['halo_points'])} points as {plan['halo']} every {every}, "
                f"{display.number(plan['pe_halo_points'])} of them between PEs",
            )
        )
    title = f"{kind.value}: {count}"
    lines = [Text(f"  warning: {text}", style="yellow") for text in result.warnings]
    return Group(display.pairs(rows, title), *lines)


def compare(result: StencilResult, u0: NDArray[Any], boundary: Any, notes: Console) -> None:
    """Raise Mismatch unless the values are those of the serial reference."""
    from cpufree.stencil import reference

    with Follow(notes, "checking", result.iterations) as follow:
        expected = reference(
            u0,
            result.iterations,
            boundary=boundary,
            progress=lambda done: follow(done, math.nan),
        )
    wrong = int(np.count_nonzero(result.u.view(np.uint8) != expected.view(np.uint8)))
    if wrong:
        points = int(np.count_nonzero(result.u != expected))
        raise Mismatch(
            f"the check failed: {counted(points, 'point')} of {result.u.size} differ from the "
            "serial reference; please report this"
        )


class Follow:
    """One line on stderr with the iterations done; on a terminal only. Pass it as `progress`."""

    def __init__(self, console: Console, what: str, iterations: int) -> None:
        """Follow a run of so many iterations."""
        self.bar = Progress(
            TextColumn(f"  {what}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f} of {task.total:.0f}"),
            TextColumn("{task.fields[change]}"),
            TextColumn("{task.fields[elapsed]:.1f} s"),
            console=console,
            transient=True,
        )
        self.begin = time.perf_counter()
        self.shown = console.is_terminal and not console.quiet
        self.task = self.bar.add_task("", total=iterations, change="", elapsed=0.0)

    def __enter__(self) -> Follow:
        if self.shown:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.shown:
            self.bar.stop()

    def __call__(self, iteration: int, update: float) -> bool:
        """Show how far a run is; always asks to go on."""
        change = "" if math.isnan(update) else f"rms change {update:.1e}"
        elapsed = time.perf_counter() - self.begin
        self.bar.update(self.task, completed=iteration, change=change, elapsed=elapsed)
        return True
