"""Stages of the representation from what bodies write, in an order that needs no old values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cpufree.compiler import ir
from cpufree.dace import operators
from cpufree.dace.affine import Affine
from cpufree.dace.containers import Containers
from cpufree.dace.points import (
    MOST_COPIES,
    Boxes,
    Output,
    Point,
    Range,
    points,
    replaced,
    sharing,
    with_params,
)


@dataclass
class Stages:
    """Adds stages to a program that is being made."""

    containers: Containers
    emit: Callable[[ir.Statement], None]
    set_scalar: Callable[[str, Any, Output], None]
    scalar: Callable[[str], Any]
    """The value of a scalar, None of one that has none."""

    def __post_init__(self) -> None:
        self.boxes = Boxes(lambda name: self.containers.fields[name].shape, self.steps)
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

    def add(self, outputs: list[Output], ranges: dict[str, Range]) -> None:
        """Add the stages of a map: all of them compute with what was there before."""
        reductions = [o for o in outputs if o.reduction]
        for output in reductions:
            self.reduce(output, ranges)
        if any(r.count == 0 for r in ranges.values()):
            return
        left = [o for o in outputs if not o.reduction]
        while left:
            chosen = next((o for o in left if not _is_read(o, left)), None)
            if chosen is None:  # each is read by another one: keep one aside till all have read
                chosen = left.pop(0)
                left.append(self._kept_aside(chosen, ranges))
                continue
            self._write(chosen, ranges)
            left.remove(chosen)

    def _write(self, output: Output, ranges: dict[str, Range]) -> None:
        copies = self.boxes.copies(output, ranges)
        reads_itself = any(
            isinstance(p, Point) and p.field == output.field for p in points(output.value)
        )
        if len(copies) > 1 and reads_itself:
            self._write(self._kept_aside(output, ranges), ranges)
            return
        for copy in copies:
            stage = self.boxes.assign(copy, ranges)
            if stage is not None:
                self.emit(stage)

    def _kept_aside(self, output: Output, ranges: dict[str, Range]) -> Output:
        """Compute into an array of its own; return the output that copies it."""
        f = self.containers.fields[output.field]
        self.made += 1
        name = f"next_{f.name}_{self.made}"
        self.containers.fields[name] = replace(f, name=name, role="local")
        self._write(replace(output, field=name), ranges)
        return replace(output, value=Point(name, output.index, f.type))

    # --- reductions ---

    def reduce(self, output: Output, ranges: dict[str, Range]) -> None:
        """Add a reduction over all points of a map to one value, or to one for each index."""
        written = {p for a in output.index for p in a.params}
        if any(r.count == 0 for r in ranges.values()):
            if output.fresh and all(r.count for p, r in ranges.items() if p in written):
                self._assign(output, _of_nothing(output), ranges)
            return
        if written:
            self.fold(output, ranges)
            return
        self._assign(output, self._joined(output, self.total(output, ranges)), {})

    def _joined(self, output: Output, value: Any) -> Any:
        """Return the values of a reduction joined with what it goes on from."""
        old: Any = output.start
        if not output.fresh:
            old = self.scalar(output.field)
            if output.index:
                f = self.containers.fields[output.field]
                old = Point(f.name, output.index, f.type)
        return value if old is None else _join(output.reduction, old, value)

    def _assign(self, output: Output, value: Any, ranges: dict[str, Range]) -> None:
        """Write the result of a reduction."""
        if not output.index:
            self.set_scalar(output.field, value, output)
            return
        value = operators.cast(value, self.containers.fields[output.field].type)
        written = {p for a in output.index for p in (*a.params, *dict(output.folds))}
        left = {p: r for p, r in ranges.items() if p in written}
        self._write(replace(output, value=value, reduction=""), left)

    def fold(self, output: Output, ranges: dict[str, Range]) -> None:
        """Add the stage of a reduction over some parameters of a map, for each point of others.

        Parameters that share an axis with another one of what is read are written out.
        """
        written = {p for a in output.index for p in a.params}
        live = {p: r for p, r in ranges.items() if r.count != 1}
        over = [p for p in live if p not in written]
        apart = sharing(output, live, over)
        turns = [[r.begin + k * r.step for k in range(r.count)] for r in (live[p] for p in apart)]
        if math.prod(map(len, turns)) > MOST_COPIES:
            output.place.fail(
                f"{', '.join(apart)} share an axis with others, and have "
                f"{math.prod(map(len, turns))} values",
                f"give every axis an index with one parameter (at most {MOST_COPIES} terms are "
                "written out)",
            )
        kind = "int64" if output.value.type == "bool" else output.value.type
        value: Any = None
        for chosen in itertools.product(*turns):
            term = with_params(output.value, dict(zip(apart, chosen, strict=True)))
            value = term if value is None else _join(output.reduction, value, term)
        value = operators.cast(value, kind)
        folds = [(p, ir.FOLDED - k) for k, p in enumerate(p for p in over if p not in apart)]
        for p, dim in folds:
            value = ir.Fold(output.reduction, dim, live[p].count, value, kind)
        left = {p: r for p, r in ranges.items() if p not in apart}
        self._assign(replace(output, folds=tuple(folds)), self._joined(output, value), left)

    def total(self, output: Output, ranges: dict[str, Range]) -> ir.Scalar:
        """Add a reduction; return the scalar that has its result."""
        kind = output.value.type
        kind = "int64" if kind == "bool" else kind
        live = [p for p, r in ranges.items() if r.count != 1]
        anchor = next((p for p in points(output.value) if _anchors(p, live)), None)
        if anchor is None:
            anchor = self._written_out(output, ranges, live)
            output = replace(output, value=anchor)
        place = replace(output, field=anchor.field, index=anchor.index)
        stage = self.boxes.assign(place, ranges)
        assert stage is not None
        self.made += 1
        name = f"{output.reduction}_{self.made}"
        self.variables[name] = kind
        value = ir.Op("cast", (stage.value,), kind) if stage.value.type != kind else stage.value
        line = output.place.line
        self.emit(ir.Reduce(name, output.reduction, anchor.field, stage.box, value, kind, line))
        return ir.Scalar(name, kind)

    def _written_out(self, output: Output, ranges: dict[str, Range], live: list[str]) -> Point:
        """Compute the values into an array, which then is reduced."""
        self.made += 1
        name = f"values_{self.made}"
        shape = tuple(ranges[p].count for p in live) or (1,)
        self.containers.fields[name] = ir.Field(name, shape, output.value.type, "local")
        unit = {p: Range(0, 1, ranges[p].count) for p in live}
        if any(ranges[p] != unit[p] for p in live):
            output.place.fail(
                "values are reduced that lie at no array's points", "reduce an array of them"
            )
        index = tuple(Affine(0, ((p, 1),)) for p in live) or (Affine(0),)
        self._write(replace(output, field=name, index=index, reduction=""), ranges)
        return Point(name, index, output.value.type)

    def fetch(self, value: Any, output: Output) -> ir.Expr:
        """Return a value outside of maps in which elements of arrays have become scalars."""

        def change(p: Any) -> Any:
            if not isinstance(p, Point):
                return ir.Literal(int(p.value.constant), "int64")
            # The largest of one value is the value.
            return self.total(replace(output, value=p, reduction="max"), {})

        result: ir.Expr = replaced(value, change)
        return result


def _join(reduction: str, old: Any, value: Any) -> Any:
    return operators.apply(
        {"sum": "add", "max": "maximum", "min": "minimum"}[reduction], [old, value]
    )


def _of_nothing(output: Output) -> ir.Literal:
    """Return what a reduction of no values is."""
    if output.start is not None:
        return output.start
    if output.reduction != "sum":
        output.place.fail(
            f"the {output.reduction} of no values has none", "let the range have points"
        )
    return ir.Literal(0, "int64")


def _anchors(p: Any, live: list[str]) -> bool:
    """Return whether a point has each parameter along an axis of its own."""
    if not isinstance(p, Point):
        return False
    names = [n for a in p.index for n in a.params]
    return sorted(names) == sorted(live) and all(len(a.params) <= 1 for a in p.index)


def _is_read(output: Output, others: list[Output]) -> bool:
    return any(
        isinstance(p, Point) and p.field == output.field
        for other in others
        if other is not output
        for p in points(other.value)
    )
