"""How many distinct values an array holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_AT_ONCE = 1 << 26  # values that are sorted at a time: half a gigabyte
_PIECE = 1 << 20  # values that are looked at in one go: temporaries stay in caches
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, rounded to an odd number


def distinct_values(values: NDArray[Any], most: int = MOST_AT_ONCE) -> int:
    """Return how many values are distinct by their bits: 0.0 and -0.0 are two.

    Exact. About `most` of them are copied and sorted at a time: larger arrays are gone through
    once for each share of their values.

    Args:
        values: (n,) floating-point numbers of 4 or 8 bytes; may be a memory map.

    Example:
        >>> distinct_values(np.array([1.0, 2.0, 1.0, 0.0, -0.0]))
        4
    """
    bits = np.asarray(values).view(f"u{values.dtype.itemsize}")
    shares = -(-bits.size // most)
    return sum(_distinct(_share(bits, k, shares)) for k in range(shares))


def _share(bits: NDArray[Any], share: int, shares: int) -> NDArray[Any]:
    """Return a copy of the values that fall to one of the shares; equal ones fall to the same."""
    if shares == 1:
        return np.array(bits)
    pieces = []
    for begin in range(0, bits.size, _PIECE):
        piece = bits[begin : begin + _PIECE]
        mixed = (piece.astype(np.uint64) * _MIX) >> np.uint64(40)
        pieces.append(piece[mixed % np.uint64(shares) == share])
    return np.concatenate(pieces)


def _distinct(bits: NDArray[Any]) -> int:
    """Return how many are distinct; sorts the array."""
    bits.sort()
    return int(np.count_nonzero(bits[1:] != bits[:-1])) + (bits.size > 0)
