# %% [markdown]
# # In the place of SciPy's `cg`
#
# `cpufree.cg` takes the arguments of `scipy.sparse.linalg.cg` and returns the same pair. One import
# changes. What differs is in docs/api.md, "Coming from SciPy".

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from scipy.sparse.linalg import cg as scipy_cg

from cpufree import cg, generate

A = generate.poisson3d(nx=20, ny=20, nz=20)
A = A + scipy.sparse.diags_array(np.linspace(0.0, 6.0, A.shape[0]))
b = np.linspace(0.0, 1.0, A.shape[0])

# %%
x, info = cg(A, b, rtol=1e-9)
expected, scipy_info = scipy_cg(A, b, rtol=1e-9)

# %% [markdown]
# `info` is 0 where the tolerance was met. Two solvers agree up to the tolerance, not to the bit.

# %%
difference = np.linalg.norm(x - expected) / np.linalg.norm(expected)
print(f"info: {info} (SciPy's: {scipy_info})")
print(f"relative difference: {difference:.1e}")

# %% [markdown]
# A picture of the solution, in the middle plane of the cube, and of the difference.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, values, title in zip(axes, (x, x - expected), ("cpufree", "cpufree - SciPy"), strict=True):
    shown = ax.imshow(values.reshape(20, 20, 20)[10], cmap="viridis")
    ax.set(title=title, xticks=[], yticks=[])
    figure.colorbar(shown, ax=ax)
picture = Path(tempfile.mkdtemp(), "solution.png")
figure.savefig(picture)
print(f"picture: {picture}")
