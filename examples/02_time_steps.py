# %% [markdown]
# # Time steps with `Solver.update`
#
# Heat in a plate whose conductivity changes with time: (I + dt k(t) L) u_new = u in every step
# (implicit Euler). The entries of the matrix change, their places do not. `update` writes the new
# values into the system that is laid out already: no new partition, no new layout.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse

import cpufree

nx, ny, dt, steps = 64, 48, 0.5, 20
L = cpufree.generate.poisson2d(nx=nx, ny=ny)
identity = scipy.sparse.eye_array(nx * ny, format="csr")


def conductivity(step):
    return 1.0 + 0.5 * np.sin(step)


def matrix(step):
    return identity + dt * conductivity(step) * L


# %% [markdown]
# The first values are an eigenvector of L, so each step divides u by 1 + dt k λ: the result is
# known. The last solution is a good first guess for the next one.

# %%
x = np.sin(np.pi * np.arange(1, nx + 1) / (nx + 1))
y = np.sin(np.pi * np.arange(1, ny + 1) / (ny + 1))
u = np.outer(y, x).ravel()
eigenvalue = u @ (L @ u) / (u @ u)

iterations, exact = 0, 1.0
highest = [u.max()]
with cpufree.Solver(matrix(0)) as solver:
    for step in range(steps):
        if step > 0:
            solver.update(matrix(step))
        result = solver.solve(u, x0=u, rtol=1e-10)
        assert result.converged, result.reason
        u = result.x
        highest.append(u.max())
        iterations += result.iterations
        exact /= 1.0 + dt * conductivity(step) * eigenvalue

# %%
amplitude = u.max() / np.outer(y, x).max()
print(f"{steps} steps, {iterations} iterations")
print(f"amplitude: {amplitude:.6f} (exact: {exact:.6f})")

# %% [markdown]
# A picture of the plate after the last step, and of its highest temperature over the steps.

# %%
figure, (plate, curve) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
plate.imshow(u.reshape(ny, nx), cmap="inferno", vmin=0, vmax=highest[0])
plate.set(title=f"temperature after {steps} steps", xticks=[], yticks=[])
curve.plot(highest, marker=".")
curve.set(title="highest temperature", xlabel="step", xticks=range(0, steps + 1, 5))
curve.grid(alpha=0.3)
picture = Path(tempfile.mkdtemp(), "plate.png")
figure.savefig(picture)
print(f"picture: {picture}")
