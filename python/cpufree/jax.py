"""Solves that JAX differentiates: jax.grad of functions that call cpufree.jax.solve(A, b)."""

from cpufree.gradients.jax_solve import forget, solve

__all__ = ["forget", "solve"]
