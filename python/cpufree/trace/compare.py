"""Two traces side by side: where the one spends what the other does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from cpufree.trace.report import Report


@dataclass(frozen=True)
class Row:
    """A quantity of two traces, for each of an iteration, block and PE."""

    name: str
    first: float
    second: float
    unit: str

    @property
    def ratio(self) -> float:
        """The second over the first; NaN where the first is 0."""
        return self.second / self.first if self.first else float("nan")


def compare(first: Report, second: Report) -> list[Row]:
    """Return the quantities of two traces: seconds are per iteration, and means over blocks."""
    both = (first, second)

    def row(name: str, value: Callable[[Report], float], unit: str = "s") -> Row:
        return Row(name, value(first), value(second), unit)

    rows = [
        row("time of an iteration", lambda r: r.seconds / r.iterations),
        row("payload", lambda r: float(r.bytes.sum()) / r.iterations, "B"),
        row("messages between PEs", lambda r: float(r.messages.sum()) / r.recorded, ""),
    ]
    titles = {"phases": "", "late_sender": "late sender: ", "transfer": "transfer: "}
    for name, title in titles.items():
        one, other = (getattr(r, name) for r in both)
        rows += [
            row(f"{title}{key}", partial(_of_block, name=name, key=key))
            for key in dict.fromkeys([*one, *other])
        ]
    rows += [
        row(f"critical path: {key}", partial(_on_path, key=key))
        for key in dict.fromkeys([*first.path.seconds, *second.path.seconds])
    ]
    return rows


def _of_block(report: Report, name: str, key: str) -> float:
    return per_block(report, getattr(report, name).get(key, 0.0))


def _on_path(report: Report, key: str) -> float:
    return report.path.seconds.get(key, 0.0) / report.recorded


def per_block(report: Report, seconds: float) -> float:
    """Return a sum over blocks as what it is of one block in one iteration."""
    blocks = int(report.facts.get("blocks", 1)) * int(report.facts.get("pes", 1))
    return float(np.float64(seconds) / (report.recorded * max(1, blocks)))
