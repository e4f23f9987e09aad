"""`cg` as scipy.sparse.linalg.cg has it: signature, return value, stopping rule."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from cpufree.arguments import (
    Count,
    Engine,
    Gpus,
    Method,
    Order,
    Precision,
    Preconditioner,
    VectorLike,
)
from cpufree.calls import public
from cpufree.device_arrays import cuda_device
from cpufree.docstrings import with_parameters
from cpufree.dtypes import dtype_name, is_complex, vector_type
from cpufree.engines.choices import integer, real
from cpufree.engines.watch import ProgressLike, Watch
from cpufree.errors import CpufreeWarning, InvalidInputError, VectorError
from cpufree.matrix.given_factor import Factor
from cpufree.matrix.io.vectors import VECTOR_SUFFIXES, given_vector
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix, MatrixLike, check_shape
from cpufree.matrix.validate import check_spd_input
from cpufree.multigrid.given_levels import Levels
from cpufree.multigrid.near_nullspace import ModesLike
from cpufree.partition.part_vector import PartitionLike
from cpufree.solvers.columns import shape_of
from cpufree.solvers.nullspace import NullSpaceLike
from cpufree.solvers.once import solve
from cpufree.solvers.result import Reason
from cpufree.solvers.scipy_functions.answer_check import check_answer
from cpufree.solvers.scipy_functions.applied_function import AppliedFunction
from cpufree.solvers.scipy_functions.watched_cg import watched_cg, workload_of

# An M that misses the inverse diagonal by no more than this, relative, is Jacobi.
JACOBI_TOLERANCE = 1e-6


@public
@with_parameters
def cg(
    A: MatrixLike,
    b: VectorLike,
    x0: VectorLike | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[npt.NDArray[Any]], object] | None = None,
    method: Method = "auto",
    pc: Preconditioner | Levels | Factor | None = None,
    pc_level: int = 1,
    nullspace: NullSpaceLike = None,
    near_nullspace: ModesLike = None,
    coordinates: ModesLike = None,
    unknowns: str = "auto",
    pes: Count = "auto",
    blocks: Count = "auto",
    engine: Engine = "auto",
    gpus: Gpus = "auto",
    reorder: Order = "auto",
    partition: PartitionLike = "auto",
    partition_cache: str | os.PathLike[str] | None = None,
    check: bool = True,
    precision: Precision | None = None,
    time_limit: float | None = None,
    wait_limit: float | None = None,
    progress: ProgressLike = None,
    replace_every: int = 50,
    chebyshev_degree: int = 4,
) -> tuple[Any, int]:
    """Solve A x = b by conjugate gradients, with the signature of SciPy's `cg`.

    Parameters
    ----------
    {A}
        A LinearOperator is handed to SciPy.
    b : array, shape (n,) or (n, 1)
        Right-hand side, or the path of a file that `load_vector` reads. May lie on a GPU, as an
        array of CuPy or PyTorch; x is then one like it. `solve` takes several at once.
    x0 : array, shape (n,) or (n, 1), path of a file, or "Mb", optional
        First guess; default zero; "Mb" is M applied to b.
    {rtol, atol, maxiter}
    M : matrix, LinearOperator or callable, optional
        Approximate inverse of A, symmetric and positive definite; a callable returns M r for an r
        of shape (n,), which lies where b does, as an array of the same library. None is Jacobi; the
        residual tested is the plain one in any case. The inverse diagonal of A and the identity, as
        matrices, are recognised.
    callback : callable, optional
        Called as callback(xk) after each iteration.
    pc : {"auto", "jacobi", "chebyshev", "fsai", "amg", "none"}, optional
        Preconditioner, as in `solve`; default "jacobi". Not together with M.
    {nullspace, near_nullspace, coordinates, unknowns, pc_level, method, engine, gpus}
    {pes, blocks, partition, partition_cache}
    {reorder, check, precision, time_limit, wait_limit, progress, replace_every, chebyshev_degree}

    Returns
    -------
    x : array, shape (n,)
        The solution, or the last iterate.
    info : int
        0 if converged, else the number of iterations (at least 1).

    Raises
    ------
    InvalidInputError
        And its kinds, for what cannot be solved.
    KeyboardInterrupt
        On Ctrl-C.

    Warns
    -----
    CpufreeWarning
        Where the solve ended for another reason than maxiter, and for whatever else is noteworthy;
        `solve` returns all that as a Result.

    Notes
    -----
    A callback, another M and an A given as LinearOperator need the host in every iteration: then
    SciPy's own `cg` runs, and a CpufreeWarning says so. b - A x is computed at its end: where that
    is above the tolerance, the loop goes on from x.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.diags([-np.ones(99), 2 * np.ones(100), -np.ones(99)], [-1, 0, 1], format="csr")
    >>> x, info = cpufree.cg(A, np.ones(100), rtol=1e-10)
    >>> info
    0
    >>> bool(np.allclose(A @ x, 1.0))
    True
    """
    if M is not None and pc is not None:
        raise InvalidInputError("both M and pc are given: leave one of them out")
    if M is not None and not hasattr(M, "shape"):
        if not callable(M):
            raise InvalidInputError(
                f"M is {M!r}: give a matrix, a LinearOperator or a function that applies an "
                "approximate inverse of A, or name a preconditioner with pc"
            )
        A = A if isinstance(A, LinearOperator) else as_csr(A)
        M = AppliedFunction(M, b, A.shape[0])
    extras: dict[str, Any] = {
        "method": method,
        "pes": pes,
        "blocks": blocks,
        "engine": engine,
        "gpus": gpus,
        "reorder": reorder,
        "partition": partition,
        "partition_cache": partition_cache,
        "precision": precision,
        "time_limit": time_limit,
        "wait_limit": wait_limit,
        "nullspace": nullspace,
        "near_nullspace": near_nullspace,
        "coordinates": coordinates,
    }
    require_one(b)
    host = host_reason(A, M, callback)
    if not host and M is not None:
        A = as_csr(A).as_complex() if is_complex(b) else as_csr(A)
        pc = recognise(M, A)
        host = "" if pc else "this M is not Jacobi's and is applied on the host"
    if isinstance(x0, str):
        x0 = guess_from_name(x0, b, M)
    if host:
        reject_extras(host, progress, extras)
        if isinstance(M, AppliedFunction):
            solved = host_cg(A, M.b, x0, rtol, atol, maxiter, M, callback, pc, check, host)
            return M.beside_b(solved[0]), solved[1]
        return host_cg(A, b, x0, rtol, atol, maxiter, M, callback, pc, check, host)
    extras |= {"rtol": rtol, "atol": atol, "maxiter": maxiter, "check": check}
    extras |= {"pc_level": pc_level, "unknowns": unknowns}
    extras |= {"replace_every": replace_every, "chebyshev_degree": chebyshev_degree}
    return device_cg(A, b, progress, x0=x0, pc=pc or "jacobi", **extras)


def require_one(b: Any) -> None:
    """Raise VectorError for several right-hand sides."""
    shape = shape_of(b)
    if len(shape) == 2 and min(shape) > 1:
        raise VectorError(
            f"b has shape {shape}: cg takes one right-hand side, as SciPy's; cpufree.solve and "
            "Solver.solve take a column for each of several"
        )


def device_cg(
    A: Any, b: Any, progress: ProgressLike, show: bool = False, **options: Any
) -> tuple[Any, int]:
    """Solve without the host; turn what SciPy's return value cannot tell into warnings.

    `show`: the report is printed.
    """
    watch = Watch(progress)
    result = solve(A, b, progress=watch, **options)
    if watch.interrupted:
        raise KeyboardInterrupt
    if not result.converged and result.reason is not Reason.DIVERGED_ITS:
        warn(f"not converged: {result.reason}, {result.reason.meaning}", stacklevel=5)
    for note in result.warnings:
        warn(note, stacklevel=5)
    if show:
        print(result)
    return result.x.reshape(-1), result.info


def host_reason(A: Any, M: Any, callback: object) -> str:
    """Return why the host must drive the iterations, "" if it need not."""
    if callback is not None:
        return (
            "callback(x) is called on the host in every iteration; progress=f, called as "
            "f(iteration, residual) now and then, is free"
        )
    if isinstance(A, LinearOperator):
        return "A is a LinearOperator, whose entries are not known"
    if isinstance(M, AppliedFunction):
        return M.cost()
    if M is not None and not (sp.issparse(M) or isinstance(M, np.ndarray)):
        return "M is not a matrix; pc='jacobi', 'fsai' and others need no host"
    return ""


def recognise(M: Any, A: CsrMatrix) -> str | None:
    """Return the preconditioner that a matrix M is: "jacobi", "none", or None for another one."""
    if M.shape != A.given_shape:
        raise InvalidInputError(f"M has shape {M.shape}, A has {A.given_shape}: they must be equal")
    if M.dtype.kind not in ("fiubc" if A.of_complex else "fiub"):
        raise InvalidInputError(
            f"M has dtype {M.dtype}; it must hold real numbers, such as float64"
        )
    coo = sp.coo_array(M)
    coo.sum_duplicates()
    if np.any((coo.row != coo.col) & (coo.data != 0)):
        return None
    scale = coo.diagonal().astype(A.given_dtype)
    if np.all(scale == 1.0):
        return "none"
    # The diagonal's size: systems of other methods have entries below 0, which Jacobi takes so.
    product = scale * np.abs(A.given().diagonal())
    return "jacobi" if np.allclose(product, 1.0, rtol=0.0, atol=JACOBI_TOLERANCE) else None


def guess_from_name(name: str, b: Any, M: Any) -> Any:
    """Return the first guess that SciPy calls "Mb": M applied to b."""
    if name != "Mb":
        if name.lower().endswith(VECTOR_SUFFIXES):
            return name  # of a file
        raise InvalidInputError(f"x0 is {name!r}: give an array, None, 'Mb', or a file")
    if M is None:
        return b
    if cuda_device(b) is not None:
        raise InvalidInputError("x0 is 'Mb', and b lies on a GPU: pass the array M @ b as x0")
    kind = np.complex128 if is_complex(b) else np.float64
    return M @ given_vector(b, M.shape[-1], kind, "b")


def reject_extras(why: str, progress: ProgressLike, extras: dict[str, Any]) -> None:
    """Raise InvalidInputError for options that SciPy's loop cannot honour."""
    # Lists of devices may be arrays, whose comparison is one.
    given = [
        n for n, v in extras.items() if not (v is None or (isinstance(v, str) and v == "auto"))
    ]
    given += ["progress"] if progress is not None else []
    if given:
        raise InvalidInputError(
            f"{', '.join(given)} cannot be used here, as the host drives the iterations: {why}"
        )


