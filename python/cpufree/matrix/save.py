"""Matrices to files."""

from __future__ import annotations

import numpy as np

from cpufree.dtypes import vector_type
from cpufree.matrix.cache import write_cache
from cpufree.matrix.io.files import PathLike, compressed, suffix_of
from cpufree.matrix.load import as_csr, canonical_csr
from cpufree.matrix.problem import CsrMatrix, MatrixLike
from cpufree.output_file import write_file

MATRIX_SAVE_SUFFIXES = (".mtx", ".mtx.gz", ".npz", ".cpufree")


def save_matrix(path: PathLike, A: MatrixLike) -> None:
    """Write a matrix, format by suffix: .mtx, .mtx.gz, .npz or .cpufree.

    The file appears when it is complete. Text holds enough digits for the same values; a matrix
    that is symmetric or Hermitian to the bit is stored as its lower triangle.

    Raises:
        FileFormatError: unknown suffix, or the file cannot be written.
        MatrixError: A is not a square matrix of numbers.
    """
    suffix = suffix_of(path, MATRIX_SAVE_SUFFIXES)
    matrix = canonical_csr(A)
    if suffix == ".cpufree":
        write_cache(path, matrix)
    elif suffix == ".npz":
        import scipy.sparse as sp  # a heavy import

        with write_file(path) as file:
            sp.save_npz(file, matrix.given())
    else:
        import scipy.io  # a heavy import

        mirrored = "hermitian" if matrix.of_complex else "symmetric"
        symmetry = mirrored if _is_symmetric_to_the_bit(matrix) else "general"
        # As float64, as which text is read: the digits of a float32 are those of another float64.
        values = matrix.given().astype(vector_type(np.float64, matrix.of_complex), copy=False)
        with write_file(path) as file, compressed(file, suffix) as stream:
            scipy.io.mmwrite(stream, values, symmetry=symmetry)


def _is_symmetric_to_the_bit(matrix: CsrMatrix) -> bool:
    """Say whether the lower triangle tells the whole matrix; 0.0 and -0.0 are equal, but differ."""
    given = matrix.given().data.view(matrix.dtype)
    if (np.signbit(given) & (given == 0)).any():
        return False
    return as_csr(matrix).statistics.symmetric
