"""What public functions take, as types: words to choose from, and arrays of any library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy.typing as npt

# Words that a variable of type str may hold as well; editors complete them.
Engine: TypeAlias = (
    Literal["auto", "cpu_threads", "cuda_p2p", "cpu_processes", "nvshmem", "nccl"] | str
)
Method: TypeAlias = Literal["auto", "cg", "prcg", "pipecg", "minres", "bicgstab"] | str
Preconditioner: TypeAlias = Literal["auto", "jacobi", "chebyshev", "fsai", "amg", "none"] | str
Columns: TypeAlias = Literal["auto", "together", "block", "one by one"] | str
"""How several right-hand sides are solved."""
Reuse: TypeAlias = Literal["auto", "pattern", "none"] | str
"""Whether the aggregates of multigrid are kept in an update."""
Precision: TypeAlias = Literal["mixed"] | str
"""Of a solve whose products read the values of A in another one."""
Order: TypeAlias = Literal["auto", "rcm", "natural"] | str | bool
"""Of rows inside a PE; True is "rcm", False is "natural"."""
Count: TypeAlias = int | Literal["auto"] | str
"""Of PEs or blocks."""
Gpus: TypeAlias = str | Sequence[int] | npt.NDArray[Any]
"""Which GPUs: "auto", "all", "0,2-5", or device numbers."""


class DeviceArray(Protocol):
    """An array that tells where it lies: of CuPy or PyTorch, on a GPU or on the host."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class SparseMatrix(Protocol):
    """A sparse matrix of SciPy or CuPy, of any format."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def tocsr(self) -> Any: ...


VectorLike: TypeAlias = npt.ArrayLike | DeviceArray | os.PathLike[str]
"""Right-hand sides and guesses: arrays, lists, arrays on a GPU, or paths of files."""
