"""Reports of traces in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cpufree.text import counted, time_text
from cpufree.trace.compare import Row, per_block
from cpufree.trace.report import Report

if TYPE_CHECKING:
    from rich.table import Table

MOST_PES = 16
"""Matrices of more PEs are not shown."""


def title(report: Report) -> str:
    """Return what was traced, in a line."""
    facts = report.facts
    where = f"{facts.get('engine', 'unknown engine')}, {counted(len(report.bytes), 'PE')}"
    where += f" × {counted(int(facts.get('blocks', 1)), 'block')}"
    return f"{facts.get('what', 'kernel')}: {where}"


def lines_of(report: Report) -> list[str]:
    """Return what is known of the trace itself."""
    each = time_text(report.seconds / report.iterations)
    lines = [
        f"{counted(report.records, 'record')}, {report.lost} lost; {time_text(report.seconds)} "
        f"for {counted(report.iterations, 'iteration')} of {each}"
    ]
    if report.left_out:
        lines.append(
            f"at least one iteration in {report.facts.get('every', 'several')} is recorded: "
            f"{report.left_out} left out, but for their payload"
        )
    if report.facts.get("one_clock"):
        lines.append("one clock for all PEs")
    elif (bound := int(report.facts.get("clock_bound", 0))) >= 0:
        lines.append(f"clocks of two PEs are aligned within {time_text(1e-9 * bound)}")
    else:
        lines.append("clocks of PEs are not aligned, for want of messages both ways: waits of one "
                     "PE for another are not to be trusted")  # fmt: skip
    early = int(report.facts.get("early", 0))
    lines.append(
        f"{counted(early, 'message')} seen before they were sent: the clocks are not to be trusted"
        if early
        else "no message is seen before it is sent"
    )
    return lines


def matrix(report: Report) -> Table | None:
    """Return bytes and messages from each PE to each other one; None where there is one PE."""
    pes = len(report.bytes)
    if not 1 < pes <= MOST_PES:
        return None
    table = _table(
        "payload in bytes (messages), from row to column", *(f"PE {k}" for k in range(pes))
    )
    for pe in range(pes):
        cells = [
            f"{report.bytes[pe, to]} ({report.messages[pe, to]})" if report.bytes[pe, to] else "."
            for to in range(pes)
        ]
        table.add_row(f"PE {pe}", *cells)
    return table


def shares(report: Report) -> Table:
    """Return what a block does in an iteration, and the critical path."""
    table = _table("time of an iteration", "mean of blocks", "critical path")
    path = report.path.seconds
    for name in dict.fromkeys([*report.phases, *path]):
        mean = time_text(per_block(report, report.phases[name])) if name in report.phases else "."
        table.add_row(name, mean, time_text(path.get(name, 0.0) / report.recorded))
    return table


def waits(report: Report) -> Table:
    """Return what was waited for, by cause."""
    table = _table("waits of a block in an iteration", "late sender", "transfer")
    for name in dict.fromkeys([*report.late_sender, *report.transfer]):
        late, sent = (per_block(report, of.get(name, 0.0))
                      for of in (report.late_sender, report.transfer))  # fmt: skip
        table.add_row(name, time_text(late), time_text(sent))
    for name, lay in report.late_receiver.items():
        table.add_row(f"late receiver, {name}: messages lay {time_text(per_block(report, lay))}")
    return table


def longest(report: Report) -> Table:
    """Return the longest waits."""
    table = _table("longest waits", "seconds", "who", "for", "epoch", "cause")
    for one in report.longest:
        who = f"PE {one.pe}, block {one.block}"
        whom = f"PE {one.waits_for}"
        table.add_row(one.channel, time_text(one.seconds), who, whom, str(one.epoch), one.cause)
    return table


def what_if(report: Report) -> Table:
    """Return how much less time would do if parts of the critical path took less."""
    table = _table("what if, at best", "of an iteration", "faster by")
    whole = report.path.whole
    for name, seconds in report.path.what_if().items():
        gain = whole / seconds if seconds > 0 else np.inf
        table.add_row(name, time_text(seconds / report.recorded), f"{gain:.2f} ×")
    return table


def compared(rows: list[Row], names: tuple[str, str]) -> Table:
    """Return two traces side by side."""
    table = _table("per iteration", *names, "ratio")
    for row in rows:
        cells = [time_text(v) if row.unit == "s" else f"{v:.6g} {row.unit}".strip()
                 for v in (row.first, row.second)]  # fmt: skip
        table.add_row(row.name, *cells, "." if np.isnan(row.ratio) else f"{row.ratio:.2f}")
    return table


def _table(*heads: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number == 0 else "right")
    return table
