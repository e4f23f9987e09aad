"""Levels of algebraic multigrid that are made elsewhere, as by PyAMG.

levels = cpufree.amg.from_levels([A0, P0, A1, P1, A2])
result = cpufree.solve(A0, b, pc=levels)
"""

from cpufree.multigrid.given_levels import Levels, from_levels

__all__ = ["Levels", "from_levels"]
