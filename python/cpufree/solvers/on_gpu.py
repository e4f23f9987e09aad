"""Right-hand sides, guesses and solutions that stay on a GPU: arrays of CuPy and of PyTorch.

Neither library is imported: an array of either proves that it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.device_arrays import cuda_device, library_of
from cpufree.dtypes import dtype_name, parts_type, vector_type
from cpufree.errors import VectorError


@dataclass(frozen=True)
class Library:
    """What is done with the arrays of one library."""

    contiguous: Callable[[Any], bool]
    to_dtype: str
    """How a user converts a vector, a format with its name and the type."""
    to_contiguous: str


LIBRARIES = {
    "cupy": Library(
        lambda v: bool(v.flags.c_contiguous), "{0}.astype('{1}')", "cupy.ascontiguousarray({0})"
    ),
    "torch": Library(lambda v: bool(v.is_contiguous()), "{0}.to(torch.{1})", "{0}.contiguous()"),
}


def prepare(b: Any, x0: Any, n: int, dtype: npt.DTypeLike) -> tuple[Any, Any, Any]:
    """Return b, x0 and an array for the solution, all on the GPU of b, once they can be used.

    What has been submitted to the current streams of their libraries has ended then.

    Args:
        b: n numbers on a GPU. x0: likewise, or None.
        n: rows of the matrix.
        dtype: that of the vectors, which may be complex.

    Raises:
        VectorError: not of CuPy or PyTorch, or wrong shape, type, layout, or device.
    """
    vectors = {"b": b} if x0 is None else {"b": b, "x0": x0}
    for name, v in vectors.items():
        check(v, n, np.dtype(dtype).name, name)
    if x0 is not None and cuda_device(x0) != cuda_device(b):
        raise VectorError(
            f"b lies on GPU {cuda_device(b)}, but x0 on GPU {cuda_device(x0)}: put both on one"
        )
    for v in vectors.values():
        finish_pending_work(v)
    return b, x0, empty_beside(b)


def empty_beside(v: Any) -> Any:
    """Return a new array like v, on its GPU (CuPy's would lie on the current one)."""
    home = library(v, "b")
    empty_like = sys.modules[home].empty_like
    if home != "cupy":
        return empty_like(v)
    with v.device:
        return empty_like(v)


def zeros_beside(v: Any) -> Any:
    """Return a new array of zeros like v, on its GPU, once it holds them."""
    zeros = empty_beside(v)
    zeros[...] = 0
    finish_pending_work(zeros)
    return zeros


def without(v: Any, basis: npt.NDArray[np.float64]) -> Any:
    """Return v less its projections on orthonormal vectors, shape (n, k), on its GPU, once done."""
    if library(v, "b") == "torch":
        own = sys.modules["torch"].as_tensor(basis, dtype=v.dtype, device=v.device)
        left = v - own @ (own.T @ v)
        left = left - own @ (own.T @ left)
    else:
        with v.device:
            own = sys.modules["cupy"].asarray(basis, dtype=v.dtype)
            left = v - own @ (own.T @ v)
            left = left - own @ (own.T @ left)
    finish_pending_work(left)
    return left


def as_parts(v: Any) -> Any:
    """Return a complex vector as that of its real and imaginary parts in turn; it shares memory."""
    if library(v, "b") == "torch":
        return sys.modules["torch"].view_as_real(v.resolve_conj()).reshape(-1)
    return v.view(parts_type(v.dtype))


def as_complex(v: Any) -> Any:
    """Return real and imaginary parts in turn as the complex vector that they are."""
    if library(v, "b") == "torch":
        return sys.modules["torch"].view_as_complex(v.reshape(-1, 2))
    return v.view(vector_type(v.dtype, True))


def norm(v: Any) -> float:
    """Return the norm of a vector on a GPU."""
    return float(float(v @ v) ** 0.5)


def library(v: Any, name: str) -> str:
    """Return whose array v is: "cupy" or "torch"."""
    home = library_of(v)
    if home not in LIBRARIES:
        kind = f"{type(v).__module__}.{type(v).__qualname__}"
        raise VectorError(
            f"{name} lies on a GPU as {kind}: arrays of CuPy and PyTorch are taken from there. "
            f"cupy.asarray({name}) and torch.as_tensor({name}, device='cuda') make one, without a "
            "copy where they can"
        )
    return home


def check(v: Any, n: int, dtype: str, name: str) -> None:
    """Raise VectorError where v is no contiguous vector of n numbers of dtype on a GPU."""
    if cuda_device(v) is None:
        raise VectorError(f"{name} lies on the host, but b on a GPU: put both in one place")
    ways = LIBRARIES[library(v, name)]
    refuse_sparse(v, name)
    shape = tuple(v.shape)
    if shape != (n,):
        flat = f": pass {name}.reshape(-1)" if shape in ((n, 1), (1, n)) else ""
        raise VectorError(
            f"{name} has shape {shape}, but the matrix has {n} rows; on a GPU {name} must have "
            f"shape ({n},){flat}"
        )
    if dtype_name(v) != dtype:
        raise VectorError(
            f"{name} is {dtype_name(v)}, but the system is solved in {dtype}, and nothing is "
            f"converted on a GPU: pass {ways.to_dtype.format(name, dtype)}"
        )
    if not ways.contiguous(v):
        raise VectorError(f"{name} is not contiguous: pass {ways.to_contiguous.format(name)}")


def refuse_sparse(v: Any, name: str) -> None:
    """Raise VectorError for a sparse tensor."""
    if "sparse" in str(getattr(v, "layout", "")):
        raise VectorError(f"{name} is sparse: pass {name}.to_dense()")


def finish_pending_work(v: Any) -> None:
    """Wait for the current stream of v's library, which may still be computing v."""
    if library(v, "b") == "torch":
        sys.modules["torch"].cuda.current_stream(v.device).synchronize()
        return
    cupy = sys.modules["cupy"]
    with v.device:
        cupy.cuda.get_current_stream().synchronize()


def column(v: Any, number: int) -> Any:
    """Return a contiguous copy of a column, on the GPU of v."""
    home = library(v, "b")
    refuse_sparse(v, "b")
    if home == "torch":
        return v[:, number].contiguous()
    with v.device:
        return sys.modules["cupy"].ascontiguousarray(v[:, number])
