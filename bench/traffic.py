"""The methods that are measured, and the bytes that an iteration of each must move."""

from __future__ import annotations

METHODS = ("cg", "prcg", "pipecg")
# Passes over vectors of n values per iteration with Jacobi: reads and writes of vectors, and the
# inverse diagonal twice. Counted in the head comments of cpufree/solvers/*cg.hpp.
VECTOR_PASSES = {"cg": 10 + 2, "prcg": 10 + 2, "pipecg": 17 + 2}


def count_bytes(rows: int, nnz: int, matrix_bytes: float, method: str) -> dict[str, float]:
    """Return the bytes of one iteration: of the vectors, with plain CSR, with the format in use.

    Plain CSR: 8 bytes per value, 4 per column index, 4 per row. Each pass over a vector is 8 bytes
    per row, and what stays in caches between two passes is not deducted.
    """
    vectors = 8.0 * rows * VECTOR_PASSES[method]
    return {
        "vectors": vectors,
        "csr": 12.0 * nnz + 4.0 * rows + vectors,
        "format": matrix_bytes + vectors,
    }
