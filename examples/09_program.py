# %% [markdown]
# # A program of your own on a grid
#
# Waves on a square pool: written with slices of NumPy, run as one kernel for the whole time loop.
# `cpufree program examples/09_program.py --plot pool.png` runs it, too, and saves a picture.

# %%
import tempfile
from pathlib import Path

import numpy as np

import cpufree


@cpufree.program
def waves(u, v, c, steps):
    for _ in range(steps):
        v[1:-1, 1:-1] += c * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        u += v
    return u, np.max(np.abs(u))


# %% [markdown]
# A drop falls in. Fields are plain arrays; the program writes into them, as the function would.


# %%
def arguments():
    n = 201
    y, x = np.mgrid[0:n, 0:n] / (n - 1)
    u = np.exp(-400 * ((x - 0.3) ** 2 + (y - 0.4) ** 2))
    u[[0, -1], :] = u[:, [0, -1]] = 0.0
    return u, np.zeros_like(u), 0.2, 400


if __name__ == "__main__":
    u, v, c, steps = arguments()
    print(waves.explain(u, v, c, steps))

    # %% [markdown]
    # The function below the decorator computes the same, to the last bit.

    # %%
    plain = u.copy()
    waves.function(plain, v.copy(), c, steps)
    _, highest = waves(u, v, c, steps)
    print(f"differences from NumPy: {np.count_nonzero(u != plain)}")
    print(f"highest wave: {highest:.4f}")

    # %% [markdown]
    # A picture of the pool.

    # %%
    from cpufree.cli.plot import plot_array

    path = Path(tempfile.mkdtemp(), "pool.png")
    plot_array(u, str(path), "waves in a pool")
    print(f"picture: {path}")
