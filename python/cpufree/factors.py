"""A factor of a preconditioner that is made elsewhere, as a sparse approximate inverse.

factor = cpufree.factors.given(G)  # M = GᵀG
result = cpufree.solve(A, b, pc=factor)
"""

from cpufree.matrix.given_factor import Factor, given

__all__ = ["Factor", "given"]
