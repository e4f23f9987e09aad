"""Nodes of DaCe's libraries: reductions, products of matrices, choices; and communication."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.dace.lowering.bodies import Body
from cpufree.dace.lowering.protocols import Walks
from cpufree.dace.messages import events, signals
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine, affine, plus
from cpufree.dace.values.points import Output, Range
from cpufree.dace.values.wcr import reduction_named

Along = tuple[Affine, int, int, Any]
"""Of an axis of a part of an array: begin, step, count, and conditions (`Walks.along`)."""


def call(walk: Walks, child: Any) -> None:
    """Read the call of a library."""
    name = type(child.node).__name__
    if name == "Reduce":
        _reduce(walk, child)
    elif name == "MergeLibraryNode":
        _choice(walk, child)
    elif name == "MatMul":
        _matmul(walk, child, ("_a", "_b"))
    elif name == "Dot":
        _matmul(walk, child, ("_x", "_y"))
    elif name == "CShift":
        _roll(walk, child)
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


def _ranges(box: list[Along], letters: Any, prefix: str = "c") -> tuple[dict[str, Range], Any]:
    """Return ranges of parameters that go along axes, and conditions on them."""
    ranges = {f"{prefix}{x}": Range(0, 1, n) for (_, _, n, _), x in zip(box, letters, strict=True)}
    facts = tuple(
        f.with_values({"_": Affine(0, ((f"{prefix}{x}", 1),))})
        for (_, _, _, own), x in zip(box, letters, strict=True)
        for f in own
    )
    return ranges, facts


def _at(box: Any, letters: Any, body: Body, prefix: str = "c") -> tuple[Affine, ...]:
    """Return the index of a region's point whose axes go by parameters; None: by none."""
    return tuple(
        begin
        if letter is None
        else plus(begin, Affine(0, ((f"{prefix}{letter}", step),)).with_values(body.names))
        for (begin, step, *_), letter in zip(box, letters, strict=True)
    )


def _point(walk: Walks, body: Body, name: str, index: tuple[Affine, ...]) -> Any:
    return walk.containers.point(name, index, body.space.ranges, walk.place)


# --- reductions ---


def _reduce(walk: Walks, child: Any) -> None:
    """Add a reduction over all axes, or over some: then one for each point of the others."""
    node = child.node
    (source,), (target,) = _memlets(child.in_memlets), _memlets(child.out_memlets)
    reduction, logical = reduction_named(node.wcr, walk.place)
    box = walk.along(source.data, source.subset)
    over = sorted(int(a) % len(box) for a in node.axes) if node.axes is not None else None
    kept = [] if over is None else [a for a in range(len(box)) if a not in over]
    ranges, facts = _ranges(box, range(len(box)))
    to = [] if walk.containers.is_scalar(target.data) else walk.along(target.data, target.subset)
    places = iter(kept)
    wide = [n != 1 or bool(own) for _, _, n, own in to]
    letters = [
        next(places, None) if w or len(to) == len(kept) else None
        for w in wide
    ]  # fmt: skip
    start = _start(node, reduction)
    if logical and start[0]:  # DaCe begins np.all with 0, which would be its result
        start = True, None

    def run(body: Body) -> None:
        value: Any = _point(walk, body, source.data, _at(box, range(len(box)), body))
        value = operators.cast(value, "bool") if logical else value
        _add_fold(walk, body, (target.data, _at(to, letters, body)), value, reduction, start)

    walk.over(ranges, run, facts)


def _start(node: Any, reduction: str) -> tuple[bool, ir.Literal | None]:
    """Return whether a reduction begins again, and from which value, if that makes a difference."""
    if node.identity is None:
        return False, None
    value = operators.literal(node.identity)
    if reduction in ("sum", "prod"):
        return True, value if value.value != (reduction == "prod") else None
    if value.type == "bool":
        return True, None if value.value == (reduction == "min") else value
    limits = np.iinfo(value.type) if value.type == "int64" else np.finfo(value.type)
    none = limits.min if reduction == "max" else limits.max
    narrow = np.iinfo("int32").min if reduction == "max" else np.iinfo("int32").max
    is_none = value.value in (none, narrow) or np.isinf(value.value)
    return True, None if is_none else value


def _add_fold(
    walk: Walks, body: Body, to: Any, value: Any, reduction: str, start: Any = (True, None)
) -> None:
    """Add an output that is a reduction over the parameters that its index does not have."""
    name, index = to
    if not walk.containers.is_scalar(name):
        at = _point(walk, body, name, index)
        name, index = at.field, at.index
    body.outputs.append(
        Output(name, index, value, walk.place, reduction, start[0], start[1], body.ranges)
    )


# --- choices and transposes ---


def _choice(walk: Walks, child: Any) -> None:
    """Add np.where of arrays, which have the shape of the result, or axes of one point."""
    (target,) = _memlets(child.out_memlets)
    to = walk.along(target.data, target.subset)
    ranges, facts = _ranges(to, range(len(to)))

    def value(body: Body, memlet: Any) -> Any:
        if walk.containers.is_scalar(memlet.data):
            return body.element(memlet.data, memlet.subset)
        box = walk.along(memlet.data, memlet.subset)
        first = len(to) - len(box)
        letters = [first + k if n != 1 or own else None for k, (_, _, n, own) in enumerate(box)]
        return _point(walk, body, memlet.data, _at(box, letters, body))

    def run(body: Body) -> None:
        names = ("_mrg_mask", "_mrg_t", "_mrg_f")
        mask, yes, no = (value(body, child.in_memlets[n]) for n in names)
        at = _point(walk, body, target.data, _at(to, range(len(to)), body))
        chosen = operators.where(operators.cast(mask, "bool"), yes, no)
        body.put(at, operators.cast(chosen, at.type))

    walk.over(ranges, run, facts)


