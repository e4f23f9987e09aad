"""`cpufree trace`: what a trace answers."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from cpufree import options
from cpufree.cli import display
from cpufree.cli.commands import (
    PLOT_SUFFIXES,
    check_can_write,
    check_different,
    check_not_read,
    write_json,
)
from cpufree.cli.option_types import with_options

app = typer.Typer(
    name="trace",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="What a trace answers: who sent what to whom, what was waited for, what made it long.",
)
TraceArgument = Annotated[
    str, typer.Argument(metavar="TRACE", help="A file .pftrace or .json that --trace has written.")
]
EPILOG = """
[bold]Examples[/bold]

  cpufree solve A.mtx --pes 4 --trace out.pftrace

  cpufree trace report out.pftrace --plot out.png

  cpufree trace compare out.pftrace other.pftrace

  cpufree trace picture out.pftrace out.svg
"""


@app.command(epilog=EPILOG)
@with_options(options.TRACE_REPORT)
def report(trace: TraceArgument, given: dict[str, Any]) -> None:
    """Tell who sent how much to whom, what was waited for, and what took the time."""
    from cpufree.trace import files, texts
    from cpufree.trace.report import report as report_of

    check_can_write(given["json"])
    check_can_write(given["plot"], PLOT_SUFFIXES)
    check_different(given["json"], given["plot"])
    check_not_read((given["json"], given["plot"]), (trace,))
    found = report_of(files.checked(files.load(trace)))
    if given["plot"]:
        from cpufree.trace.picture import save_picture

        save_picture(found, given["plot"])
    if given["json"]:
        write_json(given["json"], found.to_dict())
    paper = display.report_console(stderr=given["json"] == "-")
    paper.print(Text(texts.title(found), style="bold"))
    for line in texts.lines_of(found):
        paper.print(Text(f"  {line}"))
    parts = (texts.matrix, texts.shares, texts.waits, texts.longest, texts.what_if)
    for part in parts:
        if (table := part(found)) is not None:
            paper.print()
            paper.print(table)


@app.command(epilog=EPILOG)
def picture(
    trace: TraceArgument,
    out: Annotated[str, typer.Argument(metavar="PICTURE", help="A file .png, .svg or .pdf.")],
) -> None:
    """Draw two iterations, those that take the median time: blocks, waits, messages."""
    from cpufree.trace import files
    from cpufree.trace.timeline_picture import save_timeline

    check_can_write(out, PLOT_SUFFIXES)
    check_not_read((out,), (trace,))
    save_timeline(files.checked(files.load(trace)), out)


@app.command(epilog=EPILOG)
def compare(first: TraceArgument, second: TraceArgument) -> None:
    """Show two traces side by side, per iteration: the second over the first."""
    from cpufree.trace import files, texts
    from cpufree.trace.compare import compare as rows_of
    from cpufree.trace.report import report as report_of

    one, other = (report_of(files.checked(files.load(path))) for path in (first, second))
    paper = display.report_console()
    paper.print(Text(f"{texts.title(one)}\n{texts.title(other)}", style="bold"))
    paper.print(texts.compared(rows_of(one, other), (first, second)))
