"""A preconditioner that is a function of the caller, on arrays of the host or of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from cpufree.device_arrays import copy_beside, copy_to_host, cuda_device
from cpufree.errors import InvalidInputError


class AppliedFunction(LinearOperator):  # type: ignore[misc]
    """M as SciPy's loop applies it: the function gets its r where b lies."""

    def __init__(self, function: Callable[[Any], Any], b: Any, n: int) -> None:
        self._function, self._like = function, None
        if cuda_device(b) is not None:
            self._like, b = b, copy_to_host(b, "b")
        self.b: Any = b
        """On the host."""
        super().__init__(dtype=np.dtype(np.float64), shape=(n, n))

    def _matvec(self, r: npt.NDArray[Any]) -> npt.NDArray[Any]:
        r = np.array(r).reshape(-1)  # which the function may keep, or write to
        z = self._function(r if self._like is None else copy_beside(self._like, r))
        z = copy_to_host(z, "M(r)") if cuda_device(z) is not None else np.asarray(z)
        if z.size != r.size or z.dtype.kind not in "fiub":
            raise InvalidInputError(
                f"M returns {z.dtype} of shape {z.shape} for an r of shape {r.shape}: it must "
                "return as many real numbers"
            )
        return z.reshape(-1)

    def beside_b(self, x: npt.NDArray[Any]) -> Any:
        """Return x where b lies."""
        return x if self._like is None else copy_beside(self._like, x)

    def cost(self) -> str:
        """Return what driving it by the host costs, as a reason."""
        copied = ""
        if self._like is not None:
            copied = f", and {16e-6 * self.shape[0]:.3g} MB between host and GPU are copied for it"
        return (
            f"M is a function, for which every iteration waits on the host{copied}; products with "
            "A run on the CPU. pc='amg', cpufree.amg.from_levels and cpufree.factors.given run in "
            "the kernel"
        )
