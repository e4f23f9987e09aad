"""A sparse approximate inverse from outside: its factor, checked and as the core takes it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cpufree.errors import MatrixError
from cpufree.matrix.real_form import real_rows

if TYPE_CHECKING:
    import scipy.sparse as sp

    from cpufree.matrix.problem import CsrMatrix


@dataclass(frozen=True)
class Factor:
    """The factor G of a preconditioner M = GᵀG, for ``pc=factor``; see `given`."""

    rows: int
    matrix: sp.csr_matrix = field(repr=False)
    """G, columns increasing within rows."""

    def digest(self) -> bytes:
        """Return what tells it from others, so that several processes can compare."""
        found = hashlib.sha256()
        for array in (self.matrix.indptr, self.matrix.indices, self.matrix.data):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.digest()

    def _in_real_form(self, A: CsrMatrix) -> sp.csr_matrix:
        """Return G in the form that A has: complex numbers are pairs of real ones."""
        if not A.of_complex:
            if self.matrix.dtype.kind == "c":
                raise MatrixError("the factor is complex, and A is real: give a real factor")
            return self.matrix
        import scipy.sparse as sp  # as in `given`

        G = self.matrix
        indptr, indices, data = real_rows(G.indptr.astype(np.int64), G.indices, G.data)
        made = sp.csr_matrix((data, indices, indptr), shape=A.shape)
        made.eliminate_zeros()
        return made

    def for_core(self, A: CsrMatrix) -> tuple[Any, ...]:
        """Return rows, columns and values of G S⁻¹, S the inverse roots of the diagonal of A.

        They are of about 1, for the core holds them in single precision; a factor of all of them
        means nothing to conjugate gradients. MatrixError where A has another size.
        """
        if self.rows != A.given_shape[0]:
            raise MatrixError(
                f"the factor has {self.rows} rows, and A has {A.given_shape[0]}: give that of this "
                "matrix"
            )
        matrix = self._in_real_form(A)
        diagonal = np.abs(A.to_scipy().diagonal().astype(np.float64))
        roots = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        with np.errstate(over="ignore", under="ignore"):
            # By the exponents first: products of numbers far from 1 may leave the range.
            mantissa, exponent = np.frexp(matrix.data)
            scale, power = np.frexp(roots[matrix.indices])
            most = int((exponent + power).max()) if exponent.size else 0
            values = np.ldexp(mantissa * scale, exponent + power - most)
            lost = np.flatnonzero(values.astype(np.float32) == 0)
        if lost.size and _structurally_singular(matrix, values.astype(np.float32) != 0):
            raise MatrixError(
                "the factor is singular in single precision, in which preconditioners are held: "
                "entries of it differ by more than 38 orders of magnitude"
            )
        return (
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            values,
            A.shape[0],
        )


def given(G: Any) -> Factor:
    """Return a preconditioner M = GᵀG that was made elsewhere, for ``pc`` of a solve.

    M is positive definite whatever G is, unless that is singular. It is applied in the kernel, in
    single precision, by the code of ``pc="fsai"``. Of several PEs, each has what G couples of its
    own rows; a warning tells how much of G is left out. `Solver.update` keeps
    G, its columns scaled by how the roots of the diagonal of A have changed.

    Parameters
    ----------
    G : sparse or dense matrix, shape (n, n)
        Real, or complex as A is; rows and columns are numbered as those of A. Any pattern, such as
        the lower triangle of A; M approximates the inverse of A.

    Returns
    -------
    Factor
        For ``pc`` of `solve`, `Solver` and `cg`.

    Raises
    ------
    MatrixError
        Where G is not square, has a number that is not finite, or is singular by its pattern: a row
        or a column without entries, a triangular G with a 0 on its diagonal.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = cpufree.generate.generate("poisson2d", nx=32, ny=32)
    >>> roots = sp.diags(1 / np.sqrt(A.diagonal()))  # G of Jacobi
    >>> result = cpufree.solve(A, np.ones(1024), pc=cpufree.factors.given(roots))
    >>> result.converged, result.pc
    (True, 'fsai')
    """
    import scipy.sparse as sp  # a solve without such a factor needs none of it

    try:
        made = sp.csr_matrix(G, copy=True)
    except (TypeError, ValueError):
        raise MatrixError("G is no matrix of real numbers") from None
    if made.dtype.kind not in "fiubc":
        raise MatrixError(f"G has dtype {made.dtype}; it must hold numbers, such as float64")
    made = made.astype(np.complex128 if made.dtype.kind == "c" else np.float64)
    if made.shape[0] != made.shape[1]:
        raise MatrixError(f"G has shape {made.shape}: it must be square, as A is")
    made.sum_duplicates()
    made.eliminate_zeros()
    if not np.isfinite(made.data).all():
        row = int(np.searchsorted(made.indptr, np.argmin(np.isfinite(made.data)), "right")) - 1
        raise MatrixError(f"row {row} of G has a NaN or an infinity")
    _check_singular(made)
    return Factor(made.shape[0], made)


def _check_singular(G: sp.csr_matrix) -> None:
    """Raise MatrixError where the pattern of G says that it is singular."""
    rows = np.diff(G.indptr)
    columns = np.bincount(G.indices, minlength=G.shape[1])
    for what, count in (("row", rows), ("column", columns)):
        if not count.all():
            raise MatrixError(f"G is singular: {what} {int(np.argmin(count))} has no entries")
    number = np.repeat(np.arange(G.shape[0]), rows)
    if (G.indices <= number).all() or (G.indices >= number).all():
        diagonal = G.diagonal()
        if not diagonal.all():
            place = int(np.argmin(diagonal != 0))
            raise MatrixError(
                f"G is singular: it is triangular, and entry {place} of its diagonal is 0"
            )
    elif _structurally_singular(G):
        raise MatrixError("G is singular: no choice of an entry in each row has all columns")


def _structurally_singular(G: sp.csr_matrix, kept: Any = None) -> bool:
    """Return whether no values would make a matrix with the pattern of G regular."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import structural_rank

    if kept is not None:
        G = sp.csr_matrix((kept.astype(np.int8), G.indices, G.indptr), shape=G.shape)
        G.eliminate_zeros()
    return bool(structural_rank(G) < G.shape[0])
