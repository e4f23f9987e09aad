"""The command `cpufree bench triggered`."""

from __future__ import annotations

import datetime
import shlex
import sys
from collections.abc import Sequence
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from cpufree.bench.options import Quiet, number, words
from cpufree.cli import display

if TYPE_CHECKING:
    from cpufree.bench.triggered.measure import Plan, Series

EPILOG = """
[bold]Examples[/bold]

  cpufree bench triggered --quick

  cpufree bench triggered --back-ends thread,libfabric --plot messages.png --json messages.json

  cpufree bench triggered --studies allreduce --sizes 8192,1048576 --pes 4
"""
QUICK_SIZES = (64, 65536)
MOST_BYTES = 1 << 28


def triggered_command(
    studies: Annotated[
        str, typer.Option(metavar="LIST", help="messages, jacobi, allreduce.")
    ] = "messages,jacobi,allreduce",
    back_ends: Annotated[
        str, typer.Option(metavar="LIST", help="thread, libfabric, libfabric_queue.")
    ] = "thread",
    sizes: Annotated[
        str, typer.Option(metavar="LIST", help="Bytes of messages and vectors: multiples of 8.")
    ] = "64,4096,65536,1048576",
    grids: Annotated[
        str, typer.Option(metavar="LIST", help="Points along each side of Jacobi's grids.")
    ] = "64,256",
    pes: Annotated[int, number("--pes", "PEs of Jacobi and all-reduce.")] = 2,
    blocks: Annotated[int, number("--blocks", "Blocks of each.")] = 1,
    repeats: Annotated[int, number("--repeats", "Rounds, each in random order.")] = 5,
    seed: Annotated[int, number("--seed", "Of the random order.", least=0)] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two rounds of small sizes: some seconds.")
    ] = False,
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="All samples; - is stdout.")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where the time of the smallest message goes."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Measure triggered puts next to what they replace: messages, Jacobi, all-reduces."""
    from cpufree.bench.triggered import measure
    from cpufree.cli.commands import PLOT_SUFFIXES, check_can_write
    from cpufree.triggered.extension import BACK_ENDS, missing_back_ends

    chosen = words(back_ends, "--back-ends", BACK_ENDS)
    missing = missing_back_ends()
    for name in chosen:
        if name in missing:
            raise typer.BadParameter(f"{name}: {missing[name]}", param_hint="--back-ends")
    check_can_write(json)
    check_can_write(plot, PLOT_SUFFIXES)
    plan = measure.Plan(
        studies=words(studies, "--studies", measure.STUDIES),
        back_ends=chosen,
        sizes=QUICK_SIZES if quick else _numbers(sizes, "--sizes", 8, MOST_BYTES),
        grids=(64,) if quick else _numbers(grids, "--grids", 1, 1 << 15),
        pes=pes,
        blocks=blocks,
        repeats=2 if quick else repeats,
        seed=seed,
    )
    if plot is not None and "messages" not in plan.studies:
        raise typer.BadParameter("only messages are drawn", param_hint="--plot")
    notes = Console(stderr=True, highlight=False, quiet=quiet)
    measured = measure.measure(
        plan, lambda text: notes.print(Text(f"  {text}", style="dim"), soft_wrap=True)
    )
    _show(measured, quiet or json == "-")
    _write(measured, plan, json, plot)


def _numbers(text: str, option: str, unit: int, most: int) -> tuple[int, ...]:
    """Return whole numbers of a list: multiples of `unit` up to `most`."""
    found = words(text, option)
    for word in found:
        if not (word.isascii() and word.isdigit() and 0 < int(word) <= most) or int(word) % unit:
            of = f"multiples of {unit}" if unit > 1 else "whole numbers"
            what = f"'{word}': give {of} up to {most}, such as {8 * unit},{64 * unit}"
            raise typer.BadParameter(what, param_hint=option)
    return tuple(map(int, found))


def _show(measured: Sequence[Series], quiet: bool) -> None:
    from cpufree.bench.triggered import tables

    paper = display.report_console(quiet=quiet)
    if rows := tables.message_rows(measured):
        paper.print(display.columns(tables.MESSAGE_HEADS, rows, "Messages: medians"))
    if rows := tables.other_rows(measured):
        heads = tables.OTHER_HEADS
        paper.print(display.columns(heads, rows, "Time of an iteration, and of an all-reduce"))


def _write(measured: Sequence[Series], plan: Plan, to: str | None, plot: str | None) -> None:
    from cpufree.bench.triggered import tables
    from cpufree.output_file import write_text

    if plot is not None:
        from cpufree.bench.triggered import picture

        picture.save(picture.draw(measured), plot)
    if to is None:
        return
    text = dumps({**_header(plan), "series": tables.facts(measured)}, indent=1) + "\n"
    if to == "-":
        sys.stdout.write(text)
    else:
        write_text(to, text)


def _header(plan: Plan) -> dict[str, Any]:
    from dataclasses import asdict

    from cpufree.bench.core.machine import describe_machine, package_version, source_state

    return {
        "benchmark": "triggered",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["cpufree", *sys.argv[1:]]),
        "plan": asdict(plan),
        "machine": describe_machine(),
        "versions": {name: package_version(name) for name in ("cpufree", "numpy")},
        "source": source_state(),
    }
