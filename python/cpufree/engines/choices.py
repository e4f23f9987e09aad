"""What a user may choose, and what is chosen where the user says "auto"."""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree import options
from cpufree.errors import InvalidInputError
from cpufree.extension import load_core
from cpufree.options import Option
from cpufree.options.schema import a_number
from cpufree.text import meant

# Below this many nonzeros, threads cost more in waiting for one another than they save in work.
SMALL_NNZ = 50_000
# Seconds that a block may wait for another one before the solve is given up with a diagnosis.
WAIT_LIMIT = options.WAIT_SECONDS


def choose_pes(asked: int | str, preset: int | None) -> tuple[int, str]:
    """Return the number of PEs and why."""
    if asked != "auto":
        return count("pes", asked), "asked for"
    if preset is not None:
        return count("pes", preset), "asked for by CPUFREE_PES"
    return 1, "threads of one PE share memory"


def choose_blocks(
    asked: int | str, preset: int | None, pes: int, nnz: int, cores: int | None = None
) -> tuple[int, str]:
    """Return the number of blocks (threads) for each PE and why; cores: default, this process's."""
    if asked != "auto":
        return count("blocks", asked), "asked for"
    if preset is not None:
        return count("blocks", preset), "asked for by CPUFREE_BLOCKS"
    if nnz < SMALL_NNZ:
        return 1, f"with {nnz} nonzeros more threads would not pay"
    cores = available_cores() if cores is None else cores
    return share_of_cores(pes, cores), f"{cores} cores are available"


def share_of_cores(pes: int, cores: int | None = None) -> int:
    """Return the blocks (threads) of each of N PEs; cores: default, this process's."""
    there = available_cores() if cores is None else cores
    return min(options.MOST_PES, max(1, there // pes))


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return int(load_core().available_cores())


def cores_here() -> list[int]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def valid(option: Option, value: Any) -> Any:
    """Return a value that an option takes; else InvalidInputError.

    A number becomes a float, a count an int; None stays where that is the default.
    """
    if value is None and option.default is None:
        return None
    if option.kind == "choice":
        return one_of(option.called, value, option.choices)
    if option.kind == "number":
        number = real(
            option.called, value, option.least or 0.0, option.above, option.takes_infinity
        )
        # The compiled core takes finite numbers; none is above the largest one.
        return min(number, sys.float_info.max)
    if option.takes_auto and value == "auto":
        return value
    most = None if option.most is None else int(option.most)
    return integer(option.called, value, int(option.least or 0), option.takes, most)


def one_of(name: str, value: Any, valid: Collection[str]) -> str:
    """Return value if it is among the valid ones; else InvalidInputError lists them."""
    if not isinstance(value, str) or value not in valid:
        close = meant(str(value), valid)
        known = ", ".join(valid)
        raise InvalidInputError(f"unknown {name} {value!r}: choose one of {known}{close}")
    return value


def count(name: str, value: Any) -> int:
    """Return a number of PEs or blocks."""
    number = integer(name, value, 1, "'auto' or a whole number from 1")
    if number > options.MOST_PES:
        raise InvalidInputError(f"{name} is {number}: at most {options.MOST_PES} are possible")
    return number


def integer(name: str, value: Any, least: int = 0, what: str = "", most: int | None = None) -> int:
    """Return value as an int ≥ least, ≤ most; else InvalidInputError."""
    what = what or f"a whole number from {least}" + ("" if most is None else f" to {most}")
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number <= (most or 2**63 - 1):
        raise InvalidInputError(f"{name} is {value!r}: give {what}")
    return number


def real(
    name: str, value: Any, least: float = 0.0, above: bool = False, infinite: bool = False
) -> float:
    """Return value as a float ≥ least, > least with `above`; else InvalidInputError.

    It is finite, unless `infinite`.
    """
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    large = number > least or (number == least and not above)
    if not (large and (infinite or math.isfinite(number))):
        what = a_number(least, above, infinite)
        raise InvalidInputError(f"{name} is {value!r}: give {what}")
    return number


def floating(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return a type of values, float32 or float64; else InvalidInputError."""
    return _one_of_types(dtype, np.float32, np.float64)


def floating_or_complex(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return a type of values of a system, which may be complex; else InvalidInputError."""
    return _one_of_types(dtype, np.float32, np.float64, np.complex64, np.complex128)


def _one_of_types(dtype: npt.DTypeLike, *known: type) -> np.dtype[Any]:
    names = [kind.__name__ for kind in known]
    advice = f"choose {', '.join(names[:-1])} or {names[-1]}"
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise InvalidInputError(f"dtype is {dtype!r}: {advice}") from None
    if kind not in known:
        raise InvalidInputError(f"dtype is {kind}: {advice}")
    return kind


def seconds(name: str, value: Any, default: float) -> float:
    """Return a time limit in seconds, above 0; the default where value is None."""
    if value is None:
        return default
    limit = real(name, value)
    if limit == 0.0:
        raise InvalidInputError(f"{name} is 0: give seconds above 0, or leave it out")
    return limit
