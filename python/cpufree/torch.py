"""Solves that PyTorch differentiates: x = cpufree.torch.solve(A, b), and x.sum().backward()."""

from cpufree.gradients.torch_solve import solve

__all__ = ["solve"]
