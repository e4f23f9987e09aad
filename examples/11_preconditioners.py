# %% [markdown]
# # Preconditioners compared
#
# The Laplacian on a cube, solved with several preconditioners. docs/solving/methods.md says which
# one suits which system.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cpufree

A = cpufree.generate.poisson3d(nx=50, ny=50, nz=50)
b = np.random.default_rng(0).standard_normal(A.shape[0])

# %%
results = {}
for pc in ("jacobi", "chebyshev", "fsai", "amg"):
    results[pc] = cpufree.solve(A, b, rtol=1e-10, pc=pc)
    assert results[pc], results[pc].message
    print(f"{pc}: {results[pc].iterations} iterations")

# %% [markdown]
# Iterations do not cost the same: one with Jacobi has one product with A, one with Chebyshev has
# five, one with multigrid more, and its levels have to be set up. Times are in `result.timings`.
# Multigrid wins where the others need many iterations: on a cube with twice as many points along
# each side they need twice as many, and multigrid hardly more.

# %% [markdown]
# A picture of the residuals over the iterations.

# %%
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for pc, result in results.items():
    iterations = result.history_stride * np.arange(len(result.history))
    ax.semilogy(iterations, result.history / result.bnorm, label=pc)
ax.set(xlabel="iteration", ylabel="‖r‖ / ‖b‖")
ax.grid(alpha=0.3)
ax.legend()
picture = Path(tempfile.mkdtemp(), "preconditioners.png")
figure.savefig(picture)
print(f"picture: {picture}")
