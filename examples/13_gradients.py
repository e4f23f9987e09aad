# %% [markdown]
# # Gradients: the conductivity of a plate from its temperature
#
# PyTorch differentiates through a solve: an optimizer finds the conductivities with which a heated
# plate has the temperatures that were measured. docs/solving/gradients.md explains how.

# %%
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import cpufree

try:
    import torch

    import cpufree.torch
except (ImportError, cpufree.UnsupportedError):
    print("skipped: PyTorch is not installed (pip install torch)")
    sys.exit()

# %% [markdown]
# The plate has 32 × 32 points and is cold at its edges. `D` takes differences between neighbours,
# so that the matrix for conductivities k of the links is Dᵀ diag(k) D. Its values are linear in k:
# `spread` has a column for each link.


# %%
def tensor(matrix):
    """Return a matrix of SciPy as a tensor of PyTorch."""
    matrix = matrix.tocoo()
    place = np.stack(matrix.coords)
    return torch.sparse_coo_tensor(place, matrix.data, matrix.shape, check_invariants=True)


n = 32
difference = sp.diags_array([np.ones(n), -np.ones(n)], offsets=[0, -1], shape=(n + 1, n)) * (n + 1)
one = sp.eye_array(n)
D = sp.vstack([sp.kron(difference, one), sp.kron(one, difference)]).tocsr()
average = abs(D) / abs(D).sum(axis=1)[:, None]  # of the points of a link
A = (D.T @ D).tocsr()
A.sort_indices()
entries = A.tocoo()
spread = D.T.tocsr()[entries.row] * D.T.tocsr()[entries.col]  # D_ki D_kj for each entry
spread, mean, differences = tensor(spread), tensor(average), tensor(D)
crow, col = torch.as_tensor(A.indptr), torch.as_tensor(A.indices)


def values(log_conductivity):
    """Return the values of the matrix for the logarithm of the conductivity of each point."""
    return spread @ (mean @ torch.exp(log_conductivity))


# %% [markdown]
# What is measured: the temperature of a plate with an inclusion that conducts four times as well.
# Five heaters in turn are five right-hand sides.

# %%
x, y = np.meshgrid(*(np.arange(1, n + 1) / (n + 1),) * 2, indexing="ij")
true = torch.as_tensor(np.log(4.0) * np.exp(-(((x - 0.6) ** 2 + (y - 0.4) ** 2) / 0.03)).ravel())
places = [(0.5, 0.5), (0.25, 0.25), (0.25, 0.75), (0.75, 0.25), (0.75, 0.75)]
heat = [100 * np.exp(-((x - px) ** 2 + (y - py) ** 2) / 0.02).ravel() for px, py in places]
b = torch.as_tensor(np.column_stack(heat))
measured = cpufree.torch.solve((crow, col, values(true)), b, rtol=1e-10)

# %% [markdown]
# One Solver serves all steps: each gives it new values, and takes a solve and one for the gradient.
# A penalty on differences between neighbours keeps the conductivity smooth.

# %%
found = torch.zeros(n * n, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.LBFGS([found], max_iter=60, line_search_fn="strong_wolfe")
losses = []


def loss():
    optimizer.zero_grad()
    temperature = cpufree.torch.solve((crow, col, values(found)), b, solver=solver, rtol=1e-8)
    misfit = (temperature - measured).square().sum() / measured.square().sum()
    total = misfit + 1e-9 * (differences @ found).square().sum()
    total.backward()
    losses.append(float(misfit.detach()))
    return total


with cpufree.Solver(A) as solver:
    optimizer.step(loss)
    print(f"solves with gradients: {len(losses)}, updates of the Solver: {solver.updates}")
error = float((found.detach() - true).norm() / true.norm())
print(f"misfit: {losses[0]:.1e} at first, {losses[-1]:.1e} at last")
print(f"relative error of the conductivity's logarithm: {error:.3f}")

# %% [markdown]
# A picture of the conductivity, true and found.

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
for ax, (name, log) in zip(axes, {"true": true, "found": found.detach()}.items(), strict=True):
    image = ax.imshow(np.exp(log.numpy().reshape(n, n).T), origin="lower", vmin=1, vmax=4)
    ax.set(title=f"conductivity, {name}", xticks=[], yticks=[])
figure.colorbar(image, ax=axes)
picture = Path(tempfile.mkdtemp(), "conductivity.png")
figure.savefig(picture)
print(f"picture: {picture}")
