"""Mends DaCe's front end where it gives another answer than Python: it does so, or refuses."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np


@contextmanager
def mended() -> Iterator[None]:
    """Have DaCe do what a program says, or refuse it, and leave the current folder alone.

    Of `A[::2] += B` it drops the step, and writes into the first points; `A[::2] = A[::2] + B`,
    which is the same, is right. Of `a[:, k : k + 1] + b` it drops the axis of one point, and
    broadcasts along another one: slices keep their axes. In `a, b = b, a` it sets a before it reads
    a, and where a is a whole number it cuts what `a = 0.5` sets: these are refused. After `b = a`
    b is a's memory: a number gets its own. Graphs that it finds invalid it saves in the current
    folder.
    """
    from dace.frontend.python import memlet_parser
    from dace.frontend.python.newast import ProgramVisitor as Visitor
    from dace.sdfg import SDFG

    update, assign = Visitor.visit_AugAssign, Visitor.visit_Assign
    read = Visitor._add_read_slice
    add, add_update = Visitor._add_assignment, Visitor._add_aug_assignment

    def visit_Assign(self: Any, node: ast.Assign) -> Any:
        for name in (n for t in node.targets for n in _set_before_read(t, node.value)):
            problem = f"DaCe sets {name} before the same statement reads it"
            raise Refused(self, node, problem, "make it several statements, with a name for each")
        found = assign(self, node)
        _give_a_value_of_its_own(self, node)
        return found

    def visit_AugAssign(self: Any, node: ast.AugAssign) -> Any:
        if not _has_step(node.target):
            return update(self, node)
        value = copy.deepcopy(node.target)
        value.ctx = ast.Load()
        made = ast.Assign([node.target], ast.BinOp(value, node.op, node.value))
        return self.visit_Assign(ast.fix_missing_locations(ast.copy_location(made, node)))

    def _add_read_slice(self: Any, array: str, node: ast.Subscript, expr: Any) -> Any:
        with _kept_by_squeeze(_axes_of_slices(node.slice, len(expr.subset))):
            return read(self, array, node, expr)

    def _add_assignment(
        self: Any, node: Any, target: Any, operand: Any, op: Any = None, *rest: Any
    ) -> Any:
        _refuse_cut(self, node, target, operand, op)
        return add(self, node, target, operand, op, *rest)

    def _add_aug_assignment(
        self: Any, node: Any, read: Any, target: Any, operand: Any, op: Any, *rest: Any
    ) -> Any:
        _refuse_cut(self, node, target, operand, op)
        return add_update(self, node, read, target, operand, op, *rest)

    with ExitStack() as stack:
        mine = (visit_Assign, visit_AugAssign, _add_read_slice)
        for own in (*mine, _add_assignment, _add_aug_assignment):
            stack.callback(setattr, Visitor, own.__name__, getattr(Visitor, own.__name__))
            setattr(Visitor, own.__name__, own)
        stack.callback(setattr, SDFG, "save", SDFG.save)
        SDFG.save = lambda *_, **__: None
        # Of u[:0] it makes u[:N].
        fill = memlet_parser._fill_missing_slices
        stack.callback(setattr, memlet_parser, "_fill_missing_slices", fill)
        memlet_parser._fill_missing_slices = lambda known, slices, *rest: fill(
            known, [_empty_as_such(known, s) for s in slices], *rest
        )
        yield


def _empty_as_such(known: Any, part: Any) -> Any:
    """Return a slice that ends at 0 as another one without points."""
    from dace.frontend.python.memlet_parser import _parse_dim_atom

    if not isinstance(part, tuple) or part[1] is None:
        return part
    is_zero = not part[1] or _parse_dim_atom(known, part[1]) == 0
    return (ast.Constant(1), ast.Constant(1), part[2]) if is_zero else part


class Refused(Exception):
    """A statement that DaCe would take for another one; with its place, and what to write."""

    def __init__(self, visitor: Any, node: Any, problem: str, advice: str) -> None:
        super().__init__(problem)
        self.advice = advice
        self.file, self.line = str(visitor.filename), int(node.lineno)


def _give_a_value_of_its_own(visitor: Any, node: ast.Assign) -> None:
    """Let a number that has been set to another one not change with it."""
    target = node.targets[0]
    if not (isinstance(target, ast.Name) and isinstance(node.value, ast.Name)):
        return
    names = {**visitor.scope_vars, **visitor.variables}
    true = visitor.variables.get(target.id)
    if true is None or true != names.get(node.value.id) or true not in visitor.sdfg.arrays:
        return
    desc = visitor.sdfg.arrays[true]
    if desc.total_size != 1:
        return
    own, _ = visitor.sdfg.add_scalar(target.id, desc.dtype, transient=True, find_new_name=True)
    visitor.variables[target.id] = own
    visitor._add_assignment(node, own, true)


@contextmanager
def _kept_by_squeeze(axes: list[int]) -> Iterator[None]:
    """Have parts of arrays that are read keep these axes, even of one point."""
    from dace.subsets import Range

    squeeze = Range.squeeze

    def kept(self: Any, ignore_indices: Any = None, offset: bool = True) -> list[int]:
        own = [i for i in range(len(self)) if i not in (ignore_indices or [])]
        found: list[int] = squeeze(self, [*(ignore_indices or []), *(own[a] for a in axes)], offset)
        return found

    Range.squeeze = kept
    try:
        yield
    finally:
        Range.squeeze = squeeze


def _axes_of_slices(index: ast.expr, axes: int) -> list[int]:
    """Return the axes of an array that an index keeps, as slices do and numbers do not."""
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    items = [i for i in items if not (isinstance(i, ast.Constant) and i.value is None)]
    dots = [k for k, i in enumerate(items) if isinstance(i, ast.Constant) and i.value is ...]
    at = dots[0] if dots else len(items)
    whole = [ast.Slice()] * (axes - len(items) + len(dots))
    filled = [*items[:at], *whole, *items[at + 1 :]]
    return [axis for axis, item in enumerate(filled) if isinstance(item, ast.Slice)]


def _refuse_cut(visitor: Any, node: ast.AST, target: Any, operand: Any, op: str | None) -> None:
    """Refuse to set what is a whole number or truth value to what is none.

    NumPy's elements `k[1] = 0.5` are cut, too.
    """
    if not isinstance(node, ast.Assign | ast.AugAssign):
        return  # with a type that the program names
    name = target[0] if isinstance(target, tuple) else target
    arrays = {**visitor.scope_arrays, **visitor.sdfg.arrays}
    if name not in arrays or not _keeps_its_type(node):
        return
    kind, given = arrays[name].dtype, _type_of(visitor, operand, arrays)
    if op == "/" and given is not None and given.kind in "biu":
        given = np.dtype(float)
    mine = np.dtype(kind.type) if kind.type is not None else None
    if mine is None or given is None or _RANKS[given.kind] <= _RANKS[mine.kind]:
        return
    shown = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
    problem = f"{shown} is {mine} from before, and is set to {given}, which DaCe cuts"
    raise Refused(visitor, node, problem, f"let it begin as {given}, as in {shown} = 0.0")


def _keeps_its_type(node: ast.Assign | ast.AugAssign) -> bool:
    """Return whether a statement sets a name, or updates several points of an array."""
    if isinstance(node, ast.Assign):
        return not isinstance(node.targets[0], ast.Subscript)
    if not isinstance(node.target, ast.Subscript):
        return True
    return any(isinstance(n, ast.Slice) for n in ast.walk(node.target.slice))


def _type_of(visitor: Any, operand: Any, arrays: dict[str, Any]) -> np.dtype[Any] | None:
    """Return the type of what is assigned; None: it is not known."""
    from dace import symbolic

    name = operand[0] if isinstance(operand, tuple) else operand
    if isinstance(name, str):
        found = arrays[name].dtype if name in arrays else visitor.sdfg.symbols.get(name)
        return None if found is None or found.type is None else np.dtype(found.type)
    if symbolic.issymbolic(name):
        fraction = any(sign in str(name) for sign in "./")
        return np.dtype(float if fraction and not name.is_integer else np.int64)
    if isinstance(name, bool | int | float | np.generic):
        return np.dtype(type(name))
    return None


_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3, "O": 0, "V": 0}


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
