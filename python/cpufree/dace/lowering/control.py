"""Branches and loops outside of maps.

A loop becomes one of the run. Where indices go by its variable, a short one is written out, and of
others the index moves in the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from dace.sdfg.analysis.schedule_tree import treenodes as tn

from cpufree.compiler import ir
from cpufree.dace.lowering import loops
from cpufree.dace.lowering.loops import assigned
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine, Moving, plus, times
from cpufree.dace.values.points import Range
from cpufree.dace.values.space import UNKNOWN
from cpufree.errors import ProgramError

Walk: TypeAlias = Any
"""What walks over the tree (walk.py, which reads loops and branches by this module)."""

MOST_TURNS = 64
"""Of a loop that is written out, because indices go by its variable."""
MOST_STATEMENTS = 64
"""Of all loops together that are written out: compilers take seconds for some hundred stages."""


def branches(walk: Walk, ways: list[Any]) -> None:
    """Read if, elif, else: the way that is taken, where that is known."""
    child, *rest = ways
    if isinstance(child, tn.ElseScope):
        walk.block(child.children)
        return
    test = walk.truth(child.condition)
    if isinstance(test, ir.Literal):
        if test.value:
            walk.block(child.children)
        elif rest:
            branches(walk, rest)
        return
    line = walk.place.line
    touched = assigned(child.children) | {n for w in rest for n in assigned(w.children)}
    walk.forget(touched)
    then = inner(walk, child.children, touched)
    outer, walk.out = walk.out, []
    if rest:
        branches(walk, rest)
    otherwise, walk.out = walk.out, outer
    walk.forget(touched)
    walk.out.append(ir.If(test, tuple(then), tuple(otherwise), line))


def inner(walk: Walk, children: list[Any], touched: set[str]) -> list[Any]:
    """Return the statements of a block that may be left out, or be done several times."""
    made: list[Any] = []
    outer, walk.out = walk.out, made
    walk.block(children)
    made, walk.out = walk.out, outer
    walk.forget(touched)
    return made


def for_loop(walk: Walk, child: Any) -> None:
    """Read a loop."""
    var = str(child.loop.loop_variable)
    bounds = loops.bounds(walk, child.loop, var)
    touched = assigned(child.children)
    walk.forget(touched)
    walk.lose(child.children)
    before = walk.state()
    try:
        _of_the_run(walk, child, var, bounds)
        return
    except Moving as moving:
        if moving.name != var:
            raise
    walk.back_to(before)
    turns = _turns(walk, bounds)
    if turns is not None and len(turns) <= MOST_TURNS:
        try:
            _written_out(walk, child, var, turns)
            return
        except _TooMany:
            walk.back_to(before)
    try:
        _moving(walk, child, var, bounds)
    except ProgramError as error:
        if turns is None or len(turns) > MOST_TURNS:
            raise
        refused = error
        walk.back_to(before)
        try:
            _written_out(walk, child, var, turns, 4 * MOST_STATEMENTS)
        except _TooMany:
            raise refused from None


def _of_the_run(walk: Walk, child: Any, var: str, bounds: Any) -> None:
    """Read a loop of the run, by whose variable no index goes."""
    start, stop, step = bounds
    place = walk.place
    walk.loops[var] = ir.Scalar(var, "int64")
    walk.names.pop(var, None)
    walk.known.pop(var, None)
    walk.variables[var] = "int64"
    body = inner(walk, child.children, assigned(child.children))
    walk.loops.pop(var)
    walk.known.pop(var, None)
    walk.out.append(ir.For(var, start, stop, step, tuple(body), place.line))


def _moving(walk: Walk, child: Any, var: str, bounds: Any) -> None:
    """Read a loop of the run, by whose variable indices go."""
    start, stop, step = bounds
    space = walk.space
    scalar = ir.Scalar(var, "int64")
    first, end = (walk.sum_of_run(e) for e in (start, stop))
    turn = Affine(0, ((var, 1),))
    values, facts = UNKNOWN, []
    if first is not None and end is not None:
        low, high = (first, plus(end, Affine(-1))) if step > 0 else (plus(end, Affine(1)), first)
        facts = [plus(turn, times(low, Affine(-1))), plus(high, times(turn, Affine(-1)))]
        least, most = walk.space.least(low), walk.space.greatest(high)
        if least is not None and most is not None:
            count = math.floor(most) - math.ceil(least) + 1
            if count <= 0:
                return
            values = Range(math.ceil(least), 1, count)
    walk.space = walk.with_moving(scalar, values).given(facts)
    _of_the_run(walk, child, var, bounds)
    walk.space = space


class _TooMany(Exception):
    """A loop that is written out has too many statements."""


def _turns(walk: Walk, bounds: Any) -> range | None:
    start, stop = (loops.value_of(walk, e) for e in bounds[:2])
    return None if start is None or stop is None else range(start, stop, bounds[2])


def _written_out(
    walk: Walk, child: Any, var: str, turns: range, most: int = MOST_STATEMENTS
) -> None:
    """Read a loop turn by turn.

    Raises
    ------
    _TooMany
        It would be too long.
    """
    place = walk.place
    outer, walk.out = walk.out, []
    walk.known.pop(var, None)
    walk.written_out += 1
    try:
        for k, turn in enumerate(turns):
            walk.names[var] = turn
            walk.block(child.children)
            if walk.statements + _count(walk.out) * len(turns) // (k + 1) > most:
                raise _TooMany
    finally:
        walk.written_out -= 1
    walk.names.pop(var, None)
    made, walk.out = walk.out, outer
    if not walk.written_out:
        walk.statements += _count(made)
    if turns:
        walk.variables[var] = "int64"
        made.append(ir.Set(var, operators.literal(turns[-1]), place.line))
    _add_turns(walk, made, assigned(child.children) | {var})


def _count(body: Iterable[Any]) -> int:
    """Return how many stages and branches statements have."""
    kinds = ir.Assign | ir.Reduce | ir.If | ir.For | ir.Loop
    return sum(isinstance(s, kinds) for s in ir.walk(tuple(body)))


def _add_turns(walk: Walk, made: list[Any], touched: set[str]) -> None:
    """Add the turns of a loop that is written out, which a break of the run may leave."""
    leaves = list(_leaves(made))
    if not leaves:
        walk.out += made
        return
    if any(isinstance(x, ir.Continue) for x in leaves):
        walk.place.fail(
            "a continue that the run decides, in a turn that is written out",
            "put what follows into the other branch of the if",
        )
    walk.out.append(ir.Loop((*made, ir.Break()), walk.place.line))
    walk.forget(touched)


def while_loop(walk: Walk, child: Any) -> None:
    """Read a loop that a condition ends."""
    place, touched = walk.place, assigned(child.children)
    walk.forget(touched)
    walk.lose(child.children)
    outer, walk.out = walk.out, []
    test = operators.apply("logical_not", [walk.truth(child.loop.loop_condition)])
    leave = ir.If(test, (ir.Break(),), (), place.line)
    head, walk.out = walk.out, outer
    body = inner(walk, child.children, touched)
    walk.out.append(ir.Loop((*head, leave, *body), place.line))


def _leaves(body: Iterable[Any]) -> Iterator[Any]:
    """Yield each break and continue of the loop whose body this is."""
    for s in body:
        if isinstance(s, ir.Break | ir.Continue):
            yield s
        elif isinstance(s, ir.If):
            yield from _leaves((*s.then, *s.otherwise))
