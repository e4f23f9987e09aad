"""Rows of matrices that no process holds: what is taken, made and read, without any process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from ranks_here import team_of

import cpufree
from cpufree import RowSlab
from cpufree.cli.distributed_input import (
    MANY_ROWS,
    DistributedInput,
    DistributedInputOptions,
    choose_rows,
    standard_normal,
)
from cpufree.distributed import Team
from cpufree.errors import FileFormatError, InvalidInputError, MatrixError, VectorError
from cpufree.generate import from_spec, row_source
from cpufree.matrix.cache import CachedRows
from cpufree.matrix.io.vectors import load_rows_of_vector
from cpufree.matrix.load import as_csr, open_rows
from cpufree.matrix.rows import rows_of_rank
from cpufree.partition.methods import contiguous

SPECS = [
    "poisson1d?n=1",
    "poisson1d?n=9",
    "poisson2d?nx=5,ny=4",
    "poisson2d?nx=2,ny=1,weights=0.1x0.7",
    "poisson3d?nx=3,ny=4,nz=5",
    "poisson3d?nx=1,ny=2,nz=2",
    "stencil27?nx=2,ny=3,nz=4",
]


def of(A: sp.csr_array, first: int, last: int) -> RowSlab:
    return RowSlab(first, A[first:last])


@pytest.mark.parametrize("spec", SPECS)
def test_rows_of_a_generator_are_those_of_its_matrix(spec: str) -> None:
    A, rows = from_spec(spec), row_source(spec)
    n = A.shape[0]
    assert rows.shape == A.shape
    assert [rows.entries_before(row) for row in range(n + 1)] == A.indptr.tolist()
    for first in range(n):
        for last in range(first, n + 1):
            slab, expected = rows.rows(first, last), A[first:last]
            assert (slab.first_row, slab.count) == (first, last - first)
            assert np.array_equal(slab.indptr, expected.indptr)
            assert np.array_equal(slab.indices, expected.indices)
            assert np.array_equal(slab.data, expected.data)


def test_threads_make_the_same_rows() -> None:
    rows = row_source("poisson2d?nx=700,ny=700")
    one, two = rows.rows(1000, 480_000), rows.rows(1000, 480_000, threads=2)
    assert np.array_equal(one.indptr, two.indptr)
    assert np.array_equal(one.indices, two.indices)


def test_rows_are_numbered_beyond_32_bits() -> None:
    n = 5_000_000_000
    rows = row_source(f"poisson1d?n={n}")
    assert rows.nnz == 3 * n - 2
    slab = rows.rows(n - 3, n)
    assert slab.indices.tolist() == [n - 4, n - 3, n - 2, n - 3, n - 2, n - 1, n - 2, n - 1]
    first, last = rows.range_of(2, 4)
    assert abs(first - n // 2) <= 1
    assert abs(last - n // 4 * 3) <= 1


@pytest.mark.parametrize("spec", ["poisson1d?n=97", "poisson3d?nx=5,ny=4,nz=9", "stencil27?nx=5"])
@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_parts_of_a_source_are_those_of_the_contiguous_partition(spec: str, parts: int) -> None:
    part = contiguous(as_csr(from_spec(spec)), parts)
    for k in range(parts):
        first, last = row_source(spec).range_of(k, parts)
        assert np.array_equal(np.flatnonzero(part == k), np.arange(first, last))


def test_a_generator_without_rows_of_its_own_has_none() -> None:
    assert row_source("ecology2?m=9") is None


def test_rows_of_a_generator_refuse_what_the_generator_refuses() -> None:
    with pytest.raises(InvalidInputError, match="has no parameter 'm'"):
        row_source("poisson1d?m=3")
    with pytest.raises(InvalidInputError, match="at most 9007199254740992 are numbered"):
        row_source("poisson3d?nx=1000000,ny=1000000,nz=1000000")


def test_rows_of_a_cache_file_are_those_of_its_matrix(tmp_path: Path) -> None:
    A = from_spec("stencil27?nx=4,ny=3,nz=5").astype(np.float32)
    file = tmp_path / "A.cpufree"
    cpufree.save_matrix(file, A)
    rows = open_rows(file)
    assert (rows.shape, rows.nnz, rows.dtype) == (A.shape, A.nnz, np.float32)
    for first, last in ((0, 60), (7, 31), (59, 60), (5, 5)):
        slab = rows.rows(first, last)
        assert slab.indices.dtype == np.int64
        assert np.array_equal(slab.indptr, A[first:last].indptr)
        assert np.array_equal(slab.indices, A[first:last].indices)
        assert np.array_equal(slab.data, A[first:last].data)


def test_a_cache_file_whose_rows_do_not_rise_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "A.cpufree"
    cpufree.save_matrix(file, from_spec("poisson1d?n=9"))
    content = bytearray(file.read_bytes())
    content[128 + 8 * 4 : 128 + 8 * 5] = (2**40).to_bytes(8, "little")
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match="indptr does not rise between rows 2 and 6"):
        CachedRows(file).rows(2, 6)


def test_rows_of_other_files_are_refused_with_advice(tmp_path: Path) -> None:
    file = tmp_path / "A.npz"
    cpufree.save_matrix(file, from_spec("poisson1d?n=9"))
    with pytest.raises(FileFormatError, match=r"read from \.cpufree files only; make one once"):
        open_rows(file)
    with pytest.raises(InvalidInputError, match="makes whole matrices alone"):
        open_rows("gen:ecology2?m=9")


def test_rows_of_a_vector_are_read_by_themselves(tmp_path: Path) -> None:
    file = tmp_path / "b.npy"
    v = np.arange(20.0)
    v[3] = np.nan  # not among the rows
    np.save(file, v)
    assert load_rows_of_vector(file, 20, 5, 9).tolist() == [5.0, 6.0, 7.0, 8.0]
    with pytest.raises(VectorError, match=r"b\.npy\[3\] = nan is not a finite number"):
        load_rows_of_vector(file, 20, 2, 9)
    with pytest.raises(VectorError, match="but the matrix has 21 rows"):
        load_rows_of_vector(file, 21, 5, 9)
    with pytest.raises(FileFormatError, match=r"from \.npy files"):
        (tmp_path / "b.txt").write_text("1\n")
        load_rows_of_vector(tmp_path / "b.txt", 1, 0, 1)


def test_entries_of_a_file_too_large_for_the_matrix_are_named(tmp_path: Path) -> None:
    matrix, file = tmp_path / "A.cpufree", tmp_path / "b.npy"
    cpufree.save_matrix(matrix, from_spec("poisson1d?n=20").astype(np.float32))
    v = np.arange(20.0)
    v[12] = 1e300
    np.save(file, v)
    own = DistributedInput(open_rows(matrix), team_of(rank=1))
    with pytest.raises(VectorError, match=r"b\.npy\[12\] = 1e\+300 is too large for float32"):
        own.vector(str(file))


def test_rows_that_are_too_many_for_a_rank_are_refused_before_they_are_made() -> None:
    rows = row_source("poisson1d?n=5000000000")
    with pytest.raises(InvalidInputError, match=r"of rank 1 are too many.*use more ranks"):
        rows_of_rank(rows, 1, 2)
    first, last = rows_of_rank(rows, 1, 3)
    assert last - first == pytest.approx(5e9 / 3, rel=1e-6)


def test_rows_of_the_random_vector_are_those_of_all_of_it() -> None:
    whole = np.random.default_rng(0).standard_normal(3_000_000)
    for first, last in ((0, 10), (5, 9), (1_048_576, 1_048_579), (2_500_001, 3_000_000)):
        assert np.array_equal(standard_normal(first, last), whole[first:last])


# -- RowSlab --


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_a_slab_takes_columns_of_either_width(kind: type) -> None:
    A = from_spec("poisson1d?n=9")
    rows = sp.csr_array(A[3:6])
    rows.indices, rows.indptr = rows.indices.astype(kind), rows.indptr.astype(kind)
    slab = RowSlab(3, rows)
    assert (slab.shape, slab.count, slab.first_row) == ((9, 9), 3, 3)
    assert slab.indices.dtype == slab.indptr.dtype == np.int64
    assert slab.indices.tolist() == [2, 3, 4, 3, 4, 5, 4, 5, 6]


def test_a_slab_shares_arrays_that_are_as_it_needs_them() -> None:
    arrays = (np.array([0, 1]), np.array([2**40]), np.array([2.0]))
    slab = RowSlab(2**40, arrays, n=2**41)
    assert slab.shape == (2**41, 2**41)
    for mine, given in zip((slab.indptr, slab.indices, slab.data), arrays, strict=True):
        assert np.shares_memory(mine, given)


def test_a_slab_sorts_columns_and_sums_duplicates() -> None:
    slab = RowSlab(0, ([0, 3, 4], [2, 0, 2, 1], [1.0, 5.0, 2.0, 7.0]), n=3)
    assert slab.indptr.tolist() == [0, 2, 3]
    assert slab.indices.tolist() == [0, 2, 1]
    assert slab.data.tolist() == [5.0, 3.0, 7.0]


def test_a_slab_leaves_the_arrays_that_it_is_given_as_they_are() -> None:
    given = (np.array([0, 3, 4]), np.array([5, 5, 1, 2]), np.arange(4.0))
    before = [array.copy() for array in given]
    assert RowSlab(0, given, n=2**33).indptr.tolist() == [0, 2, 3]
    assert all(np.array_equal(u, v) for u, v in zip(given, before, strict=True))


def test_a_slab_may_be_empty() -> None:
    assert of(from_spec("poisson1d?n=9"), 4, 4).count == 0


@pytest.mark.parametrize(
    ("rows", "n", "complaint"),
    [
        (([0, 1], [0], [1j]), 3, "complex"),
        (([0, 1], [0], ["a"]), 3, "must hold real numbers"),
        (([0, 1], [0.5], [1.0]), 3, "indices has dtype float64; whole numbers are needed"),
        (([0, 2], [0], [1.0]), 3, "indptr must rise from 0 to at most the 1 indices"),
        (([0, 2, 1], [0, 1], [1.0, 1.0]), 3, "indptr must rise"),
        (([0, 2], [5, 0], [1.0, 1.0]), 3, "there is a column 5; columns run from 0 to 2"),
        (([0, 1], [0], [1.0]), None, "n, the rows of the whole matrix, is needed"),
        (sp.eye_array(3).tocsr(), 4, "n is 4, but the rows have 3 columns"),
        (np.eye(3), 3, "cannot take rows from numpy.ndarray"),
    ],
)
def test_a_slab_says_what_is_wrong_with_it(rows: object, n: int | None, complaint: str) -> None:
    with pytest.raises(MatrixError, match=complaint):
        RowSlab(0, rows, n)


# -- one process --


@pytest.mark.parametrize("first", [1.5, "0"])
def test_a_slab_begins_at_a_whole_number(first: Any) -> None:
    with pytest.raises(MatrixError, match="whole numbers are needed"):
        RowSlab(first, sp.csr_array(np.eye(2)))


def test_rows_of_a_part_need_several_processes() -> None:
    slab = of(from_spec("poisson1d?n=9"), 0, 9)
    with pytest.raises(InvalidInputError, match="solved by several processes"):
        cpufree.solve(slab, np.ones(9))


def around(team: Team | None, out: str | None = None, *vectors: str, engine: str = "auto") -> Any:
    return DistributedInputOptions(team, engine, out, vectors or ("ones", None))


MANY, FEW = f"gen:poisson1d?n={MANY_ROWS}", f"gen:poisson1d?n={MANY_ROWS - 1}"


def test_auto_has_ranks_make_their_rows_where_there_are_many() -> None:
    several, one = around(team_of()), around(None)
    assert choose_rows(MANY, "auto", several) is not None
    assert choose_rows(FEW, "auto", several) is None
    assert choose_rows(FEW, "rows", several) is not None
    assert choose_rows(MANY, "whole", several) is None
    assert choose_rows(MANY, "auto", one) is None
    assert choose_rows("A.mtx", "auto", several) is None
    with pytest.raises(InvalidInputError, match="is for several processes: start them by"):
        choose_rows(MANY, "rows", one)


@pytest.mark.parametrize(
    "files",
    [("x.npy", "b.npy", "x0.NPY"), ("x.npy", "random"), (None, "ones")],
)
def test_auto_takes_own_rows_with_files_that_ranks_can_share(files: tuple[str, ...]) -> None:
    assert choose_rows(MANY, "auto", around(team_of(), *files)) is not None


@pytest.mark.parametrize(
    ("files", "machines", "why"),
    [
        (("x.mtx",), ("here", "here"), "cannot write 'x.mtx'"),
        (("x.txt",), ("here", "here"), "cannot write 'x.txt'"),
        (("x.npy",), ("here", "there"), "cannot write 'x.npy'"),
        ((None, "b.mtx"), ("here", "here"), "b.mtx: ranks that have own rows alone read"),
        ((None, "b.txt"), ("here", "here"), "b.txt: ranks that have own rows alone read"),
        ((None, "ones", "x0.mtx"), ("here", "here"), "x0.mtx: ranks that have own rows alone read"),
    ],
)
def test_what_rules_own_rows_out_means_the_whole_matrix_or_is_refused(
    files: tuple[Any, ...], machines: tuple[str, ...], why: str
) -> None:
    options = around(team_of(0, machines), *files)
    assert choose_rows(MANY, "auto", options) is None
    with pytest.raises(InvalidInputError, match=f"{why}.*or use --input whole$"):
        choose_rows(MANY, "rows", options)
