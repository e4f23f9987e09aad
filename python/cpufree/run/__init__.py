"""From a matrix, a right-hand side and options to a result: `Solver`, `solve`, `cg`."""

from .scipy_cg import cg
from .solver import Solver, solve

__all__ = ["Solver", "cg", "solve"]
