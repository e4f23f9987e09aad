# %% [markdown]
# # Finite elements: a beam under its own weight
#
# scikit-fem assembles the matrix, cpufree solves. The beam is of steel, 4 m long and 0.4 m thick,
# and clamped at both ends. docs/tutorials/finite-elements.md explains other boundary conditions.

# %%
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cpufree

try:
    import skfem
    from skfem.models.elasticity import lame_parameters, linear_elasticity
except ImportError:
    print("skipped: scikit-fem is not installed (pip install scikit-fem)")
    sys.exit()

# %% [markdown]
# Bricks of 5 cm with three unknowns for each node. `condense` takes the clamped nodes out of the
# system, rows and columns, so that it stays symmetric.

# %%
length, thickness, young, density, gravity = 4.0, 0.4, 2.0e11, 7850.0, 9.81
across = np.linspace(0, thickness, 9)
mesh = skfem.MeshHex.init_tensor(np.linspace(0, length, 81), across, across)
basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementHex1()))
stiffness = linear_elasticity(*lame_parameters(young, 0.3)).assemble(basis)
weight = skfem.LinearForm(lambda v, w: -density * gravity * v[2]).assemble(basis)
clamped = basis.get_dofs(lambda x: (x[0] == 0.0) | (x[0] == length))
K, b, u, inner = skfem.condense(stiffness, weight, D=clamped)

# %%
result = cpufree.solve(K, b, rtol=1e-8)
assert result, result.message
u[inner] = result.x

# %% [markdown]
# The theory of slender beams, w = ρ g A L⁴ / (384 E I), leaves out the shear of so thick a beam.

# %%
slender = density * gravity * length**4 / (384 * young * thickness**2 / 12)
print(f"unknowns: {len(b)}")
print(f"iterations: {result.iterations}")
print(f"it sags by {-1e6 * u.min():.2f} µm (slender: {1e6 * slender:.2f} µm)")

# %% [markdown]
# A picture of the side of the beam, its displacements 10 000 times as large.

# %%
displacement = u[basis.nodal_dofs]  # shape (3, nodes)
side = np.flatnonzero(mesh.p[1] == 0.0)
shown = mesh.p[:, side] + 1e4 * displacement[:, side]
figure, ax = plt.subplots(figsize=(9, 2.6), layout="constrained")
points = ax.scatter(shown[0], shown[2], c=-1e6 * displacement[2, side], s=14, cmap="viridis")
ax.set(title="a clamped beam under its own weight", xlabel="m", aspect="equal")
figure.colorbar(points, label="sag, µm", shrink=0.7)
picture = Path(tempfile.mkdtemp(), "beam.png")
figure.savefig(picture)
print(f"picture: {picture}")
