"""Pointers of the threads of a sweep, and distances from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cpufree.compiler import ir
from cpufree.compiler.emit.expressions import fold_index

Position = tuple[int, int]
"""A distance in values from a pointer, and how much farther it is for the next row of a thread."""


@dataclass
class Pointers:
    """The pointers that a thread of a sweep has, by what they depend on."""

    base: Callable[[str, str], str]
    """Returns the text of a pointer to a field's first value, for its name and type."""
    names: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def get(self, name: str, kind: str, terms: tuple[str, ...]) -> str:
        """Return the pointer into a field at a distance that is a sum of terms."""
        key = (name, terms)
        if key not in self.names:
            pointer = f"p{len(self.names)}"
            self.names[key] = pointer
            sum_of = " + ".join((self.base(name, kind), *terms))
            self.lines.append(f"[[maybe_unused]] {kind}* const {pointer} = {sum_of};")
        return self.names[key]


def times(name: str, factor: int) -> str:
    """Return the text of a product."""
    return name if factor == 1 else f"{name} * {factor}"


def folded(read: ir.Read, strides: tuple[int, ...]) -> str:
    """Return the text of how far a read is from its pointer by the indices of folds."""
    return "".join(
        f" + {times(fold_index(a.dim), a.step * stride)}"
        for a, stride in zip(read.axes, strides, strict=True)
        if a.dim <= ir.FOLDED
    )


def at(position: Position, k: str) -> str:
    """Return the text of the distance of point k of a thread."""
    distance, step = position
    if k.isdigit():
        return str(distance + int(k) * step)
    return f"{distance} + {k} * {step}"
