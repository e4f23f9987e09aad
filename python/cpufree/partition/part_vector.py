"""Partitions that the user gives: the number of its part, a PE, for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError
from cpufree.options import MOST_PES

Int32s = npt.NDArray[np.int32]

PartitionLike: TypeAlias = Any
"""A method of partition.METHODS, or n part numbers from 0, shape (n,): array or list."""


def as_part_vector(
    values: Any,
    pes: int | None = None,
    name: str = "partition",
    where: Callable[[int], str] | None = None,
) -> Int32s:
    """Return part numbers as int32, once each is that of a PE.

    Args:
        values: whole numbers from 0, shape (n,); array or list.
        pes: number of PEs; None: not known yet.
        name: what errors call the numbers, and where: what they call the one at a place.

    Raises:
        InvalidInputError: no whole numbers, not 1-D, or a part that no PE has.
    """
    try:
        numbers = np.asarray(values)
    except (ValueError, TypeError):
        raise InvalidInputError(
            f"{name} is no array: give the number of its part for each row"
        ) from None
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{name} has shape {numbers.shape} and dtype {numbers.dtype}: give the number of its "
            "part, a whole number, for each row, shape (n,)"
        )
    most = MOST_PES if pes is None else pes
    wrong = (numbers < 0) | (numbers >= most)
    if wrong.any():
        k = int(np.argmax(wrong))
        place = f"{name}[{k}]" if where is None else where(k)
        raise InvalidInputError(f"{place}: {_refusal(numbers, k, pes)}")
    return numbers.astype(np.int32, copy=False)


def _refusal(numbers: npt.NDArray[Any], k: int, pes: int | None) -> str:
    """Return why part number k cannot be."""
    if pes is None:
        return f"part {numbers[k]}, but parts are numbered from 0 to at most {MOST_PES - 1}"
    only = "1 PE there is part 0 alone" if pes == 1 else f"{pes} PEs parts are 0 to {pes - 1}"
    hint = ""
    if numbers.min() == 1 and numbers.max() == pes:
        hint = "; they seem to be numbered from 1: subtract 1 from all"
    return f"part {numbers[k]}, but for {only}{hint}"


def require_length(part: Int32s, n: int, name: str = "partition") -> None:
    """Raise InvalidInputError unless there is a part number for each of n rows."""
    if part.size != n:
        raise InvalidInputError(
            f"{name} has {part.size} part numbers, but the matrix has {n} rows: each row needs one"
        )


def count_of(part: Int32s) -> int:
    """Return how many parts there are: the largest number and one."""
    return int(part.max(initial=0)) + 1
