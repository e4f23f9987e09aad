"""From a matrix, a right-hand side and options to a result: `Solver`, `solve`, `cg`.

`cg` is loaded when first used: it brings all of SciPy's linear algebra along, which no rank of
several needs.
"""

from typing import TYPE_CHECKING, Any

from .once import solve
from .solver import Solver

if TYPE_CHECKING:
    from .scipy_cg import cg

__all__ = ["Solver", "cg", "solve"]


def __getattr__(name: str) -> Any:
    if name != "cg":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .scipy_cg import cg

    return cg
