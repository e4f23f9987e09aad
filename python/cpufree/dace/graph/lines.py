"""Lines of the user's text for what graphs and trees hold, where DaCe has none or its own.

Nodes that DaCe has made itself have the line of what they read or write. Statements without one
have that of the first statement inside or behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import dace
from dace import dtypes

_OURS = str(Path(dace.__file__).parent)
Line = tuple[str, int]


def give_lines(graph: Any) -> None:
    """Give the nodes and edges of a graph lines of the user's text."""
    for sdfg in graph.all_sdfgs_recursive():
        for state in sdfg.states():
            nodes = list(state.nodes())
            for node in nodes:
                around = [*state.successors(node), *state.predecessors(node)]
                found = first_line((node, *around, *nodes))
                if found is not None:
                    file, line = found
                    node.debuginfo = dtypes.DebugInfo(line, filename=file)
            for edge in state.edges():
                edge.data.debuginfo = edge.dst.debuginfo or edge.src.debuginfo


def line_of(statements: Iterable[Any]) -> Line | None:
    """Return the file ("": that of the program) and line of the first of some statements."""
    for s in statements:
        found = _own(s) or line_of(getattr(s, "children", ()))
        if found is not None:
            return found
    return None


def _own(statement: Any) -> Line | None:
    loop = getattr(statement, "loop", None)
    labelled = re.search(r"_(\d+)$", str(loop.label)) if loop is not None else None
    if labelled:
        return "", int(labelled[1])
    return first_line(_parts(statement))


def _parts(statement: Any) -> Iterator[Any]:
    yield getattr(statement, "node", None)
    yield getattr(statement, "memlet", None)


def first_line(parts: Iterable[Any]) -> Line | None:
    """Return the file and line of the user's text that the first of some nodes has."""
    for part in parts:
        info = getattr(part, "debuginfo", None)
        file = str(getattr(info, "filename", None) or "")
        if info is not None and info.start_line and file and not file.startswith(_OURS):
            return file, int(info.start_line)
    return None
