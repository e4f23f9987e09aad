"""Reading and writing vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpufree.dtypes import float_type
from cpufree.errors import FileFormatError, VectorError
from cpufree.matrix.io.vectors import load_vector, save_vector

SUFFIXES = [".npy", ".mtx", ".mtx.gz", ".txt"]
VALUES = np.array([0.1, -2.0 / 3.0, 1e-300, 1e300, -0.0])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", [(5,), (5, 1)])
def test_saved_vector_loads_the_same_to_the_bit(tmp_path: Path, suffix: str, shape: Any) -> None:
    save_vector(tmp_path / f"b{suffix}", VALUES.reshape(shape))
    loaded = load_vector(tmp_path / f"b{suffix}", 5)
    assert (loaded.shape, loaded.dtype) == ((5,), np.float64)
    assert loaded.tobytes() == VALUES.tobytes()


@pytest.mark.parametrize("order", ["<", ">"])
def test_npy_keeps_float32(tmp_path: Path, order: str) -> None:
    save_vector(tmp_path / "b.npy", np.array([0.1, 0.2], f"{order}f4"))
    loaded = load_vector(tmp_path / "b.npy", 2)
    assert loaded.dtype == np.float32
    assert np.array_equal(loaded, np.float32([0.1, 0.2]))


@pytest.mark.parametrize("suffix", [".mtx", ".txt"])
def test_text_of_float32_reads_back_as_the_same_float32(tmp_path: Path, suffix: str) -> None:
    save_vector(tmp_path / f"b{suffix}", np.float32([0.1, 1e-30]))
    assert np.array_equal(load_vector(tmp_path / f"b{suffix}", 2), np.float32([0.1, 1e-30]))


@pytest.mark.parametrize("suffix", [".npy", ".mtx", ".txt"])
@pytest.mark.parametrize("kind", ["?", "i1", "u1", "i8", "u8", "f2", "f4", ">f4", ">f8", "g"])
def test_numbers_of_any_type_read_back_as_the_same(tmp_path: Path, suffix: str, kind: str) -> None:
    values = np.array([1, 0, 1 / 3], "g").astype(kind)
    save_vector(tmp_path / f"b{suffix}", values)
    loaded, solved_in = load_vector(tmp_path / f"b{suffix}", 3), float_type(values.dtype)
    assert np.array_equal(loaded.astype(solved_in), values.astype(solved_in))


def test_loaded_vector_does_not_depend_on_the_file_any_more(tmp_path: Path) -> None:
    save_vector(tmp_path / "b.npy", VALUES)
    loaded = load_vector(tmp_path / "b.npy", 5)
    with open(tmp_path / "b.npy", "r+b") as file:
        file.seek(-40, 2)
        file.write(bytes(40))
    assert np.array_equal(loaded, VALUES)
    loaded[0] = 1.0


def test_sparse_column_is_filled_with_zeros(tmp_path: Path) -> None:
    (tmp_path / "b.mtx").write_text("%%MatrixMarket matrix coordinate real general\n3 1 1\n2 1 5\n")
    assert load_vector(tmp_path / "b.mtx", 3).tolist() == [0.0, 5.0, 0.0]


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".mtx"])
def test_numbers_as_fortran_prints_them(tmp_path: Path, suffix: str) -> None:
    head = "%%MatrixMarket matrix array real general\n3 1\n" if suffix == ".mtx" else ""
    text = f"\ufeff{head}1.0D+05\n0.1000-100\n-.25d2\n"
    (tmp_path / f"b{suffix}").write_text(text, encoding="utf-8")
    assert load_vector(tmp_path / f"b{suffix}", 3).tolist() == [1e5, 0.1e-100, -25.0]


def test_text_may_hold_comments_and_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("# load case 1\n1.5\n\n-2e3\n")
    assert load_vector(tmp_path / "b.txt", 2).tolist() == [1.5, -2000.0]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_wrong_length_is_refused_with_both_lengths_and_the_file(
    tmp_path: Path, suffix: str
) -> None:
    save_vector(tmp_path / f"b{suffix}", VALUES)
    with pytest.raises(VectorError) as caught:
        load_vector(tmp_path / f"b{suffix}", 6)
    message = str(caught.value)
    assert f"b{suffix}" in message
    assert "5" in message
    assert "the matrix has 6 rows" in message


def test_row_vector_in_matrix_market_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.mtx").write_text("%%MatrixMarket matrix array real general\n1 3\n1\n2\n3\n")
    with pytest.raises(VectorError, match=r"holds 1 x 3 numbers.*so 3 x 1 are needed"):
        load_vector(tmp_path / "b.mtx", 3)


def test_huge_declared_vector_is_refused_before_it_is_allocated(tmp_path: Path) -> None:
    text = "%%MatrixMarket matrix coordinate real general\n1000000000000 1 1\n1 1 1\n"
    (tmp_path / "b.mtx").write_text(text)
    with pytest.raises(FileFormatError, match="1000000000000 x 1 is no vector"):
        load_vector(tmp_path / "b.mtx", 3)


@pytest.mark.parametrize("suffix", [".npy", ".mtx", ".mtx.gz"])
def test_complex_vector_comes_back(tmp_path: Path, suffix: str) -> None:
    v = np.array([1 + 2j, -3j, 0.1])
    save_vector(tmp_path / f"b{suffix}", v)
    found = load_vector(tmp_path / f"b{suffix}", 3)
    assert found.dtype == np.complex128
    assert np.array_equal(found, v)


def test_complex_vector_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(VectorError, match=r"one real number a line.*\.npy or \.mtx"):
        save_vector(tmp_path / "b.txt", [1j])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", ["nan", "inf"])
def test_not_finite_is_refused_with_its_place(tmp_path: Path, word: str) -> None:
    (tmp_path / "b.txt").write_text(f"1\n{word}\n")
    with pytest.raises(VectorError, match=rf"b\.txt\[1\] = {word} is not a finite number"):
        load_vector(tmp_path / "b.txt", 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# one word a line\n1\n\ntwo # three\n", "line 4: 'two' is not a number"),
        ("1,2,3\n", "line 1: '1,2,3' is not a number"),
        ("\0\1\2", "line 1: '.*' is not a number"),
        ("1 2\n3\n", "line 1: 2 numbers, but each needs its own line"),
        ("1\n1_0\n3\n", "line 2: '1_0' is not a number"),
    ],
)
def test_garbage_in_text_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "b.txt").write_text(text)
    with pytest.raises(FileFormatError, match=rf"b\.txt: {message}"):
        load_vector(tmp_path / "b.txt", 3)


@pytest.mark.timeout(600)
def test_text_without_line_ends_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    with open(tmp_path / "b.txt", "wb") as file:
        file.truncate(3 << 30)  # a hole: takes no room on the disk
    with pytest.raises(FileFormatError, match="line 1: longer than 1048576 characters"):
        load_vector(tmp_path / "b.txt", 3)


def test_text_with_too_many_numbers_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("1\n" * 100_000 + "no number\n")
    with pytest.raises(VectorError, match=r"b\.txt: holds more numbers than the matrix has rows"):
        load_vector(tmp_path / "b.txt", 3)


@pytest.mark.filterwarnings("error")
def test_text_without_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("# nothing\n")
    with pytest.raises(VectorError, match=r"has shape \(0,\)"):
        load_vector(tmp_path / "b.txt", 3)


@pytest.mark.parametrize("suffix", [".npy", ".mtx", ".mtx.gz"])
def test_garbage_is_refused(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"b{suffix}").write_bytes(b"\x93garbage" * 20)
    with pytest.raises(FileFormatError):
        load_vector(tmp_path / f"b{suffix}", 3)


def test_unknown_suffix_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.dat").write_text("1\n")
    with pytest.raises(FileFormatError, match=r"known are \.npy, .*\.txt"):
        load_vector(tmp_path / "b.dat", 1)
    with pytest.raises(FileFormatError, match="unknown suffix"):
        save_vector(tmp_path / "c.csv", VALUES)


@pytest.mark.parametrize(
    "v", [np.eye(2), 1.0, ["a"], [[1], [1, 2]], np.ma.masked_array([1.0], mask=True)]
)
def test_only_vectors_of_numbers_are_saved(tmp_path: Path, v: Any) -> None:
    with pytest.raises(VectorError, match="a vector of numbers is needed"):
        save_vector(tmp_path / "b.npy", v)
    assert list(tmp_path.iterdir()) == []
