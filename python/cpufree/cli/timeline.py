"""Where the wall time of a command went, from the start of its process to what it writes last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cpufree.laps import Laps, disjoint, process_start

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 48
"""Of the bars, in characters."""
LEAST = 0.005
"""Phases that take less than this share of the whole are shown as one."""
NAMES = {
    "interpreter": "Python has started",
    "imports": "modules are loaded, options are read",
    "join": "ranks have met",
    "generating": "the matrix is generated",
    "reading": "the matrix is read",
    "vectors": "right-hand side and first guess",
    "check": "the answer is checked on the host",
    "write": "files are written",
    "report": "the report is shown",
}

_begun: list[Laps] = []


def begin() -> None:
    """Begin the laps of the command that this process has been started for."""
    laps = Laps(process_start())
    laps.lap("interpreter")
    _begun[:] = [laps]


def take() -> Laps:
    """Return the laps of this command, new ones where no process was started for it."""
    return _begun.pop() if _begun else Laps()


def phases(laps: Laps, timings: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the seconds of disjoint phases up to the last lap, in order.

    `timings` of a Result has the parts of the laps "setup" and "solve".
    """
    found: dict[str, float] = {}
    for name, seconds in laps.seconds.items():
        found[name] = seconds
        of_lap = f"{name}_"
        found |= {part: s for part, s in (timings or {}).items() if part.startswith(of_lap)}
    return disjoint(found)


def chart(seconds: Mapping[str, float]) -> RenderableType:
    """Return a bar for each phase, from where it began to where it ended."""
    from rich.bar import Bar
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from cpufree.cli import display

    total = sum(seconds.values())
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "left"):
        table.add_column(justify=justify, no_wrap=True)
    begin = short = 0.0
    for name, taken in seconds.items():
        end = begin + taken
        if taken >= LEAST * total:
            cells = (
                Text(f"  {called(name)}"),
                Text(display.seconds(taken)),
                Text(share(taken, total)),
            )
            table.add_row(*cells, Bar(total, begin, end, width=WIDTH, color="cyan"))
        else:
            short += taken
        begin = end
    if short > 0.0:
        rest = f"  all that takes less than {LEAST:.1%}"
        table.add_row(Text(rest), Text(display.seconds(short)), Text(share(short, total)))
    head = f"Wall time, from the start of the process: {display.seconds(total)}"
    return Group(Text(head, style="bold"), table)


def called(name: str) -> str:
    """Return what a phase is called in a chart: setup_system_plan is "set-up: system plan"."""
    if name in NAMES:
        return NAMES[name]
    whole, _, part = name.partition("_")
    whole = {"setup": "set-up"}.get(whole, whole)
    return f"{whole}: {part.replace('_', ' ')}" if part else whole


def share(part: float, whole: float) -> str:
    """Return a part of a whole in percent."""
    return f"{part / whole:.1%}" if whole > 0.0 else ""
