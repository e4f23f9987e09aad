"""Matrices from whatever users give: objects, files, `gen:` strings. Formats: docs/input.md.

No file can make this module run code, crash, or allocate more than the file could hold.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cpufree.errors import FileFormatError, InvalidInputError, MatrixError
from cpufree.matrix.io.files import PathLike, check_file, memory_for, reading, split_part
from cpufree.matrix.mirrored import with_symmetric_pattern
from cpufree.matrix.problem import CsrMatrix, MatrixLike, convert
from cpufree.matrix.rows import RowSource

if TYPE_CHECKING:
    import scipy.sparse as sp

MATRIX_SUFFIXES = (
    *(".mtx", ".mtx.gz", ".mtx.bz2", ".tar.gz", ".tgz", ".npz", ".npy", ".cpufree"),
    *(".mat", ".rb", ".hb", ".rsa", ".rua"),
)
STDIN = "-"
GENERATOR_PREFIX = "gen:"


def load_matrix(source: PathLike) -> sp.csr_array:
    """Return the matrix in a file, or the one that a generator makes.

    Columns are sorted, duplicates summed, values float64 or float32, complex where the file is; the
    pattern is as stored.

    Args:
        source: a file by suffix: Matrix Market (.mtx, .mtx.gz, .mtx.bz2; .tar.gz as the SuiteSparse
            collection has it), `scipy.sparse.save_npz` (.npz), a dense 2-D array (.npy), our cache
            (.cpufree), MATLAB (.mat), Rutherford-Boeing and Harwell-Boeing (.rb, .hb, .rsa, .rua);
            `-`, Matrix Market from standard input; or `gen:NAME?key=value,...`. A.mat#NAME and
            A.tar.gz#FILE name what is meant in a file that holds several.

    Raises:
        FileFormatError: missing, unreadable, damaged, or of a format not known here.
        MatrixError: not a square matrix of numbers, or too large.
        OutOfMemoryError: it does not fit.
    """
    return canonical_csr(source).given()


def read_matrix(source: PathLike) -> Any:
    """Return what a matrix file holds, as its reader gives it: SciPy sparse, ndarray, CsrMatrix."""
    name = os.fspath(source)
    if isinstance(name, str) and name.startswith(GENERATOR_PREFIX):
        from cpufree.generate import registry  # large, and often not needed

        return registry.from_spec(name.removeprefix(GENERATOR_PREFIX))
    if name == STDIN:
        return _reader("matrix_market", "read_matrix_market_stdin")()
    whole, part = split_part(source)
    path, suffix = check_file(whole, MATRIX_SUFFIXES, generator_hint)
    with reading(path, suffix):
        if suffix == ".cpufree":
            from cpufree.matrix.cache import read_cache

            return read_cache(path)
        if suffix == ".mat":
            return _reader("mat", "read_mat")(path, part)
        if suffix in (".tar.gz", ".tgz"):
            return _reader("archive", "read_archive")(path, part)
        if suffix in (".rb", ".hb", ".rsa", ".rua"):
            return _reader("harwell_boeing", "read_harwell_boeing")(path)
        if suffix == ".npz":
            return _reader("npz", "read_npz")(path)
        if suffix == ".npy":
            return _reader("npy", "map_npy")(path)
        return _reader("matrix_market", "read_matrix_market")(path)


def _reader(module: str, name: str) -> Callable[..., Any]:
    """Return a reader: its module is loaded when a file of its format is read."""
    found: Callable[..., Any] = getattr(
        importlib.import_module(f"cpufree.matrix.io.{module}"), name
    )
    return found


def open_rows(source: PathLike) -> RowSource:
    """Return a matrix whose rows are read, or made, where they are wanted.

    Args:
        source: a cache file (.cpufree; where its rows lie by parts, each rank takes one, and
            `Solver.rows` tells which rows of the matrix these are), or `gen:NAME?key=value,...` of
            a generator whose rows are made apart from one another: poisson1d, poisson2d, poisson3d,
            stencil27.

    Raises:
        FileFormatError: missing, damaged, or a format that is not read by rows.
        InvalidInputError: a generator that makes no rows, or parameters that it does not take.
    """
    name = os.fspath(source)
    if isinstance(name, str) and name.startswith(GENERATOR_PREFIX):
        from cpufree.generate import registry  # large, and often not needed

        rows = registry.row_source(name.removeprefix(GENERATOR_PREFIX))
        if rows is None:
            raise InvalidInputError(
                f"{name}: this generator makes whole matrices alone; save it as a .cpufree file "
                "('cpufree convert gen:... --parts N'), of which ranks read their own rows"
            )
        return rows
    path, suffix = check_file(source, MATRIX_SUFFIXES, generator_hint)
    if suffix != ".cpufree":
        raise FileFormatError(
            f"{path}: rows by themselves are read from .cpufree files only; make one once: "
            f"cpufree convert {path} --parts N --out A.cpufree",
            path,
        )
    from cpufree.matrix.cache import CachedRows

    with reading(path, suffix):
        return CachedRows(path)


def as_csr(A: MatrixLike) -> CsrMatrix:
    """Return A as a canonical CsrMatrix with a structurally symmetric pattern. A is not changed.

    Duplicates are summed, columns sorted. Explicit zeros stay if the pattern is symmetric with
    them; otherwise they are dropped, and where the mirror image of an entry is still missing, an
    explicit zero is put there. Values are converted: bool and integers to float64, float16 to
    float32, long double to float64; float64 and float32 stay. A complex matrix becomes the real one
    that it is (see `CsrMatrix.of_complex`). Memory is shared where possible.

    Args:
        A: SciPy sparse matrix or array of any format, NumPy 2-D array, CsrMatrix, or a path or
            `gen:NAME?key=value` string (see `load_matrix`); (n, n). Matrices of CuPy and PyTorch
            are copied to the host.

    Raises:
        MatrixError: not numbers, not square, empty, too large, not a matrix.
        FileFormatError: the file cannot be read.
    """
    with memory_for(A if isinstance(A, (str, os.PathLike)) else "the matrix"):
        return with_symmetric_pattern(canonical_csr(A))


def canonical_csr(A: MatrixLike) -> CsrMatrix:
    """Return A as a CsrMatrix, as `as_csr` does, but with its pattern as it is."""
    if not isinstance(A, (str, os.PathLike)):
        with memory_for("the matrix"):
            return convert(A)
    try:
        with memory_for(A):
            return convert(read_matrix(A)).private()
    except MatrixError as error:
        if not str(error).startswith(f"{A}: "):
            error.args = (f"{A}: {error}",)
        raise


def generator_hint(name: str) -> str:
    """Return advice where a missing file has the name of a generator, else ""."""
    from cpufree.generate import registry  # large, and often not needed

    known = name.partition("?")[0] in registry.names()
    return f"; for the generator write gen:{name}" if known else ""