def _roll(walk: Walks, child: Any) -> None:
    """Add np.roll along an axis: two parts change their places."""
    (source,), (target,) = _memlets(child.in_memlets), _memlets(child.out_memlets)
    box, to = (walk.along(m.data, m.subset) for m in (source, target))
    axis, n = int(child.node.dim) - 1, box[int(child.node.dim) - 1][2]
    by = affine(child.node.shift, walk.names)
    if by.factors or any(own for _, _, _, own in (*box, *to)):
        walk.place.fail("np.roll by a value of the run", "roll by a number, or an argument")
    forward = "NUMPY" in str(child.node.direction).upper()
    shift = (int(by.constant) if forward else -int(by.constant)) % max(n, 1)
    for first, count, there in ((0, n - shift, shift), (n - shift, shift, 0)):
        ranges, _ = _ranges(box, range(len(box)))
        ranges[f"c{axis}"] = Range(0, 1, count)

        def run(body: Body, first: int = first, there: int = there) -> None:
            ends = []
            for m, along, begin in ((source, box, first), (target, to, there)):
                index = list(_at(along, range(len(along)), body))
                index[axis] = plus(index[axis], Affine(begin * along[axis][1]))
                ends.append(_point(walk, body, m.data, tuple(index)))
            body.put(ends[1], operators.cast(ends[0], ends[1].type))

        walk.over(ranges, run)


def _transpose(walk: Walks, child: Any) -> None:
    (source,), (target,) = _memlets(child.in_memlets), _memlets(child.out_memlets)
    box, to = (walk.along(m.data, m.subset) for m in (source, target))
    axes = [int(a) for a in getattr(child.node, "axes", [1, 0])]
    if getattr(child.node, "alpha", 1) != 1 or getattr(child.node, "beta", 0) != 0:
        walk.place.fail("a transpose that scales or adds", "scale in a map of its own")
    ranges, facts = _ranges(to, range(len(to)))

    def run(body: Body) -> None:
        value: Any = _point(
            walk, body, source.data, _at(box, [axes.index(a) for a in range(len(box))], body)
        )
        at = _point(walk, body, target.data, _at(to, range(len(to)), body))
        body.put(at, operators.cast(value, at.type))

    walk.over(ranges, run, facts)


# --- products ---

_BATCHES = ("b3", "b2", "b1", "b0")
"""Axes of stacks of matrices, the last one with 0."""


def _batches(box: Any) -> list[str]:
    """Return the letters of an operand's stacks."""
    return list(_BATCHES[len(_BATCHES) - max(0, len(box) - 2) :])


def _matmul(walk: Walks, child: Any, connectors: tuple[str, str]) -> None:
    """Add a product of matrices or vectors: the sum over the axis that both have."""
    node = child.node
    if getattr(node, "alpha", 1) != 1 or getattr(node, "beta", 0) != 0:
        walk.place.fail("a product that scales or adds", "scale in a map of its own")
    one, other = (child.in_memlets[k] for k in connectors)
    (target,) = _memlets(child.out_memlets)
    a, b = (walk.along(m.data, m.subset) for m in (one, other))
    # Letters as einsum has them: batches, aligned at the last one as NumPy does, then rows,
    # columns, and k, which is summed.
    of_a = _batches(a) + ["i", "k"][-len(a) :]
    of_b = _batches(b) + (["k", "j"] if len(b) > 1 else ["k"])
    sizes: dict[str, int] = {}
    facts: dict[Any, None] = {}
    for letters, box in ((of_a, a), (of_b, b)):
        for letter, (_, _, n, _) in zip(letters, box, strict=True):
            if sizes.setdefault(letter, n) == n:
                continue
            if letter in _BATCHES and 1 in (n, sizes[letter]):
                walk.place.fail("a product of stacks, one of which is repeated", "write its loop")
            walk.place.fail("a product of arrays whose shapes do not fit", "correct the shapes")
        facts.update(dict.fromkeys(_ranges(box, letters, "c_")[1]))
    ranges = {f"c_{letter}": Range(0, 1, n) for letter, n in sizes.items()}
    kept = [x for x in _BATCHES if x in sizes] + [x for x in "ij" if x in sizes]
    scalar = walk.containers.is_scalar(target.data)
    to = [] if scalar else walk.along(target.data, target.subset)
    if len(to) != len(kept):
        wide = [n != 1 or bool(own) for _, _, n, own in to]
        found = iter(kept)
        places = [next(found, None) if w else None for w in wide]
    else:
        places = list(kept)

    def run(body: Body) -> None:
        values: list[Any] = [
            _point(walk, body, m.data, _at(box, letters, body, "c_"))
            for m, box, letters in ((one, a, of_a), (other, b, of_b))
        ]
        value: Any = operators.apply("multiply", values)
        _add_fold(walk, body, (target.data, _at(to, places, body, "c_")), value, "sum")

    walk.over(ranges, run, tuple(facts))
