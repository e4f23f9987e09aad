"""What a call leaves, described so that two runs can be compared to the bit."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Leaf:
    """A value: the name of its type, its content, and for arrays what they share memory with."""

    type: str
    content: Any
    shares: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Branch:
    """A tuple, list or dict: the name of its type, and its items."""

    type: str
    items: tuple[Any, ...]


class Describer:
    """Describes values of one run: arrays by what they share with those that the caller knows."""

    def __init__(self, known: dict[str, Any]) -> None:
        """`known`: names of the caller's arrays, and the arrays."""
        self.known = {k: v for k, v in known.items() if isinstance(v, np.ndarray)}
        self.returned: list[Any] = []

    def value(self, value: Any) -> Leaf | Branch:
        """Return what a value is."""
        kind = type(value).__name__
        if isinstance(value, np.ndarray):
            found = Leaf(kind, _bits(value), self._shares(value))
            self.returned.append(value)
            return found
        if isinstance(value, np.generic):
            return Leaf(f"np.{value.dtype}", _bits(np.asarray(value)))
        if isinstance(value, tuple | list):
            return Branch(kind, tuple(self.value(v) for v in value))
        if isinstance(value, dict):
            return Branch(kind, tuple((k, self.value(v)) for k, v in value.items()))
        if isinstance(value, float | complex):
            return Leaf(kind, _bits(np.asarray(value)))
        if isinstance(value, int):
            return Leaf(kind, hex(value))  # decimal ones may be too long for Python
        if callable(value) and hasattr(value, "__name__"):
            return Leaf("function", value.__name__)
        if isinstance(value, types.ModuleType):
            return Leaf(kind, value.__name__)
        if hasattr(value, "__dict__") and not isinstance(value, type):
            return Branch(kind, tuple((k, self.value(v)) for k, v in vars(value).items()))
        return Leaf(kind, repr(value))

    def _shares(self, array: Any) -> tuple[Any, ...]:
        """Return with what an array shares memory, and which part of it that it is."""
        found: list[Any] = []
        others = [*self.known.items(), *((f"result {k}", a) for k, a in enumerate(self.returned))]
        for name, other in others:
            if array is other:
                found.append((name, "itself"))
            elif np.shares_memory(array, other):
                offset = _address(array) - _address(other)
                steps = tuple(
                    s if n > 1 else 0 for s, n in zip(array.strides, array.shape, strict=True)
                )
                found.append((name, offset, steps))
        return tuple(found)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _bits(array: Any) -> Any:
    """Return a copy of values; NaNs are all alike."""
    values = np.array(array)
    if values.dtype.kind == "f":
        values[np.isnan(values)] = np.nan
    return values


def first_difference(name: str, a: Any, b: Any, rounded: bool) -> tuple[str, str] | None:
    """Return the kind of difference of two values, and words for it; None: they are the same.

    `rounded`: the last bits of floats may differ.
    """
    if type(a) is not type(b) or a.type != b.type:
        # Where NumPy gives an array without dimensions, programs give a number (docs/compiler.md).
        points = [np.asarray(x.content) for x in (a, b) if _is_point(x)]
        alike = len(points) == 2 and points[0].dtype == points[1].dtype
        if alike and _same_values(*points, rounded):
            return None
        return "type", f"{name} is {_short(b)}, not {_short(a)}"
    if isinstance(a, Branch):
        if len(a.items) != len(b.items):
            return "value", f"{name} has {len(b.items)} items, not {len(a.items)}"
        for k, (x, y) in enumerate(zip(a.items, b.items, strict=True)):
            if isinstance(x, tuple):  # of a dict
                if x[0] != y[0]:
                    return "value", f"{name} has {y[0]!r}, not {x[0]!r}"
                x, y = x[1], y[1]
            found = first_difference(f"{name}[{k}]", x, y, rounded)
            if found:
                return found
        return None
    if isinstance(a.content, np.ndarray):
        if a.content.dtype != b.content.dtype:
            return "type", f"{name} has {b.content.dtype}, not {a.content.dtype}"
        if a.content.shape != b.content.shape:
            return "value", f"{name} has shape {b.content.shape}, not {a.content.shape}"
        if not _same_values(a.content, b.content, rounded):
            return "value", f"{name} is {_short(b)}, not {_short(a)}"
    elif a.content != b.content:
        return "value", f"{name} is {_short(b)}, not {_short(a)}"
    if a.shares != b.shares:
        return "identity", f"{name} shares {b.shares or 'nothing'}, not {a.shares or 'nothing'}"
    return None


def _is_point(value: Any) -> bool:
    """Return whether a value is a number of NumPy's, or an array without dimensions."""
    return (
        isinstance(value, Leaf) and np.shape(value.content) == () and value.type[:2] in ("np", "nd")
    )


def _same_values(a: Any, b: Any, rounded: bool) -> bool:
    if a.tobytes() == b.tobytes():
        return True
    if not rounded or a.dtype.kind != "f":
        return False
    near = 2e-6 if a.dtype == np.float32 else 1e-12
    with np.errstate(all="ignore"):
        zeros = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
        return not zeros.any() and bool(np.allclose(a, b, rtol=near, atol=near, equal_nan=True))


def _short(value: Any) -> str:
    if isinstance(value, Branch):
        return f"{value.type} of {len(value.items)}"
    text = str(value.content).replace("\n", " ")
    return f"{value.type} {text[:120]}"
