"""Kinds of numbers where they depend on the way that the run takes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from cpufree.compiler import ir
from cpufree.compiler.front.values import ScalarValue
from cpufree.compiler.operations import KINDS, WEAK, Kind, kinds_of, stored

_EXACT = 2**53


def either(kinds: Iterable[Kind]) -> Kind:
    """Return the kind of a number that is of one of these kinds, each of which may be several."""
    all_of = {one for kind in kinds for one in kinds_of(kind)}
    return "|".join(kind for kind in KINDS if kind in all_of)


def words(kind: Kind) -> str:
    """Return a kind in words."""
    names = {"truth": "a bool of Python", "int": "an int of Python", "float": "a float of Python"}
    return " or ".join(names.get(one, one) for one in kinds_of(kind))


def tag_of(number: ScalarValue) -> ir.Expr:
    """Return the number of a number's kind in KINDS, as an expression."""
    if number.tag is not None:
        return number.tag
    return ir.Literal(KINDS.index(number.kind), "int64")


def keeps_value(number: ScalarValue, kind: Kind) -> bool:
    """Return whether a number is the same when it is kept as one of these kinds."""
    if not stored(kind).startswith("float") or stored(number.kind) not in ("int32", "int64"):
        return True
    small = isinstance(number.expr, ir.Literal) and abs(number.expr.value) <= _EXACT
    return small or (stored(number.kind), stored(kind)) == ("int32", "float64")


def ways_of(kinds: Sequence[Kind]) -> Iterator[tuple[Kind, ...]]:
    """Yield the kinds that operands have on each way."""
    return itertools.product(*(kinds_of(kind) for kind in kinds))


def of_result(given: Sequence[Kind], kind: str) -> Kind:
    """Return the kind of a scalar result: of Python's numbers alone a number of Python's."""
    if all(k in WEAK for k in given):
        return {"float64": "float", "int64": "int", "bool": "truth"}.get(kind, kind)
    return kind


def by_way(operands: Sequence[ScalarValue], kind_on: Callable[..., Kind]) -> ScalarValue:
    """Return a number without a value whose kind is kind_on(kinds of the operands)."""
    kind = either(kind_on(*way) for way in ways_of([o.kind for o in operands]))
    tag = None if len(kinds_of(kind)) == 1 else _tag(list(operands), kind_on, ())
    return ScalarValue(ir.Literal(0, stored(kind)), kind, tag)


def _tag(
    operands: list[ScalarValue], kind_on: Callable[..., Kind], way: tuple[Kind, ...]
) -> ir.Expr:
    if not operands:
        return ir.Literal(KINDS.index(kind_on(*way)), "int64")
    first, *rest = operands
    *others, last = kinds_of(first.kind)
    tag = _tag(rest, kind_on, (*way, last))
    for kind in others:
        test = ir.Op("equal", (tag_of(first), ir.Literal(KINDS.index(kind), "int64")), "bool")
        tag = ir.Op("py_choose", (test, _tag(rest, kind_on, (*way, kind)), tag), "int64")
    return tag
