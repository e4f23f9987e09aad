"""Has DaCe parse programs: mended where it gives another answer, its errors explained."""

from __future__ import annotations

import ast
import copy
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from cpufree.dace.refusal import Place
from cpufree.errors import CpufreeError

_PLACES = re.compile(r'in File "([^"]+)", line (\d+)')


def parsed(parse: Callable[[], Any], place: Place) -> Any:
    """Return what `parse` returns, which has DaCe parse a program.

    Raises
    ------
    ProgramError
        DaCe does not take the program, whose def has this place; with the line where DaCe says it.
    """
    said = io.StringIO()
    try:
        with _mended(), redirect_stdout(said):
            return parse()
    except CpufreeError:
        raise
    except Exception as error:
        found = str(getattr(error, "message", "") or error).strip().splitlines()
        problem = re.sub(r"\s*raised while parsing.*", "", found[0]) if found else ""
        raise_at = _place_of(f"{error}\n{said.getvalue()}", place)
        raise_at.fail(
            f"DaCe cannot parse it: {problem or type(error).__name__} ({type(error).__name__})",
            "write it in another way, which DaCe takes",
        )


def _place_of(text: str, place: Place) -> Place:
    """Return the innermost place of the user's that a text of DaCe's names."""
    for file, line in _PLACES.findall(text):
        if "site-packages" not in file and int(line) > 0:
            return Place(place.program, file, int(line))
    return place


@contextmanager
def _mended() -> Iterator[None]:
    """Have DaCe write where a program says.

    Of `A[::2] += B` it drops the step, and writes into the first points: as `A[::2] = A[::2] + B`,
    which is the same, it is right.
    """
    from dace.frontend.python.newast import ProgramVisitor

    original = ProgramVisitor.visit_AugAssign

    def visit(self: Any, node: ast.AugAssign) -> Any:
        if not _has_step(node.target):
            return original(self, node)
        value = copy.deepcopy(node.target)
        value.ctx = ast.Load()
        made = ast.Assign([node.target], ast.BinOp(value, node.op, node.value))
        return self.visit_Assign(ast.fix_missing_locations(ast.copy_location(made, node)))

    ProgramVisitor.visit_AugAssign = visit
    try:
        yield
    finally:
        ProgramVisitor.visit_AugAssign = original


def _has_step(target: ast.expr) -> bool:
    """Return whether a target is a part of an array that leaves out points between others."""
    if not isinstance(target, ast.Subscript):
        return False
    items = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return any(isinstance(i, ast.Slice) and i.step is not None for i in items)
