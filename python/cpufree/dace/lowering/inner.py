"""What lies inside a map's body: maps, loops, and sums of arrays.

An inner map is one with more parameters, which have ended behind it. A loop over range() whose
turns do not hang on one another is the same, and one that only adds to numbers is a sum; others
are written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cpufree.compiler import ir
from cpufree.dace.lowering import loops
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine, Names
from cpufree.dace.values.points import (
    Output,
    Over,
    Point,
    Range,
    join,
    joins,
    neutral,
    points,
    size,
    with_params,
)
from cpufree.dace.values.ranges import range_of, ranges_of
from cpufree.dace.values.space import is_true

Body: TypeAlias = Any
"""A map's body (bodies.py, which reads what is inside by this module)."""

MOST_TURNS = 64
_MOST_OPERATIONS = 4000
"""Of the values of a body whose loop is written out."""
_REDUCTIONS = ("sum", "prod", "max", "min")


@dataclass
class Level:
    """A map or loop inside a map."""

    before: dict[str, Any]
    """Values of the names that were set before it."""
    set_here: set[str] = field(default_factory=set)
    pending: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """What its points add to names from before: how, and what."""


class _NotAlike(Exception):
    """The turns of a loop hang on one another."""


def was_set(body: Body, name: str) -> None:
    """Note that a name has been set."""
    if body.levels:
        body.levels[-1].set_here.add(name)


def joined(body: Body, name: str, reduction: str, value: Any) -> None:
    """Join a name's value with another one, in the map or loop in which the name was set."""
    level = body.levels[-1] if body.levels else None
    if level is None or name in level.set_here or name not in level.before:
        values = body.locals if body.ranges else body.scalars
        values[name] = join(reduction, body.value(name), value)
        return
    if name in level.pending:
        before, other = level.pending[name]
        if before != reduction:
            body.place.fail(f"{name} is joined in two ways in one map", "use a name for each")
        value = join(reduction, other, value)
    level.pending[name] = (reduction, value)


# --- maps in maps ---


def nested(body: Body, child: Any) -> None:
    """Read a map inside the map as one with more parameters."""
    ranges, values, facts = ranges_of(child, body.names, body.space, body.place, tag_of(body))
    level = Level(dict(body.locals))
    before = len(body.outputs)
    body.locals = {**body.locals, **_carried(body, child)}
    saved = _enter(body, level, ranges, values)
    body.under(is_true(*facts), lambda: body.run(child.children))
    _end_reductions(body, before, ranges, saved[0])
    _leave(body, saved)
    changed = sorted(n for n in level.set_here if n in level.before)
    if changed:
        body.place.fail(
            f"{changed[0]} is set by all points of a map inside the map",
            "let each point set names of its own; add to it with +=, or loop with range()",
        )
    for value in (*(v for _, v in level.pending.values()), *(o.value for o in body.outputs)):
        if _carries(value):
            body.place.fail(
                "a number is read where all points of a map inside the map add to it",
                "read it behind the inner map, or loop with range()",
            )
    body.locals = level.before
    _end_sums(body, level, ranges)


def _carried(body: Body, child: Any) -> dict[str, Any]:
    """Return what stands for the numbers from before that the points of a map or loop change."""
    touched = loops.assigned(child.children)
    return {n: ir.Scalar(f"carried {n}", v.type) for n, v in body.locals.items() if n in touched}


def tag_of(body: Body) -> str:
    """Return what tells the parameters of this map or loop from those of others."""
    body.made += 1
    return str(body.made)


def _enter(
    body: Body, level: Level, ranges: Mapping[str, Range], values: Mapping[str, Any]
) -> tuple[Any, ...]:
    saved = (body.ranges, body.names, body.space)
    body.levels.append(level)
    body.ranges = {**body.ranges, **ranges}
    body.names = Names({**body.names, **values}, body._missing)
    body.space = body.space.over(ranges)
    body.scope.containers.add_views(body.names, body.space, body.place)
    return saved


def _leave(body: Body, saved: tuple[Any, ...]) -> None:
    body.levels.pop()
    body.ranges, body.names, body.space = saved


def _end_sums(body: Body, level: Level, ranges: Mapping[str, Range]) -> None:
    """Join what all points have added to names from outside the inner map or loop."""
    for name, (reduction, value) in level.pending.items():
        joined(body, name, reduction, over(reduction, value, ranges))


def over(reduction: str, value: Any, ranges: Mapping[str, Range]) -> Any:
    """Return a value joined over all values of some parameters."""
    kind = "int64" if value.type == "bool" else value.type
    value = operators.cast(value, kind)
    for p, r in reversed(list(ranges.items())):
        if r.count == 0:
            return neutral(reduction, kind)
        if r.count == 1:
            value = with_params(value, {p: r.begin})
        else:
            value = Over(reduction, p, r, value, kind)
    return value


def _end_reductions(
    body: Body, before: int, ranges: Mapping[str, Range], outer: Mapping[str, Range]
) -> None:
    """Let outputs that the inner map adds to be written, where each outer point has its own."""
    added = body.outputs[before:]
    del body.outputs[before:]
    for o in added:
        written = {p for a in o.index for p in a.params}
        missing = {p: r for p, r in o.ranges.items() if p not in written}
        if not o.reduction or not o.index or not set(outer) <= written or not missing:
            body.outputs.append(o)
            continue
        kept = body.ranges
        body.ranges = {p: r for p, r in o.ranges.items() if p not in missing}
        point = Point(o.field, o.index, o.value.type)
        value = join(o.reduction, body.known(point), over(o.reduction, o.value, missing))
        body.put(point, operators.cast(value, point.type))
        body.ranges = kept


