"""Singular systems: the null space of A, which b and x are kept out of.

Conjugate gradients solve a semidefinite system whose b lies in the range of A: A maps directions of
the null space to 0, so that they never come into A p, and what rounding errors bring of them into x
changes no residual. So b is projected before a solve and x after it, outside of the kernel, for all
methods, preconditioners and engines alike. (Kaasschieter 1988, "Preconditioned conjugate gradients
for solving singular systems", J. Comput. Appl. Math. 24.)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cpufree.device_arrays import cuda_device
from cpufree.distributed import Team
from cpufree.dtypes import is_complex
from cpufree.errors import FileFormatError, MatrixError, VectorError
from cpufree.extension import load_core
from cpufree.matrix.io.vectors import is_path, load_vector
from cpufree.matrix.problem import CsrMatrix
from cpufree.multigrid.near_nullspace import complex_span
from cpufree.solvers import on_gpu

NullSpaceLike: TypeAlias = str | os.PathLike[str] | npt.ArrayLike | None
"""What users give: "constant", vectors of shape (n,) or (n, k), the path of a file; None: A is
regular."""

CONSTANT = "constant"
MOST = 12
"""Vectors: an elastic body has 6 rigid body modes, two bodies have 12."""
_DEPENDENT = 1e-10  # what is left of a vector that the ones before it span, relative
_NOT_NULL = {"float32": 1e-4, "float64": 1e-8}  # |A v| over |A| |v|, of values rounded so


@dataclass(frozen=True)
class NullSpace:
    """An orthonormal basis of the null space of A; projections onto what is orthogonal to it."""

    basis: npt.NDArray[np.float64]
    """Shape (n, k); of the rows of this process where it has no others."""
    team: Team | None = None
    """Whose processes have a part of each vector; None: this one has all of it."""

    @classmethod
    def of(
        cls,
        given: NullSpaceLike,
        rows: int,
        team: Team | None = None,
        of_complex: bool = False,
    ) -> NullSpace | None:
        """Return the null space that a user gives; VectorError where it is none.

        Args:
            rows: of a vector. team: where vectors are those of this process's rows.
            of_complex: vectors are complex; those of the basis have real and imaginary parts.
        """
        if given is None:
            return None
        if of_complex:
            vectors = complex_span(_vectors(given, rows, np.complex128))
        else:
            vectors = _vectors(given, rows)
        return cls(_orthonormal(vectors, team), team)

    def require_of(self, A: CsrMatrix) -> None:
        """Raise MatrixError where A maps a vector to something else than 0."""
        matrix = A.to_scipy().astype(np.float64)
        image = np.abs(matrix @ self.basis).max(axis=0, initial=0.0)
        size = (abs(matrix) @ np.abs(self.basis)).max(axis=0, initial=0.0)
        for row, (found, most) in enumerate(zip(image, size, strict=True)):
            k = row // 2 if A.of_complex else row
            if found > _NOT_NULL[A.dtype.name] * most:
                raise MatrixError(
                    f"nullspace: A maps vector {k}, made orthonormal to those before it, to values "
                    f"up to {found:.1e}, where |A| |v| has {most:.1e}: it is not in the null space "
                    "of A; give vectors v with A v = 0, in the order of the rows of A, or leave "
                    "nullspace out"
                )

    def projected(self, v: Any) -> Any:
        """Return v without its part in the null space, as a new array where v lies.

        What is left of a v that lies in it, up to rounding errors, is 0.
        """
        if cuda_device(v) is not None:
            return on_gpu.without(v, self.basis)
        whole = np.asarray(v, np.float64)
        left = whole
        for _ in range(2):  # the second time for what the first one leaves by rounding
            left = left - self.basis @ self._summed(self.basis.T @ left)
        size, rest = (np.sqrt(self._summed(np.array([u @ u]))[0]) for u in (whole, left))
        if rest <= 8.0 * np.finfo(v.dtype).eps * size:
            left = np.zeros_like(left)
        return left.astype(v.dtype)

    def solution(self, x: Any, team: Team | None) -> Any:
        """Return x without its part in the null space.

        Args:
            team: whose rank 0 has all of x, the others that of their rows; None: x is as vectors
                are.
        """
        if team is None:
            return self.projected(x)

        def coefficients() -> dict[str, npt.NDArray[Any]]:
            return {"all": self.basis.T @ x}

        found = team.from_first("the part of x in the null space", coefficients)
        return (x - self.basis @ found["all"]).astype(x.dtype)

    def outside(self, b: Any, projected: Any) -> float:
        """Return the norm of what b has in the null space, over that of b; 0 for b = 0."""
        if cuda_device(b) is not None:
            part, size = float(on_gpu.norm(b - projected)), float(on_gpu.norm(b))
        else:
            whole = np.reshape(np.asarray(b, np.float64), -1)
            part, size = (
                float(np.sqrt(self._summed(np.array([u @ u]))[0]))
                for u in (whole - projected, whole)
            )
        return part / size if size > 0.0 else 0.0

    def _summed(self, part: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sums over all processes, in the order of their ranks."""
        return _sum(part, self.team)


