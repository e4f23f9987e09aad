"""Between which whole numbers sums of multiples of parameters lie.

Parameters are those of maps, and variables of loops. Each has a range; conditions narrow it
further, as that of a triangle, j <= i. What is asked is whether an index stays inside an array, and
whether a condition holds at all points, or at none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from cpufree.compiler import ir
from cpufree.dace.values.affine import Affine, NotAffine, plus, times
from cpufree.dace.values.points import Index, Range

_MOST_STEPS = 400
"""Of one question: conditions that hold for several parameters may be put together in many ways."""


@dataclass(frozen=True)
class Space:
    """Parameters in the order in which they are nested, the outermost one first."""

    ranges: Mapping[str, Range]
    facts: tuple[Affine, ...] = ()
    """Sums that are 0 or more."""
    moving: Mapping[str, ir.Scalar] = field(default_factory=dict)
    """The parameters that are scalars of the run."""

    def given(self, facts: Iterable[Affine]) -> Space:
        """Return the points of the space where sums are 0 or more, too."""
        return replace(self, facts=(*self.facts, *facts))

    def over(self, ranges: Mapping[str, Range]) -> Space:
        """Return the space with more parameters, or other ranges of those that it has."""
        return replace(self, ranges={**self.ranges, **ranges})

    def least(self, a: Affine) -> Any:
        """Return a number that no value of a sum is below, None where none is known."""
        return self._least(a, [_MOST_STEPS])

    def greatest(self, a: Affine) -> Any:
        """Return a number that no value of a sum is above, None where none is known."""
        found = self.least(times(a, Affine(-1)))
        return None if found is None else -found

    def holds(self, a: Affine) -> bool:
        """Return whether a sum is certainly 0 or more."""
        least = self.least(a)
        return least is not None and least >= 0

    def is_inside(self, index: Affine, n: int) -> bool:
        """Return whether an index is certainly one of n points."""
        return self.holds(index) and self.holds(plus(Affine(n - 1), times(index, Affine(-1))))

    def truth(self, a: Affine) -> bool | None:
        """Return whether a sum is 0 or more: at all points, or at none; None: that is not known."""
        if self.holds(a):
            return True
        greatest = self.greatest(a)
        return False if greatest is not None and greatest < 0 else None

    def _least(self, a: Affine, steps: list[int]) -> Any:
        if not a.factors:
            return a.constant
        steps[0] -= 1
        order = list(self.ranges)
        name = max(a.params, key=order.index)
        factor = dict(a.factors)[name]
        rest = plus(a, Affine(0, ((name, -factor),)))
        found = []
        for bound in self._bounds(name, factor > 0, order):
            if steps[0] > 0:
                least = self._least(plus(rest, times(bound, Affine(factor))), steps)
                found += [] if least is None else [least]
        return max(found, default=None)

    def _bounds(self, name: str, lower: bool, order: list[str]) -> list[Affine]:
        """Return what a parameter is not below (`lower`), or not above, by those before it."""
        r = self.ranges[name]
        ends = (r.begin, r.begin + r.step * (r.count - 1))
        found = [] if r.count < 0 else [Affine(min(ends) if lower else max(ends))]
        for fact in self.facts:
            factor = dict(fact.factors).get(name, 0)
            others = [p for p in fact.params if p != name]
            if (factor > 0) != lower or not factor:
                continue
            if any(p not in order or order.index(p) > order.index(name) for p in others):
                continue
            rest = plus(fact, Affine(0, ((name, -factor),)))
            found.append(times(rest, Affine(Fraction(-1) / factor)))
        return found


UNKNOWN = Range(0, 1, -1)
"""Of a scalar of which nothing is known."""


# --- conditions ---


def sum_of(e: Any) -> Affine | None:
    """Return the sum of multiples that an expression is, None where it is none."""
    if isinstance(e, Index):
        return e.value
    if isinstance(e, ir.Literal) and e.type == "int64":
        return Affine(int(e.value))
    if not isinstance(e, ir.Op) or e.type not in ("int64", "int32"):
        return None
    parts = [sum_of(a) for a in e.args]
    if any(p is None for p in parts):
        return None
    if e.name in ("cast", "positive"):
        return parts[0] if e.args[0].type in ("int64", "int32") else None
    if e.name == "negative":
        return times(parts[0], Affine(-1))  # type: ignore[arg-type]
    if e.name not in ("add", "subtract", "multiply"):
        return None
    a, b = parts
    assert a is not None and b is not None
    try:
        if e.name == "multiply":
            return times(a, b)
    except NotAffine:
        return None
    return plus(a, b if e.name == "add" else times(b, Affine(-1)))


def facts_of(e: Any, truth: bool = True) -> tuple[Affine, ...] | None:
    """Return the sums that are 0 or more where, and only where, a condition is (not) true.

    None: it is no such condition.
    """
    if not isinstance(e, ir.Op):
        return None
    if e.name == "logical_not":
        return facts_of(e.args[0], not truth)
    if e.name == "cast":
        return facts_of(e.args[0], truth) if e.type == "bool" else None
    if e.name == ("logical_and" if truth else "logical_or"):
        parts = [facts_of(a, truth) for a in e.args]
        if any(p is None for p in parts):
            return None
        return tuple(f for p in parts if p is not None for f in p)
    sides = [sum_of(a) for a in e.args] if e.name in _COMPARE or e.name == "equal" else [None]
    if None in sides:
        return None
    a, b = sides
    assert a is not None and b is not None
    less = plus(b, times(a, Affine(-1)))  # b - a
    more = times(less, Affine(-1))
    if e.name == "equal":
        return (less, more) if truth else None
    name = e.name if truth else _OPPOSITE[e.name]
    one = Affine(-1)
    return {
        "less_equal": (less,),
        "less": (plus(less, one),),
        "greater_equal": (more,),
        "greater": (plus(more, one),),
    }[name]


def known_facts(e: Any, truth: bool) -> tuple[Affine, ...]:
    """Return sums that are 0 or more where a condition is (not) true; there may be others."""
    found = facts_of(e, truth)
    if found is not None:
        return found
    both = "logical_and" if truth else "logical_or"
    if isinstance(e, ir.Op) and e.name == both:
        return tuple(f for a in e.args for f in known_facts(a, truth))
    return ()


def is_true(*facts: Affine) -> Any:
    """Return the condition that sums are 0 or more."""
    zero = ir.Literal(0, "int64")
    made: Any = None
    for fact in facts:
        test = ir.Op("greater_equal", (Index(fact), zero), "bool")  # type: ignore[arg-type]
        made = test if made is None else ir.Op("logical_and", (made, test), "bool")
    return made


_COMPARE = ("less", "less_equal", "greater", "greater_equal")
_OPPOSITE = {
    "less": "greater_equal", "greater_equal": "less", "greater": "less_equal",
    "less_equal": "greater",
}  # fmt: skip
