"""Iterations on grids: every PE runs one kernel from the first iteration to the last.

result = cpufree.stencil.jacobi(u0, 1000)
"""

from cpufree.stencil.iterate import (
    StencilReason,
    StencilResult,
    count_updates,
    jacobi,
    reference,
)

__all__ = ["StencilReason", "StencilResult", "count_updates", "jacobi", "reference"]
