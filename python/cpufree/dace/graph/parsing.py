"""Has DaCe parse and fuse programs; its errors become ones of the user's program."""

from __future__ import annotations

import copy
import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from cpufree.dace.graph.mended import Refused, mended
from cpufree.dace.values.refusal import Place
from cpufree.errors import CpufreeError
from cpufree.log import logger

_PLACES = re.compile(r'in File "([^"]+)", line (\d+)')


def parsed(parse: Callable[[], Any], place: Place) -> Any:
    """Return what `parse` returns, which has DaCe parse a program.

    Raises
    ------
    ProgramError
        DaCe does not take the program, whose def has this place; with the line where DaCe says it.
    """
    said, graph = io.StringIO(), None
    problem, advice = "", "write it in another way, which DaCe takes"
    try:
        with mended(), redirect_stdout(said):
            graph = parse()
    except CpufreeError:
        raise
    except Refused as error:
        problem, advice = str(error), error.advice
        place = Place(place.program, error.file, error.line)
    except Exception as error:
        logger.debug("%s: DaCe's error", place.program, exc_info=error)
        problem = f"DaCe cannot parse it: {_problem(error)}"
        place = _place_of(f"{error}\n{said.getvalue()}", place)
    if problem:  # out of the handler: the trace is DaCe's own, and long
        place.fail(problem, advice)
    _refuse_sums_of_truth(graph, place)
    return graph


def _problem(error: Exception) -> str:
    """Return what DaCe says, in one line."""
    lines = str(getattr(error, "message", "") or error).strip().splitlines()
    lines = [re.sub(r"\b__sym_(\w+)", r"\1", line) for line in lines]
    kind = type(error).__name__
    return f"{lines[0]} ({kind})" if lines else kind


def _refuse_sums_of_truth(graph: Any, place: Place) -> None:
    """Refuse sums of bool, whose type DaCe keeps, where NumPy counts."""
    from dace.dtypes import ReductionType
    from dace.frontend.operations import detect_reduction_type

    for node, state in graph.all_nodes_recursive():
        if type(node).__name__ != "Reduce":
            continue
        joined = detect_reduction_type(node.wcr)
        read = [state.sdfg.arrays[e.data.data] for e in state.in_edges(node)]
        if joined in (ReductionType.Sum, ReductionType.Product) and read[0].dtype.type is np.bool_:
            line = node.debuginfo.start_line if node.debuginfo else 0
            Place(place.program, place.file, line or place.line).fail(
                "a sum of truth values, which counts in NumPy, and is one in DaCe",
                "write them into an array of numbers, q[:] = values, and sum that",
            )


def fused(graph: Any) -> Any:
    """Return a graph with its maps fused; where DaCe fails at that, as it was.

    Where maps have branches or loops in them, or tasklets that write at times or add to what is
    there, DaCe hands on what they make, and not what is there then.
    """
    from dace.sdfg import nodes
    from dace.transformation.auto import auto_optimize

    for node, state in graph.all_nodes_recursive():
        branches = isinstance(node, nodes.NestedSDFG) and state.entry_node(node) is not None
        if branches or (isinstance(node, nodes.Tasklet) and _leaves_more(state, node)):
            return graph
    made = copy.deepcopy(graph)
    try:
        with mended(), redirect_stdout(io.StringIO()):
            auto_optimize.greedy_fuse(made, validate_all=False)
    except Exception as error:
        logger.info("%s: DaCe cannot fuse its maps: %s", graph.name, error)
        return graph
    return made


def _leaves_more(state: Any, tasklet: Any) -> bool:
    """Return whether there may be something else where a tasklet writes than what it makes."""
    return any(e.data.dynamic or e.data.wcr is not None for e in state.out_edges(tasklet))


def _place_of(text: str, place: Place) -> Place:
    """Return the innermost place of the user's that a text of DaCe's names."""
    for file, line in _PLACES.findall(text):
        if "site-packages" not in file and int(line) > 0:
            return Place(place.program, file, int(line))
    return place
