"""MATLAB's files, versions 4 to 7."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from cpufree.errors import FileFormatError, MatrixError
from cpufree.matrix.load import load_matrix

DENSE = np.array([[4.0, -1.0, 0.0], [-1.0, 4.25, -2.0], [0.0, -2.0, 5.0]])


def refused(path: Path | str, kind: type[Exception] = FileFormatError) -> str:
    with pytest.raises(kind) as caught:
        load_matrix(path)
    return str(caught.value)


@pytest.mark.parametrize("compressed", [False, True])
def test_only_sparse_matrix_of_a_mat_file_is_taken(tmp_path: Path, compressed: bool) -> None:
    contents = {"b": np.ones(3), "K": sp.csc_array(DENSE), "note": "text"}
    scipy.io.savemat(tmp_path / "a.mat", contents, do_compression=compressed)
    assert np.array_equal(load_matrix(tmp_path / "a.mat").toarray(), DENSE)


def test_matrix_of_a_mat_file_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {"K": sp.csc_array(DENSE), "M": sp.eye_array(3), "D": DENSE})
    assert "holds several sparse matrices: K, M. Name the one that is meant" in refused(file)
    assert np.array_equal(load_matrix(f"{file}#M").toarray(), np.eye(3))
    assert np.array_equal(load_matrix(f"{file}#D").toarray(), DENSE)
    assert "there is no 'X'; the file holds K (sparse), M (sparse), D (double)" in refused(
        f"{file}#X"
    )


def test_problem_of_the_collection_is_found_in_its_structure(tmp_path: Path) -> None:
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {"Problem": {"A": sp.csc_array(DENSE), "name": "pipe"}})
    assert np.array_equal(load_matrix(file).toarray(), DENSE)
    assert "'Problem' has no field 'B'" in refused(f"{file}#Problem.B")
    assert "'Problem.name' is not a matrix of numbers" in refused(f"{file}#Problem.name")


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"MATLAB 7.3 MAT-file, Platform: GLNXA64", "of version 7.3.*'-v7'"),
        (b"\x89HDF\r\n\x1a\n", "of version 7.3.*'-v7'"),
        (b"text", "not a MATLAB file of versions 4 to 7"),
    ],
)
def test_other_versions_are_refused_with_advice(tmp_path: Path, head: bytes, why: str) -> None:
    (tmp_path / "a.mat").write_bytes(head.ljust(600, b"\0"))
    with pytest.raises(FileFormatError, match=why):
        load_matrix(tmp_path / "a.mat")


def test_mat_file_without_a_sparse_matrix_tells_what_it_holds(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"D": DENSE})
    assert "holds no sparse matrix; the file holds D (double)" in refused(tmp_path / "a.mat")


def logical(values: bytes, kind: int) -> bytes:
    """Return a file with the logical matrix [[1, 0], [1, 1]], its values as type `kind`."""

    def element(kind: int, data: bytes) -> bytes:
        return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)

    inside = (
        element(6, struct.pack("<II", 0x0200 | 5, 3))  # flags: logical, sparse
        + element(5, struct.pack("<ii", 2, 2))
        + element(1, b"L")
        + element(5, struct.pack("<iii", 0, 1, 1))
        + element(5, struct.pack("<iii", 0, 2, 3))
        + element(kind, values)
    )
    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + element(14, inside)


@pytest.mark.parametrize(
    ("values", "kind"),
    [(b"\1\1\1", 2), (b"\1\1\1", 9), (struct.pack("<ddd", 1, 1, 1), 9)],
    ids=["bytes", "bytes called doubles", "doubles"],
)
def test_logical_sparse_matrix_has_ones(tmp_path: Path, values: bytes, kind: int) -> None:
    (tmp_path / "a.mat").write_bytes(logical(values, kind))
    assert load_matrix(tmp_path / "a.mat").toarray().tolist() == [[1.0, 0.0], [1.0, 1.0]]


def test_structures_in_structures_are_named_by_dots(tmp_path: Path) -> None:
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {"model": {"part": {"K": sp.csc_array(DENSE)}}})
    assert np.array_equal(load_matrix(f"{file}#model.part.K").toarray(), DENSE)
    assert "'model.part' has no field 'M'" in refused(f"{file}#model.part.M")
    assert "'model.part.K' has no field 'x'" in refused(f"{file}#model.part.K.x")


def test_files_of_version_4_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {"K": sp.csc_array(DENSE), "D": DENSE, "t": "text"}, format="4")
    assert np.array_equal(load_matrix(file).toarray(), DENSE)
    assert np.array_equal(load_matrix(f"{file}#D").toarray(), DENSE)
    assert "there is no 'X'; the file holds K (sparse), D (double), t (char)" in refused(
        f"{file}#X"
    )
    assert "'t' is not a matrix of numbers" in refused(f"{file}#t")


def test_file_of_version_4_that_leaves_a_choice_or_is_complex_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.mat"
    scipy.io.savemat(
        file, {"K": sp.eye_array(3), "M": sp.eye_array(3), "Z": 1j * DENSE}, format="4"
    )
    assert "holds several sparse matrices: K, M" in refused(file)
    assert "complex" in refused(f"{file}#Z", MatrixError)
    scipy.io.savemat(file, {"D": DENSE}, format="4")
    assert "holds no sparse matrix; the file holds D (double)" in refused(file)


def test_small_mat_file_that_becomes_large_as_float64_is_refused(tmp_path: Path) -> None:
    bytes_ = np.zeros((2000, 2000), np.int8)
    scipy.io.savemat(tmp_path / "a.mat", {"D": bytes_}, do_compression=True)
    assert (tmp_path / "a.mat").stat().st_size < 10_000
    assert "more than a file of its size should hold" in refused(f"{tmp_path / 'a.mat'}#D")
