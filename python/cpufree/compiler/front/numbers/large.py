"""Values too large to be computed while a program is lowered: Python's numbers have no end.

A branch that no run takes is lowered all the same, so that 2**31**70 in it would never end.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

_MOST_BITS = 4096  # of a whole number
_MOST_ITEMS = 1 << 16  # of a string, a tuple or a list, and of a range that is gone through

_POWERS = ("pow", "power", "float_power")
_SHIFTS = ("lshift", "left_shift")
_THROUGH = (tuple, list, sum, min, max)


def too_large(f: Any, values: Sequence[Any]) -> str:
    """Return what is too large of f(*values), with values of Python's; empty: nothing is."""
    name = getattr(f, "__name__", "")
    whole = [int(v) for v in values if isinstance(v, int | np.integer)]
    if len(whole) == len(values) and _bits(f, name, whole) > _MOST_BITS:
        return f"a whole number of more than {_MOST_BITS} bits"
    if f is operator.mul and len(whole) == 1:
        items = [len(v) for v in values if isinstance(v, str | bytes | tuple | list)]
        if items and items[0] * whole[0] > _MOST_ITEMS:
            return f"a value of more than {_MOST_ITEMS} items"
    if f in _THROUGH and any(isinstance(v, range) and len(v) > _MOST_ITEMS for v in values):
        return f"a range of more than {_MOST_ITEMS} numbers"
    return ""


def _bits(f: Any, name: str, values: Sequence[int]) -> int:
    """Return how many bits a whole number has at most; 0 for functions that make no large ones."""
    a, b = (*values, 0, 0)[:2]
    if name == "factorial":
        return a * a.bit_length()
    if len(values) != 2:
        return 0
    if name in _POWERS:
        return abs(a).bit_length() * b if abs(a) > 1 else 0
    if name in _SHIFTS:
        return a.bit_length() + b if a else 0
    if name == "comb":
        return min(b, a - b) * a.bit_length()
    return a.bit_length() + b.bit_length() if f in (operator.mul, np.multiply) else 0
