"""Levels of multigrid from outside: their prolongators, checked and as the core takes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cpufree.dtypes import is_complex
from cpufree.errors import MatrixError
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.real_form import real_rows

if TYPE_CHECKING:
    import scipy.sparse as sp

_NOT_GALERKIN = 1e-6  # relative, of a matrix times a random vector


@dataclass(frozen=True)
class Levels:
    """Levels of multigrid, to be given as preconditioner, ``pc=levels``; see `from_levels`."""

    rows: tuple[int, ...]
    """Unknowns of each level, the finest first."""
    prolongators: tuple[sp.csr_matrix, ...] = field(repr=False)
    """From each level but the first to the one before it."""

    def digest(self) -> bytes:
        """Return what tells them from others, so that several processes can compare."""
        found = hashlib.sha256()
        for p in self.prolongators:
            for array in (p.indptr, p.indices, p.data):
                found.update(np.ascontiguousarray(array).tobytes())
        return found.digest()

    def for_core(self, A: CsrMatrix) -> list[tuple[Any, ...]]:
        """Return the arrays of all prolongators; MatrixError where A has other rows."""
        n = A.given_shape[0]
        if self.rows[0] != n:
            raise MatrixError(
                f"the first of the levels has {self.rows[0]} rows, and A has {n}: give the levels "
                "of this matrix"
            )
        if A.of_complex:
            return [
                (*real_rows(p.indptr, p.indices, p.data), 2 * int(p.shape[1]))
                for p in self.prolongators
            ]
        if any(np.iscomplexobj(p) for p in self.prolongators):
            raise MatrixError("the levels are complex, and A is real: give the levels of A")
        return [
            (
                p.indptr.astype(np.int64),
                p.indices.astype(np.int32),
                p.data.astype(np.float64),
                int(p.shape[1]),
            )
            for p in self.prolongators
        ]


def from_levels(matrices: Sequence[Any]) -> Levels:
    """Return levels of multigrid that were made elsewhere, as the preconditioner of a solve.

    The cycle is cpufree's own: two steps of Chebyshev's iteration before and after, levels in
    single precision, the last one inverted if it has at most 500 rows. Coarse matrices are computed
    again as P^T A P, by updates as well. They serve one PE, ``pes=1``.

    Parameters
    ----------
    matrices : sequence of sparse matrices
        ``[A0, P0, A1, P1, ..., Ak]``: the matrix of each level, shape (n_l, n_l), and between two
        the prolongator from the coarser to the finer one, shape (n_l, n_{l+1}). Of a hierarchy of
        PyAMG, ``ml.levels[l].A`` and ``ml.levels[l].P``.

    Returns
    -------
    Levels
        For ``pc`` of `solve`, `Solver` and `cg`.

    Raises
    ------
    MatrixError
        Where shapes do not fit one another, a coarse matrix is not P^T A P, a prolongator has a
        column without entries, or a number that is not finite.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = cpufree.generate.generate("poisson2d", nx=32, ny=32)
    >>> P = sp.kron(sp.identity(512), np.ones((2, 1))).tocsr()  # pairs of neighbours
    >>> levels = cpufree.amg.from_levels([A, P, P.T @ A @ P])
    >>> levels.rows
    (1024, 512)
    >>> cpufree.solve(A, np.ones(1024), pc=levels, pes=1).converged
    True
    """
    if len(matrices) % 2 == 0:
        raise MatrixError(
            f"{len(matrices)} matrices are given: give [A0, P0, A1, ..., Ak], the matrix of each "
            "level and a prolongator between two"
        )
    found = [_compressed(m, _name(k)) for k, m in enumerate(matrices)]
    for k, a in enumerate(found[::2]):
        if a.shape[0] != a.shape[1]:
            raise MatrixError(f"A{k} has shape {a.shape}: a level has as many rows as columns")
    for k, p in enumerate(found[1::2]):
        _check_prolongator(k, found[2 * k], p, found[2 * k + 2])
    return Levels(tuple(a.shape[0] for a in found[::2]), tuple(found[1::2]))


def _name(position: int) -> str:
    return f"{'AP'[position % 2]}{position // 2}"


def _compressed(matrix: Any, name: str) -> sp.csr_matrix:
    """Return a matrix in compressed rows, columns increasing, without entries that are 0."""
    import scipy.sparse as sp  # a solve without such levels needs none of it

    try:
        kind = np.complex128 if is_complex(matrix) else np.float64
        made = sp.csr_matrix(matrix, dtype=kind, copy=True)
    except (TypeError, ValueError):
        raise MatrixError(f"{name} is no matrix of numbers") from None
    made.sum_duplicates()
    made.eliminate_zeros()
    if not np.isfinite(made.data).all():
        raise MatrixError(f"{name} has a NaN or an infinity")
    return made


def _check_prolongator(level: int, fine: Any, p: Any, coarse: Any) -> None:
    """Raise MatrixError where a prolongator does not fit, or the coarse matrix is another one."""
    expected = fine.shape[0], coarse.shape[0]
    if p.shape != expected:
        raise MatrixError(
            f"P{level} has shape {p.shape}, between A{level} and A{level + 1} it has to be "
            f"{expected}; is it the restriction, its transpose?"
        )
    entries = np.bincount(p.indices, minlength=p.shape[1])
    if not entries.all():
        empty = int(np.argmin(entries))
        raise MatrixError(f"column {empty} of P{level} has no entries: leave it out")
    v = np.random.default_rng(0).standard_normal(coarse.shape[0])
    product = p.conj().T @ (fine @ (p @ v))
    if np.linalg.norm(product - coarse @ v) > _NOT_GALERKIN * np.linalg.norm(product):
        raise MatrixError(
            f"A{level + 1} is not P{level}^T A{level} P{level}: levels of which it is not, as of "
            "methods that make coarse matrices sparser, are not supported"
        )
