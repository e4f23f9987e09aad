"""What an iteration must do: floating-point operations and bytes, by two counts.

`Operations` is the count of Trotter et al. 2025 ("CPU- and GPU-initiated Communication Strategies
for Conjugate Gradient Methods on Large GPU Clusters", section 4.1.4): each product, dot product and
vector update reads its operands and writes its result, and a product reads a value of x with every
nonzero. It makes rates comparable with theirs, and lies above what must move, for caches serve a
part. `least_bytes` is what must move where nothing stays in caches and all is fused that can be.
"""

from __future__ import annotations

from dataclasses import dataclass

METHODS = ("cg", "prcg", "pipecg")
# Passes over vectors of n values per iteration with Jacobi: reads and writes of vectors, and the
# inverse diagonal twice. Counted in the head comments of cpufree/solvers/*cg.hpp.
VECTOR_PASSES = {"cg": 10 + 2, "prcg": 10 + 2, "pipecg": 17 + 2}
# Without a preconditioner; pipecg then has no M w to write and to read.
PLAIN_PASSES = {"cg": 10, "prcg": 10, "pipecg": 15}


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


@dataclass(frozen=True)
class Problem:
    """What is to be counted for: a matrix in CSR, the bytes of a value, the preconditioner."""

    rows: int
    nnz: int
    value_bytes: int = 8
    jacobi: bool = False


def least_bytes(problem: Problem, method: str) -> float:
    """Return the least bytes of an iteration: the matrix in CSR and the passes over vectors."""
    passes = (VECTOR_PASSES if problem.jacobi else PLAIN_PASSES)[method]
    matrix = (problem.value_bytes + 4.0) * problem.nnz + 4.0 * problem.rows
    return matrix + passes * problem.value_bytes * problem.rows


@dataclass(frozen=True)
class Operations:
    """How often each operation is done; a NRM2 is the dot product of a vector with itself."""

    spmv: int
    dot: int
    nrm2: int
    axpy: int
    scale: int = 0

    def flops(self, problem: Problem) -> float:
        """Return the floating-point operations."""
        vectors = 2.0 * (self.dot + self.nrm2 + self.axpy) + self.scale
        return 2.0 * problem.nnz * self.spmv + vectors * problem.rows

    def bytes(self, problem: Problem) -> float:
        """Return the bytes read and written."""
        v = problem.value_bytes
        vectors = v * (2.0 * self.dot + self.nrm2 + 3.0 * (self.axpy + self.scale))
        return (2.0 * v + 4.0) * (problem.nnz + problem.rows) * self.spmv + vectors * problem.rows


def operations(method: str, iterations: int, jacobi: bool = False) -> Operations:
    """Return the operations of a solve.

    cg and pipecg as Trotter et al. count them, which their Tables 2 and 3 confirm: per iteration 1
    SpMV, 1 DOT, 1 NRM2, and 3 AXPY (pipecg: 6). prcg by the same rule: p.s, r.s, s.s, r.r, 3 AXPY.
    Jacobi, which they do not have, adds a scaling of a vector and a DOT, as r.r and r.z differ.
    """
    k = iterations
    first, dot, nrm2, axpy = {
        "cg": (1, 1, 1, 3),
        "prcg": (1, 2, 2, 3),
        "pipecg": (2, 1, 1, 6),
    }[method]
    extra = k if jacobi else 0
    return Operations(k + first, dot * k + extra, nrm2 * k + 1, axpy * k, extra)
