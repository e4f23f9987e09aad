"""PETSc's GAMG, and hypre's BoomerAMG through PETSc, as preconditioners of conjugate gradients."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from cpufree.errors import UnsupportedError

PRECONDITIONERS = {
    "gamg": {"pc_type": "gamg"},
    "hypre": {"pc_type": "hypre", "pc_hypre_type": "boomeramg"},
}
"""Options of PETSc, which has its own defaults for the rest."""
BUILD = "bench/peers/build_petsc.sh DIR builds it, and . DIR/env.sh finds it"


def solve(
    A: Any, b: np.ndarray, name: str, rtol: float, points: np.ndarray | None = None
) -> dict[str, Any]:
    """Solve A x = b from x = 0, on one rank.

    A: sparse, (n, n); b: (n,). `points`: coordinates of the nodes, (n / 3, 3), of a system by node.
    Returns x (n,), iterations, reason, and seconds of the set-up and of all.

    Raises:
        UnsupportedError: PETSc is not installed, or was built without what is asked for.
    """
    PETSc = _petsc()
    if name == "hypre" and not PETSc.Sys.hasExternalPackage("hypre"):
        raise UnsupportedError("this PETSc was built without hypre: configure --download-hypre")
    rows = sp.csr_matrix(A, dtype=np.float64)
    rows.sort_indices()
    options = PETSc.Options()
    prefix = f"multigrid_{name}_"
    for option, value in PRECONDITIONERS[name].items():
        options[prefix + option] = value
    begin = time.perf_counter()
    kind = PETSc.IntType
    csr = (rows.indptr.astype(kind), rows.indices.astype(kind), rows.data)
    matrix = PETSc.Mat().createAIJ(size=rows.shape, csr=csr, comm=PETSc.COMM_SELF)
    matrix.setOption(PETSc.Mat.Option.SPD, True)
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    if points is not None:
        nodes = PETSc.Vec().createWithArray(points.ravel(), bsize=3, comm=PETSc.COMM_SELF)
        matrix.setBlockSize(3)
        matrix.setNearNullSpace(PETSc.NullSpace().createRigidBody(nodes))
    ksp.setOperators(matrix)
    ksp.setType("cg")
    ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
    ksp.setTolerances(rtol=rtol, atol=0.0, max_it=1000)
    ksp.setOptionsPrefix(prefix)
    ksp.setFromOptions()
    ksp.setUp()
    ready = time.perf_counter()
    x, given = matrix.createVecs()
    given.setArray(b)
    ksp.solve(given, x)
    end = time.perf_counter()
    found = {
        "x": x.getArray().copy(),
        "iterations": int(ksp.getIterationNumber()),
        "reason": "converged" if ksp.getConvergedReason() > 0 else "not converged",
        "setup_seconds": ready - begin,
        "seconds": end - begin,
        "version": "PETSc " + ".".join(map(str, PETSc.Sys.getVersion())),
    }
    for one in (ksp, x, given, matrix):
        one.destroy()
    return found


def _petsc() -> Any:
    try:
        return importlib.import_module("petsc4py.PETSc")
    except ImportError as error:
        raise UnsupportedError(f"needs PETSc and petsc4py: {BUILD} ({error})") from None
