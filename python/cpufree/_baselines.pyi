"""The host-driven baselines: counterparts of the solvers that the CPU drives. Not a public
interface. See docs/design/baselines.md."""

from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

class Kind(TypedDict):
    """A baseline, and whether this machine can run it."""

    name: str
    methods: list[str]
    needs: str  # besides a GPU
    available: bool
    why_not: str  # "" where it is available

class Facts(TypedDict):
    """How a baseline was set up."""

    kind: str
    pes: int
    staging: str  # of halos: "none", "peer", or "host" where they pass through its memory
    spmv: str  # the product in use
    spmv_seconds: dict[str, float]  # trials of products with a sum, on the slowest PE
    versions: dict[str, str]
    notes: list[str]
    setup_seconds: float

class Outcome(TypedDict):
    """How a solve ended. Seconds: from the first launch to the end of the last kernel."""

    seconds: float
    iterations: int
    reason: str  # CONVERGED_RTOL and so on; CONVERGED_ITS after exact_iterations
    residual: float  # norm of the recurrence's

class Baseline:
    """A matrix laid out for one baseline; solved as often as wanted, from x = 0."""

    def __init__(
        self,
        kind: str,
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int32],
        data: npt.NDArray[np.float64] | npt.NDArray[np.float32],
        part: npt.NDArray[np.int32] | None,
        order: npt.NDArray[np.int32] | None,
        pes: int,
        gpus: list[int] = ...,  # one for each PE; empty: 0, 1, ...
        preconditioner: str = ...,  # jacobi or none
        # spmv, threads, unroll, lag, wait_limit, nccl_library, nvshmem_library; nvshmem_on_stream:
        # nvshmem_id, and rank, the PE that this process is
        options: dict[str, Any] = ...,
    ) -> None: ...
    def facts(self) -> Facts: ...
    def solve(
        self,
        b: npt.NDArray[Any],
        method: str = ...,  # cg, prcg or pipecg
        rtol: float = ...,
        max_iterations: int = ...,
        exact_iterations: bool = ...,  # max_iterations of them, whatever the residual
        variant: str = ...,  # full, no-compute, no-comm; the latter two need exact_iterations
        x_out: npt.NDArray[Any] | None = ...,
    ) -> Outcome: ...

class StencilFacts(TypedDict):
    """How a stencil's baseline was set up."""

    kind: str
    pes: int
    staging: str  # of edges: "none", "peer", or "host" where they pass through its memory
    planes: int  # of the largest slab
    depth: int  # planes that a thread computes
    halo_bytes: int  # that a slab sends to one neighbour in an iteration
    versions: dict[str, str]
    notes: list[str]
    setup_seconds: float

class StencilBaseline:
    """A grid laid out for one baseline, in slabs of planes of its first axis."""

    def __init__(
        self,
        kind: str,
        shape: list[int],
        periodic: list[bool],  # for each axis
        precision: str,  # single or double
        pes: int,
        gpus: list[int] = ...,  # one for each PE; empty: 0, 1, ...
        options: dict[str, Any] = ...,  # threads, unroll, depth, wait_limit, nccl_library
    ) -> None: ...
    def facts(self) -> StencilFacts: ...
    def run(
        self,
        iterations: int,
        variant: str = ...,  # full, no-compute, no-comm
        start: npt.NDArray[Any] | None = ...,  # the first values; None: what the GPUs hold
        out: npt.NDArray[Any] | None = ...,  # where the values go; needs start
    ) -> float:
        """Return the seconds from the first launch to the end of the last kernel."""

def stencil_kinds(nccl_library: str = ...) -> list[Kind]:
    """Return all kinds of stencils' baselines."""

def kinds(nccl_library: str = ...) -> list[Kind]:
    """Return all kinds. `nccl_library`: path of libnccl.so.2; empty: it is looked for.

    Whether NVSHMEM is there is not asked."""

def nvshmem_version(library: str) -> str:
    """Return the version of NVSHMEM's library, which is loaded; empty: it is looked for."""

def nvshmem_id(library: str) -> str:
    """Return an id for the processes of one baseline; who makes it is rank 0."""
