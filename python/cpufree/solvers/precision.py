"""Mixed precision: a solve in float64 whose products read the values of A in float32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.dtypes import parts_type
from cpufree.engines import choices
from cpufree.errors import InvalidInputError
from cpufree.solvers.result import Reason

TUNING = "single_values"
"""What the core calls it."""
_MAY_COME_OF_ROUNDING = (
    Reason.STAGNATED,
    Reason.DIVERGED_INDEFINITE_MAT,
    Reason.DIVERGED_INDEFINITE_PC,
    Reason.DIVERGED_BREAKDOWN,
    Reason.DIVERGED_DTOL,
)


def single_values(precision: str | None, dtype: npt.DTypeLike | None = None) -> dict[str, Any]:
    """Return what the core is to know of an option `precision`.

    Raises:
        InvalidInputError: a word that is not known, or mixed together with a dtype of float32.
    """
    if precision is None:
        return {}
    choices.one_of("precision", precision, ("mixed",))
    if dtype is not None and parts_type(choices.floating_or_complex(dtype)) != np.float64:
        raise InvalidInputError(
            f"precision='mixed' is a solve in float64, and dtype is {np.dtype(dtype)}: leave one "
            "of them out"
        )
    return {TUNING: True}


def solve_type(tuning: Mapping[str, Any], dtype: npt.DTypeLike | None) -> npt.DTypeLike | None:
    """Return the type of solves, by what the core is told, where it would be `dtype`."""
    return np.float64 if tuning.get(TUNING) else dtype


def precision_notes(asked: Mapping[str, Any], plan: Mapping[str, Any]) -> list[str]:
    """Return a note where values of A that were to be read in float32 are not.

    Args:
        asked: what the core was told. plan: of the layout.
    """
    if not asked.get(TUNING) or plan.get("single_values"):
        return []
    return [
        "precision='mixed' changes nothing: A has so few different values that each takes a byte, "
        "and is read as it is"
    ]


def precision_facts(plan: Mapping[str, Any]) -> list[str]:
    """Return what there is to say of the values of a layout, in sentences."""
    if not plan.get("single_values"):
        return []
    return ["mixed precision: products read the values of A in float32, b - A x in float64"]


def failure_notes(reason: Reason, plan: Mapping[str, Any]) -> list[str]:
    """Return a note where mixed precision may be why a solve has failed."""
    if not plan.get("single_values") or reason not in _MAY_COME_OF_ROUNDING:
        return []
    return [
        "that may come of rounding A to float32, which can make it indefinite where its condition "
        "number is above 1e7: leave out precision='mixed'"
    ]