def host_cg(
    A: MatrixLike,
    b: VectorLike,
    x0: Any,
    rtol: float,
    atol: float,
    maxiter: int | None,
    M: Any,
    callback: Callable[[npt.NDArray[Any]], object] | None,
    pc: str | Levels | Factor | None,
    check: bool,
    why: str,
) -> tuple[npt.NDArray[Any], int]:
    """Run SciPy's cg, with Jacobi where M is None, after the usual checks."""
    if cuda_device(b) is not None:
        raise InvalidInputError(
            f"b lies on a GPU, but SciPy's cg would have to solve this on the host: {why}"
        )
    if not (callback is None or callable(callback)):
        raise InvalidInputError(f"callback is {callback!r}: give a function, or None")
    tolerances = {"rtol": rtol, "atol": atol}
    how: dict[str, Any] = {n: real(n, value, infinite=True) for n, value in tolerances.items()}
    how["maxiter"] = None if maxiter is None else integer("maxiter", maxiter)
    matrix = None if isinstance(A, LinearOperator) else as_csr(A)
    if matrix is None:
        check_operator(A, pc)
    else:
        matrix = matrix.as_complex() if is_complex(b) else matrix
        if check:
            check_spd_input(matrix)
        if M is None:
            M = jacobi(matrix, pc)
        A = matrix.given()
    if M is not None and tuple(M.shape) != tuple(A.shape):
        raise InvalidInputError(f"M has shape {M.shape}, A has {A.shape}: they must be equal")
    right, guess = host_vectors(A, b, x0)
    warn(f"SciPy's cg, driven by the host, solves this: {why}", stacklevel=5)
    norm = residual_norm(A, matrix, right, how)
    x, iterations, reason, left = watched_cg(
        A, right, guess, M, callback, norm_of_residual=norm, **how
    )
    if reason.converged:
        return x, 0
    if reason is not Reason.DIVERGED_ITS:
        what = f"{reason}, {reason.meaning}; b - A x has norm {left:.3g}"
        warn(f"not converged: {what}", stacklevel=5)
    return x, max(1, iterations)


