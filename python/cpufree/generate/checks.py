"""Checks of generator parameters: every refusal names the parameter, the value and the rule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cpufree.errors import InvalidInputError

INT32_MAX = 2**31 - 1
MOST_ROWS = 2**53
"""Of a matrix whose rows are made apart from one another."""
_HUGE = 1e300


def whole(name: str, value: object, *, least: int = 1, most: int = INT32_MAX) -> int:
    """`value` as an int with least <= value <= most; InvalidInputError otherwise."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
        if least <= number <= most:
            return number
    raise InvalidInputError(
        f"{name} must be a whole number from {least} to {most}, but it is {value!r}"
    )


def real(
    name: str,
    value: object,
    *,
    above: float = -_HUGE,
    most: float = _HUGE,
    least: float = -_HUGE,
    below: float = _HUGE,
) -> float:
    """`value` as a finite float with above < value <= most, least <= value < below.

    Raises InvalidInputError otherwise.
    """
    number = value if isinstance(value, (int, float, np.integer, np.floating)) else None
    if number is not None and not isinstance(value, bool):
        inside = above < number <= most and least <= number < below
        if inside:
            return float(number)
    bounds = {"above": above, "of at least": least, "at most": most, "below": below}
    told = [f"{word} {bound:g}" for word, bound in bounds.items() if abs(bound) != _HUGE]
    rule = " and ".join(told)
    raise InvalidInputError(
        f"{name} must be a finite number{' ' if rule else ''}{rule}, but it is {value!r}"
    )


def truth(name: str, value: object) -> bool:
    """`value` as a bool; InvalidInputError for anything else."""
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name} must be true or false, but it is {value!r}")
    return value


def whole_shape(name: str, value: object, *, axes: int = 3, least: int = 1) -> tuple[int, ...]:
    """`value` as `axes` whole numbers; one number stands for all axes."""
    if isinstance(value, (int, np.integer)):
        value = (value,) * axes
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != axes:
        example = "x".join(["16"] * axes)
        raise InvalidInputError(
            f"{name} must be {axes} whole numbers (written {example} in a specification), "
            f"but it is {value!r}"
        )
    return tuple(whole(f"{name}[{axis}]", item, least=least) for axis, item in enumerate(value))


def positive_weights(name: str, value: object, *, axes: int) -> tuple[float, ...]:
    """`value` as `axes` positive numbers, one per grid axis."""
    if axes == 1 and isinstance(value, (int, float)):
        value = (value,)
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != axes:
        raise InvalidInputError(
            f"{name} must be {axes} positive numbers, one per axis, but it is {value!r}"
        )
    return tuple(real(f"{name}[{axis}]", item, above=0.0) for axis, item in enumerate(value))


def choice(name: str, value: object, options: Sequence[str]) -> str:
    """`value` if it is one of `options`; InvalidInputError naming them otherwise."""
    if not isinstance(value, str) or value not in options:
        raise InvalidInputError(f"{name} must be one of {', '.join(options)}, but it is {value!r}")
    return value


def check_rows(generator: str, rows: int) -> None:
    """Refuse a matrix with more rows than are ever numbered."""
    if rows > MOST_ROWS:
        raise InvalidInputError(
            f"{generator} with these parameters would have {rows} rows; at most {MOST_ROWS} are "
            "numbered: choose smaller parameters"
        )


def check_size(generator: str, rows: float, nnz_per_row: float) -> None:
    """Refuse a matrix that 32-bit indices cannot hold, before memory is asked for.

    `rows` and `nnz_per_row` are estimates; the limits are 2^31 - 1 rows and nonzeros.
    """
    nonzeros = rows * nnz_per_row
    if rows > INT32_MAX or nonzeros > INT32_MAX:
        raise InvalidInputError(
            f"{generator} with these parameters would have about {rows:.2g} rows and "
            f"{nonzeros:.2g} nonzeros, but 32-bit indices end at {INT32_MAX}; "
            "choose smaller parameters"
        )
