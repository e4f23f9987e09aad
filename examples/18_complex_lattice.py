# %% [markdown]
# # Complex Hermitian systems: a particle on a lattice in a magnetic field
#
# On a lattice a magnetic field is a phase on each link, so that the Laplacian becomes complex and
# Hermitian (Peierls 1933). It is solved as it is: complex numbers in, complex numbers out.

# %%
import numpy as np
import scipy.sparse as sp

import cpufree

n, flux = 96, 1.0 / 12.0  # sites a side; flux quanta through each cell
site = np.arange(n * n).reshape(n, n)
x_of, y_of = site // n, site % n


def links(start, end, phase):
    hop = np.exp(2j * np.pi * phase)
    return [(start, end, -hop), (end, start, -hop.conj())]


# The field is in the phases along y, which grow with x (Landau's gauge).
along_x = links(site[:-1], site[1:], np.zeros((n - 1, n)))
along_y = links(site[:, :-1], site[:, 1:], flux * x_of[:, :-1])
onsite = [(site, site, np.full((n, n), 4.0 + 0j))]
rows, columns, values = (
    np.concatenate([part.ravel() for part in parts])
    for parts in zip(*along_x, *along_y, *onsite, strict=True)
)
H = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(n * n, n * n)))

# %% [markdown]
# The response to a source in the middle at an energy below the lowest level, H - E being positive
# definite there.

# %%
A = H - 0.3 * sp.eye_array(n * n)
b = np.zeros(n * n, complex)
b[site[n // 2, n // 2]] = 1.0

result = cpufree.solve(A, b, rtol=1e-10)
print(result.message)
print(f"x is {result.x.dtype}, residual {np.linalg.norm(b - A @ result.x):.0e}")

# %% [markdown]
# Green's functions of a Hermitian operator are positive where the source is, and real there.

# %%
there = result.x[site[n // 2, n // 2]]
print(f"at the source: {there.real:.6f}, imaginary part below 1e-9: {abs(there.imag) < 1e-9}")

# %% [markdown]
# Another gauge turns the phases of A, b and x, and nothing else: iterations and residuals are the
# same. The preconditioners are those of real systems; multigrid takes vectors that A nearly maps to
# 0, here the turned constant of a lattice without a field.

# %%
gauge = np.exp(1j * np.random.default_rng(0).uniform(0.0, 2.0 * np.pi, n * n))
turn = sp.diags_array(gauge)
turned = cpufree.solve(turn @ A @ turn.conj(), gauge * b, rtol=1e-10)
print("same iterations in another gauge:", turned.iterations == result.iterations)

free = sp.csr_array(abs(H) * -1 + 8.0 * sp.eye_array(n * n)) + 1e-3 * sp.eye_array(n * n)
pure = sp.csr_array(turn @ free @ turn.conj())
jacobi = cpufree.solve(pure, gauge * (b + 1), rtol=1e-10)
amg = cpufree.solve(pure, gauge * (b + 1), rtol=1e-10, pc="amg", near_nullspace=gauge)
print(f"pure gauge: multigrid needs fewer iterations: {10 * amg.iterations < jacobi.iterations}")

# %% [markdown]
# What is not Hermitian is refused, with the entry.

# %%
try:
    cpufree.solve(H + 0.1j * sp.eye_array(n * n), b)
except cpufree.MatrixError as error:
    print(error)
