"""The yardstick of the tests: conjugate gradients as in the textbook, and small systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

import cpufree
from cpufree.matrix.problem import CsrMatrix
from cpufree.partition.methods import Partition, report

ORDERS = 4
"""Orders of the rows whose iterations make the textbook's range."""


@dataclass
class Reference:
    """What the textbook algorithm finds; `true_residuals` are those of all iterates if asked."""

    x: np.ndarray
    iterations: int
    residuals: list[float] = field(default_factory=list)
    true_residuals: list[float] = field(default_factory=list)


def hestenes_stiefel(
    A: sp.csr_array,
    b: np.ndarray,
    *,
    rtol: float,
    maxiter: int,
    jacobi: bool = True,
    keep_true: bool = False,
) -> Reference:
    """Run preconditioned CG (Hestenes and Stiefel 1952) until the recursive residual meets rtol."""
    inverse = 1.0 / A.diagonal() if jacobi else np.ones_like(b)
    x = np.zeros_like(b)
    r = b.copy()
    p = np.zeros_like(b)
    rho_before = 1.0
    found = Reference(x, 0, [float(np.linalg.norm(r))])
    while found.residuals[-1] > rtol * found.residuals[0] and found.iterations < maxiter:
        z = inverse * r
        rho = r @ z
        p = z + (rho / rho_before if found.iterations else 0.0) * p
        s = A @ p
        alpha = rho / (p @ s)
        x += alpha * p
        r -= alpha * s
        rho_before = rho
        found.iterations += 1
        found.residuals.append(float(np.linalg.norm(r)))
        if keep_true:
            found.true_residuals.append(float(np.linalg.norm(b - A @ x)))
    return found


def iteration_range(
    A: sp.csr_array, b: np.ndarray, *, rtol: float, jacobi: bool = True, orders: int = ORDERS
) -> tuple[int, int]:
    """Return the fewest and most iterations of the textbook algorithm over orders of the rows.

    The order changes nothing but rounding errors, to which CG answers with a delay of its own.
    """
    counts = [
        hestenes_stiefel(B, c, rtol=rtol, maxiter=20_000, jacobi=jacobi).iterations
        for B, c in reordered(A, b, orders)
    ]
    return min(counts), max(counts)


def reordered(
    A: sp.csr_array, b: np.ndarray, orders: int
) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
    """Return the system in its own order of rows, then in random ones."""
    rng = np.random.default_rng(1)
    for k in range(orders):
        order = rng.permutation(A.shape[0]) if k else np.arange(A.shape[0])
        yield sp.csr_array(A[order][:, order]), b[order]


# Iterations by which a method may differ from the textbook algorithm: 2 %; prcg, whose prediction
# feels the order of summation, 4 %; pipecg, which may hand over halfway, 35 %.
DELAY = {"cg": 0.02, "prcg": 0.04, "pipecg": 0.35}


def as_many(iterations: float, textbook: tuple[int, int], method: str) -> bool:
    """Whether a method takes as many iterations as the textbook algorithm, DELAY aside."""
    fewest, most = textbook
    return (1 - DELAY[method]) * fewest - 1 <= iterations <= (1 + DELAY[method]) * most + 1


def rhs(A: sp.csr_array, seed: int = 0) -> np.ndarray:
    """Return b = A x for a random x."""
    return np.asarray(A @ np.random.default_rng(seed).standard_normal(A.shape[0]))


def jumps(m: int, contrast: float, seed: int = 0) -> sp.csr_array:
    """Return 5-point diffusion on an m × m grid, conductivity 1 or contrast in 4 × 4 patches."""
    rng = np.random.default_rng(seed)
    patches = rng.random((m // 4 + 1, m // 4 + 1)) < 0.5
    k = np.where(np.kron(patches, np.ones((4, 4)))[:m, :m], contrast, 1.0)
    number = np.arange(m * m).reshape(m, m)
    pairs = [(number[1:], number[:-1], k[1:], k[:-1])]
    pairs.append((number[:, 1:], number[:, :-1], k[:, 1:], k[:, :-1]))
    rows = np.concatenate([a.ravel() for a, _, _, _ in pairs])
    columns = np.concatenate([c.ravel() for _, c, _, _ in pairs])
    weight = np.concatenate([(2 * u * v / (u + v)).ravel() for _, _, u, v in pairs])
    off = sp.coo_array((weight, (rows, columns)), shape=(m * m, m * m))
    off = (off + off.T).tocsr()
    held = np.zeros(m * m)
    held[number[0]] = k[0]
    return sp.csr_array(sp.diags_array(off.sum(axis=1) + held) - off)


def chain(n: int) -> sp.csr_array:
    """Return the 1-D Poisson matrix; with b = e_0, CG needs all of n iterations."""
    return cpufree.generate.poisson1d(n)


def first_unit_vector(n: int) -> np.ndarray:
    """Return e_0."""
    e = np.zeros(n)
    e[0] = 1.0
    return e


def all_but_one_row(A: CsrMatrix, pes: int, method: str, *_others: object) -> Partition:
    """Give PE 1 the last row and PE 0 all others, so that PE 1 spends its time waiting."""
    part = np.zeros(A.shape[0], np.int32)
    part[-1] = 1
    return Partition(part, method, "", report(A, part, pes))


SYSTEMS = {
    "poisson2d": lambda: cpufree.generate.poisson2d(60, 50),
    "poisson3d": lambda: cpufree.generate.poisson3d(16, 15, 14),
    "jumps": lambda: jumps(40, 1e4),
    "thermal2d": lambda: cpufree.generate.thermal2d(m=50),
    "heart": lambda: cpufree.generate.heart(m=20),
    "powergrid": lambda: cpufree.generate.powergrid(width=20, height=40),
    "flange": lambda: cpufree.generate.flange_hex(r_out=10, t=2, pipe=4),
}
