"""Singular systems: Neumann conditions on all sides, graph Laplacians, bodies without supports."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp


def neumann(*sizes: int) -> Any:
    """Return the Laplacian on a grid with Neumann conditions on all sides."""
    parts = []
    for axis, n in enumerate(sizes):
        line = sp.diags_array(
            [-np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]
        ).tolil()
        line[0, 0] = line[n - 1, n - 1] = 1.0
        whole = sp.eye_array(1)
        for other, m in enumerate(sizes):
            whole = sp.kron(whole, line if other == axis else sp.eye_array(m))
        parts.append(whole)
    return sp.csr_array(sum(parts[1:], parts[0]))


def graph_laplacian(nodes: int, seed: int = 0) -> Any:
    """Return the Laplacian of a connected graph with random weights."""
    random = np.random.default_rng(seed)
    first = np.concatenate([np.arange(nodes), random.integers(0, nodes, 3 * nodes)])
    last = (
        first + np.concatenate([np.ones(nodes, int), random.integers(1, 40, 3 * nodes)])
    ) % nodes
    weights = random.random(len(first)) + 0.1
    upper = sp.csr_array(sp.coo_array((weights, (first, last)), shape=(nodes, nodes)))
    both = upper + upper.T
    both = sp.csr_array(both - sp.diags_array(both.diagonal()))
    both.eliminate_zeros()
    return sp.csr_array(sp.diags_array(np.asarray(both.sum(axis=1)).ravel()) - both)


def trusses(nx: int, ny: int, nz: int) -> tuple[Any, Any]:
    """Return the stiffness of a free body of springs on a grid, and its 6 rigid body modes."""
    nodes = np.array(list(itertools.product(range(nx), range(ny), range(nz))), float)
    number = {tuple(map(int, x)): k for k, x in enumerate(nodes)}
    rows, columns, values = [], [], []
    steps = [s for s in itertools.product((-1, 0, 1), repeat=3) if s > (0, 0, 0)]
    for k, x in enumerate(nodes):
        for step in steps:
            other = number.get(tuple(map(int, x + np.array(step))))
            if other is None:
                continue
            d = np.array(step) / np.linalg.norm(step)
            for i, j in itertools.product(range(3), repeat=2):
                for a, b, sign in ((k, k, 1), (other, other, 1), (k, other, -1), (other, k, -1)):
                    rows.append(3 * a + i)
                    columns.append(3 * b + j)
                    values.append(sign * d[i] * d[j])
    A = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(3 * len(nodes),) * 2))
    centred = nodes - nodes.mean(axis=0)
    modes = np.zeros((len(nodes), 3, 6))
    for i in range(3):
        modes[:, i, i] = 1.0
        axis = np.eye(3)[i]
        modes[:, :, 3 + i] = np.cross(axis, centred)
    return A, modes.reshape(-1, 6)
