"""The command `cpufree stencil`: Jacobi iterations on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.text import Text

from cpufree import distributed, options
from cpufree.cli import display
from cpufree.cli.commands import (
    PLOT_SUFFIXES,
    check_can_write,
    check_different,
    save_grid,
    write_json,
)
from cpufree.cli.option_types import as_argument, with_options
from cpufree.cli.rank_commands import as_rank, can_write_together, write_together
from cpufree.cli.run_record import run_record
from cpufree.cli.stencil_input import FirstValues, parse, parse_boundary
from cpufree.engines.progress_bar import ProgressBar, of_iterations
from cpufree.env import Env
from cpufree.errors import CpufreeError
from cpufree.options import stencil as stencil_options
from cpufree.text import counted
from cpufree.trace.asked import SUFFIXES, of_command

if TYPE_CHECKING:
    from cpufree.stencil import StencilResult

EPILOG = """
[bold]Examples[/bold]

  cpufree stencil jacobi2d --grid 8192x8192 --iters 10000

  cpufree stencil jacobi2d --grid 8192x8192 --iters 10000 --gpus 0,1

  cpufree stencil jacobi2d --grid 200x200 --iters 5000 --plot heat.png

  cpufree stencil jacobi3d --grid 256^3 --iters 1000 --precision single --boundary periodic

  cpufree stencil jacobi2d --grid 512x512 --iters 100 --pes 4 --trace out.pftrace

  cpufree run -n 8 stencil jacobi2d --grid 8192x8192 --iters 10000

  cpufree stencil jacobi2d --init u0.npy --iters 100000 --tol 1e-8 --out u.npy

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


class Mismatch(CpufreeError):
    """A result is not what the reference computes."""


@with_options(stencil_options.STENCIL)
def stencil(
    kind: Annotated[str, as_argument(stencil_options.KIND)],
    given: dict[str, Any],
) -> None:
    """Do Jacobi iterations on a grid: each value becomes the mean of its neighbours."""
    dims = 2 if kind == "jacobi2d" else 3
    words = {"single": np.float32, "double": np.float64}
    dtype: Any = words.get(given["precision"])
    first = parse(given["init"] or "hot-wall", given["grid"], dims, dtype)
    boundary = parse_boundary(given["boundary"], dims)
    of_command(given["trace"], given["trace_every"])
    with as_rank(given["engine"]) as (engine, speaks):
        if speaks:
            check_can_write(given["out"], (".npy",))
            check_can_write(given["json"])
            check_can_write(given["plot"], PLOT_SUFFIXES)
            check_can_write(given["trace"], SUFFIXES)
            check_different(given["out"], given["json"], given["plot"], given["trace"])
        code = StencilWork(kind, first, given, {"engine": engine, "boundary": boundary}).run(speaks)
    raise typer.Exit(code)


# Options of jacobi that are those of the command line.
HOW = ("pes", "blocks", "gpus", "halo_steps", "tol", "check_every", "time_limit", "wait_limit")


@dataclass(frozen=True)
class StencilWork:
    """Iterations to be done, and where the values go."""

    kind: str
    first: FirstValues
    given: dict[str, Any]
    """The options, by name."""
    chosen: dict[str, Any]
    """Engine and boundary, as jacobi takes them."""

    @property
    def check(self) -> bool:
        """Whether the values are compared with the reference."""
        return bool(self.given["check"])

    @property
    def together(self) -> bool:
        """Whether each of several ranks writes its own part of the values."""
        team = distributed.current()
        whole = self.check or self.given["plot"] is not None
        return team is not None and not whole and can_write_together(self.given["out"], team)

    def run(self, speaks: bool) -> int:
        """Iterate; where this process speaks, report and write. Return the exit code."""
        from cpufree.stencil import jacobi
        from cpufree.stencil.grid_input import whole

        quiet, out, json, plot = (self.given[name] for name in ("quiet", "out", "json", "plot"))
        notes = Console(stderr=True, highlight=False, quiet=quiet or not speaks)
        paper = display.report_console(stderr=json == "-", quiet=not speaks)
        start = self.first.open()
        u0: Any = start.function
        how = {**{name: self.given[name] for name in HOW}, **self.chosen}
        if distributed.current() is None:
            u0 = start.part(whole(start.shape))
        else:
            how |= {"shape": start.shape, "dtype": start.dtype}
        gather = self.check or plot is not None or (out is not None and not self.together)
        share = of_iterations(self.given["iters"])
        with ProgressBar("  iterating", share, notes) as follow:
            result = jacobi(
                u0,
                self.given["iters"],
                progress=follow,
                gather=gather,
                trace=of_command(self.given["trace"], self.given["trace_every"]),
                **how,
            )
        lines = self._save(result, speaks)
        if json and speaks:
            write_json(json, {**self._facts(result), **result.to_dict()})
        if quiet:
            paper.print(Text(verdict(self.kind, result)))
        else:
            paper.print(report(self.kind, result))
            for line in lines:
                paper.print(Text(f"  {line}"))
        if self.check and speaks:
            compare(result, start.part(whole(start.shape)), self.chosen["boundary"], notes)
            if not quiet:
                same = "  check: equal to the serial reference, bit for bit"
                paper.print(Text(same, style="green"))
        return EXIT_CODES[result.reason.value]

    def _facts(self, result: StencilResult) -> dict[str, Any]:
        """Return what the report in JSON says besides the result."""
        used = {name: getattr(result, name) for name in ("engine", "pes", "blocks", "halo_steps")}
        record = run_record(
            ("stencil", self.kind),
            stencil_options.STENCIL,
            self.given,
            **used,
            gpus=list(result.plan.get("gpus", [])),
            grid="x".join(map(str, result.shape)),
            init=self.given["init"] or "hot-wall",
            precision="single" if result.u.dtype.name == "float32" else "double",
            check_every=result.plan.get("check_every"),
            wait_limit=self.given["wait_limit"] or Env.read().wait_limit or options.WAIT_SECONDS,
        )
        tolerances = {"tol": self.given["tol"]}
        facts = {"stencil": self.kind, "boundary": self.given["boundary"]}
        return {**record, **facts, "tolerances": tolerances}

    def _save(self, result: StencilResult, speaks: bool) -> list[str]:
        """Write the values and their picture where that is asked for; return where they are."""
        lines = []
        out, plot = self.given["out"], self.given["plot"]
        if out is not None and self.together:
            lines.append(write_together(out, result.shape, result.box, result.u, "values"))
        elif out is not None:
            if speaks:
                save_grid(out, result.u)
            lines.append(f"values in {out}")
        if self.given["trace"] is not None:
            lines.append(f"trace in {self.given['trace']}")
        if plot is not None and speaks:
            from cpufree.cli.plot import plot_array  # a heavy import

            plot_array(result.u, plot, verdict(self.kind, result))
            lines.append(f"plot in {plot}")
        return lines


def verdict(kind: str, result: StencilResult) -> str:
    """Return one sentence: how many iterations, and why they ended."""
    count = counted(result.iterations, "iteration")
    return f"{kind}: {count}: {result.reason.meaning} ({result.reason})"


def report(kind: str, result: StencilResult) -> RenderableType:
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
    title = f"{kind}: {count}"
    lines = [Text(f"  warning: {text}", style="yellow") for text in result.warnings]
    return Group(display.pairs(rows, title), *lines)


def compare(result: StencilResult, u0: NDArray[Any], boundary: Any, notes: Console) -> None:
    """Raise Mismatch unless the values are those of the serial reference."""
    from cpufree.stencil import reference

    with ProgressBar("  checking", of_iterations(result.iterations), notes) as follow:
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
