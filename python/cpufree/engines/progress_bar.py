"""A bar that follows a run, in terminals and notebooks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

Share = Callable[[int, float], float]
"""From iteration and norm to what is done of a run, 0 to 1."""


def of_iterations(most: int) -> Share:
    """Return the share of a run of N iterations."""
    return lambda iteration, _norm: min(1.0, iteration / max(1, most))


def of_digits(first: float, target: float) -> Share:
    """Return the share of digits: log(first / now) / log(first / target)."""

    def share(_iteration: int, norm: float) -> float:
        if not (target > 0 and norm > 0 and first > target):
            return 0.0
        return min(1.0, max(0.0, math.log(first / norm) / math.log(first / target)))

    return share


class ProgressBar:
    """A line on stderr, or below the cell of a notebook, that is gone when the run has ended.

    A context manager, to be called with iteration and norm. It shows nothing where stderr is
    neither a terminal nor a notebook's. Notebooks need the package ipywidgets.
    """

    def __init__(self, what: str, share: Share, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn  # slow to load

        console = console or Console(stderr=True, highlight=False)
        self._share, self._begin = share, time.perf_counter()
        columns: tuple[Any, ...] = (
            TextColumn(what),
            BarColumn(bar_width=24),
            TextColumn("iteration {task.fields[iteration]:>6}"),
            TextColumn("{task.fields[norm]}"),
            TextColumn("{task.fields[elapsed]:.1f} s"),
        )
        self.shown = console.is_terminal or console.is_jupyter
        self._bar = Progress(*columns, console=console, transient=True, disable=not self.shown)
        self._task = self._bar.add_task("", total=1.0, iteration=0, norm="", elapsed=0.0)

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def __call__(self, iteration: int, norm: float) -> None:
        """Show how far the run has come."""
        self._bar.update(
            self._task,
            completed=self._share(iteration, norm),
            iteration=iteration,
            norm="" if math.isnan(norm) else f"residual {norm:.1e}",
            elapsed=time.perf_counter() - self._begin,
        )
