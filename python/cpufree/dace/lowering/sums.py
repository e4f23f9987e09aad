"""Sums of arrays, and products of two vectors, inside a map's body."""

from __future__ import annotations

from typing import Any

from cpufree.dace.lowering import inner
from cpufree.dace.lowering.inner import Body
from cpufree.dace.values import operators, wcr
from cpufree.dace.values.affine import Affine, affine
from cpufree.dace.values.points import Range, join, neutral
from cpufree.dace.values.ranges import range_of
from cpufree.dace.values.space import is_true


def library_call(body: Body, child: Any) -> None:
    """Read a sum of an array, or a product of two vectors, whose result is one value."""
    kind = type(child.node).__name__
    name = {"Reduce": "a reduction"}.get(kind, f"the library node {kind}")
    memlets = child.in_memlets
    given = list(memlets.values() if isinstance(memlets, dict) else memlets)
    outs = child.out_memlets
    (target,) = outs.values() if isinstance(outs, dict) else outs
    reduction, logical = "sum", False
    if kind == "Reduce":
        reduction, logical = wcr.reduction_named(child.node.wcr, body.place)
    one = all(b == e for b, e, _ in target.subset)
    if kind not in ("Reduce", "MatMul", "Dot") or not one:
        body.place.fail(
            f"{name} inside a map that gives no single value", "put it outside of the map"
        )
    terms, ranges, facts = _terms(body, given)
    value = operators.apply("multiply", terms) if len(terms) > 1 else terms[0]
    value = operators.cast(value, "bool") if logical else value
    made = operators.cast(value, "int64" if value.type == "bool" else value.type)
    if facts:
        made = operators.where(is_true(*facts), made, neutral(reduction, made.type))
    made = inner.over(reduction, made, ranges)
    start = getattr(child.node, "identity", 0)
    if logical and start is not None:  # DaCe begins np.all with 0, which would be its result
        body.write(target.data, target.subset, made, "")
        return
    if start is None:
        body.write(target.data, target.subset, made, reduction)
        return
    if reduction in ("sum", "prod") or abs(float(start)) < 2**31 - 1:
        made = join(reduction, operators.cast(operators.literal(start), made.type), made)
    body.write(target.data, target.subset, made, "")


def _terms(body: Body, given: list[Any]) -> tuple[list[Any], dict[str, Range], Any]:
    """Return the values of parts of arrays that go along together, and over what."""
    tag = inner.tag_of(body)
    ranges: dict[str, Range] = {}
    facts: tuple[Affine, ...] = ()
    terms = []
    for memlet in given:
        index, axis = [], 0
        for begin, end, step in memlet.subset:
            first, last, by = (affine(x, body.names) for x in (begin, end, step))
            if begin == end:
                index.append(first)
                continue
            own = f"c{axis}@{tag}"
            axis += 1
            r, values, more = range_of(own, (first, last, by), body.space, body.place, True)
            if own in ranges and ranges[own] != r:
                body.place.fail("a product of arrays whose shapes do not fit", "correct the shapes")
            facts += () if own in ranges else more
            ranges[own] = r
            index.append(values)
        space, body.space = body.space, body.space.over(ranges).given(facts)
        if memlet.data in body.locals or body.scope.containers.is_scalar(memlet.data):
            terms.append(body.value(memlet.data))
        else:
            point = body.scope.containers.point(
                memlet.data, tuple(index), body.space.ranges, body.place
            )
            terms.append(body.known(point))
        body.space = space
    return terms, ranges, facts
