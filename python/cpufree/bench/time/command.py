"""The command `cpufree bench time`."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from cpufree.bench.options import Quiet, known_word, number, parse_pes, words
from cpufree.cli import display

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
        str,
        typer.Option(metavar="LIST", help="cpufree, scipy, cupy; auto: all installed."),
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
    from cpufree.bench.declared.command import measure_into
    from cpufree.bench.declared.measure import Chosen
    from cpufree.bench.time import tables
    from cpufree.bench.time.measure import TIMES
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
    asked: dict[str, Sequence[object]] = {
        "matrix": matrices or [QUICK if quick else DEFAULT],
        "method": words(kinds, "--kinds", KINDS),
        "pes": [",".join(map(str, parse_pes(pes, on))) if pes else ""],
        "engine": [engine],
        "rtol": [rtol],
        "max_iterations": [max_iterations],
        "solves": [solves],
        "timeout": [timeout],
    }
    axes = TIMES.chosen({k: [*map(str, v)] for k, v in asked.items()}, on_gpus=True, quick=False)
    if pes:
        chosen = (*chosen, *(f"cpufree on {count}" for count in parse_pes(pes, on)))
    plan = Chosen(
        axes={name: [*values] for name, values in axes.items()},
        contenders=chosen,
        repeats=1 if quick else repeats,
        seed=seed,
        gpus=on,
    )
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d-%H%M%S")
    to = out or Path(f"bench-time-{stamp}.jsonl")
    notes = Console(stderr=True, highlight=False, quiet=quiet)
    lines = measure_into(to, TIMES, plan, TIMES.cases(axes, chosen), notes)
    paper = display.report_console()
    paper.print(display.columns(tables.HEADS, tables.rows(lines), "Wall times"))
    notes.print(Text(f"written: {to}"), soft_wrap=True)
    raise typer.Exit(0 if tables.collect(lines) else NOTHING_MEASURED)
