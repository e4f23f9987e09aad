# %% [markdown]
# # Many small systems at once
#
# 500 plates, each with a heat conductivity of its own that differs from point to point. The
# matrices have one pattern, so their arrays are stacked: `indptr` and `indices` once, and a row of
# values for each plate. One call solves all of them, each to its own tolerance.

# %%
import numpy as np

import cpufree

nx, ny, plates = 16, 12, 500
L = cpufree.generate.poisson2d(nx=nx, ny=ny)
random = np.random.default_rng(1)

# %% [markdown]
# Values of D L D for random diagonal matrices D, and right-hand sides whose solutions are known.

# %%
scale = random.uniform(0.5, 2.0, (plates, nx * ny))
row = np.repeat(np.arange(nx * ny), np.diff(L.indptr))
values = L.data * scale[:, row] * scale[:, L.indices]
exact = random.standard_normal((plates, nx * ny))
b = np.stack([s * (L @ (s * x)) for s, x in zip(scale, exact, strict=True)])

result = cpufree.solve_many((L.indptr, L.indices, values), b, rtol=1e-10)
print(result.message)
print(f"largest error: {np.abs(result.x - exact).max():.0e}")

# %% [markdown]
# What is wrong with one system leaves the others right, and is said with its number.

# %%
values[7] = -values[7]
result = cpufree.solve_many((L.indptr, L.indices, values), b, rtol=1e-10)
print(result.message)
print(type(result.errors[7]).__name__)
