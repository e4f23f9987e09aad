"""Has DaCe parse programs: mended where it gives another answer, its errors explained."""

from __future__ import annotations

import ast
import copy
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import numpy as np

from cpufree.dace.refusal import Place
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
    problem = ""
    try:
        with _mended(), redirect_stdout(said):
            graph = parse()
    except CpufreeError:
        raise
    except Exception as error:
        logger.debug("%s: DaCe's error", place.program, exc_info=error)
        problem = _problem(error)
        place = _place_of(f"{error}\n{said.getvalue()}", place)
    if problem:  # out of the handler: the trace is DaCe's own, and long
        place.fail(f"DaCe cannot parse it: {problem}", "write it in another way, which DaCe takes")
    _refuse_sums_of_truth(graph, place)
    return graph


def _problem(error: Exception) -> str:
    """Return what DaCe says, in one line."""
    lines = str(getattr(error, "message", "") or error).strip().splitlines()
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

    Where maps have branches or loops in them, DaCe takes what some way does not write for written.
    """
    from dace.sdfg.nodes import NestedSDFG, Tasklet
    from dace.transformation.auto import auto_optimize

    for node, state in graph.all_nodes_recursive():
        if isinstance(node, NestedSDFG) and state.entry_node(node) is not None:
            return graph
        if isinstance(node, Tasklet) and any(
            e.data.dynamic and e.data.wcr is None for e in state.out_edges(node)
        ):  # u[v > 0] += 1
            return graph

    made = copy.deepcopy(graph)
    try:
        with _mended(), redirect_stdout(io.StringIO()):
            auto_optimize.greedy_fuse(made, validate_all=False)
    except Exception as error:
        logger.info("%s: DaCe cannot fuse its maps: %s", graph.name, error)
        return graph
    return made


def _place_of(text: str, place: Place) -> Place:
    """Return the innermost place of the user's that a text of DaCe's names."""
    for file, line in _PLACES.findall(text):
        if "site-packages" not in file and int(line) > 0:
            return Place(place.program, file, int(line))
    return place


@contextmanager
def _mended() -> Iterator[None]:
    """Have DaCe write where a program says, and leave the current folder alone.

    Of `A[::2] += B` it drops the step, and writes into the first points: as `A[::2] = A[::2] + B`,
    which is the same, it is right. In `a, b = b, a` it sets a before it reads a: that is refused.
    Graphs that it finds invalid it saves in the current folder.
    """
    from dace.frontend.python.common import DaceSyntaxError
    from dace.frontend.python.newast import ProgramVisitor
    from dace.sdfg import SDFG

    update, assign, save = ProgramVisitor.visit_AugAssign, ProgramVisitor.visit_Assign, SDFG.save

    def visit_Assign(self: Any, node: ast.Assign) -> Any:
        if name := next((n for t in node.targets for n in _set_before_read(t, node.value)), ""):
            raise DaceSyntaxError(
                self,
                node,
                f"{name} is set before it is read by the same statement: make it several",
            )
        return assign(self, node)

    def visit_AugAssign(self: Any, node: ast.AugAssign) -> Any:
        if not _has_step(node.target):
            return update(self, node)
        value = copy.deepcopy(node.target)
        value.ctx = ast.Load()
        made = ast.Assign([node.target], ast.BinOp(value, node.op, node.value))
        return self.visit_Assign(ast.fix_missing_locations(ast.copy_location(made, node)))

    ProgramVisitor.visit_AugAssign, ProgramVisitor.visit_Assign = visit_AugAssign, visit_Assign
    SDFG.save = lambda *_, **__: None
    try:
        yield
    finally:
        ProgramVisitor.visit_AugAssign, ProgramVisitor.visit_Assign = update, assign
        SDFG.save = save


def _set_before_read(target: ast.expr, value: ast.expr) -> Iterator[str]:
    """Return the names that a statement of several targets sets and then reads."""
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return
    for k, one in enumerate(target.elts):
        name = next((n.id for n in ast.walk(one) if isinstance(n, ast.Name)), "")
        # What is computed is so before anything is set; names and elements are read when they are.
        read = [v for v in value.elts[k + 1 :] if isinstance(v, ast.Name | ast.Subscript)]
        later = [*read, *(t for t in target.elts[k + 1 :] if _is_indexed(t))]
        if any(isinstance(n, ast.Name) and n.id == name for v in later for n in ast.walk(v)):
            yield name


def _is_indexed(target: ast.expr) -> bool:
    """Return whether an index of a target is no constant, and may be set by the statement."""
    return isinstance(target, ast.Subscript) and any(
        isinstance(n, ast.Name) for n in ast.walk(target.slice)
    )


def _has_step(target: ast.expr) -> bool:
    """Return whether a target is a part of an array that leaves out points between others."""
    if not isinstance(target, ast.Subscript):
        return False
    items = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return any(isinstance(i, ast.Slice) and i.step is not None for i in items)
