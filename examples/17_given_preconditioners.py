# %% [markdown]
# # Preconditioners from outside: a factor, levels, a function
#
# A sparse approximate inverse M = GᵀG that you make runs in the kernel, as levels of multigrid do;
# a function does not, and a warning says what that costs. docs/solving/methods.md explains how.

# %%
import warnings

import numpy as np
import scipy.sparse as sp

import cpufree

A = cpufree.generate.generate("poisson2d", nx=100, ny=100)
b = np.ones(A.shape[0])

# %% [markdown]
# G approximates the inverse of the Cholesky factor of A: two terms of its Neumann series.

# %%
diagonal = A.diagonal()
lower = sp.tril(A, -1) @ sp.diags(1 / diagonal)
G = sp.diags(1 / np.sqrt(diagonal)) @ (sp.identity(A.shape[0]) - lower + lower @ lower)
given = cpufree.solve(A, b, rtol=1e-8, pc=cpufree.factors.given(G))
print(f"Jacobi  {cpufree.solve(A, b, rtol=1e-8, pc='jacobi').iterations} iterations")
print(f"given G {given.iterations} iterations, {given.reason}")

# %% [markdown]
# Levels of another package, such as PyAMG's; here pairs of neighbours, in both directions.

# %%
pairs = sp.kron(sp.identity(50), np.ones((2, 1)))
P = sp.kron(pairs, pairs).tocsr()
levels = cpufree.amg.from_levels([A, P, P.T @ A @ P])
print(f"levels  {cpufree.solve(A, b, rtol=1e-8, pc=levels, pes=1).iterations} iterations")

# %% [markdown]
# A function gets r where b lies, and the host drives every iteration.

# %%
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    x, info = cpufree.cg(A, b, rtol=1e-8, M=lambda r: G.T @ (G @ r))
assert info == 0
print(str(told[0].message).split(":")[0])

# %% [markdown]
# What would GPUs hold of such a system? No GPU is needed for the answer.

# %%
print(cpufree.Solver.estimate(A, pes=2, pc="amg"))
