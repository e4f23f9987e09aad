"""A benchmark's problem as the harness leaves it for its contenders: a folder of NumPy arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.bench.core.problem_folder import read_arrays
from cpufree.errors import FileFormatError, InvalidInputError, UnsupportedError

MOST_32_BIT = 2**31 - 1


@dataclass(frozen=True)
class Problem:
    """A x = b, and who owns which row. Arrays are mapped, not read.

    indptr (n + 1), indices and data (nonzeros): CSR, sorted in each row. b (n), of data's type.
    part (n): the PE of each row; order (n): the rows in the order of local numbers. Both None where
    there is none.
    """

    name: str
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    b: np.ndarray
    part: np.ndarray | None
    order: np.ndarray | None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.b)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal (n); zero where no entry is stored."""
        # Entry by entry of the pattern, without a copy of the values.
        row = np.repeat(np.arange(self.rows, dtype=np.int32), np.diff(self.indptr))
        at = np.flatnonzero(row == self.indices)
        values = np.zeros(self.rows, self.data.dtype)
        values[row[at]] = self.data[at]
        return values


def read_problem(folder: Path) -> Problem:
    """Return the problem in folder.

    Raises:
        FileFormatError: a file is missing or damaged.
        InvalidInputError: the arrays do not fit together.
    """
    try:
        name = str(json.loads((folder / "problem.json").read_text())["name"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        file = folder / "problem.json"
        raise FileFormatError(f"{file} cannot be used: {error!r}", file) from None
    a = read_arrays(folder)
    b = a.b.astype(a.data.dtype)
    problem = Problem(name, a.indptr, a.indices, a.data, b, a.part, a.order)
    complaint = _complaint(problem)
    if complaint:
        raise InvalidInputError(f"problem in {folder}: {complaint}")
    return problem


def _complaint(given: Problem) -> str | None:
    """Return what is wrong with the arrays, None if nothing is."""
    n, nnz = given.rows, len(given.indices)
    if n == 0:
        return "b is empty"
    if given.indptr.shape != (n + 1,) or given.indptr[0] != 0 or given.indptr[-1] != nnz:
        return f"indptr does not start at 0, have {n + 1} values and end at {nnz}"
    if np.any(np.diff(given.indptr) < 0):
        return "indptr decreases"
    if given.data.shape != (nnz,) or given.data.dtype not in (np.float32, np.float64):
        return f"data is not {nnz} values of float64 or float32"
    if nnz and not 0 <= given.indices.min() <= given.indices.max() < n:
        return f"indices are not all between 0 and {n - 1}"
    if given.part is not None and (given.part.shape != (n,) or given.part.min() < 0):
        return f"part is not {n} PEs, counted from 0"
    if given.order is not None and not np.array_equal(np.sort(given.order), np.arange(n)):
        return f"order is not a permutation of {n} rows"
    return None


def one_gpu(options: dict[str, Any], solver: str) -> int:
    """Return the number of the only GPU that the options ask for.

    Raises:
        UnsupportedError: more than one PE is asked for.
    """
    pes = int(options.get("pes", 1))
    if pes != 1:
        raise UnsupportedError(f"{solver} uses one GPU; {pes} PEs are asked for")
    return int((options.get("gpus") or [0])[0])


def jacobi_asked(options: dict[str, Any]) -> bool:
    """Return whether the options ask for Jacobi.

    Raises:
        UnsupportedError: they ask for another preconditioner than Jacobi or none.
    """
    name = options.get("preconditioner", "none")
    if name not in ("none", "jacobi"):
        raise UnsupportedError(f"preconditioner {name!r}; none and jacobi are known")
    return bool(name == "jacobi")


def inverse_diagonal(problem: Problem) -> np.ndarray:
    """Return Jacobi's preconditioner, the inverse diagonal (n).

    Raises:
        InvalidInputError: a diagonal entry is missing or not positive.
    """
    diagonal = problem.diagonal()
    bad = np.flatnonzero(~(diagonal > 0))
    if bad.size:
        raise InvalidInputError(f"Jacobi needs a positive diagonal; that of row {bad[0]} is not")
    return 1 / diagonal


@dataclass(frozen=True)
class Limits:
    """When a solve ends: after exactly `iterations`, or by rtol and max_iterations (None there)."""

    rtol: float
    most: int
    exact: bool

    def reason(self, done: int, converged: bool, finite: bool) -> str:
        """Return why a solve has ended, by PETSc's names."""
        if not finite:
            return "DIVERGED_NANORINF"
        if self.exact and done == self.most:
            return "CONVERGED_ITS"
        if self.exact:
            return "CONVERGED_ATOL"  # a residual of zero: nothing is left to iterate on
        return "CONVERGED_RTOL" if converged else "DIVERGED_ITS"


def read_limits(request: dict[str, Any], methods: tuple[str, ...], solver: str) -> Limits:
    """Return the limits of a request to solve.

    Raises:
        UnsupportedError: its method or variant is none of the solver's.
        InvalidInputError: a limit is missing or senseless.
    """
    method, variant = request.get("method", "cg"), request.get("variant", "full")
    if method not in methods:
        raise UnsupportedError(f"{solver} has no method {method!r}, only {', '.join(methods)}")
    if variant != "full":
        raise UnsupportedError(f"{solver} has no variant {variant!r}, only full")
    exact = request.get("iterations") is not None
    try:
        most = int(request["iterations" if exact else "max_iterations"])
        rtol = 0.0 if exact else float(request["rtol"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"a solve needs iterations, or rtol and max_iterations: {error!r}"
        ) from None
    if most < 1 or not 0 <= rtol < 1:
        raise InvalidInputError(
            f"iterations are from 1, rtol is from 0 to below 1; not {most}, {rtol}"
        )
    return Limits(rtol, most, exact)
