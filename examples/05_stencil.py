# %% [markdown]
# # Iterations on a grid
#
# Jacobi iterations for -Δu = f on the unit square, u = 0 on its edge. With f = 2 π² sin(πx) sin(πy)
# the solution is sin(πx) sin(πy). All iterations run in one kernel, which decides when to stop.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cpufree

n = 65
h = 1.0 / (n - 1)
x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n), indexing="ij")
solution = np.sin(np.pi * x) * np.sin(np.pi * y)
f = 2 * np.pi**2 * solution

# %% [markdown]
# `source` is h² f. The tolerance bounds the change of a point in one iteration.

# %%
result = cpufree.stencil.jacobi(np.zeros((n, n)), 100_000, source=h * h * f, tol=1e-9)
error = np.abs(result.u - solution).max()

# %% [markdown]
# What is left is the error of the discretization, (π h)² / 12 at the peak to leading order.

# %%
print(result)
print(f"iterations: {result.iterations}")
print(f"largest error: {error:.2e} (of the discretization: {(np.pi * h) ** 2 / 12:.2e})")

# %% [markdown]
# A picture of the solution, and of its error.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, values, title in zip(axes, (result.u, result.u - solution), ("u", "error"), strict=True):
    shown = ax.imshow(values, cmap="viridis", extent=(0, 1, 0, 1))
    ax.set(title=title)
    figure.colorbar(shown, ax=ax)
picture = Path(tempfile.mkdtemp(), "u.png")
figure.savefig(picture)
print(f"picture: {picture}")
