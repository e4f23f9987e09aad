"""Which variant of conjugate gradients is taken; docs/methods.md has the evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpufree import options
from cpufree.engines.choices import one_of

GPU_ENGINES = ("cuda_p2p", "nvshmem")
DEFAULT = "prcg"
WIDE = 1e6
"""Spread of the diagonal from which on cg needs noticeably fewer iterations than prcg, unscaled."""


@dataclass(frozen=True)
class Solve:
    """What the choice rests on."""

    engine: str
    pc: str
    spread: float = 1.0
    """Of the diagonal: its largest entry over its smallest, 1 where it is not known."""


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
