"""One rank's share of a system in PETSc."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from petsc_layout import METHODS, numbering, reason_name, rows_of, solve_options, start_options
from problem_folder import Limits, inverse_diagonal, jacobi_asked, read_limits, read_problem

from cpufree.errors import InvalidInputError, UnsupportedError

BUILD = "bench/peers/build_petsc.sh DIR builds it, and . DIR/env.sh finds it"
NOTES = [
    "prcg: PETSc has no prcg; cg with -ksp_cg_single_reduction stands in its place",
    "pipecg: its reduction overlaps only where MPI makes progress on its own",
]


class PetscSolver:
    """The system, distributed; every method is collective. device: auto, cpu or cuda."""

    def __init__(self, comm: Any, device: str, user_options: dict[str, str]) -> None:
        self._comm, self._device, self._user = comm, device, user_options
        self._petsc: Any = None
        self._ksp: Any = None
        self._gpu: int | None = None
        self._objects: list[Any] = []

    def load(self, folder: str, options: dict[str, Any]) -> dict[str, Any]:
        """Distribute the system in folder as its partition says; return facts."""
        self.close()
        ranks, rank = self._comm.size, self._comm.rank
        pes = int(options.get("pes", 1))
        if pes != ranks:
            raise InvalidInputError(f"{pes} PEs are asked for, but mpirun started {ranks} ranks")
        self._jacobi = jacobi_asked(options)
        self._start(options.get("gpus"))
        problem = read_problem(Path(folder))
        if problem.data.dtype != self._petsc.ScalarType:
            kind = np.dtype(self._petsc.ScalarType).name
            raise UnsupportedError(f"this PETSc computes with {kind}, not {problem.data.dtype}")
        if self._jacobi:
            inverse_diagonal(problem)  # PETSc would silently take 1 where it is zero
        numbers = numbering(problem, ranks)
        rows = rows_of(problem, numbers, rank)
        self._numbers, self._mine = numbers, slice(*numbers.first[rank : rank + 2])
        begin = time.perf_counter()
        self._assemble(problem.rows, rows, problem.b[numbers.old_of_new[self._mine]])
        self._run("cg", Limits(rtol=0.0, most=3, exact=True))  # warms up
        return {**self._facts(), "setup_seconds": time.perf_counter() - begin}

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve from zero; return seconds, iterations, reason and residual."""
        limits = read_limits(request, tuple(METHODS), "PETSc")
        if self._ksp is None:
            raise InvalidInputError("nothing is loaded: a solve needs a load before it")
        method = request.get("method", "cg")
        if method != self._warm:  # allocates and compiles what the method needs
            self._run(method, Limits(rtol=0.0, most=3, exact=True))
        seconds = self._run(method, limits)
        if request.get("save"):
            self._save(request["save"])
        reason = self._ksp.getConvergedReason()
        residual = float(self._ksp.getResidualNorm())
        return {
            "seconds": seconds,
            "iterations": int(self._ksp.getIterationNumber()),
            "reason": reason_name(reason, self._petsc.KSP.ConvergedReason),
            "residual": residual if np.isfinite(residual) else None,
            "split": None,
        }

    def close(self) -> None:
        """Free the system; PETSc itself stays."""
        for made in self._objects:
            made.destroy()
        self._objects, self._ksp, self._warm = [], None, ""

    def _start(self, gpus: Any) -> None:
        """Start PETSc; the GPUs of the first load are those of the process."""
        gpu = gpus[self._comm.rank] if gpus and len(gpus) == self._comm.size else None
        if self._petsc is not None:
            if gpu != self._gpu:
                raise UnsupportedError(f"PETSc has begun on GPU {self._gpu}, and stays; not {gpu}")
            return
        cuda = self._device == "cuda" or (self._device == "auto" and _has_gpu())
        aware = cuda and _gpu_aware_mpi()
        try:
            petsc4py: Any = importlib.import_module("petsc4py")
            petsc4py.init(["petsc_worker", *start_options(cuda, aware, gpu)])
            PETSc: Any = importlib.import_module("petsc4py.PETSc")
        except ImportError as error:
            raise UnsupportedError(f"needs petsc4py: {BUILD} ({error})") from None
        if cuda and not PETSc.Sys.hasExternalPackage("cuda"):
            if self._device == "cuda":
                raise UnsupportedError(f"this PETSc has no CUDA; {BUILD}, with --cuda yes")
            cuda = aware = False
        self._petsc, self._cuda, self._aware, self._gpu = PETSc, cuda, aware, gpu

    def _assemble(self, n: int, rows: Any, b: np.ndarray) -> None:
        """Make the matrix, the vectors and the solver."""
        PETSc, local = self._petsc, len(b)
        A = PETSc.Mat().create(comm=PETSc.COMM_WORLD)
        A.setSizes(((local, n), (local, n)))
        A.setType("aijcusparse" if self._cuda else "aij")
        A.setPreallocationCSR(rows)
        A.assemble()
        A.setOption(PETSc.Mat.Option.SPD, True)
        self._x, self._b = A.createVecs()
        self._b.setArray(b)
        self._ksp = PETSc.KSP().create(comm=PETSc.COMM_WORLD)
        self._ksp.setOperators(A)
        self._A, self._objects = A, [self._ksp, A, self._x, self._b]

    def _run(self, method: str, limits: Limits) -> float:
        """Solve from zero; return the seconds from the first rank's start to the last one's end."""
        database = self._petsc.Options()
        for name, value in {**solve_options(method, self._jacobi, limits), **self._user}.items():
            database.setValue(name, value)
        self._ksp.setFromOptions()
        self._ksp.setUp()
        self._warm = method
        with self._together() as taken:
            self._ksp.solve(self._b, self._x)
        return taken[0]

    @contextlib.contextmanager
    def _together(self) -> Iterator[list[float]]:
        """Time what all ranks do, GPUs included; the seconds are in the list afterwards."""
        taken: list[float] = []
        self._synchronize()
        self._comm.Barrier()
        begin = time.perf_counter()
        yield taken
        self._synchronize()
        self._comm.Barrier()
        taken.append(time.perf_counter() - begin)

    def _synchronize(self) -> None:
        if self._cuda:
            self._petsc.DeviceContext.getCurrent().synchronize()

    def _save(self, file: str) -> None:
        """Write x in the problem's numbers; rank 0 does."""
        parts = self._comm.gather(self._x.getArray(readonly=True).copy(), root=0)
        if self._comm.rank == 0:
            x = np.empty(self._numbers.first[-1])
            x[self._numbers.old_of_new] = np.concatenate(parts)
            np.save(file, x)

    def _facts(self) -> dict[str, Any]:
        PETSc, ranks = self._petsc, self._comm.size
        mpi = importlib.import_module("mpi4py.MPI").Get_library_version().split("\n")[0]
        petsc4py = importlib.import_module("petsc4py").__version__
        version = ".".join(map(str, PETSc.Sys.getVersion()))
        staging = ("peer" if self._aware else "host") if self._cuda and ranks > 1 else "none"
        given = solve_options("cg", self._jacobi, Limits(rtol=0.0, most=1, exact=True))
        return {
            "versions": {"petsc": version, "petsc4py": petsc4py, "mpi": mpi.strip("\0 ")[:60]},
            "kind": "host-driven, " + ("one GPU a rank" if self._cuda else "one core a rank"),
            "pes": ranks,
            "staging": staging,
            "gpu_aware_mpi": self._aware,
            "mat_type": self._A.getType(),
            "vec_type": self._b.getType(),
            "spmv": f"MatMult of {self._A.getType()}",
            "preconditioner": given["pc_type"],
            "ksp_norm_type": self._user.get("ksp_norm_type", given["ksp_norm_type"]),
            "petsc_options": self._user,
            "notes": NOTES,
        }


def _has_gpu() -> bool:
    return any(Path("/proc/driver/nvidia/gpus").glob("*"))


def _gpu_aware_mpi() -> bool:
    """Return whether the MPI in use takes GPU memory, as it says itself."""
    vendor = importlib.import_module("mpi4py.MPI").get_vendor()[0]
    library = "libmpi.so.40" if vendor == "Open MPI" else "libmpi.so.12"
    with contextlib.suppress(OSError, AttributeError):  # an MPI that cannot tell
        return bool(ctypes.CDLL(library).MPIX_Query_cuda_support())
    return False
