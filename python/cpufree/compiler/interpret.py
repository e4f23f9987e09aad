"""Runs the intermediate representation in NumPy: the reference of all back ends."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.arrays import as_given, divided_first
from cpufree.compiler.by_python import BY_PYTHON
from cpufree.compiler.faults import Broken, Fault, error_of
from cpufree.compiler.operations import UFUNCS
from cpufree.errors import ProgramError

Array = npt.NDArray[Any]


class _Leave(Exception):
    """A break or continue."""

    def __init__(self, again: bool) -> None:
        super().__init__(again)
        self.again = again


def interpret(
    program: ir.Program, arguments: Mapping[str, Array], values: Any
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Run a program; return its arrays and variables.

    Parameters
    ----------
    program : ir.Program
        The program, before or after passes.
    arguments : mapping
        Arrays of the fields that are arguments; written in place.
    values : Lowered
        Data of constants (`data`) and values of scalars (`scalars`).

    Raises
    ------
    ProgramError
        A fault of the run (compiler/faults.py); the arrays are as they were.

    Examples
    --------
    Program.interpret calls it.
    """
    run = _Run(program, arguments, values)
    given = {
        id(run.arrays[f.name]): arguments[f.name] for f in program.fields if f.name in arguments
    }
    before = {name: array.copy() for name, array in arguments.items()}
    try:
        run.block(program.body)
    except ProgramError:
        for name, array in before.items():
            arguments[name][...] = array
        raise
    fields = {f.name: f for f in program.fields}
    for name, array in run.arrays.items():
        if id(array) in given and not fields[name].is_dense:
            divided_first(given[id(array)], fields[name].axis)[...] = array[fields[name].rows]
    arrays = {
        name: given[id(array)] if id(array) in given else _as_given(array, fields[name])
        for name, array in run.arrays.items()
    }
    return arrays, run.scalars


def _spread(array: Array, f: ir.Field) -> Array:
    """Return an array as a field has it."""
    array = divided_first(array, f.axis)
    if f.is_dense:
        return array
    made = np.zeros(f.shape, f.type)
    made[f.rows] = array
    return made


def _as_given(array: Array, f: ir.Field) -> Array:
    return as_given(array if f.is_dense else array[f.rows].copy(), f.axis)


class Scalars:
    """The scalars of a program, for a host that runs it: no arrays are read."""

    def __init__(self, program: ir.Program, values: Any) -> None:
        self.run = _Run(replace(program, fields=()), {}, values)
        self.values, self.types = self.run.scalars, self.run.types

    def set(self, s: ir.Set) -> None:
        """Do an assignment."""
        self.run.statement(s)

    def truth(self, s: ir.If) -> bool:
        """Return which way a condition takes."""
        return bool(self.run.scalar(s.condition, s.line))

    def turns(self, s: ir.For) -> range:
        """Return the values of a loop's variable."""
        start, stop = (int(self.run.scalar(e, s.line)) for e in (s.start, s.stop))
        return range(start, stop, s.step)


