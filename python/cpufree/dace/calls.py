"""Library nodes: reductions, transposes, and communication."""

from __future__ import annotations

import math
from typing import Any

from cpufree.compiler import ir
from cpufree.dace import events, operators, signals
from cpufree.dace.affine import Affine
from cpufree.dace.bodies import Body, reduction_named
from cpufree.dace.points import Output, Range
from cpufree.dace.protocols import Walks

MOST_TERMS = 32
"""Of a sum along axes that is written out."""


def call(walk: Walks, child: Any) -> None:
    """Read the call of a library."""
    name = type(child.node).__name__
    if name == "Reduce":
        _reduce(walk, child)
    elif name in ("TensorTranspose", "Transpose"):
        _transpose(walk, child)
    elif signals.knows(child.node):
        signals.add(walk, child)
    elif events.knows(child.node):
        events.add(walk, child)
    else:
        walk.place.fail(
            f"the library node {name} is not taken",
            "programs on grids have maps, reductions over all points, copies and messages",
        )


def _memlets(memlets: Any) -> list[Any]:
    return list(memlets.values() if isinstance(memlets, dict) else memlets)


def _reduce(walk: Walks, child: Any) -> None:
    node = child.node
    (source,), (target,) = _memlets(child.in_memlets), _memlets(child.out_memlets)
    reduction = reduction_named(node.wcr, walk.place)
    box = walk.box(source.data, source.subset)
    axes = sorted(int(a) % len(box) for a in node.axes) if node.axes is not None else None
    if axes is not None and len(axes) < len(box):
        _reduce_some(walk, (source, target), reduction, axes)
        return
    ranges = {f"c{k}": Range(0, 1, n) for k, (_, _, n) in enumerate(box)}

    def run(body: Body) -> None:
        index = tuple(
            Affine(b, ((f"c{k}", s),)).with_values(body.names) for k, (b, s, _) in enumerate(box)
        )
        value: Any = walk.containers.point(source.data, index, body.ranges, walk.place)
        scalar = walk.containers.is_scalar(target.data)
        to = () if scalar else body.index(target.data, target.subset)
        name = target.data
        if not scalar:
            point = walk.containers.point(name, to, body.ranges, walk.place)
            name, to = point.field, point.index
        fresh = node.identity is not None
        made = Output(name, to, value, walk.place, reduction, fresh)
        body.outputs[(name, to, reduction)] = made

    walk.over(ranges, run)


def _reduce_some(walk: Walks, memlets: Any, reduction: str, axes: list[int]) -> None:
    """Write out the sum along axes that have few points."""
    source, target = memlets
    box, to = walk.box(source.data, source.subset), walk.box(target.data, target.subset)
    terms = math.prod(box[a][2] for a in axes)
    if terms > MOST_TERMS:
        walk.place.fail(
            f"{source.data} is reduced along {len(axes)} of its {len(box)} axes, {terms} points "
            "each",
            f"reduce over all points (along single axes up to {MOST_TERMS} points are taken)",
        )
    kept = [a for a in range(len(box)) if a not in axes]
    ranges = {f"c{a}": Range(0, 1, box[a][2]) for a in kept}
    name = {"sum": "add", "max": "maximum", "min": "minimum"}[reduction]

    def run(body: Body) -> None:
        value: Any = None
        for term in range(terms):
            index, rest = [], term
            for a, (b, s, n) in enumerate(box):
                if a in axes:
                    index.append(Affine(b + s * (rest % n)))
                    rest //= n
                else:
                    index.append(Affine(b, ((f"c{a}", s),)).with_values(body.names))
            point: Any = walk.containers.point(source.data, tuple(index), body.ranges, walk.place)
            value = point if value is None else operators.apply(name, [value, point])
        places = [(b, s) for b, s, n in to if n != 1 or len(to) == len(kept)]
        index_to = tuple(
            Affine(b, ((f"c{a}", s),)).with_values(body.names)
            for a, (b, s) in zip(kept, places, strict=True)
        )
        at = walk.containers.point(target.data, index_to, body.ranges, walk.place)
        made = operators.cast(value, at.type)
        body.outputs[(at.field, at.index, "")] = Output(at.field, at.index, made, walk.place)

    walk.over(ranges, run)


def _transpose(walk: Walks, child: Any) -> None:
    (source,), (target,) = _memlets(child.in_memlets), _memlets(child.out_memlets)
    box, to = walk.box(source.data, source.subset), walk.box(target.data, target.subset)
    axes = [int(a) for a in getattr(child.node, "axes", [1, 0])]
    if getattr(child.node, "alpha", 1) != 1 or getattr(child.node, "beta", 0) != 0:
        walk.place.fail("a transpose that scales or adds", "scale in a map of its own")
    ranges = {f"c{k}": Range(0, 1, n) for k, (_, _, n) in enumerate(to)}

    def run(body: Body) -> None:
        index_to = tuple(
            Affine(b, ((f"c{k}", s),)).with_values(body.names) for k, (b, s, _) in enumerate(to)
        )
        index = [Affine(0)] * len(box)
        for k, a in enumerate(axes):
            b, s, _ = box[a]
            index[a] = Affine(b, ((f"c{k}", s),)).with_values(body.names)
        value: Any = walk.containers.point(source.data, tuple(index), body.ranges, walk.place)
        at = walk.containers.point(target.data, index_to, body.ranges, walk.place)
        made: ir.Expr = operators.cast(value, at.type)
        body.outputs[(at.field, at.index, "")] = Output(at.field, at.index, made, walk.place)

    walk.over(ranges, run)
