"""Makes the intermediate representation: fields, scalars, operations with NumPy's types."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import values
from cpufree.compiler.front.distribution import RankGrew, Split, check_distribution
from cpufree.compiler.front.grids import Grids, Places
from cpufree.compiler.front.numbers import fitting, kinds
from cpufree.compiler.front.operands import fail_as_array
from cpufree.compiler.front.text.source import Source
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    Masked,
    ScalarValue,
    TupleValue,
    Value,
)
from cpufree.compiler.front.variables import Variables
from cpufree.compiler.operations import (
    UFUNCS,
    Kind,
    kinds_of,
    loop_types,
    python_kind,
    stored,
)
from cpufree.errors import ProgramError
from cpufree.text import counted

_MOST_DIMS = 4
_MOST_POINTS = 2**48


class Builder(Variables):
    """What is being made, and what it takes to add to it."""

    def __init__(
        self,
        source: Source,
        split: Split,
        most_dims: int,
        grids: Places,
        everywhere: frozenset[str],
    ) -> None:
        """`most_dims`, `grids`: of the arrays, as far as known; others begin again.

        Of arrays in `everywhere` each PE has a copy, though they have the axes of the grid.
        """
        self.source, self.everywhere = source, everywhere
        self.split, self.most_dims = split, most_dims
        self.grids = Grids(grids)
        self.fields: dict[str, ir.Field] = {}
        self.data: dict[str, Any] = {}
        """Of constants: the array."""
        self.outside: dict[str, str] = {}
        """Of constants: what the program calls them."""
        self.scalars: dict[str, tuple[str, Any]] = {}
        """Type and value by name."""
        self.variables: dict[str, str] = {}
        self.out: list[ir.Statement] = []
        self.prefix = ""  # of the names of variables: the program that is being lowered
        self.written_out = 0  # turns of loops, so far
        self.lines: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        """Of variables whose kind depends on the way taken: the variable that has the kind."""
        self.locked: dict[str, str] = {}
        """Fields that must not be written any more, and why."""
        self.permutes: list[tuple[ast.AST, frozenset[str], frozenset[str]]] = []
        """Fields that change places, and those of them whose array is given up."""
        self._hosts: dict[int, tuple[Any, ArrayValue]] = {}
        self._names: dict[int, tuple[Host, str]] = {}
        """Of numbers of the host: the scalar that carries it."""
        self._floats: dict[tuple[str, str], str] = {}
        """Of such scalars and types: the scalar that has the number in the type."""

    _STATE = (
        "fields", "data", "scalars", "variables", "out", "written_out", "tags", "locked",
        "permutes", "grids", "_hosts", "_names",
        "_floats",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return all that lowering adds to."""
        return {name: copy(getattr(self, name)) for name in self._STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        for name, content in state.items():
            setattr(self, name, copy(content))

    @contextmanager
    def apart(self, out: list[ir.Statement] | None = None) -> Iterator[None]:
        """Let `out` have the statements that are made meanwhile; None: a list of their own."""
        outer, self.out = self.out, [] if out is None else out
        try:
            yield
        finally:
            self.out = outer

    def fail(self, node: ast.AST, problem: str, advice: str, **about: bool) -> NoReturn:
        """Raise ProgramError at a node; `about`: attributes of the error, such as by_join."""
        try:
            self.source.fail(node, problem, advice)
        except ProgramError as error:
            vars(error).update(about)
            raise

    def line(self, node: ast.AST) -> int:
        """Return the number of a node's line, and remember its text."""
        number = self.source.line_of(node)
        self.lines[str(number)] = self.source.lines[number - 1].strip()
        return number

    # --- names, fields, scalars ---

    def fresh(self, name: str) -> str:
        """Return a name that nothing has yet."""
        taken = {*self.fields, *self.scalars, *self.variables}
        if name not in taken:
            return name
        return next(f"{name}_{k}" for k in range(2, len(taken) + 3) if f"{name}_{k}" not in taken)

    def new_field(
        self, node: ast.AST, name: str, shape: Sequence[int], kind: str, role: str
    ) -> ArrayValue:
        """Add a field; return it as an array."""
        if kind not in ir.TYPES:
            self.fail(node, f"{name} is an array of {kind}", f"use one of {', '.join(ir.TYPES)}")
        if not 1 <= len(shape) <= _MOST_DIMS:
            self.fail(
                node,
                f"{name} has {counted(len(shape), 'dimension')}",
                "give arrays of 1 to 3 dimensions, with a batch dimension before them if needed",
            )
        if math.prod(shape) >= _MOST_POINTS or min(shape) < 0:
            self.fail(
                node, f"{name} of shape {tuple(shape)} has no room anywhere", "make it smaller"
            )
        if len(shape) > self.most_dims:
            raise RankGrew(len(shape))
        name = self.fresh(name)
        axis = None if name in self.everywhere else self.split.axis(len(shape))
        first = axis or 0
        apart, begin, rows = self.grids.assumed.get(name, (1, 0, shape[first]))
        ordered = (rows, *shape[:first], *shape[first + 1 :])
        self.fields[name] = ir.Field(
            name, ordered, kind, role, axis is not None, first, apart, begin
        )
        return values.whole(self.fields[name])

    def constant(self, node: ast.AST, host: Host) -> ArrayValue:
        """Return an array of the host as a field that is not written."""
        found = self._hosts.get(id(host.value))
        if found is None:
            array = self.new_field(
                node, "constant", host.value.shape, host.value.dtype.name, "constant"
            )
            self.data[array.field] = host.value
            self.outside[array.field] = host.text or "an array from outside"
            found = self._hosts[id(host.value)] = (host.value, array)
        return found[1]

    # --- operands ---

    def operand(self, node: ast.AST, value: Value) -> ScalarValue | ArrayValue:
        """Return a value as an operand of an operation."""
        if isinstance(value, ScalarValue | ArrayValue):
            return value
        if not isinstance(value, Host):
            fail_as_array(self, node, value)
        if isinstance(value.value, np.ndarray) and value.value.ndim > 0:
            return self.constant(node, value)
        number: Any = value.value[()] if isinstance(value.value, np.ndarray) else value.value
        kind = python_kind(number)
        if kind is None or stored(kind) not in ir.TYPES:
            fail_as_array(self, node, value)
        if kind == "int" and not -(2**63) <= number < 2**63:
            self.fail(node, f"{number} does not fit in 64 bits", "write a smaller number")
        if value.literal:
            plain = number.item() if isinstance(number, np.generic) else number
            return ScalarValue(ir.Literal(plain, stored(kind)), kind)
        _, name = self._names.setdefault(id(value), (value, self.fresh(f"s{len(self.scalars)}")))
        self.scalars[name] = stored(kind), number
        return ScalarValue(ir.Scalar(name, stored(kind)), kind)

    def cast(self, expr: ir.Expr, kind: str) -> ir.Expr:
        """Return an expression converted to a type."""
        if expr.type == kind:
            return expr
        assert kind in ir.TYPES, kind
        if isinstance(expr, ir.Literal):
            exact = {"float64": float, "float32": float, "bool": bool}.get(kind, int)
            if kind != "float32" and not (kind == "int32" or isinstance(expr.value, float)):
                return ir.Literal(exact(expr.value), kind)
        if isinstance(expr, ir.Scalar) and expr.name in self.scalars and kind.startswith("float"):
            return self._converted(expr, kind)
        return ir.Op("cast", (expr,), kind)

    def _converted(self, expr: ir.Scalar, kind: str) -> ir.Scalar:
        """Return a number of the host in a type of floats: points are spared the conversion."""
        key = expr.name, kind
        if key not in self._floats:
            value = np.array([self.scalars[expr.name][1]], expr.type).astype(kind)[0].item()
            self._floats[key] = self.fresh(f"{expr.name}_{kind}")
            self.scalars[self._floats[key]] = kind, value
        return ir.Scalar(self._floats[key], kind)

    # --- operations ---

    def elementwise(
        self, node: ast.AST, name: str, operands: list[ScalarValue | ArrayValue]
    ) -> ScalarValue | ArrayValue:
        """Return the result of a function of NumPy's point by point."""
        operands, types = fitting.fitting(
            self, node, name, operands, self.types(node, name, operands)
        )
        shape, exprs = self.together(node, operands)
        pairs = zip(exprs, types[:-1], strict=True)
        result = ir.Op(name, tuple(self.cast(e, t) for e, t in pairs), types[-1])
        if shape is None:
            numbers = [o for o in operands if isinstance(o, ScalarValue)]
            kind = kinds.by_way(numbers, lambda *way: kinds.of_result(way, types[-1]))
            return replace(kind, expr=result)
        return ArrayValue(result, shape, types[-1])

    def types(
        self, node: ast.AST, name: str, operands: Sequence[ScalarValue | ArrayValue]
    ) -> tuple[str, ...]:
        """Return the types in which NumPy computes: of the operands, and of the result."""
        given = [o.type if isinstance(o, ArrayValue) else o.kind for o in operands]
        found: tuple[str, ...] = self.one_for_all(
            node, name, given, lambda *way: self._types(node, name, way)
        )
        return found

    def _types(self, node: ast.AST, name: str, given: tuple[Kind, ...]) -> tuple[str, ...]:
        try:
            types = loop_types(UFUNCS[name], list(given))
        except TypeError as error:
            text = ", ".join(given)
            self.fail(node, f"NumPy has no {name} of {text} ({error})", "convert with .astype")
        self.require_type(node, *types)
        return types

    def require_type(self, node: ast.AST, *types: str) -> None:
        """Refuse types that programs do not have."""
        for kind in types:
            if kind not in ir.TYPES:
                self.fail(
                    node,
                    f"this is computed in {kind}",
                    f"convert with .astype to one of {', '.join(ir.TYPES)} before",
                )

    def one_for_all(
        self, node: ast.AST, name: str, given: Sequence[Kind], of: Callable[..., Any]
    ) -> Any:
        """Return of(*kinds), which must be the same on all ways that the run may take."""
        found = {repr(made): made for made in (of(*way) for way in kinds.ways_of(given))}
        if len(found) > 1:
            which = next(kind for kind in given if len(kinds_of(kind)) > 1)
            self.fail(
                node,
                f"a number is {kinds.words(which)}, depending on the way taken, and {name} gives "
                "another type, or another value, for one than for the other",
                "let it begin with a number of the same type, or convert what is assigned to it: "
                "float(...), np.float64(...)",
                by_join=True,
            )
        return next(iter(found.values()))

    def together(
        self, node: ast.AST, operands: Sequence[ScalarValue | ArrayValue]
    ) -> tuple[tuple[int, ...] | None, list[ir.Expr]]:
        """Return the common shape (None: scalars only) and the expressions in its points."""
        shapes = [o.shape for o in operands if isinstance(o, ArrayValue)]
        if not shapes:
            return None, [o.expr for o in operands]
        try:
            shape = values.result_shape(shapes)
        except ValueError:
            text = " and ".join(map(str, shapes))
            self.fail(node, f"shapes {text} do not fit together", "give slices of equal lengths")
        return shape, [
            values.broadcast(o, shape) if isinstance(o, ArrayValue) else o.expr for o in operands
        ]

    # --- statements ---

    def assign(
        self,
        node: ast.AST,
        target: ArrayValue,
        value: ScalarValue | ArrayValue,
        checks: bool = True,
    ) -> None:
        """Write a value into a view, with the type that the view has.

        `checks`: a number that the type has no value for is a fault, as in a[...] = number. Without
        it Python's whole numbers alone are checked, as in np.copyto(a, number).
        """
        read = target.expr
        assert isinstance(read, ir.Read)
        f = self.fields[read.field]
        if f.name in self.locked:
            self.fail(node, self.locked[f.name], "begin with a copy: .copy()")
        value = fitting.written(self, node, value, f.type, checks)
        if f.role == "constant":
            self.fail(
                node,
                f"{self.outside[f.name]} is no argument of the program, which may not write into "
                "it",
                "give it a parameter of its own, or write into a copy (.copy())",
            )
        if isinstance(value, ArrayValue):
            value = values.without_leading_ones(value, len(target.shape))
            try:
                fits = values.result_shape([value.shape, target.shape]) == target.shape
            except ValueError:
                fits = False
            if not fits:
                self.fail(
                    node,
                    f"a value of shape {value.shape} does not fit into a part of {target.shape}",
                    "give both sides slices of the same lengths",
                )
            expr = values.moved_to_box(values.broadcast(value, target.shape), read)
        else:
            expr = value.expr
        box = values.box_of(read, target.shape)
        expr = self.cast(expr, f.type)
        check_distribution(self, node, f, box, expr)
        if all(span.count for span in box):
            self.out.append(ir.Assign(f.name, box, expr, self.line(node)))

    def kept(self, node: ast.AST, value: Value, name: str) -> Value:
        """Return a value that stays what it is now, whatever is written later; views are views."""
        if isinstance(value, Masked):
            fail_as_array(self, node, value)
        if isinstance(value, TupleValue):
            items = tuple(self.kept(node, item, name) for item in value.items)
            same = all(map(operator.is_, items, value.items))
            return value if same else replace(value, items=items)
        if isinstance(value, ArrayValue) and not value.is_view:
            return self.materialise(node, name, value)
        if isinstance(value, Host) and value.is_own and isinstance(value.value, np.ndarray):
            return self.materialise(node, name, self.constant(node, value))
        if isinstance(value, ScalarValue) and not isinstance(value.expr, ir.Literal):
            return self.set_now(node, name, value)
        if isinstance(value, ArrayValue):
            return values.with_indices(value, lambda i: self._index_now(node, name, i))
        return value

    def materialise(self, node: ast.AST, name: str, value: ArrayValue) -> ArrayValue:
        """Return an array of its own with the values that an expression has now."""
        target = self.new_field(node, name, value.shape, value.type, "local")
        self.assign(node, target, value)
        return target

    def reduce(self, node: ast.AST, op: str, value: ArrayValue, kind: str) -> ir.Scalar:
        """Return the scalar that a reduction over all points gives, in type `kind`."""
        if 0 in value.shape and op != "sum":
            self.fail(node, "an array without points has no least or largest", "reduce another")
        anchor = self._anchor(value)
        if anchor is None and any(self.fields[r.field].distributed for r in ir.reads(value.expr)):
            value = self.materialise(node, "reduced", value)
            anchor = value.expr if isinstance(value.expr, ir.Read) else None
        expr = self.cast(value.expr, kind)
        over = ""
        box = tuple(ir.Span(0, 1, n) for n in value.shape) or (ir.Span(0, 1, 1),)
        if anchor is not None:
            over, box = anchor.field, values.box_of(anchor, value.shape)
            expr = values.moved_to_box(expr, anchor)
            check_distribution(self, node, self.fields[over], box, expr)
        name = self.new_variable(f"{op}_of", kind)
        self.out.append(ir.Reduce(name, op, over, box, expr, kind, self.line(node)))
        return ir.Scalar(name, kind)

    def _anchor(self, value: ArrayValue) -> ir.Read | None:
        """Return a read that says on which PE each point is reduced; None where none does."""
        for read in ir.reads(value.expr):
            dims = sorted(a.dim for a in read.axes if a.dim != ir.FIXED)
            rolled = any(a.wrap for a in read.axes if a.index is None)
            plain = not rolled and dims == list(range(len(value.shape)))
            if plain and self.fields[read.field].distributed:
                return read
        return None
