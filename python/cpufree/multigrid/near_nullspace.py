"""What multigrid is told of a system: vectors that A nearly maps to 0, and the nodes of its rows.

Coarse levels have to represent what a smoother leaves over: constants for one unknown a node, the
rigid body modes for displacements of an elastic body. (Vaněk, Mandel & Brezina 1996, "Algebraic
multigrid by smoothed aggregation for second and fourth order elliptic problems".)
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cpufree import options as schema
from cpufree.dtypes import is_complex
from cpufree.engines import choices
from cpufree.errors import FileFormatError, VectorError
from cpufree.matrix.io.vectors import is_path
from cpufree.matrix.problem import CsrMatrix
from cpufree.multigrid.given_levels import Levels
from cpufree.partition.compressed_graph import compress_graph

ModesLike: TypeAlias = str | os.PathLike[str] | npt.ArrayLike | None
"""What users give: an array, the path of a .npy file or of a text file of numbers, or None."""

MOST = 6
"""Vectors: the rigid body modes of a body in three dimensions."""
_DEPENDENT = 1e-10  # what is left of a vector that the ones before it span, relative
_LOOKED_AT = 4096
"""Places of a matrix where nodes are looked for before all rows are looked at."""
Doubles: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Modes:
    """The near-null space of a matrix."""

    vectors: Doubles
    """Shape (n, k)."""
    node: npt.NDArray[np.int32] | None
    """The node of each row, shape (n,); None: each row is one."""
    why: str
    """What they are, in words."""


@dataclass(frozen=True)
class ModesGiven:
    """What a user says of the near-null space; it is looked at along with the matrix."""

    near_nullspace: ModesLike = None
    coordinates: ModesLike = None
    unknowns: str = "auto"
    levels: Levels | None = None
    """Those from outside, in place of levels that represent any of these."""

    def __post_init__(self) -> None:
        choices.valid(schema.UNKNOWNS, self.unknowns)
        if self.near_nullspace is not None and self.coordinates is not None:
            raise VectorError(
                "both near_nullspace and coordinates are given: leave one of them out"
            )

    @property
    def nothing(self) -> bool:
        """Whether all is left to the matrix."""
        return (
            self.near_nullspace is None
            and self.coordinates is None
            and self.unknowns == "auto"
            and self.levels is None
        )

    def digest(self) -> str:
        """Return what tells it from another one, so that several processes can compare."""
        found = hashlib.sha256(self.unknowns.encode())
        found.update(b"" if self.levels is None else self.levels.digest())
        for name in ("near_nullspace", "coordinates"):
            given = getattr(self, name)
            kind = np.complex128 if is_complex(given) else np.float64
            found.update(b"none" if given is None else _array(given, name, kind).tobytes())
        return found.hexdigest()[:16]

    def of(self, A: CsrMatrix) -> Modes | None:
        """Return what the levels of multigrid of A have to represent; None: the constant.

        Raises VectorError, and FileFormatError for a file, where it cannot be used.
        """
        if A.of_complex:
            return self._of_complex(A)
        n = A.shape[0]
        if self.coordinates is not None:
            return _rigid_body_modes(_array(self.coordinates, "coordinates"), n, self.unknowns)
        each = _unknowns_of_a_node(A, self.unknowns)
        node = _nodes(n, each, self.unknowns) if each > 1 else None
        if self.near_nullspace is not None:
            vectors = _vectors(_array(self.near_nullspace, "near_nullspace"), n)
            return Modes(vectors, node, f"{vectors.shape[1]} vectors of a near-null space")
        if node is None:
            return None
        component = np.arange(n) // (n // each) if self.unknowns == "by component" else None
        which = np.arange(n) % each if component is None else component
        vectors = (which[:, None] == np.arange(each)).astype(np.float64)
        return Modes(
            vectors,
            node,
            f"{each} translations, for A has {each} unknowns a node; the coordinates of the nodes "
            "(coordinates) or a near-null space (near_nullspace) serve elastic bodies better",
        )

    def _of_complex(self, A: CsrMatrix) -> Modes:
        """Return what levels of a complex matrix represent: a node is a number with its parts."""
        if self.coordinates is not None or self.unknowns != "auto":
            raise VectorError(
                "coordinates and unknowns are for real systems, and A is complex: give the modes "
                "themselves as near_nullspace, complex numbers of shape (n, k)"
            )
        n = A.given_shape[0]
        node = np.arange(2 * n, dtype=np.int32) // np.int32(2)
        why = "the complex constant"
        if self.near_nullspace is None:
            vectors = complex_span(np.ones((n, 1)))
        else:
            given = _array(self.near_nullspace, "near_nullspace", np.complex128)
            vectors = complex_span(_vectors(given, n, MOST // 2))
            why = f"{given.shape[1]} complex vectors of a near-null space"
        return Modes(vectors, node, why)


def complex_span(vectors: npt.NDArray[Any]) -> Doubles:
    """Return vectors of real and imaginary parts in turn that span what complex ones do.

    Of v they are v and i v; shape (n, k) becomes (2 n, 2 k).
    """
    both = np.stack((vectors, 1j * vectors), axis=2).reshape(len(vectors), -1)
    parts = np.stack((both.real, both.imag), axis=1)
    return np.ascontiguousarray(parts.reshape(2 * len(vectors), -1))


def _array(given: Any, name: str, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Return what is given as an array of finite numbers with two axes."""
    if is_path(given):
        given = _load(given, name)
    if is_complex(given) and np.dtype(dtype).kind != "c":
        raise VectorError(f"{name} is complex, and the system is real: pass real numbers")
    try:
        array = np.asarray(given, dtype=dtype)
    except (TypeError, ValueError):
        raise VectorError(f"{name} is no array of numbers") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise VectorError(f"{name} has shape {array.shape}: give an array with two axes")
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        raise VectorError(f"{name}[{row}, {column}] is {array[row, column]}: all must be finite")
    return array


