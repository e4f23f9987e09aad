"""Names outside of maps: symbols, arguments, scalars that are set, variables of loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.dace.lowering import loops
from cpufree.dace.lowering.containers import Containers
from cpufree.dace.lowering.stages import Stages
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine, Names, NotAffine, plus, times
from cpufree.dace.values.points import Output, Point, points
from cpufree.dace.values.refusal import Place
from cpufree.dace.values.space import UNKNOWN, Space


class Scalars:
    """What names outside of maps stand for, while a tree is read."""

    def __init__(
        self,
        tree: Any,
        symbols: Mapping[str, Any],
        scalars: Mapping[str, tuple[str, Any]],
        place: Place,
    ) -> None:
        """`scalars`: arguments that are numbers of the run, type and value."""
        self.names: dict[str, Any] = Names(symbols, self.missing)
        self.space = Space({})
        """Scalars of the run that indices go by: variables of the loops around a statement."""
        self.containers = Containers(tree.containers, self.names, lambda: self.space)
        self.arguments = dict(scalars)
        self.constants = {
            n: operators.literal(np.asarray(value).item())
            for n, (_, value) in tree.constants.items()
            if np.size(value) == 1 and np.asarray(value).dtype.kind in "bif"
        }
        """Numbers that DaCe has found in the text."""
        self.place = place
        self.known: dict[str, Any] = {}
        """Scalars whose value follows from arguments and variables of loops."""
        self.loops: dict[str, ir.Scalar] = {}
        self.variables: dict[str, str] = {}
        self.numpys: set[str] = set()
        """Scalars that NumPy computes, whose division by zero is no fault."""
        self.lost: dict[str, Place] = {}
        """Scalars that the points of a map have set: the value of none of them is left."""
        self.written = loops.assigned(tree.children)
        self.out: list[Any] = []
        self.signals = 0
        """Signals of the program's own."""
        self.bases: dict[str, int] = {}
        self.stages = Stages(
            self.containers, lambda s: self.out.append(s), self._set, self._old, lambda: self.space
        )

    def scalar(self, name: str) -> ir.Expr | None:
        """Return the value of a scalar outside of maps."""
        if name in self.lost:
            self.lost[name].fail(
                f"{name} is set by all points of a map, and read where it is none of theirs",
                "let each point set it before it reads it; reduce with np.sum, np.max, np.min",
            )
        if name in self.known:
            found: ir.Expr = self.known[name]
            return found
        if name in self.loops:
            return self.loops[name]
        if name in self.arguments:
            return ir.Scalar(name, self.arguments[name][0])
        if name in self.variables:
            return ir.Scalar(name, self.variables[name])
        return self.constants.get(name)

    def missing(self, name: str) -> Any:
        """Return what a name in an index stands for that is no symbol; None: it moves in the run.

        Numbers that follow from arguments are taken as they are: other ones make another program.
        """
        found = self.scalar(name) if isinstance(name, str) else name
        return None if found is None else self.sum_of_run(found)

    def sum_of_run(self, e: Any) -> Affine | None:
        """Return the sum that a scalar expression is, of scalars of the run that indices go by."""
        value = loops.value_of(self, e)  # type: ignore[arg-type]
        if value is not None:
            whole = not isinstance(value, float) or value.is_integer()
            return Affine(int(value)) if whole else None
        if e.type not in ("int64", "int32"):
            return None
        if isinstance(e, ir.Scalar):
            if e.name in self.space.ranges:
                return Affine(0, ((e.name, 1),))
            if e.name in self.loops:
                return None
            self.space = self._with(e, UNKNOWN)
            return Affine(0, ((e.name, 1),))
        return self._sum_of_operation(e) if isinstance(e, ir.Op) else None

    def _sum_of_operation(self, e: ir.Op) -> Affine | None:
        if e.name not in ("add", "subtract", "multiply", "negative", "cast"):
            return None
        parts = [self.sum_of_run(a) for a in e.args]
        if any(p is None for p in parts):
            return None
        a, b = (parts * 2)[:2]
        assert a is not None and b is not None
        if e.name == "cast":
            return a
        if e.name == "negative":
            return times(a, Affine(-1))
        if e.name == "multiply":
            try:
                return times(a, b)
            except NotAffine:
                return None
        return plus(a, b if e.name == "add" else times(b, Affine(-1)))

    def _with(self, scalar: ir.Scalar, values: Any) -> Space:
        space = self.space.over({scalar.name: values})
        return replace(space, moving={**space.moving, scalar.name: scalar})

    def is_pythons(self, e: Any) -> bool:
        """Return whether a value outside of maps is a number of Python's."""
        if isinstance(e, ir.Scalar):
            return e.name not in self.numpys and e.name not in self.stages.variables
        if isinstance(e, ir.Op):
            return all(map(self.is_pythons, e.args))
        return isinstance(e, ir.Literal)

    def signal_base(self, name: str) -> int:
        """Return the number of the first signal of an array."""
        if name not in self.bases:
            self.bases[name] = self.signals
            self.signals += math.prod(self.containers.shape(name))
        return self.bases[name]

    def _old(self, name: str) -> Any:
        if name not in self.names:
            return self.scalar(name)
        return operators.literal(self.names[name])

    def _set(self, name: str, value: Any, output: Output) -> None:
        self.set_scalar(name, value, output.place)

    def set_scalar(self, name: str, value: Any, place: Place) -> None:
        """Set a scalar."""
        by_numpy = any(isinstance(p, Point) for p in points(value)) or not self.is_pythons(value)
        value = self.stages.fetch(value, Output(name, (), value, place))
        if name in self.arguments and name not in self.variables:
            place.fail(f"{name} is an argument, and is set", "use a name of your own")
        kind = self.variables.get(name) or self.containers.kind(name) if self._has(name) else ""
        kind = kind or value.type
        if kind.startswith("int") and value.type.startswith("float") and name in self.variables:
            place.fail(
                f"{name} is a whole number first, and then a float, which DaCe would cut",
                "begin with a float, such as 0.0, or convert with dace.int64(...)",
            )
        value = operators.cast(value, kind)
        self.variables[name] = kind
        self.names.pop(name, None)
        self.known.pop(name, None)
        self.lost.pop(name, None)
        (self.numpys.add if by_numpy else self.numpys.discard)(name)
        self.out.append(ir.Set(name, value, place.line))
        if self._is_fixed(value):
            self.known[name] = value

    def _has(self, name: str) -> bool:
        return name in self.variables or name in self.containers.descriptors

    def _is_fixed(self, value: Any) -> bool:
        if isinstance(value, ir.Scalar):
            return value.name in self.loops or value.name in self.arguments
        return isinstance(value, ir.Literal) or (
            isinstance(value, ir.Op) and all(self._is_fixed(a) for a in value.args)
        )

    def forget(self, touched: set[str]) -> None:
        """What is set on some way only is known in the run only."""
        for name in touched:
            self.known.pop(name, None)
            if name in self.names and name in self.variables:
                self.names.pop(name)

    def state(self) -> Any:
        """Return what names stand for now, to be given to `back_to`."""
        return dict(self.names), [(of, n, copy(getattr(of, n))) for of, n in self._parts()]

    def back_to(self, state: Any) -> None:
        """Let names stand for what they stood for."""
        symbols, parts = state
        self.names.clear()
        self.names.update(symbols)
        for of, name, value in parts:
            setattr(of, name, copy(value))

    def _parts(self) -> list[tuple[Any, str]]:
        own = ("known", "loops", "variables", "space", "lost", "numpys", "out")
        return [
            *((self, n) for n in own),
            *((self.containers, n) for n in ("views", "later", "fields", "shapes")),
            *((self.stages, n) for n in ("variables", "constants")),
        ]
