"""What a run shows while it goes on: a bar with the time that is left, on a terminal only."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column


class RunProgress:
    """The bar of a run; a context manager, and the `Watch` of a `Run`."""

    def __init__(self, console: Console) -> None:
        self.shown = console.is_terminal and not console.quiet
        self._bar = Progress(
            TextColumn("  solves"),
            BarColumn(bar_width=16, table_column=Column(min_width=16)),
            MofNCompleteColumn(table_column=Column(min_width=9)),
            TimeElapsedColumn(table_column=Column(min_width=7)),
            TextColumn("left"),
            TimeRemainingColumn(table_column=Column(min_width=7)),
            # What is left of the line.
            TextColumn("{task.fields[what]}", table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
            speed_estimate_period=600.0,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> RunProgress:
        if self.shown:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self._bar.stop()

    def begin(self, steps: int) -> None:
        """N solves are to be done."""
        if self.shown:
            self._task = self._bar.add_task("", total=steps, what="")

    def at(self, what: str) -> None:
        """This is being done."""
        if self._task is not None:
            self._bar.update(self._task, what=what)

    def advance(self, steps: int = 1) -> None:
        """N solves are done, or will not be."""
        if self._task is not None:
            self._bar.advance(self._task, steps)
