"""Arrays of CuPy and PyTorch on a GPU: copies on the host, and back beside them.

Neither library is imported: an array of either proves that it is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError

LIBRARIES = ("cupy", "torch")


def copy_to_host(v: Any, name: str) -> npt.NDArray[Any]:
    """Return the values of an array on a GPU, once what its library computes has ended.

    Raises:
        InvalidInputError: of no library that is known, or sparse.
    """
    require_known(v, name)
    if library_of(v) == "cupy":
        return np.asarray(v.get())
    if "sparse" in str(getattr(v, "layout", "")):
        raise InvalidInputError(f"{name} is sparse: pass {name}.to_dense()")
    return np.asarray(v.detach().cpu().numpy())


def require_known(v: Any, name: str) -> None:
    """Refuse an array on a GPU of a library that is not known.

    Raises:
        InvalidInputError: with what to do.
    """
    if library_of(v) not in LIBRARIES:
        kind = f"{type(v).__module__}.{type(v).__qualname__}"
        raise InvalidInputError(
            f"{name} lies on a GPU as {kind}: arrays of CuPy and PyTorch are taken from there. "
            f"cupy.asarray({name}) and torch.as_tensor({name}, device='cuda') make one, without a "
            "copy where they can"
        )


def copy_beside(like: Any, values: npt.NDArray[Any]) -> Any:
    """Return values as an array of the library of `like`, on its GPU."""
    home = library_of(like)
    library = sys.modules[home]
    if home == "torch":
        return library.from_numpy(values).to(like.device)
    with like.device:
        return library.asarray(values)


def copy_into(to: Any, values: npt.NDArray[Any]) -> None:
    """Copy values into an array of CuPy or PyTorch on a GPU, of the same shape and type."""
    if library_of(to) == "torch":
        to.copy_(sys.modules["torch"].from_numpy(values))
    else:
        to.set(values)


def layout(v: Any) -> tuple[tuple[int, ...], str]:
    """Return shape and type of an array of CuPy or PyTorch on a GPU."""
    return tuple(v.shape), str(v.dtype).removeprefix("torch.")


def address(v: Any) -> int:
    """Return where the values of an array on a GPU begin."""
    return int(_interface(v)["data"][0])


def moved(v: Any, axis: int, to: int) -> Any:
    """Return an array on a GPU with an axis in another place; it shares memory."""
    if axis == to:
        return v
    if library_of(v) == "torch":
        return v.detach().movedim(axis, to)
    return sys.modules["cupy"].moveaxis(v, axis, to)


def contiguous(v: Any, copy_values: bool = True) -> Any:
    """Return an array on a GPU without gaps: itself where it has none.

    Else a new one beside it; with `copy_values`, of the same values. What its library still
    computes has ended then.
    """
    if library_of(v) == "torch":
        torch = sys.modules["torch"]
        v = v.detach()
        found = v if v.is_contiguous() else v.contiguous()
        torch.cuda.current_stream(v.device).synchronize()
        return found
    cupy = sys.modules["cupy"]
    with v.device:
        found = v
        if not v.flags.c_contiguous:
            found = cupy.ascontiguousarray(v) if copy_values else cupy.empty(v.shape, v.dtype)
        cupy.cuda.get_current_stream().synchronize()
    return found


def assign(to: Any, values: Any) -> None:
    """Write an array on a GPU into another one of the same library."""
    if library_of(to) == "torch":
        to.detach().copy_(values)
    else:
        with to.device:
            to[...] = values


def extent(v: Any) -> tuple[int, int]:
    """Return the first byte of an array on a GPU, and the one behind its last."""
    interface = _interface(v)
    size = np.dtype(interface["typestr"]).itemsize
    begin = end = int(interface["data"][0])
    strides = interface.get("strides")
    if strides is None:
        return begin, begin + size * int(np.prod(interface["shape"], dtype=np.int64))
    for n, stride in zip(interface["shape"], strides, strict=True):
        reach = (n - 1) * stride
        begin, end = (begin + reach, end) if reach < 0 else (begin, end + reach)
    return begin, end + size


def _interface(v: Any) -> Any:
    """Return the description that CuPy and PyTorch give; the latter of tensors without gradient."""
    v = v.detach() if library_of(v) == "torch" else v
    return v.__cuda_array_interface__


# The numbers that DLPack gives to memory of NVIDIA GPUs: kDLCUDA and kDLCUDAManaged.
_DLPACK_CUDA = (2, 13)


def library_of(v: Any) -> str:
    """Return which library of arrays on GPUs v is of, "cupy", "cupyx" or "torch", else ""."""
    homes = (kind.__module__.partition(".")[0] for kind in type(v).__mro__)
    return next((home for home in homes if home in ("cupy", "cupyx", "torch")), "")


def gradient_advice(v: Any, name: str) -> str:
    """Return what to do with an array that PyTorch or JAX is to differentiate; "" for others."""
    if getattr(v, "requires_grad", False) is True:
        return (
            f"{name} requires a gradient, which this call does not give: call cpufree.torch.solve, "
            f"or pass {name}.detach()"
        )
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(v).__mro__)
    if ("jax", "Tracer") in kinds:
        return (
            f"{name} has no values yet, as JAX traces it for jit, grad or vmap: call "
            "cpufree.jax.solve there"
        )
    return ""


def cuda_device(v: Any) -> int | None:
    """Return the number of the GPU on which an array lies: None on the host, -1 if not known."""
    if isinstance(v, np.ndarray):
        return None
    # DLPack first: PyTorch's other interface raises for tensors that require a gradient.
    where = getattr(v, "__dlpack_device__", None)
    if where is not None:
        kind, number = where()
        return int(number) if int(kind) in _DLPACK_CUDA else None
    return -1 if hasattr(type(v), "__cuda_array_interface__") else None
