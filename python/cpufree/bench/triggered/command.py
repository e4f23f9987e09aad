"""The command `cpufree bench triggered`."""

from __future__ import annotations

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
    from cpufree.bench.triggered.on_gpus import GpuPlan

EPILOG = """
[bold]Examples[/bold]

  cpufree bench triggered --quick

  cpufree bench triggered --back-ends thread,libfabric --plot messages.png --json messages.json

  cpufree bench triggered --studies allreduce --sizes 8192,1048576 --pes 4

  cpufree bench triggered --gpus 0,1 --json triggered.json --plot messages.png
"""
QUICK_SIZES = (64, 65536)
MOST_BYTES = 1 << 28


def triggered_command(
    gpus: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="GPUs of PEs, such as 0,1; 0,0: both on one. No: CPUs."),
    ] = None,
    studies: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="messages, jacobi, allreduce; GPUs: overlap, soak, flood, too."
        ),
    ] = None,
    back_ends: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="thread, libfabric, libfabric_queue; GPUs: copy_engine, block, proxy.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Bytes of messages and vectors: multiples of 8."),
    ] = None,
    grids: Annotated[
        str | None, typer.Option(metavar="LIST", help="Points along each side of Jacobi's grids.")
    ] = None,
    pes: Annotated[int, number("--pes", "PEs of Jacobi and all-reduce.")] = 2,
    blocks: Annotated[int, number("--blocks", "Blocks of each.")] = 1,
    repeats: Annotated[int, number("--repeats", "Rounds, each in random order.")] = 5,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1 << 30, help="Of GPUs: of a soak.")
    ] = None,
    time_limit: Annotated[
        float, number("--time-limit", "Of GPUs: seconds, about.", kind="number", least=0)
    ] = 3600.0,
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
    from cpufree.bench.triggered import measure, on_gpus
    from cpufree.cli.commands import PLOT_SUFFIXES, check_can_write

    check_can_write(json)
    check_can_write(plot, PLOT_SUFFIXES)
    set_ = {
        "sizes": None if sizes is None else _numbers(sizes, "--sizes", 8, MOST_BYTES),
        "grids": None if grids is None else _numbers(grids, "--grids", 1, 1 << 15),
        "repeats": 2 if quick else repeats,
        "seed": seed,
    }
    plan: Plan | GpuPlan
    if gpus is None:
        plan = _cpu_plan(studies, back_ends, {**set_, "pes": pes, "blocks": blocks}, quick)
    else:
        only = {"time_limit": time_limit, "epochs": epochs}
        plan = _gpu_plan(gpus, studies, back_ends, {**set_, **only}, quick)
    if plot is not None and "messages" not in plan.studies:
        raise typer.BadParameter("only messages are drawn", param_hint="--plot")
    notes = Console(stderr=True, highlight=False, quiet=quiet)

    def tell(text: str) -> None:
        notes.print(Text(f"  {text}", style="dim"), soft_wrap=True)

    if isinstance(plan, on_gpus.GpuPlan):
        measured = on_gpus.measure(plan, tell)
    else:
        measured = measure.measure(plan, tell)
    _show(measured, quiet or json == "-")
    _write(measured, plan, json, plot)
    if not any(one.samples for one in measured):
        raise typer.Exit(1)


def _cpu_plan(
    studies: str | None, back_ends: str | None, options: dict[str, Any], quick: bool
) -> Plan:
    from cpufree.bench.triggered import measure
    from cpufree.triggered.extension import BACK_ENDS, missing_back_ends

    chosen = words(back_ends or "thread", "--back-ends", BACK_ENDS)
    missing = missing_back_ends()
    for name in chosen:
        if name in missing:
            raise typer.BadParameter(f"{name}: {missing[name]}", param_hint="--back-ends")
    if quick:
        options |= {"sizes": QUICK_SIZES, "grids": (64,)}
    return measure.Plan(
        studies=words(studies or ",".join(measure.STUDIES), "--studies", measure.STUDIES),
        back_ends=chosen,
        **{name: value for name, value in options.items() if value is not None},
    )


def _gpu_plan(
    gpus: str,
    studies: str | None,
    back_ends: str | None,
    options: dict[str, Any],
    quick: bool,
) -> GpuPlan:
    from cpufree.bench.triggered import on_gpus

    numbers = [word.strip() for word in gpus.split(",")]
    if len(numbers) < 2 or not all(word.isascii() and word.isdigit() for word in numbers):
        what = f"'{gpus}': name two GPUs or more, such as 0,1"
        raise typer.BadParameter(what, param_hint="--gpus")
    if options["sizes"] is not None:
        options["vector_sizes"] = options["sizes"]
    if quick:
        options |= {"sizes": QUICK_SIZES, "vector_sizes": (8192,), "grids": (256,)}
        options |= {"epochs": options["epochs"] or 1000, "triggers": 100_000}
    return on_gpus.GpuPlan(
        gpus=tuple(map(int, numbers)),
        studies=words(studies or ",".join(on_gpus.STUDIES), "--studies", on_gpus.STUDIES),
        back_ends=words(back_ends or ",".join(on_gpus.BACK_ENDS), "--back-ends", on_gpus.BACK_ENDS),
        **{name: value for name, value in options.items() if value is not None},
    )


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
        paper.print(display.columns(heads, rows, "Time of an iteration, of an all-reduce, ..."))
    if rows := tables.overlap_rows(measured):
        paper.print(display.columns(tables.OVERLAP_HEADS, rows, "Copies beside a computation"))


def _write(
    measured: Sequence[Series], plan: Plan | GpuPlan, to: str | None, plot: str | None
) -> None:
    from cpufree.bench.core.gpu_versions import gpu_names
    from cpufree.bench.core.header import make_header
    from cpufree.bench.triggered import tables
    from cpufree.output_file import write_text

    if plot is not None:
        from cpufree.bench.triggered import picture

        picture.save(picture.draw(measured), plot)
    if to is None:
        return
    header = make_header("triggered", plan, shlex.join(["cpufree", *sys.argv[1:]]))
    if plan.gpus:  # the core may know none
        header["machine"]["gpus"] = gpu_names(plan.gpus)
    facts = {"plan": header["configuration"], "series": tables.facts(measured)}
    text = dumps({**header, **facts}, indent=1) + "\n"
    if to == "-":
        sys.stdout.write(text)
    else:
        write_text(to, text)