def _load(path: Any, name: str) -> Any:
    try:
        if str(path).lower().endswith(".npy"):
            return np.load(path, allow_pickle=False)
        return np.loadtxt(
            path, delimiter="," if str(path).lower().endswith(".csv") else None, ndmin=2
        )
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: {name} cannot be read: {error}", path) from None


def _vectors(vectors: npt.NDArray[Any], n: int, most: int = MOST) -> npt.NDArray[Any]:
    """Return vectors that are given, at most `most`, once they can be used."""
    rows, k = vectors.shape
    if rows != n or not 1 <= k <= most:
        raise VectorError(
            f"near_nullspace has shape {vectors.shape}: give 1 to {most} vectors of the {n} rows "
            f"of A, shape ({n}, k)"
        )
    sizes = np.linalg.norm(vectors, axis=0)
    if not sizes.all():
        raise VectorError(f"near_nullspace: vector {int(np.argmin(sizes))} is 0; leave it out")
    left = np.abs(np.diag(np.linalg.qr(vectors / sizes, mode="r")))
    if k > n or (left <= _DEPENDENT).any():
        which = int(np.argmax(left <= _DEPENDENT)) if k <= n else n
        raise VectorError(
            f"near_nullspace: vector {which} is a combination of those before it; leave it out"
        )
    return np.ascontiguousarray(vectors)


def _rigid_body_modes(points: Doubles, n: int, unknowns: str) -> Modes:
    """Return the translations and rotations of nodes with as many unknowns as coordinates."""
    nodes, axes = points.shape
    if axes not in (2, 3) or nodes * axes != n:
        raise VectorError(
            f"coordinates has shape {points.shape}, and A has {n} rows: give 2 or 3 coordinates "
            "for each node, with as many unknowns a node in A; where unknowns have been removed, "
            "or a node has others, give the modes themselves as near_nullspace, of shape (n, k)"
        )
    centred = points - points.mean(axis=0)
    centred /= np.abs(centred).max(initial=0.0) or 1.0
    modes = np.zeros((nodes, axes, 3 if axes == 2 else 6))
    for k in range(axes):
        modes[:, k, k] = 1.0
    for k, (a, b) in enumerate(((0, 1),) if axes == 2 else ((0, 1), (1, 2), (2, 0))):
        modes[:, a, axes + k] = -centred[:, b]
        modes[:, b, axes + k] = centred[:, a]
    by_component = unknowns == "by component"
    vectors = (modes.transpose(1, 0, 2) if by_component else modes).reshape(n, -1)
    turning = np.ones(vectors.shape[1], bool)
    if nodes < axes:  # too few to tell rotations from translations
        turning[axes:] = False
    return Modes(
        np.ascontiguousarray(vectors[:, turning]),
        _nodes(n, axes, unknowns),
        f"{int(turning.sum())} rigid body modes of {nodes} nodes",
    )


def _nodes(n: int, each: int, unknowns: str) -> npt.NDArray[np.int32]:
    rows = np.arange(n, dtype=np.int32)
    return rows % np.int32(n // each) if unknowns == "by component" else rows // np.int32(each)


def _unknowns_of_a_node(A: CsrMatrix, unknowns: str) -> int:
    """Return how many rows in succession, or far apart, are one node: 3, 2 or 1.

    They are told by their columns, which are the same.
    """
    n = A.shape[0]
    if unknowns == "by component":
        return _components(A)
    possible = [e for e in (3, 2) if n % e == 0 and n > e and _may_be_nodes(A, e)]
    vertex = np.asarray(compress_graph(A).vertex) if possible else np.empty(0, np.int64)
    for each in possible:
        alike = (vertex.reshape(-1, each) == vertex[::each, None]).all(axis=1)
        size = np.bincount(vertex)
        if 2 * np.count_nonzero(alike & (size[vertex[::each]] == each)) > n // each:
            return each
    if unknowns == "by node":
        raise VectorError(
            "unknowns is 'by node', but rows of A do not come in twos or threes with the same "
            "columns: give near_nullspace"
        )
    return 1


def _may_be_nodes(A: CsrMatrix, each: int) -> bool:
    """Return whether rows in succession look alike in a quarter of some places of A, or more.

    That more than half of them are is asked of all rows afterwards, which takes as long as a GPU
    takes to set the matrix up.
    """
    groups = A.shape[0] // each
    rows = each * np.arange(0, groups, max(1, groups // _LOOKED_AT))
    begins = [A.indptr[rows + k].astype(np.intp) for k in range(each + 1)]
    alike = np.ones(len(rows), bool)
    for begin, end in pairwise(begins):
        alike &= (end - begin == begins[1] - begins[0]) & (end > begin)
    which = np.flatnonzero(alike)
    first = [A.indices[begin[which]] for begin in begins[:-1]]
    same = np.logical_and.reduce([column == first[0] for column in first])
    return bool(4 * np.count_nonzero(same) >= len(rows))


def _components(A: CsrMatrix) -> int:
    """Return how many components A has, each of which has the same columns in its rows."""
    n = A.shape[0]
    for each in (3, 2):
        if n % each:
            continue
        lengths = np.diff(A.indptr).reshape(each, -1)
        if (lengths == lengths[0]).all():
            return each
    raise VectorError(
        "unknowns is 'by component', but A is not 2 or 3 times as many rows with the same columns: "
        "give near_nullspace"
    )