def note_of(outside: float, dtype: npt.DTypeLike) -> list[str]:
    """Return what a user should know of a b that lies partly outside of the range of A."""
    if outside <= 1e3 * np.finfo(dtype).eps:
        return []
    return [
        f"{outside:.1e} of b lies in the null space of A, and no x removes it: x solves the system "
        "for the rest of b, and residuals are those of the rest; check the loads or sources, which "
        "have to be in balance"
    ]


def singular_note(A: CsrMatrix) -> list[str]:
    """Return a note where A maps constants, or translations, to 0."""
    if A.of_complex:
        return _constants_note(A, 2)
    if any(A.shape[0] % d == 0 and _maps_to_zero(A, d) for d in (3, 2)):
        return [
            "A maps translations to 0: A is singular, as the stiffness of an elastic body without "
            "supports is; pass its rigid body modes as nullspace, of shape (n, 3) in two "
            "dimensions and (n, 6) in three, or fix the body"
        ]
    return _constants_note(A, 1)


def _constants_note(A: CsrMatrix, parts: int) -> list[str]:
    if _maps_to_zero(A, parts):
        return [
            "every row of A sums to 0, so that A maps constants to 0: A is singular, as a graph "
            "Laplacian is, or an operator with Neumann conditions on all sides; pass "
            "nullspace='constant', or fix a value"
        ]
    return []


def _maps_to_zero(A: CsrMatrix, unknowns: int) -> bool:
    """Return whether sums over the entries of each unknown of a node are 0 in all rows."""
    if A.shape[0] < 2 * unknowns:
        return False
    tolerance = 1e3 * float(np.finfo(A.dtype).eps)
    return bool(load_core().maps_to_zero(A.indptr, A.indices, A.data, unknowns, tolerance))


def _vectors(given: Any, rows: int, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Return what is given as an array of shape (rows, k); VectorError."""
    if isinstance(given, str) and given == CONSTANT:
        return np.ones((rows, 1), dtype)
    if is_path(given):
        given = _load(given, rows)
    if cuda_device(given) is not None:
        raise VectorError("nullspace lies on a GPU: pass a copy on the host")
    if is_complex(given) and np.dtype(dtype).kind != "c":
        raise VectorError("nullspace is complex, and the system is real: pass real vectors")
    try:
        vectors = np.asarray(given, dtype)
    except (TypeError, ValueError):
        raise VectorError(
            f"nullspace is {given!r:.60}: give 'constant', or vectors as an array of shape (n, k)"
        ) from None
    if vectors.ndim == 1:
        vectors = vectors[:, None]
    if vectors.ndim != 2 or vectors.shape[0] != rows or not 1 <= vectors.shape[1] <= MOST:
        raise VectorError(
            f"nullspace has shape {np.shape(given)}, and the matrix has {rows} rows: give vectors "
            f"as an array of shape ({rows}, k), with k from 1 to {MOST}"
        )
    if not np.isfinite(vectors).all():
        raise VectorError("nullspace has a NaN or an infinity")
    return vectors


def _load(path: Any, rows: int) -> Any:
    """Return the array of a .npy file, or the vector of another one."""
    if str(path).lower().endswith(".npy"):
        try:
            return np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{path}: nullspace cannot be read: {error}", path) from None
    if os.path.exists(path):
        return load_vector(path, rows)
    raise VectorError(
        f"nullspace is {str(path)!r}: give 'constant', or a file: .npy of shape (n, k), or one "
        "vector in any format that --rhs takes"
    )


def _orthonormal(vectors: npt.NDArray[np.float64], team: Team | None) -> npt.NDArray[np.float64]:
    """Return a basis of what vectors span; VectorError where they depend on one another."""
    basis: list[npt.NDArray[np.float64]] = []
    for k, v in enumerate(vectors.T):
        size = np.sqrt(_sum(np.array([v @ v]), team)[0])
        left = v / size if size > 0.0 else v
        for _ in range(2):
            for u in basis:
                left = left - u * _sum(np.array([u @ left]), team)[0]
        rest = np.sqrt(_sum(np.array([left @ left]), team)[0])
        if rest <= _DEPENDENT:
            what = "is 0" if size == 0.0 else "is a combination of those before it"
            raise VectorError(f"nullspace: vector {k} {what}; leave it out")
        basis.append(left / rest)
    return np.stack(basis, axis=1)


def _sum(part: npt.NDArray[np.float64], team: Team | None) -> npt.NDArray[np.float64]:
    if team is None:
        return part
    total = np.zeros_like(part)
    for one in team.all_gather("sums of a null space", part.tobytes()):
        total += np.frombuffer(one, np.float64).reshape(part.shape)
    return total
