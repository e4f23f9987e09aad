"""Programs in GOAL, the text that LogGOPSim and ATLAHS read.

After Hoefler, Siebert, Lumsdaine 2009, Group Operation Assembly Language, and the simulators' own
documentation: a rank lists operations with labels, and which need which. Computations are in
nanoseconds. Network cards and their tables are the reader's: what a card starts needs its post and
its triggers, as any other operation needs what comes before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from cpufree.errors import InvalidInputError
from cpufree.output_file import write_text
from cpufree.simulate.graph import FROM_START, KINDS, LANE_OF, LANES, NEXT_ROUND, PLAIN, Graph
from cpufree.simulate.timeline import message_of

MOST_LINES = 5_000_000


def write_goal(path: str | os.PathLike[str], graph: Graph) -> None:
    """Write a program in GOAL, its rounds one after another.

    Raises:
        InvalidInputError: it would be longer than 5 million operations.
    """
    if graph.size * graph.rounds > MOST_LINES:
        raise InvalidInputError(
            f"{path}: {graph.size * graph.rounds} operations are too many for a text: simulate "
            "fewer PEs or rounds"
        )
    write_text(path, "\n".join(goal_lines(graph)) + "\n")


def goal_lines(graph: Graph) -> Iterator[str]:
    """Yield the lines of a program."""
    lines: list[list[str]] = [[] for _ in range(graph.pes)]
    operations = _operations(graph)
    for round_ in range(graph.rounds):
        for i, what in enumerate(operations):
            tag = f" tag {round_ * graph.size + what[1]}" if what[1] >= 0 else ""
            lines[graph.pe[i]].append(f"{_label(graph, i, round_)}: {what[0]}{tag}{what[2]}")
    for first, second, bits in _edges(graph):
        if graph.pe[first] != graph.pe[second]:
            continue  # a message and its arrival: a send and its receive
        word = "irequires" if bits & FROM_START else "requires"
        later = 1 if bits & NEXT_ROUND else 0
        for round_ in range(graph.rounds - later):
            lines[graph.pe[second]].append(
                f"{_label(graph, second, round_ + later)} {word} {_label(graph, first, round_)}"
            )
    yield f"num_ranks {graph.pes}"
    for pe, of_pe in enumerate(lines):
        yield f"rank {pe} {{"
        yield from of_pe
        yield "}"


def _label(graph: Graph, operation: int, round_: int) -> str:
    return f"l{round_ * graph.size + operation}"


def _operations(graph: Graph) -> list[tuple[str, int, str]]:
    """Return of each operation its words, the number that its tag is made of, and where it is."""
    found: list[tuple[str, int, str]] = []
    arrival_of: dict[int, int] = {}
    for i in np.flatnonzero(graph.kind == KINDS.index("arrival")).tolist():
        message = message_of(graph, i)
        if message is not None:
            arrival_of[message] = i
    message_at = {arrival: message for message, arrival in arrival_of.items()}
    for i, kind in enumerate(graph.kind.tolist()):
        cpu = f" cpu {LANES.index(LANE_OF[KINDS[kind]])}"
        if i in arrival_of:
            to = graph.pe[arrival_of[i]]
            found.append((f"send {graph.bytes[i]}b to {to}", i, cpu))
        elif i in message_at:
            sender = message_at[i]
            words = f"recv {graph.bytes[sender]}b from {graph.pe[sender]}"
            found.append((words, sender, cpu))
        else:
            found.append((f"calc {round(int(graph.busy[i]) / 1000)}", -1, cpu))
    return found


def _edges(graph: Graph) -> Iterator[tuple[int, int, int]]:
    yield from zip(graph.from_.tolist(), graph.to.tolist(), graph.edge.tolist(), strict=True)
    for i in np.flatnonzero(graph.role != PLAIN).tolist():
        yield i, int(graph.operand[i]), 0
