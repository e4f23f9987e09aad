"""Runs of a graph by the event engine of the compiled core."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree import _core
from cpufree.errors import DeadlockError
from cpufree.simulate.graph import PICO, Graph

LISTED = 8
"""Waits that the message of a deadlock lists."""


@dataclass(frozen=True)
class Run:
    """What a run gives. Times in seconds."""

    seconds: float
    round_ends: npt.NDArray[np.float64]
    operations: int
    spilled: int
    """Posts and triggers whose entry found the table of its network card full."""
    most_entries: int
    """Of one network card at once."""
    start: npt.NDArray[np.int64] | None = None
    """By round and operation, in picoseconds; None where they were not recorded."""
    finish: npt.NDArray[np.int64] | None = None
    cause: npt.NDArray[np.int64] | None = None
    """What each operation waited for last, as round * size + operation; -1: nothing."""

    @property
    def per_round(self) -> float:
        """Seconds of a round in the long run: the first ones, which fill pipelines, left out."""
        count = len(self.round_ends)
        if count == 1:
            return float(self.round_ends[0])
        half = count // 2
        return float(self.round_ends[-1] - self.round_ends[half - 1]) / (count - half)


def run(graph: Graph, record: bool = False) -> Run:
    """Run a graph.

    Raises:
        DeadlockError: it cannot end; the message says who waits for whom.
        InvalidInputError: it is no graph.
    """
    found = _core.simulate(
        graph.resource, graph.busy, graph.latency, graph.from_, graph.to, graph.edge,
        graph.role, graph.operand, graph.nic, graph.threshold,
        graph.rounds, graph.entries, graph.spill, record,
    )  # fmt: skip
    if "waits" in found:
        raise deadlock(graph, found)
    return Run(
        seconds=found["end"] / PICO,
        round_ends=found["round_end"] / PICO,
        operations=found["operations"],
        spilled=found["spilled"],
        most_entries=found["most_entries"],
        start=found.get("start"),
        finish=found.get("finish"),
        cause=found.get("cause"),
    )


def deadlock(graph: Graph, found: dict[str, Any]) -> DeadlockError:
    """Return the error that says who waits for whom."""
    chain = [graph.name(operation, round_) for round_, operation in found["waits"]]
    waits = [f"{a} waits for {b}" for a, b in itertools.pairwise(chain)]
    if found["back_to"] >= 0:
        waits.append(f"{chain[-1]} waits for {chain[found['back_to']]}")
    else:
        waits.append(f"{chain[-1]} waits for its network card: {found['card']}")
    shown = waits if len(waits) <= LISTED else [*waits[: LISTED - 1], "...", waits[-1]]
    return DeadlockError(f"the program cannot end: {'; '.join(shown)}", waits)
