"""The command `cpufree bench time`."""

from __future__ import annotations

import contextlib
import datetime
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from cpufree.bench.options import Quiet, known_word, number, parse_pes, words
from cpufree.cli import display

if TYPE_CHECKING:
    from cpufree.bench.time.measure import Times

EPILOG = """
[bold]Examples[/bold]

  cpufree bench time

  cpufree bench time --quick

  cpufree bench time A.mtx --kinds script --contenders cpufree,scipy --rtol 1e-8
"""
DEFAULT = "gen:poisson3d?nx=100,ny=100,nz=100"
QUICK = "gen:poisson2d?nx=200,ny=200"
NOTHING_MEASURED = 4


def time_command(
    matrices: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MATRIX]...",
            help=f"gen:NAME?key=value, or .mtx files. Default: {DEFAULT}.",
            show_default=False,
        ),
    ] = None,
    kinds: Annotated[
        str, typer.Option(metavar="LIST", help="command, script, repeat.")
    ] = "command,script,repeat",
    contenders: Annotated[
        str, typer.Option(metavar="LIST", help="cpufree, scipy, cupy; auto: those that are here.")
    ] = "auto",
    engine: Annotated[str, typer.Option(help="Of cpufree: auto, cuda_p2p, cpu_threads.")] = "auto",
    pes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Measure the command with these numbers of PEs, too: what it could have chosen.",
            show_default=False,
        ),
    ] = None,
    rtol: Annotated[
        float, number("--rtol", "To ‖r‖ ≤ rtol × ‖b‖.", kind="number", least=1e-300, form="TOL")
    ] = 1e-8,
    max_iterations: Annotated[int, number("--max-iterations", "Most iterations.")] = 100_000,
    solves: Annotated[int, number("--solves", "Solves of a program that solves often.")] = 5,
    repeats: Annotated[int, number("--repeats", "Rounds, each in random order.")] = 5,
    seed: Annotated[int, number("--seed", "Of the random order.", least=0)] = 0,
    timeout: Annotated[
        float, number("--timeout", "Longest time of a program.", kind="number", form="SECONDS")
    ] = 600.0,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"One round of {QUICK}: under a minute.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Results, JSON lines.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Measure the wall time from a matrix to its answer: whole processes, phase by phase."""
    from cpufree.bench.time.measure import Times
    from cpufree.bench.time.programs import CONTENDERS, KINDS, why_not
    from cpufree.engines import gpus

    known_word(engine, "--engine", ("auto", "cuda_p2p", "cpu_threads"))
    there = [name for name in CONTENDERS if not why_not(name)]
    chosen = tuple(there) if contenders == "auto" else words(contenders, "--contenders", CONTENDERS)
    for name in chosen:
        if why := why_not(name):
            raise typer.BadParameter(f"{name}: {why}", param_hint="--contenders")
    usable = tuple(gpu.index for gpu in gpus.usable(gpus.find()))
    on = usable if usable and engine != "cpu_threads" else None
    times = Times(
        contenders=chosen,
        variants=("full",),
        pes=parse_pes(pes, on) if pes else (),
        precisions=("double",),
        repeats=1 if quick else repeats,
        seed=seed,
        gpus=on,
        timeout=timeout,
        tuning={},
        peers={},
        matrices=tuple(matrices or [QUICK if quick else DEFAULT]),
        kinds=words(kinds, "--kinds", KINDS),
        rtol=rtol,
        max_iterations=max_iterations,
        solves=solves,
        engine=engine,
    )
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d-%H%M%S")
    measured = measure_into(out or Path(f"bench-time-{stamp}.jsonl"), times, quiet)
    raise typer.Exit(0 if measured else NOTHING_MEASURED)


def measure_into(out: Path, times: Times, quiet: bool) -> bool:
    """Measure into a file, and show the table; return whether anything was measured."""
    from cpufree.bench.core.header import make_end, make_header
    from cpufree.bench.core.machine import CpuUse
    from cpufree.bench.core.records import Log
    from cpufree.bench.time import measure, tables
    from cpufree.cli.commands import check_can_write

    check_can_write(str(out))
    notes = Console(stderr=True, highlight=False, quiet=quiet)
    header = make_header("time", times, shlex.join(["cpufree", *sys.argv[1:]]))
    use = CpuUse()
    with contextlib.closing(Log(out, header)) as log:
        done = {
            (line["case"], line["method"], line["contender"], line["round"])
            for line in log.lines
            if line["kind"] == "measurement"
        }

        def there(number: int, one: measure.Timed) -> bool:
            return (*one.key().values(), number) in done

        def tell(what: str) -> None:
            notes.print(Text(f"  {what}", style="dim"), soft_wrap=True)

        measure.measure(times, log.write, there, tell)
        log.write(dict(make_end(use)))
        lines = log.lines
    paper = display.report_console()
    for line in lines:
        if line["kind"] == "failure":
            who = f"{line['case']}, {line['method']} of {line['contender']}"
            notes.print(Text(f"  failed: {who}: {line['error']}", style="red"), soft_wrap=True)
    paper.print(display.columns(tables.HEADS, tables.rows(lines), "Wall times"))
    notes.print(Text(f"written: {out}"), soft_wrap=True)
    return bool(tables.collect(lines))
