"""Data containers of a schedule tree: fields, scalars, and views, which are other names for points.

A view has the points of a region of its source in the same order, under other indices. Where an
axis of the view stands for several axes of the source, a parameter that goes along it is to be
taken apart (`Split`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.dace.values.affine import Affine, Moving, affine, as_affine, number, plus, times
from cpufree.dace.values.points import Point, Range
from cpufree.dace.values.refusal import Place
from cpufree.dace.values.space import Space


class Split(Exception):
    """A parameter is to be made of several, of `sizes` values each."""

    def __init__(self, name: str, sizes: tuple[int, ...]) -> None:
        super().__init__(name, sizes)
        self.name, self.sizes = name, sizes


@dataclass(frozen=True)
class View:
    """What a view is: region (start, step, count along each axis) of `source`, and its shape."""

    source: str
    region: tuple[tuple[Affine, int, int], ...]
    shape: tuple[int, ...]


class Containers:
    """Containers of one program, for given values of its symbols."""

    def __init__(
        self, descriptors: Mapping[str, Any], names: Mapping[str, Any], space: Callable[[], Space]
    ) -> None:
        self.descriptors = dict(descriptors)
        self.names = names
        """What symbols stand for."""
        self.space = space
        """Variables of the loops of the run that is read."""
        self.views: dict[str, View] = {}
        self.later: list[Any] = []
        """Nodes of views that go by parameters of maps inside."""
        self.unknown: dict[str, str] = {}
        """Of views that are not known yet, the parameter that they go by."""
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.fields: dict[str, ir.Field] = {}
        """Those that have been touched, in that order."""

    def kind(self, name: str) -> str:
        """Return the type of a container's values; "" of what has none (requests of MPI)."""
        try:
            kind = np.dtype(self.descriptors[name].dtype.as_numpy_dtype()).name
        except (AttributeError, NotImplementedError, TypeError, KeyError):
            return ""
        return str(kind)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the points of a container along each axis: the most that it has so far."""
        shape = tuple(_most(n, self.names, self.space()) for n in self.descriptors[name].shape)
        before = self.shapes.get(name, shape)
        found = tuple(map(max, shape, before))
        self.shapes[name] = found
        return found

    def is_scalar(self, name: str) -> bool:
        """Return whether a container holds one value, and is no array of the caller's."""
        desc = self.descriptors[name]
        if name in self.views or type(desc).__name__ not in ("Scalar", "Array"):
            return False
        if type(desc).__name__ == "Scalar":
            return True
        one = all(str(n) == "1" for n in desc.shape)  # not N, which happens to be 1
        return one and (bool(desc.transient) or name.startswith("__return"))

    def field(self, name: str, place: Place) -> ir.Field:
        """Return the field of an array."""
        desc = self.descriptors[name]
        own = bool(desc.transient) or name.startswith("__return")
        if name not in self.fields:
            kind = self.kind(name)
            if kind not in ir.TYPES:
                place.fail(
                    f"{name} is an array of {kind or self.descriptors[name].dtype}",
                    f"use one of {', '.join(ir.TYPES)}",
                )
            shape = tuple(max(n, 1) for n in self.shape(name)) if own else self.shape(name)
            if not 1 <= len(shape) <= 4 or 0 in shape:
                place.fail(f"{name} has shape {shape}", "use arrays of 1 to 4 dimensions")
            self.fields[name] = ir.Field(name, shape, kind, "local" if own else "argument")
        elif own:  # in another turn of a loop it may be larger
            shape = tuple(map(max, self.shape(name), self.fields[name].shape))
            self.fields[name] = replace(self.fields[name], shape=shape)
        return self.fields[name]

    def add_views(self, names: Mapping[str, Any], space: Space, place: Place) -> None:
        """Remember what views are whose names are known here."""
        for node in list(self.later):
            try:
                where = names, space
                self.add_view(node.target, node.source, node.memlet.subset, where, place)
            except Moving as moving:
                self.views.pop(node.target, None)
                self.unknown[node.target] = moving.name
                continue
            if not any(a.params for a, _, _ in self.views[node.target].region):
                self.later.remove(node)

    def add_view(
        self, name: str, source: str, subset: Any, where: tuple[Mapping[str, Any], Space],
        place: Place,
    ) -> None:  # fmt: skip
        """Remember what a view is; `where` are names, and the space of their values."""
        region = tuple(_span(r, *where) for r in subset)
        shape = tuple(_most(n, *where) for n in self.descriptors[name].shape)
        if math.prod(c for _, _, c in region) != math.prod(shape):
            place.fail(
                f"the view {name} has {math.prod(shape)} points, and its source others",
                "use reshape and slices",
            )
        self.views[name] = View(source, region, shape)

    def point(
        self, name: str, index: tuple[Affine, ...], ranges: Mapping[str, Range], place: Place
    ) -> Point:
        """Return the point of a field that an index of a container means."""
        if name not in self.views and type(self.descriptors[name]).__name__.endswith("View"):
            raise Moving(self.unknown.get(name, name))
        while name in self.views:
            view = self.views[name]
            index = _of_source(view, index, ranges, place)
            name = view.source
        f = self.field(name, place)
        return Point(f.name, index, f.type)


