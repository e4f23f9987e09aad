"""Flow through a medium of lognormal conductivity, on a grid."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cpufree.generate import checks
from cpufree.generate.graph import canonical


def lognormal3d(
    nx: int = 64, ny: int = 64, nz: int = 64, sigma: float = 2.5, length: int = 3, seed: int = 0
) -> sp.csr_array:
    """Seven-point operator -div k grad with a lognormal conductivity k, held on all sides.

    k = exp(sigma z), z Gaussian noise of unit variance, averaged over cubes of `length` cells:
    so far it is correlated. Between two cells the conductivity is their harmonic mean. A hard
    system for preconditioners: with sigma 2.5 entries differ by nine orders of magnitude. Rows
    nx ny nz, at most 7 nonzeros per row.
    """
    shape = (checks.whole("nz", nz), checks.whole("ny", ny), checks.whole("nx", nx))
    sigma = checks.real("sigma", sigma, above=0.0, most=20.0)
    length, seed = checks.whole("length", length), checks.whole("seed", seed, least=0)
    checks.check_size("lognormal3d", float(np.prod(np.array(shape, float))), 7)
    from scipy.ndimage import uniform_filter  # a heavy import

    noise = np.random.default_rng(seed).standard_normal(shape)
    field = uniform_filter(noise, length, mode="wrap")
    k = np.exp(sigma * field / (field.std() or 1.0))
    number = np.arange(k.size, dtype=np.int32).reshape(shape)
    diagonal = np.zeros(shape)
    rows, columns, values = [], [], []
    for axis in range(3):
        ahead = [slice(None)] * 3
        behind = [slice(None)] * 3
        ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
        one, other = tuple(behind), tuple(ahead)
        between = 2.0 / (1.0 / k[one] + 1.0 / k[other])
        diagonal[one] += between
        diagonal[other] += between
        rows += [number[one].ravel(), number[other].ravel()]
        columns += [number[other].ravel(), number[one].ravel()]
        values += [-between.ravel()] * 2
        for side in (0, -1):  # held half a cell beyond
            edge = [slice(None)] * 3
            edge[axis] = side  # type: ignore[call-overload]
            diagonal[tuple(edge)] += 2.0 * k[tuple(edge)]
    own = number.ravel()
    entries = (np.concatenate([*rows, own]), np.concatenate([*columns, own]))
    every = np.concatenate([*values, diagonal.ravel()])
    return canonical(sp.coo_array((every, entries), (k.size, k.size)).tocsr())