class _Run:
    def __init__(self, program: ir.Program, arguments: Mapping[str, Array], values: Any) -> None:
        self.program = program
        self.arrays: dict[str, Array] = {}
        for f in program.fields:
            if f.role == "argument":
                self.arrays[f.name] = _spread(arguments[f.name], f)
            elif f.role == "constant":
                self.arrays[f.name] = _spread(values.data[f.name], f)
            else:
                self.arrays[f.name] = np.zeros(f.shape, f.type)
        self.types = {**dict(program.scalars), **dict(program.variables)}
        # Variables are 0 before they are set, as in kernels.
        self.scalars: dict[str, Any] = {
            name: np.dtype(kind).type(0) for name, kind in program.variables
        }
        for name, kind in program.scalars:
            self.scalars[name] = np.dtype(kind).type(values.scalars[name])
        self.box: tuple[ir.Span, ...] = ()
        self.choices = 0
        """Choices that are being computed, one inside another."""
        self.folded: dict[int, int] = {}
        """The indices of folds that are being done."""

    def block(self, body: tuple[ir.Statement, ...]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: ir.Statement) -> None:
        if isinstance(s, ir.Assign):
            value = self.points(s.value, s.box, s.line)
            self.arrays[s.field][tuple(self.slice(span, s.line) for span in s.box)] = value
        elif isinstance(s, ir.Reduce):
            self.scalars[s.name] = self.reduced(s)
        elif isinstance(s, ir.Set):
            self.scalars[s.name] = self.scalar(s.value, s.line)
        elif isinstance(s, ir.Permute) and s.values:
            copies = [self.arrays[f].copy() for f in s.sources]
            for name, values in zip(s.fields, copies, strict=True):
                self.arrays[name][...] = values
        elif isinstance(s, ir.Permute):
            # Storage moves, so arguments of the caller stay with their storage.
            moved = [self.arrays[f] for f in s.sources]
            self.arrays.update(zip(s.fields, moved, strict=True))
        elif isinstance(s, ir.Group):
            for stage in s.stages:
                self.statement(stage.work)
        elif isinstance(s, ir.Break | ir.Continue):
            raise _Leave(isinstance(s, ir.Continue))
        elif isinstance(s, ir.For | ir.Loop | ir.If):
            self.control(s)

    def control(self, s: ir.For | ir.Loop | ir.If) -> None:
        if isinstance(s, ir.If):
            self.block(s.then if self.scalar(s.condition, s.line) else s.otherwise)
            return
        turns: Any = iter(int, 1)
        if isinstance(s, ir.For):
            start, stop = (int(self.scalar(e, s.line)) for e in (s.start, s.stop))
            turns = range(start, stop, s.step)
        for turn in turns:
            if isinstance(s, ir.For):
                self.scalars[s.var] = np.int64(turn)
            try:
                self.block(s.body)
            except _Leave as leave:
                if not leave.again:
                    return

    def reduced(self, s: ir.Reduce) -> Any:
        values = np.broadcast_to(self.points(s.value, s.box, s.line), tuple(b.count for b in s.box))
        functions: dict[str, Any] = {"sum": np.sum, "max": np.max, "min": np.min}
        function = functions[s.op]
        return function(np.ascontiguousarray(values)).astype(s.type)

    def scalar(self, e: ir.Expr, line: int) -> Any:
        """Return the value of an expression that reads no arrays."""
        return np.dtype(e.type).type(self.points(e, (), line))

    def points(self, e: ir.Expr, box: tuple[ir.Span, ...], line: int) -> Any:
        """Return the values of an expression at the points of a box."""
        try:
            with np.errstate(all="ignore"):
                return self.value(e, box)
        except Broken as broken:
            raise error_of(self.program.name, broken.fault, line) from None

    def value(self, e: ir.Expr, box: tuple[ir.Span, ...]) -> Any:
        if isinstance(e, ir.Literal):
            return np.dtype(e.type).type(e.value)
        if isinstance(e, ir.Scalar):
            return self.scalars[e.name]
        if isinstance(e, ir.Read):
            return self.read(e, box)
        if isinstance(e, ir.Element):
            return self.element(e, box)
        if isinstance(e, ir.Fold):
            return self.fold(e, box)
        if isinstance(e, ir.Choice):
            return self.choice(e, box)
        return self.operation(e, box)

    def operation(self, e: ir.Op, box: tuple[ir.Span, ...]) -> Any:
        """Return the values of an operation."""
        if e.name in ("py_and", "py_or", "py_choose"):
            return self.chosen(e, box)
        args = [self.value(a, box) for a in e.args]
        if e.name == "cast":
            return np.asarray(args[0]).astype(e.type)[()]
        if e.name == "where":
            return np.where(*args)[()]
        if e.name in BY_PYTHON:
            return np.dtype(e.type).type(BY_PYTHON[e.name](*(a.item() for a in args)))
        return UFUNCS[e.name](*args)

    def chosen(self, e: ir.Op, box: tuple[ir.Span, ...]) -> Any:
        """Return the values of an operation that does not compute all of its operands."""
        first = self.value(e.args[0], box)
        if e.name != "py_choose":
            return first if bool(first) == (e.name == "py_or") else self.value(e.args[1], box)
        if np.ndim(first):
            return np.where(first, self.value(e.args[1], box), self.value(e.args[2], box))
        return self.value(e.args[1] if first else e.args[2], box)

    def choice(self, e: ir.Choice, box: tuple[ir.Span, ...]) -> Any:
        """Return the values of one expression at some points, those of another at the others."""
        places = np.ogrid[tuple(slice(span.count) for span in box)]
        inside = [(a <= r) & (r < b) for r, (a, b) in zip(places, e.ranges, strict=True)]
        self.choices += 1
        values = self.value(e.inside, box), self.value(e.beside, box)
        self.choices -= 1
        return np.where(functools.reduce(np.logical_and, inside), *values)

    def element(self, e: ir.Element, box: tuple[ir.Span, ...]) -> Any:
        """Return the value at an index that the run gives."""
        array = self.arrays[e.field]
        if not e.is_checked:  # those that are not inside are of points that are left out
            at = [np.clip(self.value(i, box), 0, n - 1)
                  for i, n in zip(e.indices, array.shape, strict=True)]  # fmt: skip
            return array[tuple(np.broadcast_arrays(*at))]
        index = int(self.value(e.index, box))
        if not -len(array) <= index < len(array):
            raise Broken(Fault.OUT_OF_BOUNDS)
        return array[index]

    def fold(self, e: ir.Fold, box: tuple[ir.Span, ...]) -> Any:
        """Return the values of a fold, its terms in order."""
        functions: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "max": np.maximum,
                                     "min": np.minimum}  # fmt: skip
        result: Any = None
        for k in range(e.count):
            self.folded[e.dim] = k
            term = np.asarray(self.value(e.value, box)).astype(e.type)
            result = term if result is None else functions[e.op](result, term)
        return result

    def read(self, e: ir.Read, box: tuple[ir.Span, ...]) -> Array:
        """Return the values of a read, with an axis for each of the box."""
        index = []
        for a in e.axes:
            if a.dim < 0:
                i = 0 if a.dim == ir.FIXED else self.folded[a.dim]
                at = a.start + a.step * (i if a.index is None else int(self.value(a.index, ())))
                index.append(np.array(at).reshape((1,) * len(box)))
                continue
            r = np.arange(box[a.dim].count)
            along = a.start + a.step * ((r + a.shift) % a.wrap if a.wrap else r)
            if self.choices:  # points that are not chosen may lie beyond the ends
                along = along.clip(0, self.arrays[e.field].shape[len(index)] - 1)
            index.append(along.reshape([-1 if k == a.dim else 1 for k in range(len(box))]))
        return self.arrays[e.field][tuple(index)] if index else self.arrays[e.field]

    def slice(self, span: ir.Span, line: int) -> slice:
        """Return the points of a box along an axis."""
        if span.index is None:
            return slice(span.start, span.stop, span.step)
        at = span.start + span.step * int(self.points(span.index, (), line))
        return slice(at, at + 1)