def _most(size: Any, names: Mapping[str, Any], space: Space) -> int:
    """Return the largest value of a size, which may go by variables of loops, or of maps."""
    found = affine(size, names)
    if not found.factors:
        return number(size, names)
    greatest = space.greatest(found)
    if greatest is None:
        raise Moving(found.params[0])
    return int(max(0, greatest // 1))


def _span(r: Any, names: Mapping[str, Any], space: Space) -> tuple[Affine, int, int]:
    begin, end = (affine(x, names) for x in r[:2])
    step = number(r[2], names)
    last = plus(end, times(begin, Affine(-1)))
    if last.factors:
        greatest = space.greatest(last)
        if greatest is None:
            raise Moving(last.params[0])
        last = Affine(int(greatest // 1))
    return begin, step, max(0, (last.constant + step) // step)


def _of_source(
    view: View, index: tuple[Affine, ...], ranges: Mapping[str, Range], place: Place
) -> tuple[Affine, ...]:
    """Return the index in the source that an index of a view stands for."""
    counts = tuple(c for _, _, c in view.region)
    if 0 in counts:  # it has no points
        return tuple(begin for begin, _, _ in view.region)
    found: list[Affine] = []
    for axes, ours in _groups(counts, view.shape):
        linear = Affine(0)
        for v in ours:
            linear = plus(times(linear, Affine(view.shape[v])), index[v])
        wide = [counts[a] for a in axes if counts[a] != 1]
        digits = iter(_digits(linear, wide, ranges, place) if wide else ())
        found += [next(digits) if counts[a] != 1 else Affine(0) for a in axes]
    return tuple(
        plus(begin, times(Affine(step), i))
        for (begin, step, _), i in zip(view.region, found, strict=True)
    )


def _groups(one: tuple[int, ...], other: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Return the axes of two shapes that have the same points together, in order."""
    groups = []
    a = b = 0
    while a < len(one) or b < len(other):
        mine, theirs = [], []
        left = right = 1
        while True:
            if left <= right and a < len(one):
                left *= one[a]
                mine.append(a)
                a += 1
            elif b < len(other):
                right *= other[b]
                theirs.append(b)
                b += 1
            else:
                left *= one[a]
                mine.append(a)
                a += 1
            if left == right and (mine or theirs):
                break
        groups.append((mine, theirs))
    return groups


def _digits(
    linear: Affine, sizes: list[int], ranges: Mapping[str, Range], place: Place
) -> list[Affine]:
    """Return the indices along axes of given sizes of what is number `linear` of their points."""
    if len(sizes) == 1:
        return [linear]
    rest = int(linear.constant)
    digits: list[Affine] = []
    for k, size in enumerate(sizes):
        stride = math.prod(sizes[k + 1 :])
        digit, rest = divmod(rest, stride)
        terms = tuple(
            (p, f // stride)
            for p, f in linear.factors
            if f % stride == 0 and (k == 0 or f % (stride * size) != 0)
        )
        digits.append(Affine(digit, terms))
    for found, size in zip(digits, sizes, strict=True):
        if any(p not in ranges for p in found.params):
            place.fail(
                "an axis of a reshaped array stands for several, at an index of the run",
                "index the array before it is reshaped",
            )
        low = high = found.constant
        for p, f in found.factors:
            ends = (
                f * ranges[p].begin,
                f * (ranges[p].begin + ranges[p].step * (ranges[p].count - 1)),
            )
            low, high = low + min(ends), high + max(ends)
        if low < 0 or high >= size:
            _split(linear, sizes, ranges, place)
    return digits


def _split(linear: Affine, sizes: list[int], ranges: Mapping[str, Range], place: Place) -> None:
    if len(linear.factors) == 1 and linear.constant == 0:
        ((p, f),) = linear.factors
        if f == 1 and ranges[p] == Range(0, 1, math.prod(sizes)):
            raise Split(p, tuple(sizes))
    place.fail(
        "an axis of a reshaped array stands for several, and only a part of it is used",
        "take all of the reshaped array, or slice before it is reshaped",
    )


def split_ranges(
    ranges: dict[str, Range], names: dict[str, Any], split: Split
) -> tuple[dict[str, Range], dict[str, Any]]:
    """Return ranges and names where a parameter is made of several."""
    parts = {f"{split.name}_{k}": Range(0, 1, n) for k, n in enumerate(split.sizes)}
    value = Affine(0)
    for (part, _), n in zip(parts.items(), split.sizes, strict=True):
        value = plus(times(value, Affine(n)), Affine(0, ((part, 1),)))
    found: dict[str, Range] = {}
    for name, r in ranges.items():
        found.update(parts if name == split.name else {name: r})
    changed = {
        n: as_affine(v).with_values({split.name: value}) if isinstance(v, Affine) else v
        for n, v in names.items()
    }
    return found, {**changed, split.name: value}
