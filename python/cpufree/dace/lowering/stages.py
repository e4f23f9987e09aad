"""Stages of the representation from what bodies write, in an order that needs no old values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cpufree.compiler import ir
from cpufree.dace.lowering.containers import Containers
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine
from cpufree.dace.values.boxes import Boxes, Stage, pieces, sharing, unmoved
from cpufree.dace.values.points import (
    Index,
    Output,
    Over,
    Point,
    Range,
    fixed,
    join,
    neutral,
    points,
    replaced,
    with_params,
)
from cpufree.dace.values.refusal import Place
from cpufree.dace.values.space import Space, is_true


@dataclass
class Stages:
    """Adds stages to a program that is being made."""

    containers: Containers
    emit: Callable[[ir.Statement], None]
    set_scalar: Callable[[str, Any, Output], None]
    scalar: Callable[[str], Any]
    """The value of a scalar, None of one that has none."""
    space: Callable[[], Space]
    """The variables of loops of the run around what is added."""

    def __post_init__(self) -> None:
        self.boxes = Boxes(
            lambda name: self.containers.fields[name].shape, self.steps, self.checked
        )
        self.constants: dict[str, int] = {}
        """Fields that hold 0, 1, ..., by their names: how many."""
        self.variables: dict[str, str] = {}
        """Scalars that stages set, and their types."""
        self.made = 0

    def steps(self, count: int) -> str:
        """Return the name of a field that holds the numbers below `count`."""
        name = f"steps_{count}"
        if name not in self.containers.fields:
            self.constants[name] = count
            self.containers.fields[name] = ir.Field(name, (count,), "int64", "constant")
        return name

    def checked(self, index: ir.Expr, count: int, place: Place) -> ir.Expr:
        """Return an index of the run that is a fault of the run unless it is one of `count`.

        Negative ones count from the end.
        """
        self.made += 1
        name = f"index_{self.made}"
        self.variables[name] = "int64"
        self.emit(ir.Set(name, ir.Element(self.steps(count), index, "int64"), place.line))
        return ir.Scalar(name, "int64")

    def add(self, outputs: list[Output]) -> None:
        """Add the stages of a map: all of them compute with what was there before."""
        left = [o for o in outputs if not o.reduction]
        for output in outputs:
            if output.reduction:
                if any(_reads(o, output.field) for o in left):
                    output.place.fail(
                        f"{output.field} is added to by all points of a map, and read by them",
                        "read it behind the map",
                    )
                self.reduce(output)
        left = [o for o in left if all(r.count for r in o.ranges.values())]
        while left:
            chosen = next((o for o in left if not _is_read(o, left)), None)
            if chosen is None:  # each is read by another one: keep one aside till all have read
                ours = [o for o in left if o.field == left[0].field]
                others = [o for o in left if o.field != left[0].field]
                left = [*others, *(self._kept_aside(o) for o in ours)]
                continue
            self._write(chosen)
            left.remove(chosen)

    def _write(self, output: Output) -> None:
        output, space = self._inside(output)
        parts = pieces(unmoved(output, space))
        copies = [c for part in parts for c in self.boxes.copies(part)]
        reads_others = any(
            isinstance(p, Point) and p.field == output.field and p.index != output.index
            for p in points(output.value)
        )
        if len(copies) > 1 and reads_others:
            self._write(self._kept_aside(output))
            return
        for copy in copies:
            stage = self.boxes.assign(copy, space)
            if stage is not None:
                self.emit(stage)

    def _inside(self, output: Output) -> tuple[Output, Space]:
        """Return an output whose indices of the run are inside its array, and their space."""
        space, found = self.space(), list(output.index)
        for axis, index in enumerate(output.index):
            if not index.params or any(p not in space.moving for p in index.params):
                continue
            if None not in (space.least(index), space.greatest(index)):
                continue
            n = self.containers.fields[output.field].shape[axis]
            number = Stage(self.boxes, {}, output.place).number(index, space)
            scalar = self.checked(number, n, output.place)
            assert isinstance(scalar, ir.Scalar)
            moving = {**space.moving, scalar.name: scalar}
            space = replace(space.over({scalar.name: Range(0, 1, n)}), moving=moving)
            found[axis] = Affine(0, ((scalar.name, 1),))
        if tuple(found) == output.index:
            return output, space
        old = Point(output.field, output.index, output.value.type)
        own = replace(old, index=tuple(found))
        value = replaced(output.value, lambda p: own if p == old else p)
        return replace(output, index=own.index, value=value), space

    def _kept_aside(self, output: Output) -> Output:
        """Compute into an array of its own; return the output that copies it."""
        f = self.containers.fields[output.field]
        name = self._new_field(f"next_{f.name}", f.shape, f.type)
        self._write(replace(output, field=name))
        return replace(output, value=Point(name, output.index, f.type))

    def _new_field(self, name: str, shape: tuple[int, ...], kind: str) -> str:
        self.made += 1
        name = f"{name}_{self.made}"
        self.containers.fields[name] = ir.Field(name, shape, kind, "local")
        return name

    # --- reductions ---

    def reduce(self, output: Output) -> None:
        """Add a reduction over all points of a map to one value, or to one for each index."""
        ranges = output.ranges
        written = {p for a in output.index for p in a.params if p in ranges}
        if any(r.count == 0 for r in ranges.values()):
            if output.fresh and all(r.count for p, r in ranges.items() if p in written):
                self._assign(output, _of_nothing(output), written)
            return
        if output.fresh and output.start is None and self._may_be_none(output, written):
            output = replace(output, start=operators.literal(_of_nothing(output).value))
        if output.facts:  # they are not all points of a box
            kind = _summed(output)
            value = operators.cast(output.value, kind)
            value = operators.where(is_true(*output.facts), value, neutral(output.reduction, kind))
            output = replace(output, value=value)
        if written or output.reduction == "prod" or _folds(output.value):
            self.fold(output, written)
            return
        self._assign(output, self._joined(output, self.total(output)), set())

    def _may_be_none(self, output: Output, written: set[str]) -> bool:
        """Return whether there may be no values: whether the first one may be left out."""
        space = self.space().over({p: r for p, r in output.ranges.items() if p in written})
        first = {p: r.begin for p, r in output.ranges.items() if p not in written}
        return not all(space.holds(f.with_values(first)) for f in output.facts)

    def _joined(self, output: Output, value: Any) -> Any:
        """Return the values of a reduction joined with what it goes on from."""
        old: Any = output.start
        if not output.fresh:
            old = self.scalar(output.field)
            if output.index:
                f = self.containers.fields[output.field]
                old = Point(f.name, output.index, f.type)
        return value if old is None else join(output.reduction, old, value)

    def _assign(self, output: Output, value: Any, kept: set[str]) -> None:
        """Write the result of a reduction over all parameters but those that are kept."""
        ranges = {p: r for p, r in output.ranges.items() if p in kept}
        facts = tuple(f for f in output.facts if set(f.params) <= kept | set(self.space().moving))
        if not output.index:
            value = self._one(value, output) if any(True for _ in points(value)) else value
            self.set_scalar(output.field, value, output)
            return
        f = self.containers.fields[output.field]
        value = operators.cast(value, f.type)
        self._write(replace(output, value=value, reduction="", ranges=ranges, facts=facts))

    def fold(self, output: Output, written: set[str]) -> None:
        """Add the stage of a reduction over some parameters of a map, for each point of others."""
        live = {p: r for p, r in output.ranges.items() if r.count != 1}
        output = fixed(output, {p: r.begin for p, r in output.ranges.items() if r.count == 1})
        over = [p for p in live if p not in written]
        apart = sharing(output.value, over, live)
        turns = [[r.begin + k * r.step for k in range(r.count)] for r in (live[p] for p in apart)]
        kind = _summed(output)
        value: Any = None
        for chosen in itertools.product(*turns):
            term = with_params(output.value, dict(zip(apart, chosen, strict=True)))
            value = term if value is None else join(output.reduction, value, term)
        value = operators.cast(value, kind)
        for p in (p for p in over if p not in apart):
            value = Over(output.reduction, p, live[p], value, kind)
        self._assign(output, self._joined(output, value), written)

    def total(self, output: Output) -> ir.Scalar:
        """Add a reduction; return the scalar that has its result."""
        kind = _summed(output)
        output = fixed(output, {p: r.begin for p, r in output.ranges.items() if r.count == 1})
        live = list(output.ranges)
        value: Any = operators.cast(output.value, kind)
        anchor = next((p for p in points(value) if _anchors(p, live)), None)
        if anchor is None:
            value = anchor = self._values(replace(output, value=value))
            output = replace(
                output, ranges={p: Range(0, 1, r.count) for p, r in output.ranges.items()}
            )
        at = replace(output, field=anchor.field, index=anchor.index)
        spans, axes = self.boxes.box(at, "read")
        space = self.space().over(output.ranges)
        made = Stage(self.boxes, axes, output.place).value(value, space)
        self.made += 1
        name = f"{output.reduction}_{self.made}"
        self.variables[name] = kind
        line = output.place.line
        self.emit(ir.Reduce(name, output.reduction, anchor.field, spans, made, kind, line))
        return ir.Scalar(name, kind)

    def _values(self, output: Output) -> Point:
        """Compute the values into an array, which then is reduced."""
        ranges = output.ranges
        first = {p: Affine(r.begin, ((p, r.step),)) for p, r in ranges.items()}
        unit = {p: Range(0, 1, r.count) for p, r in ranges.items()}
        value = with_params(output.value, first)
        index: tuple[Affine, ...] = tuple(Affine(0, ((p, 1),)) for p in unit) or (Affine(0),)
        shape = tuple(r.count for r in unit.values()) or (1,)
        if len(shape) > 4:
            output.place.fail("a reduction over more than 4 axes", "reduce in two steps")
        name = self._new_field("values", shape, value.type)
        made = replace(
            output, field=name, index=index, value=value, reduction="", ranges=unit, facts=()
        )
        self._write(made)
        return Point(name, index, value.type)

    def fetch(self, value: Any, output: Output) -> ir.Expr:
        """Return a value outside of maps in which elements of arrays have become scalars."""
        if isinstance(value, Over):
            return self._one(value, output)
        if isinstance(value, ir.Op):
            return replace(value, args=tuple(self.fetch(a, output) for a in value.args))
        if isinstance(value, Point):
            # The largest of one value is the value.
            return self.total(replace(output, value=value, reduction="max", ranges={}, facts=()))
        if isinstance(value, Index):
            return Stage(self.boxes, {}, output.place).number(value.value, self.space())
        return value  # type: ignore[no-any-return]

    def _one(self, value: Any, output: Output) -> ir.Expr:
        """Return a value that is computed at one point."""
        point = self._values(replace(output, value=value, ranges={}, facts=(), reduction=""))
        return self.total(replace(output, value=point, reduction="max", ranges={}, facts=()))


def _folds(value: Any) -> bool:
    return isinstance(value, Over) or (
        isinstance(value, ir.Op) and any(_folds(a) for a in value.args)
    )


def _summed(output: Output) -> str:
    """Return the type in which values are joined."""
    return "int64" if output.value.type == "bool" else str(output.value.type)


def _of_nothing(output: Output) -> ir.Literal:
    """Return what a reduction of no values is."""
    if output.start is not None:
        return output.start
    if output.reduction not in ("sum", "prod"):
        output.place.fail(
            f"the {output.reduction} of no values has none", "let the range have points"
        )
    return ir.Literal(0 if output.reduction == "sum" else 1, "int64")


def _anchors(p: Any, live: list[str]) -> bool:
    """Return whether a point has each parameter along an axis of its own, and no other ones."""
    if not isinstance(p, Point):
        return False
    names = [n for a in p.index for n in a.params]
    return sorted(names) == sorted(live) and all(len(a.params) <= 1 for a in p.index)


def _reads(output: Output, name: str) -> bool:
    return any(isinstance(p, Point) and p.field == name for p in points(output.value))


def _is_read(output: Output, others: list[Output]) -> bool:
    return any(_reads(other, output.field) for other in others if other is not output)
