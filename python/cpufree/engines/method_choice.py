"""Which variant of conjugate gradients is taken; docs/solving/methods.md has the evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpufree import options
from cpufree.engines.choices import one_of
from cpufree.errors import InvalidInputError

GPU_ENGINES = ("cuda_p2p", *options.PROCESSES_ON_GPUS)
DEFAULT = "prcg"
OTHERS = {"minres": "symmetric", "bicgstab": "finite"}
"""Methods for matrices that are not positive definite, and what A is checked to be for them."""
WIDE = 1e6
"""Spread of the diagonal from which on cg needs noticeably fewer iterations than prcg, unscaled."""


@dataclass(frozen=True)
class Solve:
    """What the choice rests on."""

    engine: str
    pc: str
    spread: float = 1.0
    """Of the diagonal: its largest entry over its smallest, 1 where it is not known."""


def method_with(asked: str, made_for: str, checked: bool) -> str:
    """Return the method of a solve with a matrix that was set up for one.

    Args:
        asked: of the solve; "auto" is the one that the matrix was set up for.
        made_for: at the set-up. checked: A was checked to be what that method takes.

    Raises:
        InvalidInputError: `asked` takes less general matrices than A was checked to be.
    """
    if asked == "auto":
        return made_for
    if not checked or made_for not in OTHERS or asked in (made_for, "bicgstab"):
        return asked
    raise InvalidInputError(
        f"A was checked to be {OTHERS[made_for]}, as method {made_for!r} takes it, and method "
        f"{asked!r} asks for more: make the Solver with Solver(A, method={asked!r})"
    )


def choose_method(asked: str, solve: Solve) -> tuple[str, str]:
    """Return the method and why; InvalidInputError for a method that is not known."""
    one_of("method", asked, options.METHOD.choices)
    if asked != "auto":
        return asked, "asked for"
    if solve.pc == "amg":
        return "cg", "with amg the recurrences of the others are too inaccurate"
    if solve.engine not in GPU_ENGINES and solve.pc == "none" and solve.spread >= WIDE:
        wide = f"the diagonal spreads over {math.log10(solve.spread):.0f} decades"
        return "cg", f"{wide}, which costs prcg iterations; pc 'jacobi' may need far fewer"
    return DEFAULT, "one reduction per iteration with the accuracy of classic CG"
