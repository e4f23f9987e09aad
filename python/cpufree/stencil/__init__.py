"""Iterations on grids: every PE runs one kernel from the first iteration to the last.

result = cpufree.stencil.jacobi(u0, 1000)
"""

from cpufree.stencil.grid_input import count_updates
from cpufree.stencil.iterate import jacobi
from cpufree.stencil.result import StencilReason, StencilResult
from cpufree.stencil.serial import reference

__all__ = ["StencilReason", "StencilResult", "count_updates", "jacobi", "reference"]
