"""A machine with GPUs that is not there: an extension that remembers what it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from cpufree import _core
from cpufree.errors import UnsupportedError

GIB = 2**30
LEAST_ARGUMENTS = 9
"""Of a System, without tuning and team."""


def gpu(
    index: int,
    name: str = "NVIDIA H200",
    free: float = 139.0,
    capability: tuple[int, int] = (9, 0),
) -> dict[str, Any]:
    """Return a GPU as the extension describes it, with `free` of 140 GiB free."""
    return {
        "index": index,
        "name": name,
        "memory_bytes": 140 * GIB,
        "free": int(free * GIB),  # not told by gpus(), but by gpu_free_bytes()
        "multiprocessors": 132,
        "compute_capability": capability,
        "l2_bytes": 60 * 2**20,
    }


class FakeCore:
    """Stands in for cpufree._core; its Systems solve directly, on the host.

    A test puts it in by `monkeypatch.setattr("cpufree._core", fake)`, or has the fixture `machine`
    make it and put it in. What needs no GPU is done by the real extension.
    """

    def __init__(
        self,
        gpus: int | list[dict[str, Any]] = 4,
        *,
        built: bool = True,
        note: str = "",
        peer: str = "",
        compiler: str | None = "",
    ) -> None:
        self.listed = [gpu(k) for k in range(gpus)] if isinstance(gpus, int) else gpus
        self.built = built
        self.note = note
        self.peer = peer
        self.compiler = compiler  # "": kernels are built in; None: it is missing
        self.compiling = 0  # kernels, at every moment
        self.kernels_from: list[tuple[str, str, str]] = []
        self.asked_peers: list[list[int]] = []
        self.looked_at_gpus = 0
        self.vendor = "NVIDIA"
        self.started: list[int] = []
        self.systems: list[FakeSystem] = []
        self.stencils: list[dict[str, Any]] = []  # options of jacobi
        self.most_block_halo_nonzeros = 24_000_000
        self.least_gpu_layout_nonzeros = 400_000
        self.refuses_given = ""  # why a matrix on a GPU is refused
        self.found: dict[str, Any] = {}  # in the entries of one

    def __getattr__(self, name: str) -> Any:
        return getattr(_core, name)

    def gpu_vendor(self) -> str:
        return self.vendor if self.built else ""

    def cpu_level(self) -> str:
        return "x86-64-v2"

    def cpu_lacks(self) -> str:
        return ""

    def cpu_levels(self) -> list[str]:
        return ["x86-64-v2"]

    def gpus(self) -> list[dict[str, Any]]:
        self.looked_at_gpus += 1
        return self.listed

    def gpu_free_bytes(self, index: int) -> int:
        self.started.append(index)
        return next(int(gpu["free"]) for gpu in self.listed if gpu["index"] == index)

    def gpu_is_started(self, index: int) -> bool:
        return index in self.started

    def gpu_note(self) -> str:
        return self.note

    def peer_problem(self, gpus: list[int]) -> str:
        self.asked_peers.append(gpus)
        return self.peer

    def kernels_compiling(self) -> int:
        return self.compiling

    def kernels_compiled(self) -> bool:
        return self.compiler != ""

    def set_kernel_compiler(self, library: str, caches: list[str], shipped: str) -> None:
        self.kernels_from.append((library, caches, shipped))

    def kernel_compiler(self) -> str:
        if self.compiler is None:
            raise UnsupportedError("NVRTC was not found; install it with pip")
        return self.compiler

    def jacobi(
        self, start: Any, source: Any, out: Any, periodic: Any, options: dict[str, Any], _: Any
    ) -> dict[str, Any]:
        """Do nothing to the values."""
        self.stencils.append(options)
        out[:] = start
        return {
            "reason": "CONVERGED_ITS",
            "iterations": options["iterations"],
            "update": 0.0,
            "seconds": 1e-3,
            "engine": options["engine"],
            "pes": options["pes"],
            "blocks": options["blocks"] or 132,
            "halo_steps": options["halo_steps"] or 4,
            "halo": "values",
        }

    def System(self, *arguments: Any) -> Any:
        if len(arguments) == LEAST_ARGUMENTS:  # a part of a matrix, whose iterations are counted
            return _core.System(*arguments)
        if isinstance(arguments[0], int):
            self.systems.append(GivenSystem(self.found, self.refuses_given, *arguments))
        else:
            self.systems.append(FakeSystem(*arguments))
        return self.systems[-1]


class FakeSystem:
    """A System that remembers its arguments and those of its last solve."""

    def __init__(
        self,
        indptr: Any,
        indices: Any,
        data: Any,
        part: Any,
        order: Any,
        pes: int,
        blocks: int,
        engine: str,
        gpus: list[int],
        tuning: Any = None,
        team: Any = None,
    ) -> None:
        self.matrix = sp.csr_array((data, indices, indptr))
        self.pes, self.blocks, self.engine, self.gpus = pes, blocks, engine, gpus
        self.tuning = dict(tuning or {})
        self.inspects = bool(self.tuning.get("inspect"))
        self.options: dict[str, Any] = {}
        self.given: tuple[Any, Any, Any] = (None, None, None)

    def update(self, indptr: Any, indices: Any, data: Any) -> bool:
        self.matrix = sp.csr_array((data.copy(), indices, indptr))
        return True

    def usable(self) -> bool:
        return True

    def refuses_columns(self) -> str:
        return "this one solves no columns together"

    def plan(self) -> dict[str, Any]:
        if self.inspects:
            return {"refused": "the host is to lay this matrix out"}
        return {
            "engine": self.engine,
            "pes": self.pes,
            "blocks": self.blocks or 132,
            "threads": 512,
            "rows": [400] * self.pes,
            "nnz": [1920] * self.pes,
            "edge_cut": 0,
            "halo_values": 0,
            "imbalance": 1.0,
            "matrix_bytes": 12000.0 * self.pes,
            "resident_vectors": 5,
            "resident_matrix": True,
        }

    def solution_of(self, right: Any) -> Any:
        """Return the solution."""
        return spsolve(self.matrix.tocsc(), right)

    def solve(
        self, b: Any, x0: Any, out: Any, options: dict[str, Any], progress: Any
    ) -> dict[str, Any]:
        self.given, self.options = (b, x0, out), options
        right = b if out is None else b.values
        x = self.solution_of(right)
        if out is not None:
            out.values[:] = x
        return {
            "x": x if out is None else None,
            "reason": "CONVERGED_RTOL" if np.isfinite(right).all() else "DIVERGED_NANORINF",
            "iterations": 3,
            "residual": 1e-9,
            "true_residual": 1e-9,
            "weighted_residual": 1e-9,
            "bnorm": float(np.linalg.norm(right)),
            "history": np.array([1.0, 1e-3, 1e-6, 1e-9]),
            "history_stride": 1,
            "replacements": 0,
            "handed_over_at": -1,
            "disturbances": 0,
            "laps": {"upload": 0.0, "kernel": 0.0, "download": 0.0},
            "lambda_max": 0.0,
            "dependent": 0,
            "seconds": 12e-6,
            "reductions": 4,
            "exchanges": 4,
            "pes": self.pes,
            "blocks": self.blocks or 132,
        }


class GivenSystem(FakeSystem):
    """A System of a matrix on a GPU: it is the identity.

    `given_as` has the arguments that tell of the matrix, of which only addresses are known.
    """

    def __init__(self, found: dict[str, Any], refused: str, *arguments: Any) -> None:
        *self.given_as, blocks, gpus, tuning = arguments
        one = sp.identity(self.given_as[0], format="csr")
        super().__init__(one.indptr, one.indices, one.data, None, None, 1, blocks, "cuda_p2p", gpus)
        self.found, self.refused, self.tuning = found, refused, tuning

    def solution_of(self, right: Any) -> Any:
        return right.copy()

    def plan(self) -> dict[str, Any]:
        entries = {
            "mirrored": True,
            "symmetric": True,
            "asymmetry": 0.0,
            "finite": True,
            "positive_diagonal": True,
        }
        if self.refused:
            return {"refused": self.refused}
        distance = self.found.get("mean_distance", 0.0)
        known = {name: value for name, value in self.found.items() if name in entries}
        found = {"entries": {**entries, **known}} if self.tuning["inspect"] else {}
        return {**super().plan(), **found, "mean_distance": distance}


Machine = Callable[..., FakeCore]
"""Puts in an extension with these arguments of FakeCore."""
