# %% [markdown]
# # In the place of SciPy's `cg`
#
# `cpufree.cg` takes the arguments of `scipy.sparse.linalg.cg` and returns the same pair. One import
# changes. What differs is in docs/api.md, "Coming from SciPy".

# %%
import numpy as np
from scipy.sparse.linalg import cg as scipy_cg

from cpufree import cg, generate

A = generate.poisson3d(nx=20, ny=20, nz=20)
b = np.ones(A.shape[0])

# %%
x, info = cg(A, b, rtol=1e-9)
expected, scipy_info = scipy_cg(A, b, rtol=1e-9)

# %% [markdown]
# `info` is 0 where the tolerance was met. Two solvers agree up to the tolerance, not to the bit.

# %%
difference = np.linalg.norm(x - expected) / np.linalg.norm(expected)
print(f"info: {info} (SciPy's: {scipy_info})")
print(f"relative difference: {difference:.1e}")
