# %% [markdown]
# # Matrices that are not positive definite
#
# Waves in a box (symmetric, indefinite) by `minres`, and a stream that carries heat (not symmetric)
# by `bicgstab`. docs/solving/methods.md says which method suits which matrix.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import cpufree

n = 60
laplacian = cpufree.generate.poisson2d(n, n)
source = np.zeros((n, n))
source[n // 3, n // 4] = 1.0
b = source.ravel()

# %% [markdown]
# The Helmholtz equation: what is subtracted from the diagonal makes some eigenvalues negative.
# Conjugate gradients say so, and name the methods that take such a matrix.

# %%
waves = sp.csr_array(laplacian - 0.05 * sp.eye_array(n * n))
refused = cpufree.solve(waves, b, rtol=1e-8)
print(refused.reason)
wave = cpufree.solve(waves, b, rtol=1e-8, method="minres")
assert wave, wave.message
print(f"minres: {wave.iterations} iterations, {wave.counts['reductions']} reductions")

# %% [markdown]
# Heat that a stream carries to the right: entries beside the diagonal differ on both sides. The
# check of `A` is that of the method; a `Solver` has one, too.

# %%
speed = 0.5
grid = np.arange(n * n)
inner = grid[grid % n > 0]
upwind = sp.coo_array(
    (
        np.concatenate([np.full(n * n, speed), np.full(inner.size, -speed)]),
        (np.concatenate([grid, inner]), np.concatenate([grid, inner - 1])),
    )
)
stream = sp.csr_array(laplacian + upwind)
with cpufree.Solver(stream, method="bicgstab") as solver:
    heat = solver.solve(b, rtol=1e-8)
assert heat, heat.message
print(f"bicgstab: {heat.iterations} iterations of two products")

# %% [markdown]
# A picture of both.

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
axes[0].imshow(wave.x.reshape(n, n), cmap="RdBu")
axes[0].set_title("waves, minres")
axes[1].imshow(heat.x.reshape(n, n), cmap="inferno")
axes[1].set_title("heat in a stream, bicgstab")
for ax in axes:
    ax.axis("off")
picture = Path(tempfile.mkdtemp(), "other_matrices.png")
figure.savefig(picture)
print(f"picture: {picture}")
