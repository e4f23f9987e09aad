"""Arrays of CuPy and PyTorch on a GPU: copies on the host, and back beside them.

Neither library is imported: an array of either proves that it is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInputError
from ..problem import library_of

LIBRARIES = ("cupy", "torch")


def copy_to_host(v: Any, name: str) -> npt.NDArray[Any]:
    """Return the values of an array on a GPU, once what its library computes has ended.

    Raises:
        InvalidInputError: of no library that is known, or sparse.
    """
    home = library_of(v)
    if home not in LIBRARIES:
        kind = f"{type(v).__module__}.{type(v).__qualname__}"
        raise InvalidInputError(
            f"{name} lies on a GPU as {kind}: arrays of CuPy and PyTorch are taken from there. "
            f"cupy.asarray({name}) and torch.as_tensor({name}, device='cuda') make one, without a "
            "copy where they can"
        )
    if home == "cupy":
        return np.asarray(v.get())
    if "sparse" in str(getattr(v, "layout", "")):
        raise InvalidInputError(f"{name} is sparse: pass {name}.to_dense()")
    return np.asarray(v.detach().cpu().numpy())


def copy_beside(like: Any, values: npt.NDArray[Any]) -> Any:
    """Return values as an array of the library of `like`, on its GPU."""
    home = library_of(like)
    library = sys.modules[home]
    if home == "torch":
        return library.from_numpy(values).to(like.device)
    with like.device:
        return library.asarray(values)
