# %% [markdown]
# # Solve a system from a file
#
# Any symmetric positive definite matrix will do: Matrix Market (`.mtx`, also compressed), SciPy's
# `.npz`, and others (docs/input.md). Usage: `python 01_solve_a_file.py [FILE]`. Without a file the
# example writes one: a membrane of 60 × 40 points that is clamped at its edge.

# %%
import sys
import tempfile
from pathlib import Path

import numpy as np

import cpufree

if len(sys.argv) > 1:
    path = Path(sys.argv[1])
else:
    path = Path(tempfile.mkdtemp()) / "membrane.mtx"
    cpufree.save_matrix(path, cpufree.generate.poisson2d(nx=60, ny=40))

# %% [markdown]
# A right-hand side whose solution is known shows how large the error is.

# %%
A = cpufree.load_matrix(path)
solution = np.ones(A.shape[0])
result = cpufree.solve(A, A @ solution, rtol=1e-10)

# %% [markdown]
# A solve always says why it ended. `relative_residual` is ‖b - A x‖ / ‖b‖, recomputed from x.

# %%
print(result)
print(f"iterations: {result.iterations}")
print(f"relative residual: {result.relative_residual:.1e}")
print(f"largest error: {np.abs(result.x - solution).max():.1e}")

# %% [markdown]
# A picture of the residual over the iterations. `--plot` of the command line draws the same.

# %%
picture = Path(tempfile.mkdtemp(), "convergence.png")
result.plot().figure.savefig(picture)
print(f"picture: {picture}")
