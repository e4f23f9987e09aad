"""Ranges of maps and loops: of which values a parameter is, and under which conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cpufree.dace.values.affine import Affine, Moving, NotAffine, affine, plus, times
from cpufree.dace.values.points import Range
from cpufree.dace.values.refusal import Place
from cpufree.dace.values.space import Space


def range_of(
    name: str,
    bounds: tuple[Affine, Affine, Affine],
    space: Space,
    place: Place,
    from_0: bool = False,
) -> tuple[Range, Affine, tuple[Affine, ...]]:
    """Return the turns of what goes from a first to a last value: range, values, conditions.

    `from_0`: the parameter is the number of the turn, from 0.
    """
    first, last, by = bounds
    if by.factors or not by.constant:
        place.fail("a step is known only in the run, or is 0", "use a step that is a number")
    step = int(by.constant)
    way = 1 if step > 0 else -1
    length = times(plus(last, times(first, Affine(-1))), Affine(way))
    turn = Affine(0, ((name, 1),))
    values = plus(first, Affine(0, ((name, step),)))
    if not length.factors:
        count = max(0, (int(length.constant) + abs(step)) // abs(step))
        return Range(0, 1, count), values, ()
    most = space.greatest(length)
    if most is None:
        raise Moving(length.params[0])
    if abs(step) == 1 and first.factors and not from_0:
        # Indices go by one parameter, not by this one and those that the first value goes by.
        low, high = times(first, Affine(way)), times(last, Affine(way))
        ends = space.least(low), space.greatest(high)
        if None not in ends:
            begin, end = math.ceil(ends[0]), math.floor(ends[1])
            facts = (plus(turn, times(low, Affine(-1))), plus(high, times(turn, Affine(-1))))
            values = Affine(0, ((name, way),))
            return Range(begin, 1, max(0, end - begin + 1)), values, facts
    left = plus(length, times(turn, Affine(-abs(step))))
    return Range(0, 1, max(0, (int(most // 1) + abs(step)) // abs(step))), values, (left,)


def ranges_of(
    child: Any, names: Mapping[str, Any], space: Space, place: Place, tag: str = ""
) -> tuple[dict[str, Range], dict[str, Any], tuple[Affine, ...]]:
    """Return the ranges of a map's parameters, the values that they stand for, and conditions."""
    ranges: dict[str, Range] = {}
    values: dict[str, Any] = {}
    facts: tuple[Affine, ...] = ()
    for name, bounds in zip(child.node.map.params, child.node.map.range, strict=True):
        # Of one map no parameter goes by another one.
        try:
            first, last, step = (affine(x, names) for x in bounds)
        except NotAffine:
            begin, end, by = bounds
            place.fail(f"the range {begin}:{end + 1}:{by} cannot be computed", "use sums of sizes")
        own = f"{name}@{tag}" if tag or name in space.ranges else name
        ranges[own], values[name], more = range_of(own, (first, last, step), space, place)
        facts += more
        space = space.over({own: ranges[own]}).given(more)
    return ranges, values, facts