# --- loops in maps ---


def loop(body: Body, child: Any) -> None:
    """Read a loop over range()."""
    var = str(child.loop.loop_variable)
    first, last, step = loops.ends(child.loop, var, body.place, lambda e: _whole(body, e))
    tag = f"{var}@{tag_of(body)}"
    turns, value, facts = range_of(tag, (first, last, step), body.space, body.place)
    if not turns.count:
        return
    saved = (dict(body.locals), list(body.outputs), body.ranges, body.names, body.space,
             list(body.levels), body.condition, set(body.outside))  # fmt: skip
    try:
        _at_once(body, child, var, {tag: turns}, value, facts)
    except _NotAlike:
        (body.locals, body.outputs, body.ranges, body.names, body.space,
         body.levels, body.condition, body.outside) = saved  # fmt: skip
        _turn_by_turn(body, child, var, (tag, turns), value, facts)


def _whole(body: Body, node: Any) -> Affine:
    found: Affine = body.sum(body.evaluated(node, {}))
    return found


def _at_once(
    body: Body, child: Any, var: str, ranges: Any, value: Affine, facts: tuple[Affine, ...]
) -> None:
    """Read a loop whose turns do not hang on one another, but for sums.

    Raises
    ------
    _NotAlike
        They do.
    """
    before = dict(body.locals)
    carried = _carried(body, child)
    body.locals = {**before, **carried}
    level = Level({})
    done = len(body.outputs)
    earlier = list(body.outputs)
    saved = _enter(body, level, ranges, {var: value})
    body.under(is_true(*facts), lambda: body.run(child.children))
    _leave(body, saved)
    new = [o for o in body.outputs if not any(o is e for e in earlier)]
    if len(new) != len(body.outputs) - done or any(o.reduction for o in new):
        raise _NotAlike
    for o in new:
        _require_own(o, new, ranges)
    after, body.locals = body.locals, before
    for name, scalar in carried.items():
        body.locals[name] = _folded(name, after[name], (scalar, before[name]), ranges, facts)
    read = [p for n in carried for p in points(body.locals[n]) if isinstance(p, Point)]
    if any(p.field == o.field for p in read for o in new):
        raise _NotAlike


def _require_own(o: Output, new: list[Output], ranges: Mapping[str, Range]) -> None:
    """Require that each turn writes points of its own, and reads none that others write."""
    params = {p for a in o.index for p in a.params}
    if _carries(o.value) or not set(ranges) <= params:
        raise _NotAlike
    for other in new:
        for p in points(o.value):
            if isinstance(p, Point) and p.field == other.field and p.index != other.index:
                raise _NotAlike
        if other is not o and other.field == o.field:
            raise _NotAlike


def _carries(e: Any) -> bool:
    if isinstance(e, ir.Scalar):
        return e.name.startswith("carried ")
    parts = [e.value] if isinstance(e, Over) else e.args if isinstance(e, ir.Op) else []
    return any(map(_carries, parts))


def _folded(name: str, value: Any, of: Any, ranges: Any, facts: Any) -> Any:
    """Return what a number from before a loop is behind it.

    Raises
    ------
    _NotAlike
        It is no sum.
    """
    scalar, before = of
    if value == scalar:
        return before
    if not _carries(value):
        ((tag, r),) = ranges.items()
        if facts:
            raise _NotAlike
        return with_params(value, {tag: r.begin + r.count - 1})
    for reduction in _REDUCTIONS:
        term = _term(value, scalar, reduction)
        if term is not None and not _carries(term):
            made = over(reduction, term, ranges)
            return operators.cast(join(reduction, before, made), scalar.type)
    raise _NotAlike


def _term(value: Any, scalar: ir.Scalar, reduction: str) -> Any:
    """Return what a turn joins with a number from before; None: it does other things, too."""
    if value == scalar:
        return neutral(reduction, scalar.type)
    if not isinstance(value, ir.Op):
        return None
    if value.name == "where":
        test, *ways = value.args
        terms = [_term(w, scalar, reduction) for w in ways]
        return None if None in terms else operators.where(test, *terms)
    if not joins(value, reduction) or value.type != scalar.type:
        return None
    one, other = value.args
    if _carries(other) and not _carries(one):
        one, other = other, one
    term = _term(one, scalar, reduction)
    if term is None:
        return None
    return other if term == neutral(reduction, scalar.type) else join(reduction, term, other)


def _turn_by_turn(
    body: Body, child: Any, var: str, turns: Any, value: Affine, facts: tuple[Affine, ...]
) -> None:
    """Read a loop turn by turn."""
    tag, r = turns
    if r.count > MOST_TURNS:
        body.place.fail(
            f"the turns of the loop over {var} inside a map hang on one another, and there are "
            f"{r.count} of them: each would be written out, and {MOST_TURNS} is the most",
            "put the loop outside of the map",
        )
    names = body.names
    for turn in range(r.count):
        here = {tag: r.begin + turn}
        body.names = Names({**names, var: value.with_values(here)}, body._missing)
        conditions = [f.with_values(here) for f in facts]
        truths = [body.space.truth(f) for f in conditions]
        if False in truths:
            continue
        unknown = [f for f, t in zip(conditions, truths, strict=True) if t is None]
        body.under(is_true(*unknown), lambda: body.run(child.children))
        values = [*body.locals.values(), *(o.value for o in body.outputs)]
        if sum(map(size, values)) > _MOST_OPERATIONS:
            body.place.fail(
                f"the loop over {var} inside a map makes values of more than {_MOST_OPERATIONS} "
                "operations",
                "put the loop outside of the map",
            )
    body.names = names
