"""Matrices of CuPy and PyTorch, on a GPU or not, as SciPy and NumPy have them on the host.

Neither library is imported: what is needed are methods of the matrices themselves.
"""

from __future__ import annotations

from typing import Any

from cpufree.device_arrays import gradient_advice, library_of
from cpufree.errors import MatrixError


def to_host(A: Any) -> Any:
    """Return a copy of A as a SciPy sparse matrix, or as a NumPy array where A is dense.

    Args:
        A: of cupyx.scipy.sparse or cupy; a PyTorch tensor, dense or sparse COO, CSR or CSC.

    Raises:
        MatrixError: another object of these libraries, values that NumPy does not have, or a
            tensor that requires a gradient.
    """
    if advice := gradient_advice(A, "A"):
        raise MatrixError(advice)
    kind = f"{type(A).__module__}.{type(A).__qualname__}"
    if library_of(A) != "torch" and hasattr(A, "get"):
        return A.get()
    if hasattr(A, "layout") and hasattr(A, "cpu"):
        try:
            return _from_tensor(A.detach().cpu())
        except (TypeError, RuntimeError) as error:
            raise MatrixError(f"cannot copy the matrix, a {kind}, to the host: {error}") from error
    raise MatrixError(f"cannot take a matrix from {kind}: it has no entries to copy to the host")


def _from_tensor(A: Any) -> Any:
    """Return a tensor in the memory of the host as a SciPy matrix or NumPy array."""
    import scipy.sparse as sp  # a heavy import

    layout = str(A.layout).removeprefix("torch.")
    shape = tuple(A.shape)
    if layout == "strided":
        return A.numpy()
    if layout == "sparse_coo":
        A = A.coalesce()
        rows, columns = A.indices().numpy()
        return sp.coo_array((A.values().numpy(), (rows, columns)), shape=shape)
    if layout == "sparse_csr":
        arrays = (A.values().numpy(), A.col_indices().numpy(), A.crow_indices().numpy())
        return sp.csr_array(arrays, shape=shape)
    if layout == "sparse_csc":
        arrays = (A.values().numpy(), A.row_indices().numpy(), A.ccol_indices().numpy())
        return sp.csc_array(arrays, shape=shape)
    raise MatrixError(
        f"the matrix is a tensor of layout {layout}: convert it with A.to_sparse_csr()"
    )
