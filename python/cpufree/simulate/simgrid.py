"""Runs of a graph by SimGrid, the reference for the event engine.

SimGrid (Casanova, Giersch, Legrand, Quinson, Suter 2014, Versatile, Scalable, and Accurate
Simulation of Distributed Applications and Platforms) shares the bandwidth of a link fairly among
the messages on it; the event engine lets them queue. Where no two messages want a port at once,
both agree. The program `cpufree_simgrid` is an optional target of the build (tools/simgrid).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cpufree.errors import EngineError, InvalidInputError, UnsupportedError
from cpufree.simulate.graph import KINDS, NEXT_ROUND, PICO, PLAIN, Graph

PROGRAM = "cpufree_simgrid"
SECONDS = 300.0
"""After which a run of SimGrid is given up."""
MESSAGE, ARRIVAL, HOP = (KINDS.index(name) for name in ("message", "arrival", "hop"))


def find_program(path: str | os.PathLike[str] | None = None) -> str:
    """Return the program: the one given, or the one on the path.

    Raises:
        UnsupportedError: there is none.
    """
    found = shutil.which(os.fspath(path) if path is not None else PROGRAM)
    if found is None:
        raise UnsupportedError(
            f"{path or PROGRAM} is not here: install libsimgrid-dev, then cmake --build BUILD "
            f"--target {PROGRAM}"
        )
    return found


def run_simgrid(graph: Graph, program: str | os.PathLike[str] | None = None) -> float:
    """Return the seconds until the last operation has ended.

    Raises:
        UnsupportedError: there is no SimGrid. EngineError: it failed, or the program cannot end.
        InvalidInputError: messages share links between switches.
    """
    return float(np.max(ends_by_simgrid(graph, program))) / PICO


def ends_by_simgrid(
    graph: Graph, program: str | os.PathLike[str] | None = None
) -> npt.NDArray[np.int64]:
    """Return when each operation has ended, by round and operation, in picoseconds."""
    if np.any(graph.kind == HOP):
        raise InvalidInputError("SimGrid's driver knows no links between switches: choose a star")
    command = find_program(program)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.txt"
        file.write_text("\n".join(text_of(graph)) + "\n", encoding="ascii")
        try:
            done = subprocess.run(
                [command, os.fspath(file)], capture_output=True, text=True, timeout=SECONDS,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"SimGrid ran for more than {SECONDS:.0f} s") from error
    if done.returncode or "Deadlock" in done.stderr:
        raise EngineError(f"SimGrid failed: {done.stderr.strip()[-500:]}")
    return np.array(done.stdout.split(), dtype=np.int64)


def text_of(graph: Graph) -> list[str]:
    """Return a graph in the text that the program reads, its rounds one after another."""
    what = np.select([graph.kind == MESSAGE, graph.kind == ARRIVAL], [1, 2], 0)
    one = [
        f"{r} {w} {b} {late}"
        for r, w, b, late in zip(graph.resource, what, graph.busy, graph.latency, strict=True)
    ]
    triggers = np.flatnonzero(graph.role != PLAIN)
    from_ = np.concatenate((graph.from_, triggers)).astype(np.int64)
    to = np.concatenate((graph.to, graph.operand[triggers])).astype(np.int64)
    bits = np.concatenate((graph.edge, np.zeros(len(triggers), np.uint8)))
    edges: list[str] = []
    for round_ in range(graph.rounds):
        later = ((bits & NEXT_ROUND) // NEXT_ROUND).astype(np.int64)
        inside = round_ + later < graph.rounds
        a, b = from_ + round_ * graph.size, to + (round_ + later) * graph.size
        edges += [
            f"{x} {y} {z}" for x, y, z in zip(a[inside], b[inside], bits[inside] & 1, strict=True)
        ]
    return [f"{graph.size * graph.rounds} {len(edges)}", *(one * graph.rounds), *edges]
