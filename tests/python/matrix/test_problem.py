"""as_csr: every kind of matrix becomes the same canonical CSR, or an error that says why not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from cpufree.errors import CpufreeError, DiagonalError, MatrixError
from cpufree.matrix.load import as_csr, canonical_csr
from cpufree.matrix.problem import CsrMatrix

DENSE = np.array([[4.0, -1.0, 0.0], [-1.0, 4.0, -2.0], [0.0, -2.0, 5.0]])
INDPTR = np.array([0, 2, 5, 7], dtype=np.int64)
INDICES = np.array([0, 1, 0, 1, 2, 1, 2], dtype=np.int32)
DATA = np.array([4.0, -1.0, -1.0, 4.0, -2.0, -2.0, 5.0])
FORMATS = ["csr", "csc", "coo", "dia", "dok", "lil"]


def assert_is_the_example(A: CsrMatrix) -> None:
    assert (A.indptr.dtype, A.indices.dtype, A.data.dtype) == (np.int64, np.int32, np.float64)
    assert np.array_equal(A.indptr, INDPTR)
    assert np.array_equal(A.indices, INDICES)
    assert np.array_equal(A.data, DATA)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_of_any_format_becomes_canonical(kind: Any, format: str) -> None:
    assert_is_the_example(as_csr(kind(DENSE).asformat(format)))


@pytest.mark.parametrize("size", [1, 3])
def test_blocks_become_canonical_with_the_zeros_in_them(size: int) -> None:
    A = as_csr(sp.bsr_array(DENSE, blocksize=(size, size)))
    assert A.nnz == (9 if size == 3 else 7)
    assert np.array_equal(A.to_scipy().toarray(), DENSE)


def test_dense_becomes_canonical() -> None:
    assert_is_the_example(as_csr(DENSE))


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_numpy_matrix_becomes_canonical() -> None:
    assert_is_the_example(as_csr(np.asmatrix(DENSE)))


def test_fortran_order_does_not_transpose() -> None:
    A = np.asfortranarray([[2.0, 1.0], [0.0, 2.0]])
    assert np.array_equal(canonical_csr(A).to_scipy().toarray(), A)


def test_dense_with_strides_becomes_canonical() -> None:
    assert_is_the_example(as_csr(np.kron(DENSE, np.ones((2, 2)))[::2, ::2]))


def test_csr_matrix_is_returned_as_it_is() -> None:
    A = as_csr(DENSE)
    assert as_csr(A) is A


def test_path_is_loaded(tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(DENSE))
    assert_is_the_example(as_csr(tmp_path / "a.npz"))
    assert_is_the_example(as_csr(os.fspath(tmp_path / "a.npz")))


def test_error_in_a_matrix_from_a_file_names_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.ones((2, 3)))
    with pytest.raises(MatrixError, match=r"wide\.npy: the matrix is rectangular, 2 x 3"):
        as_csr(tmp_path / "wide.npy")


def test_unsorted_columns_are_sorted() -> None:
    indices, data = INDICES.copy(), DATA.copy()
    indices[2:5], data[2:5] = indices[2:5][::-1], data[2:5][::-1]
    assert_is_the_example(as_csr(sp.csr_array((data, indices, INDPTR), shape=(3, 3))))


def test_duplicates_are_summed() -> None:
    A = sp.csr_array(DENSE).tocoo()
    rows, columns = np.tile(A.row, 2), np.tile(A.col, 2)
    twice = np.concatenate([A.data - 1, np.ones_like(A.data)])
    assert_is_the_example(as_csr(sp.coo_array((twice, (rows, columns)), shape=(3, 3))))


def test_duplicates_in_csr_are_summed() -> None:
    A = sp.csr_array((np.repeat(DATA / 2, 2), np.repeat(INDICES, 2), 2 * INDPTR), shape=(3, 3))
    assert_is_the_example(as_csr(A))


def test_small_integers_do_not_overflow_when_duplicates_are_summed() -> None:
    A = sp.coo_array((np.array([100, 100], dtype=np.int8), ([0, 0], [0, 0])), shape=(1, 1))
    assert as_csr(A).data[0] == 200.0


def test_the_callers_matrix_is_not_changed() -> None:
    A = sp.csr_array((np.repeat(DATA / 2, 2), np.repeat(INDICES, 2), 2 * INDPTR), shape=(3, 3))
    before = A.indptr.copy(), A.indices.copy(), A.data.copy()
    as_csr(A)
    assert all(map(np.array_equal, before, (A.indptr, A.indices, A.data)))
    assert A.data.flags.writeable


def test_no_copy_is_made_of_values_that_fit() -> None:
    A = sp.csr_array(DENSE)
    assert np.shares_memory(as_csr(A).data, A.data)
    assert np.shares_memory(as_csr(A).indices, A.indices)


def test_arrays_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        as_csr(DENSE).data[0] = 1.0


def test_spare_room_behind_the_entries_is_ignored() -> None:
    A = sp.csr_array(DENSE)
    A.indices = np.append(A.indices, [99, 99]).astype(np.int32)
    A.data = np.append(A.data, [np.nan, np.nan])
    assert_is_the_example(as_csr(A))


def test_int64_columns_are_narrowed() -> None:
    A = sp.csr_array(DENSE)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    assert_is_the_example(as_csr(A))


def test_to_scipy_gives_the_matrix_back() -> None:
    A = as_csr(DENSE).to_scipy()
    assert isinstance(A, sp.csr_array)
    assert np.array_equal(A.toarray(), DENSE)


# Explicit zeros and the symmetry of the pattern


def pattern(A: CsrMatrix) -> np.ndarray:
    """Return where something is stored."""
    shape = A.to_scipy()
    return sp.csr_array((np.ones(A.nnz), shape.indices, shape.indptr), shape=A.shape).toarray()


def from_entries(entries: list[tuple[int, int, float]], n: int) -> sp.coo_array:
    rows, columns, values = zip(*entries, strict=True)
    return sp.coo_array((values, (rows, columns)), shape=(n, n))


def test_explicit_zeros_stay_in_a_symmetric_pattern() -> None:
    A = as_csr(from_entries([(0, 0, 2.0), (0, 1, 0.0), (1, 0, 0.0), (1, 1, 2.0)], 2))
    assert pattern(A).tolist() == [[1, 1], [1, 1]]


def test_explicit_zeros_go_where_they_make_the_pattern_unsymmetric() -> None:
    A = as_csr(from_entries([(0, 0, 2.0), (0, 1, 0.0), (1, 1, 2.0)], 2))
    assert pattern(A).tolist() == [[1, 0], [0, 1]]


def test_missing_mirror_image_becomes_an_explicit_zero() -> None:
    A = as_csr(from_entries([(0, 0, 2.0), (0, 1, 1e-30), (1, 1, 2.0)], 2))
    assert pattern(A).tolist() == [[1, 1], [1, 1]]
    assert A.to_scipy().toarray().tolist() == [[2.0, 1e-30], [0.0, 2.0]]


def test_canonical_csr_leaves_the_pattern_alone() -> None:
    A = canonical_csr(from_entries([(0, 0, 2.0), (0, 1, 0.0), (1, 1, 2.0)], 2))
    assert pattern(A).tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize("seed", range(20))
def test_pattern_is_always_symmetric_and_values_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = sp.csr_array(rng.standard_normal((9, 9)) * (rng.random((9, 9)) < 0.4))
    A.data[rng.random(A.nnz) < 0.3] = 0.0
    C = as_csr(A)
    assert np.array_equal(pattern(C), pattern(C).T)
    assert np.array_equal(C.to_scipy().toarray(), A.toarray())


# Types of values


@pytest.mark.parametrize(
    ("given", "solved"),
    [
        ("float64", "float64"),
        ("float32", "float32"),
        ("float16", "float32"),
        ("longdouble", "float64"),
        (">f8", "float64"),
        (">f4", "float32"),
        ("int64", "float64"),
        ("int8", "float64"),
        ("uint64", "float64"),
        ("bool", "float64"),
    ],
)
@pytest.mark.parametrize("dense", [True, False])
def test_values_are_converted(given: str, solved: str, dense: bool) -> None:
    values = np.eye(2).astype(given)
    # SciPy refuses float16 and foreign byte orders itself.
    A = values if dense or given in ("float16", ">f8", ">f4") else sp.csr_array(values)
    C = as_csr(A)
    assert C.dtype == np.dtype(solved)
    assert C.data.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_complex_matrix_is_the_real_one_of_its_parts(dense: bool, kind: type) -> None:
    A = np.array([[3, 1 - 2j, 0], [1 + 2j, 4, 0], [0, 0, 5]], dtype=kind)
    C = as_csr(A if dense else sp.csr_array(A))
    parts = np.zeros((3, 2, 3, 2))
    parts[:, 0, :, 0] = parts[:, 1, :, 1] = A.real
    parts[:, 1, :, 0], parts[:, 0, :, 1] = A.imag, -A.imag
    assert C.of_complex
    assert (C.given_shape, C.given_nnz, C.given_dtype) == ((3, 3), 5, np.dtype(kind))
    assert np.array_equal(C.to_scipy().toarray(), parts.reshape(6, 6))
    assert np.array_equal(C.given().toarray(), A)


def test_missing_mirror_images_of_complex_entries_are_zeros() -> None:
    A = sp.csr_array(np.array([[3, 1j, 0], [0, 4, 0], [0, 0, 5]]))
    C = as_csr(A)
    assert C.given_nnz == 5
    assert np.array_equal(C.given().toarray(), A.toarray())


@pytest.mark.parametrize("dtype", ["object", "U4", "M8[s]", "f8,f8", "S3"])
def test_rejects_what_is_no_number_with_its_dtype(dtype: str) -> None:
    A = np.zeros((2, 2), dtype=dtype)
    with pytest.raises(MatrixError, match=r"has dtype .*must hold real numbers"):
        as_csr(A)


# Shapes


@pytest.mark.parametrize("A", [np.ones((2, 3)), sp.csr_array((2, 3)), sp.coo_array((2, 3))])
def test_rejects_rectangular_matrix_with_its_shape(A: Any) -> None:
    with pytest.raises(MatrixError, match="rectangular, 2 x 3; it must be square"):
        as_csr(A)


def test_rejects_empty_matrix() -> None:
    with pytest.raises(MatrixError, match="0 x 0: there is nothing to solve"):
        as_csr(np.zeros((0, 0)))


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2), ()])
def test_rejects_what_has_not_two_dimensions(shape: tuple[int, ...]) -> None:
    with pytest.raises(MatrixError, match="a matrix has two dimensions"):
        as_csr(np.ones(shape))


def test_rejects_more_rows_than_can_be_numbered_without_allocating_them() -> None:
    A = sp.coo_array(([1.0], ([0], [0])), shape=(2**31, 2**31))
    with pytest.raises(MatrixError, match=r"index overflow.*2147483648 rows.*2147483647"):
        as_csr(A)


def test_rejects_huge_matrix_with_hardly_any_entries_without_allocating_rows() -> None:
    A = sp.coo_array(([1.0], ([0], [0])), shape=(2**31 - 1, 2**31 - 1))
    with pytest.raises(DiagonalError, match="2147483647 rows but only 1 entries"):
        as_csr(A)


# Not matrices


def test_list_of_rows_is_a_dense_matrix() -> None:
    for rows in (DENSE.tolist(), tuple(map(tuple, DENSE.tolist()))):
        assert as_csr(rows).to_scipy().toarray().tolist() == DENSE.tolist()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0], [2.0]], "not equally long"),
        ([1.0, 2.0], "two dimensions"),
        ([["a"]], "must hold real numbers"),
        ([], "two dimensions"),
    ],
)
def test_list_that_is_no_matrix_is_refused(rows: list[object], message: str) -> None:
    with pytest.raises(MatrixError, match=message):
        as_csr(rows)


@pytest.mark.parametrize("A", [3.0, None, {}, spla.aslinearoperator(np.eye(2))])
def test_rejects_other_objects_with_their_type(A: Any) -> None:
    with pytest.raises(MatrixError, match=f"cannot take a matrix from .*{type(A).__name__}"):
        as_csr(A)


def test_rejects_masked_array() -> None:
    with pytest.raises(MatrixError, match=r"masked array; pass A\.filled"):
        as_csr(np.ma.masked_equal(DENSE, 0.0))


# Broken arrays must not reach compiled code


def broken(format: str, **arrays: Any) -> Any:
    A = sp.csr_array(DENSE).asformat(format)
    for name, array in arrays.items():
        getattr(A, name)[:] = array
    return A


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (broken("csr", indices=7), "row 0 has column 7; columns run from 0 to 2"),
        (broken("csr", indices=[0, 1, 0, 1, -2, 1, 2]), "row 1 has column -2"),
        (broken("csr", indptr=[0, 5, 2, 7]), "decreases after row 1, from 5 to 2"),
        (broken("csr", indptr=[1, 2, 5, 7]), r"indptr\[0\] is 1"),
        (broken("csr", indptr=[0, 2, 5, 99]), "promises 99 entries, but there are 7 indices"),
        (broken("csc", indices=7), "CSC arrays are inconsistent"),
        (broken("bsr", indices=7), "BSR arrays are inconsistent"),
        (broken("coo", row=7), "entry 0 of the COO matrix has row 7"),
        (broken("coo", col=-1), "entry 0 of the COO matrix has column -1"),
    ],
)
def test_rejects_broken_sparse_arrays(A: Any, message: str) -> None:
    with pytest.raises(MatrixError, match=message):
        as_csr(A)


def test_rejects_csr_with_too_few_row_pointers() -> None:
    A = sp.csr_array(DENSE)
    A.indptr = A.indptr[:-1]
    with pytest.raises(MatrixError, match="3 rows, but indptr has 3 elements"):
        as_csr(A)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": INDPTR.astype(np.int32)}, "indptr has dtype int32"),
        ({"indices": INDICES.astype(np.int64)}, "indices has dtype int64"),
        ({"data": DATA.astype(np.complex128)}, "data has dtype complex128"),
        ({"data": DATA[:-1]}, "7 indices and 6 values"),
        ({"data": np.append(DATA, 1.0)}, "elements each, 7; they have 7, 8"),
        ({"indices": INDICES[::-1]}, "columns of each row must increase strictly"),
        ({"indptr": INDPTR[:0]}, "indptr has 0 elements"),
        ({"indptr": INDPTR[:, np.newaxis]}, "must be 1-D"),
    ],
)
def test_csr_matrix_that_exists_is_well_formed(changes: dict[str, Any], message: str) -> None:
    arrays = {"indptr": INDPTR, "indices": INDICES, "data": DATA} | changes
    with pytest.raises(MatrixError, match=message):
        CsrMatrix(**arrays)


def test_decreasing_columns_across_rows_are_in_order() -> None:
    # Empty rows at the start, in the middle and at the end must not confuse the check.
    A = sp.csr_array(([1.0, 1.0, 1.0], [2, 3, 1], [0, 0, 2, 2, 3, 3]), shape=(5, 5))
    assert canonical_csr(A).nnz == 3


def test_errors_are_cpufree_errors() -> None:
    with pytest.raises(CpufreeError):
        as_csr("no such file.mtx")