def residual_norm(
    A: Any, matrix: CsrMatrix | None, b: Any, how: Mapping[str, Any]
) -> Callable[[Any], float]:
    """Return a function of x that gives ‖b - A x‖₂, of a matrix as exactly as that matters."""
    right = np.reshape(b, -1)
    if matrix is None:
        return lambda x: float(np.linalg.norm(right - np.reshape(A.matvec(x), -1)))
    entries, workload = matrix, workload_of(right, how["rtol"], how["atol"])
    return lambda x: check_answer(entries, right, x, workload).norm


def check_operator(A: LinearOperator, pc: str | Levels | Factor | None) -> None:
    """Refuse what an A whose entries are not known cannot have."""
    check_shape(A.shape)
    if pc not in (None, "none"):
        raise InvalidInputError(
            f"pc={pc!r} needs the entries of A, which a LinearOperator does not have: give M"
        )


def host_vectors(A: Any, b: Any, x0: Any) -> tuple[Any, Any]:
    """Return b and x0 as SciPy takes them, complex where A or b is."""
    singles = ("float32", "complex64")
    single = dtype_name(A) in singles and dtype_name(b) in singles
    dtype = vector_type(np.float32 if single else np.float64, is_complex(A) or is_complex(b))
    n = A.shape[0]
    guess = None if x0 is None else given_vector(x0, n, dtype, "x0")
    return given_vector(b, n, dtype, "b"), guess


def jacobi(A: CsrMatrix, pc: str | Levels | Factor | None) -> LinearOperator | None:
    """Return the preconditioner pc as SciPy takes it."""
    if pc == "none":
        return None
    if pc not in (None, "jacobi"):
        raise InvalidInputError(f"pc={pc!r} cannot be used with a callback: use 'jacobi' or 'none'")
    sizes = np.abs(A.given().diagonal())  # entries below 0 are those of other methods than cg
    inverse = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    return LinearOperator(
        A.given_shape, matvec=lambda r: inverse * np.ravel(r), dtype=A.given_dtype
    )


def warn(text: str, stacklevel: int) -> None:
    """Give a CpufreeWarning at the line that called cg."""
    warnings.warn(text, CpufreeWarning, stacklevel=stacklevel)
