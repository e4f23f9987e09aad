"""What a map reads that it has written itself: by the same point, or by others."""

from __future__ import annotations

from typing import Any

from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine, plus, times
from cpufree.dace.values.points import Output, Point, points, with_params
from cpufree.dace.values.refusal import Place
from cpufree.dace.values.space import Space, is_true

MINUS = Affine(-1)


def value_at(point: Point, outputs: list[Output], space: Space, place: Place) -> Any:
    """Return what a map's body has written at a point so far, the point itself where it has not.

    Parameters of an output that the space does not have are those of inner maps that have ended:
    the output has been written for all of their values.
    """
    if not outputs:
        return point
    *earlier, last = outputs
    before = value_at(point, earlier, space, place)
    if last.field != point.field:
        return before
    if last.reduction:
        place.fail(
            f"{point.field} is added to by several points of a map, and read by them",
            "read it behind the map",
        )
    values, zeros, signs = _solved(point, last, space, place)
    if zeros is None:
        return before
    facts = [f for zero in zeros for f in (zero, times(zero, MINUS))] + signs
    truths = [space.truth(f) for f in facts]
    if False in truths:
        return before
    there = with_params(last.value, values)
    unknown = [f for f, truth in zip(facts, truths, strict=True) if truth is None]
    return operators.where(is_true(*unknown), there, before) if unknown else there


def _solved(
    point: Point, output: Output, space: Space, place: Place
) -> tuple[dict[str, Affine | int], list[Affine] | None, list[Affine]]:
    """Return for which values of inner parameters an output is a point.

    That is where the sums in the first list are 0 (None: nowhere), and those in the second are 0 or
    more.
    """
    values: dict[str, Affine | int] = {}
    zeros: list[Affine] = []
    signs: list[Affine] = []
    for ours, theirs in zip(point.index, output.index, strict=True):
        inner = [p for p in theirs.params if p not in space.ranges and p not in values]
        theirs = theirs.with_values(values)
        rest = plus(ours, times(theirs, MINUS))
        if not inner:
            zeros.append(rest)
            continue
        (name, *more), r = inner, output.ranges[inner[0]]
        factor = theirs.factor(name)
        left = plus(rest, Affine(0, ((name, factor),)))
        if more or any(f % factor for _, f in left.factors):
            place.fail(
                f"{point.field} is read at points that the map may have written",
                "keep what is read in an array that the map does not write",
            )
        if left.constant % factor:
            return values, None, signs
        value = Affine(left.constant // factor, tuple((n, f // factor) for n, f in left.factors))
        values[name] = value
        first = plus(value, Affine(-r.begin))
        signs += [first, plus(times(value, MINUS), Affine(r.begin + r.step * (r.count - 1)))]
    return values, zeros, signs


def check_turns(outputs: list[Output], space: Space, params: list[str]) -> None:
    """Refuse a map whose points hang on the order in which they are done.

    As loops they would be done one after the other: then one reads what an earlier one has written,
    or overwrites what a later one is to leave.
    """
    for o in outputs:
        for p in {p for other in outputs for p in points(other.value) if isinstance(p, Point)}:
            if p.field == o.field and not o.reduction and _is_earlier(o, p, space, params, False):
                o.place.fail(
                    f"a point of the map reads {p.field} where another one has written before",
                    "loop over it with range() outside of the map, or read a copy of the array",
                )
    for k, one in enumerate(outputs):
        for other in outputs[k + 1 :]:
            same = one.field == other.field and not one.reduction and not other.reduction
            there = Point(other.field, other.index, other.value.type)
            if same and _is_earlier(one, there, space, params, True):
                other.place.fail(
                    f"several points of the map write the same points of {one.field}",
                    "let each point of a map write points of its own",
                )


def _is_earlier(o: Output, p: Point, space: Space, params: list[str], later: bool) -> bool:
    """Return whether a turn before that of a point may write it; `later`: whether one after it."""
    if o.index == p.index:
        return False
    distance: dict[str, int] = {}
    for written, read in zip(o.index, p.index, strict=True):
        rest = plus(read, times(written, MINUS))
        ours = [n for n in written.params if n in params]
        if any(n not in params and n in o.ranges for n in (*written.params, *read.params)) or any(
            n not in space.ranges for n in (*written.params, *read.params)
        ):
            if _apart(written, read, o, space):
                return False
            continue  # of inner maps: any distance
        if rest.factors or len(ours) > 1:
            if _apart(written, read, o, space):
                return False
            continue
        if not ours:
            if rest.constant:
                return False
            continue
        steps, odd = divmod(int(rest.constant), written.factor(ours[0]))
        if odd or abs(steps) >= o.ranges[ours[0]].count or distance.get(ours[0], steps) != steps:
            return False
        distance[ours[0]] = steps
    # The turn that writes is `distance` behind the one that reads; unknown parts may be anything.
    for name in params:
        if name not in distance:
            return True
        if distance[name]:
            return (distance[name] > 0) == later
    return False


def _apart(written: Affine, read: Affine, o: Output, space: Space) -> bool:
    """Return whether two indices never meet, whatever the parameters of each are."""
    whole = space.over(o.ranges)
    if any(n not in whole.ranges for n in (*written.params, *read.params)):
        return False
    ends = [(whole.least(a), whole.greatest(a)) for a in (written, read)]
    if any(e is None for pair in ends for e in pair):
        return False
    (a, b), (c, d) = ends
    return bool(b < c or d < a)
