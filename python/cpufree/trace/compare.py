"""Two traces side by side: where the one spends what the other does not."""

from __future__ import annotations

from dataclasses import dataclass

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
    rows = [
        Row("time of an iteration", *(r.seconds / r.iterations for r in (first, second)), "s"),
        Row("payload", *(float(r.bytes.sum()) / r.iterations for r in (first, second)), "B"),
        Row("messages between PEs", *(float(r.messages.sum()) / r.iterations
                                      for r in (first, second)), ""),
    ]  # fmt: skip
    for title, name in (
        ("", "phases"),
        ("late sender: ", "late_sender"),
        ("transfer: ", "transfer"),
    ):
        one, other = getattr(first, name), getattr(second, name)
        for key in dict.fromkeys([*one, *other]):
            values = (per_block(r, getattr(r, name).get(key, 0.0)) for r in (first, second))
            rows.append(Row(f"{title}{key}", *values, "s"))
    for key in dict.fromkeys([*first.path.seconds, *second.path.seconds]):
        on = (r.path.seconds.get(key, 0.0) / r.iterations for r in (first, second))
        rows.append(Row(f"critical path: {key}", *on, "s"))
    return rows


def per_block(report: Report, seconds: float) -> float:
    """Return a sum over blocks as what it is of one block in one iteration."""
    blocks = int(report.facts.get("blocks", 1)) * int(report.facts.get("pes", 1))
    return float(np.float64(seconds) / (report.iterations * max(1, blocks)))
