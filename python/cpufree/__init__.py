"""cpufree: sparse systems A x = b, A symmetric positive definite, solved by persistent kernels.

    x, info = cpufree.cg(A, b)      # as scipy.sparse.linalg.cg
    result = cpufree.solve(A, b)    # with a report
    with cpufree.Solver(A) as solver: ...  # set up once, solve often
    x = cpufree.torch.solve(A, b)   # a tensor that PyTorch differentiates; cpufree.jax likewise
    result = cpufree.stencil.jacobi(u0, 1000)  # iterations on a grid
    @cpufree.program                # NumPy-style updates of grids, compiled to one kernel
    cpufree.solve(A, b, trace="out.pftrace")  # what each block sends and waits for
    with cpufree.triggered.Domain(pes=2) as domain: ...  # puts that running kernels fire

Names are loaded when first used: importing the package is quick and needs no GPU.
"""

from __future__ import annotations

TYPE_CHECKING = False  # without `typing`: a command is to answer Ctrl-C as soon as it can
if TYPE_CHECKING:
    from typing import Any

    from cpufree import amg, errors, factors, generate, stencil, trace, triggered
    from cpufree.compiler.decorated import program
    from cpufree.errors import (
        CpufreeError,
        CpufreeWarning,
        EngineError,
        InvalidInputError,
        MatrixError,
        NotConvergedError,
        NotEnoughGpusError,
        ProgramError,
        RankFailedError,
        UnsupportedError,
        VectorError,
        WaitTimeoutError,
    )
    from cpufree.matrix.io.vectors import load_vector, save_vector
    from cpufree.matrix.load import load_matrix, open_rows
    from cpufree.matrix.rows import RowSlab
    from cpufree.matrix.save import save_matrix
    from cpufree.partition.files import load_partition, save_partition
    from cpufree.solvers.many.result import ManyResult
    from cpufree.solvers.many.solve_many import solve_many
    from cpufree.solvers.once import solve
    from cpufree.solvers.result import Reason, Result
    from cpufree.solvers.scipy_functions.cg import cg
    from cpufree.solvers.scipy_functions.others import bicgstab, minres
    from cpufree.solvers.solver import Solver

__all__ = [
    "CpufreeError",
    "CpufreeWarning",
    "EngineError",
    "InvalidInputError",
    "ManyResult",
    "MatrixError",
    "NotConvergedError",
    "NotEnoughGpusError",
    "ProgramError",
    "RankFailedError",
    "Reason",
    "Result",
    "RowSlab",
    "Solver",
    "UnsupportedError",
    "VectorError",
    "WaitTimeoutError",
    "__version__",
    "amg",
    "bicgstab",
    "cg",
    "errors",
    "factors",
    "generate",
    "load_matrix",
    "load_partition",
    "load_vector",
    "minres",
    "open_rows",
    "program",
    "save_matrix",
    "save_partition",
    "save_vector",
    "solve",
    "solve_many",
    "stencil",
    "trace",
    "triggered",
]

# Where each public name is found: module, or "" for a module of that name.
_HOMES = {
    "amg": "",
    "errors": "",
    "factors": "",
    "generate": "",
    "stencil": "",
    "trace": "",
    "triggered": "",
    # Not of __all__: they need what may not be installed.
    "jax": "",
    "torch": "",
    "Solver": "solvers.solver",
    "solve": "solvers.once",
    "solve_many": "solvers.many.solve_many",
    "ManyResult": "solvers.many.result",
    "cg": "solvers.scipy_functions.cg",
    **dict.fromkeys(("minres", "bicgstab"), "solvers.scipy_functions.others"),
    "program": "compiler.decorated",
    **dict.fromkeys(("Reason", "Result"), "solvers.result"),
    "RowSlab": "matrix.rows",
    **dict.fromkeys(("load_matrix", "open_rows"), "matrix.load"),
    "save_matrix": "matrix.save",
    **dict.fromkeys(("load_vector", "save_vector"), "matrix.io.vectors"),
    **dict.fromkeys(("load_partition", "save_partition"), "partition.files"),
    **dict.fromkeys((name for name in __all__ if name.endswith(("Error", "Warning"))), "errors"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _HOMES:
        from importlib import import_module

        module = import_module(f"{__name__}.{_HOMES[name] or name}")
        value = getattr(module, name) if _HOMES[name] else module
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _version() -> str:
    """Return the version of the installed package, or that of the extension in a copied one.

    Both are from pyproject.toml. A bare source tree without the extension has none: "unknown".
    """
    from importlib import import_module
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cpufree")
    except PackageNotFoundError:
        pass
    try:
        core = import_module(f"{__name__}._core")
    except ImportError:
        return "unknown"
    return str(getattr(core, "__version__", "unknown"))
