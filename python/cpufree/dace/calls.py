"""Library nodes: reductions, products, transposes, and communication."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.dace import events, operators, signals
from cpufree.dace.affine import Affine
from cpufree.dace.bodies import Body, reduction_named
from cpufree.dace.points import Output, Range
from cpufree.dace.protocols import Walks


def call(walk: Walks, child: Any) -> None:
    """Read the call of a library."""
    name = type(child.node).__name__
    if name == "Reduce":
        _reduce(walk, child)
    elif name == "MergeLibraryNode":
        _choice(walk, child)
    elif name == "MatMul":
        _matmul(walk, child)
    elif name in ("TensorTranspose", "Transpose"):
        _transpose(walk, child)
    elif signals.knows(child.node):
        signals.add(walk, child)
    elif events.knows(child.node):
        events.add(walk, child)
    else:
        walk.place.fail(
            f"the library node {name} is not taken",
            "programs have maps, reductions, products of matrices, copies and messages",
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
        _reduce_some(walk, child, reduction, axes)
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
        made = Output(name, to, value, walk.place, reduction, *_start(node, reduction))
        body.outputs[(name, to, reduction)] = made

    walk.over(ranges, run)


def _start(node: Any, reduction: str) -> tuple[bool, ir.Literal | None]:
    """Return whether a reduction begins anew, and from which value, if that makes a difference."""
    if node.identity is None:
        return False, None
    value = operators.literal(node.identity)
    if reduction == "sum":
        return True, value if value.value else None
    limits = np.iinfo(value.type) if value.type == "int64" else np.finfo(value.type)
    none = limits.min if reduction == "max" else limits.max
    return True, None if value.value == none or np.isinf(value.value) else value


def _reduce_some(walk: Walks, child: Any, reduction: str, axes: list[int]) -> None:
    """Add the sums along some axes: one for each point of the others."""
    (source,), (target,) = _memlets(child.in_memlets), _memlets(child.out_memlets)
    box, to = walk.box(source.data, source.subset), walk.box(target.data, target.subset)
    kept = [a for a in range(len(box)) if a not in axes]
    ranges = {f"c{a}": Range(0, 1, n) for a, (_, _, n) in enumerate(box)}
    places = [(b, s) for b, s, n in to if n != 1 or len(to) == len(kept)]

    def run(body: Body) -> None:
        value: Any = walk.containers.point(
            source.data, _at(box, range(len(box)), body), body.ranges, walk.place
        )
        index = _at([(b, s, 0) for b, s in places], kept, body)
        start = _start(child.node, reduction)
        _add_fold(walk, body, (target.data, index), value, reduction, start)

    walk.over(ranges, run)


def _choice(walk: Walks, child: Any) -> None:
    """Add np.where of arrays, which have the shape of the result, or axes of one point."""
    (target,) = _memlets(child.out_memlets)
    to = walk.box(target.data, target.subset)
    ranges = {f"c{k}": Range(0, 1, n) for k, (_, _, n) in enumerate(to)}

    def value(body: Body, memlet: Any) -> Any:
        if walk.containers.is_scalar(memlet.data):
            return body.element(memlet.data, memlet.subset)
        box = walk.box(memlet.data, memlet.subset)
        first = len(to) - len(box)
        index = tuple(
            Affine(b, ((f"c{first + k}", s),) if n != 1 else ()).with_values(body.names)
            for k, (b, s, n) in enumerate(box)
        )
        return walk.containers.point(memlet.data, index, body.ranges, walk.place)

    def run(body: Body) -> None:
        names = ("_mrg_mask", "_mrg_t", "_mrg_f")
        mask, yes, no = (value(body, child.in_memlets[n]) for n in names)
        index = _at(to, range(len(to)), body)
        at = walk.containers.point(target.data, index, body.ranges, walk.place)
        chosen = operators.where(operators.cast(mask, "bool"), yes, no)
        made = operators.cast(chosen, at.type)
        body.outputs[(at.field, at.index, "")] = Output(at.field, at.index, made, walk.place)

    walk.over(ranges, run)


_BATCHES = ("b3", "b2", "b1", "b0")
"""Axes of stacks of matrices, the last one with 0."""


def _batches(box: Any) -> list[str]:
    """Return the letters of an operand's stacks."""
    return list(_BATCHES[len(_BATCHES) - max(0, len(box) - 2) :])


def _matmul(walk: Walks, child: Any) -> None:
    """Add a product of matrices or vectors: the sum over the axis that both have."""
    node = child.node
    if getattr(node, "alpha", 1) != 1 or getattr(node, "beta", 0) != 0:
        walk.place.fail("a product that scales or adds", "scale in a map of its own")
    one, other = (child.in_memlets[k] for k in ("_a", "_b"))
    (target,) = _memlets(child.out_memlets)
    a, b = (walk.box(m.data, m.subset) for m in (one, other))
    # Letters as einsum has them: batches, aligned at the last one as NumPy does, then rows,
    # columns, and k, which is summed.
    of_a = _batches(a) + ["i", "k"][-len(a) :]
    of_b = _batches(b) + (["k", "j"] if len(b) > 1 else ["k"])
    sizes: dict[str, int] = {}
    for letters, box in ((of_a, a), (of_b, b)):
        for letter, (_, _, n) in zip(letters, box, strict=True):
            if sizes.setdefault(letter, n) == n:
                continue
            if letter in _BATCHES and 1 in (n, sizes[letter]):
                walk.place.fail("a product of stacks, one of which is repeated", "write its loop")
            walk.place.fail("a product of arrays whose shapes do not fit", "correct the shapes")
    ranges = {f"c_{letter}": Range(0, 1, n) for letter, n in sizes.items()}
    kept = [x for x in _BATCHES if x in sizes] + [x for x in "ij" if x in sizes]
    scalar = walk.containers.is_scalar(target.data)

    def run(body: Body) -> None:
        values: list[Any] = [
            walk.containers.point(m.data, _at(box, letters, body, "c_"), body.ranges, walk.place)
            for m, box, letters in ((one, a, of_a), (other, b, of_b))
        ]
        value: Any = operators.apply("multiply", values)
        if not kept:
            index = () if scalar else body.index(target.data, target.subset)
        else:
            to = walk.box(target.data, target.subset)
            to = [x for x in to if x[2] != 1] if len(to) != len(kept) else to
            index = _at(to, kept, body, "c_")
        _add_fold(walk, body, (target.data, index), value, "sum")

    walk.over(ranges, run)


def _at(box: Any, letters: Any, body: Body, prefix: str = "c") -> tuple[Affine, ...]:
    """Return the index of a region's point whose axes go by parameters."""
    return tuple(
        Affine(begin, ((f"{prefix}{letter}", step),)).with_values(body.names)
        for (begin, step, _), letter in zip(box, letters, strict=True)
    )


def _add_fold(
    walk: Walks, body: Body, to: Any, value: Any, reduction: str, start: Any = (True, None)
) -> None:
    """Add an output that is a reduction over the parameters that its index does not have."""
    name, index = to
    if not walk.containers.is_scalar(name):
        at = walk.containers.point(name, index, body.ranges, walk.place)
        name, index = at.field, at.index
    output = Output(name, index, value, walk.place, reduction, *start)
    body.outputs[(name, index, reduction)] = output


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
