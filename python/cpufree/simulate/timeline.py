"""Timelines of a run: JSON for Perfetto and Chrome, what the longest chain of waits consists of."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpufree.output_file import write_text
from cpufree.simulate.graph import FROM_START, KINDS, LANE_OF, LANES, PICO, Graph
from cpufree.simulate.run import Run

SHOWN_PES = 16


@dataclass(frozen=True)
class Slice:
    """An operation on a timeline; seconds."""

    pe: int
    lane: str
    what: str
    start: float
    end: float
    number: int
    """round * size + operation."""


def slices(graph: Graph, run: Run, pes: int = SHOWN_PES) -> Iterator[Slice]:
    """Yield the operations of the first PEs that take time, round by round."""
    assert run.start is not None and run.finish is not None
    for number in np.flatnonzero(run.finish > run.start):
        operation = int(number) % graph.size
        pe = int(graph.pe[operation])
        if pe < pes:
            what = KINDS[graph.kind[operation]]
            yield Slice(
                pe, LANE_OF[what], what, float(run.start[number]) / PICO,
                float(run.finish[number]) / PICO, int(number),
            )  # fmt: skip


def perfetto(graph: Graph, run: Run, pes: int = SHOWN_PES) -> dict[str, Any]:
    """Return a timeline in Chrome's format, which Perfetto reads: microseconds, a process per PE.

    Messages have arrows from where they leave to where they come in.
    """
    shown = list(slices(graph, run, pes))
    events: list[dict[str, Any]] = []
    for pe in sorted({one.pe for one in shown}):
        events.append(_name("process_name", pe, 0, f"PE {pe}"))
        for k, lane in enumerate(LANES):
            if any(one.pe == pe and one.lane == lane for one in shown):
                events.append(_name("thread_name", pe, k, lane))
    there = {one.number for one in shown}
    for one in shown:
        place = {"pid": one.pe, "tid": LANES.index(one.lane)}
        events.append(
            {"ph": "X", "name": one.what, "ts": one.start * 1e6,
             "dur": (one.end - one.start) * 1e6, **place}
        )  # fmt: skip
        for kind, number in _arrows(graph, run, one, there):
            at = one.start if kind == "s" else one.end
            ends = {"bp": "e"} if kind == "f" else {}
            events.append(
                {"ph": kind, "id": number, "name": "message", "cat": "message", "ts": at * 1e6}
                | ends
                | place
            )
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _name(what: str, pe: int, lane: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pe, "tid": lane, "args": {"name": name}}


def _arrows(graph: Graph, run: Run, one: Slice, there: set[int]) -> Iterator[tuple[str, int]]:
    """Yield the ends of arrows at a slice: out of a message, and into its arrival."""
    operation, round_start = one.number % graph.size, one.number - one.number % graph.size
    if one.what == "message":
        yield "s", one.number
    elif one.what == "arrival":
        message = message_of(graph, operation)
        if message is not None and round_start + message in there:
            yield "f", round_start + message


def message_of(graph: Graph, arrival: int) -> int | None:
    """Return the message that an arrival belongs to."""
    here: int | None = arrival
    while here is not None and KINDS[graph.kind[here]] != "message":
        edges = np.flatnonzero((graph.to == here) & (graph.edge & FROM_START > 0))
        here = int(graph.from_[edges[0]]) if len(edges) else None
    return here


def write_perfetto(path: str | os.PathLike[str], graph: Graph, run: Run) -> None:
    """Write a timeline as JSON."""
    write_text(path, json.dumps(perfetto(graph, run), allow_nan=False) + "\n")
