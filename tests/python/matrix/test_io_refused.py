"""Files of matrices that are missing, damaged or something else, and failed writes."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from cpufree.errors import CpufreeError, FileFormatError, MatrixError, OutOfMemoryError
from cpufree.matrix.load import as_csr, load_matrix
from cpufree.matrix.save import save_matrix

SUFFIXES = [".mtx", ".mtx.gz", ".npz", ".cpufree"]


@pytest.fixture
def matrix() -> sp.csr_array:
    """A symmetric matrix, 30 x 30, with values of 17 digits."""
    rng = np.random.default_rng(3)
    half = rng.standard_normal((30, 30)) * (rng.random((30, 30)) < 0.1)
    return sp.csr_array(half + half.T + 10 * np.eye(30))


def refused(path: Path | str) -> str:
    """Return the message with which a file is refused."""
    with pytest.raises(FileFormatError) as caught:
        load_matrix(path)
    assert os.fspath(caught.value.path or "") == os.fspath(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


# Round trips


def test_missing_file_is_named(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "a.mtx")


def test_missing_file_with_the_name_of_a_generator_is_pointed_out() -> None:
    message = refused(Path("poisson2d?nx=4"))
    assert "no such file; for the generator write gen:poisson2d?nx=4" in message


def test_missing_file_with_a_compressed_sibling_is_pointed_out(
    tmp_path: Path, matrix: sp.csr_array
) -> None:
    save_matrix(tmp_path / "a.mtx.gz", matrix)
    assert "there is a.mtx.gz" in refused(tmp_path / "a.mtx")


def test_name_that_is_empty_is_refused() -> None:
    with pytest.raises(FileFormatError, match="name of a file to read is empty"):
        load_matrix("")


def test_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").mkdir()
    assert "is a directory; name a file in it" in refused(tmp_path / "a.mtx")


def test_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.mtx")
    assert "not a regular file" in refused(tmp_path / "a.mtx")


def test_name_with_a_nul_byte_is_refused() -> None:
    with pytest.raises(FileFormatError, match="null byte"):
        load_matrix("a\0.mtx")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_refused(tmp_path: Path, matrix: sp.csr_array) -> None:
    save_matrix(tmp_path / "a.mtx", matrix)
    (tmp_path / "a.mtx").chmod(0)
    assert "Permission denied" in refused(tmp_path / "a.mtx")


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".npy"])
def test_empty_file_is_refused(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a{suffix}").touch()
    assert "the file is empty" in refused(tmp_path / f"a{suffix}")


def test_unknown_suffix_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("x")
    message = refused(tmp_path / "a.xyz")
    assert "unknown suffix; known are .mtx, .mtx.gz, .mtx.bz2, .tar.gz, .tgz, .npz, .npy" in message


@pytest.mark.parametrize(
    ("name", "advice"),
    [("a.h5", "h5py"), ("a.csv", "NumPy array"), ("a.zip", "unpack the archive")],
)
def test_formats_of_others_come_with_advice(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_text("x")
    assert advice in refused(tmp_path / name)


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".npy"])
@pytest.mark.parametrize("content", [b"garbage\n" * 50, bytes(400), bytes(range(256)) * 2])
def test_garbage_is_refused(tmp_path: Path, suffix: str, content: bytes) -> None:
    (tmp_path / f"a{suffix}").write_bytes(content)
    refused(tmp_path / f"a{suffix}")


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".npy"])
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
def test_truncated_file_is_refused(
    tmp_path: Path, matrix: sp.csr_array, suffix: str, kept: float
) -> None:
    file = tmp_path / f"a{suffix}"
    if suffix == ".npy":
        np.save(file, matrix.toarray())
    else:
        save_matrix(file, matrix)
    data = file.read_bytes()
    file.write_bytes(data[: int(kept * len(data))])
    refused(file)


def test_file_of_another_kind_under_our_suffix_is_read_or_refused(
    tmp_path: Path, matrix: sp.csr_array
) -> None:
    save_matrix(tmp_path / "a.mtx", matrix)
    (tmp_path / "a.mtx").rename(tmp_path / "a.mtx.gz")
    assert np.array_equal(load_matrix(tmp_path / "a.mtx.gz").toarray(), matrix.toarray())
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.mtx.gz").read_bytes())
    assert "a.npz" in refused(tmp_path / "a.npz")


# NumPy's formats


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    np.save(tmp_path / "a.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", format=np.array(Trap(), dtype=object))
    for name in ("a.npy", "a.npz"):
        refused(tmp_path / name)
    assert not (tmp_path / "ran").exists()


def test_npz_without_a_matrix_is_refused_with_what_it_holds(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", b=np.ones(3), x=np.ones(3))
    assert "holds b.npy, x.npy, but no sparse matrix" in refused(tmp_path / "a.npz")


def header_only(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    """Return a .npy file that declares a shape and holds nothing."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    text = text.ljust(118 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def test_npy_that_declares_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(header_only((10**6, 10**6)))
    refused(tmp_path / "a.npy")


def test_npy_whose_header_declares_to_be_huge_is_refused_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / "a.npy", "wb") as file:
        file.write(b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little"))
        file.truncate(3 << 30)  # a hole: takes no room on the disk
    monkeypatch.setattr(np.lib.format, "open_memmap", None)
    assert "its header declares to be 2147483648 bytes long" in refused(tmp_path / "a.npy")


def bsr_archive(path: Path, blocks: int, dtype: Any, **how: Any) -> None:
    """Save a matrix of one row of dense blocks of 512 x 512, all zero."""
    data = np.zeros((blocks, 512, 512), dtype)
    A = sp.bsr_array((data, np.arange(blocks), np.array([0, blocks])), shape=(512, 512 * blocks))
    A._shape = (512 * blocks, 512 * blocks)
    A.indptr = np.concatenate(([0], np.full(blocks, blocks)))
    sp.save_npz(path, A, **how)


def test_small_npz_that_becomes_large_as_float64_is_refused(tmp_path: Path) -> None:
    bsr_archive(tmp_path / "a.npz", 16, np.int8)
    assert (tmp_path / "a.npz").stat().st_size < 10_000
    message = refused(tmp_path / "a.npz")
    assert "4194304 values would take 33554432 bytes" in message
    assert "compressed=False" in message


def test_blocks_of_whole_numbers_that_are_not_compressed_load(tmp_path: Path) -> None:
    bsr_archive(tmp_path / "a.npz", 2, np.int8, compressed=False)
    assert load_matrix(tmp_path / "a.npz").shape == (1024, 1024)


def test_matrix_for_which_there_is_no_memory_is_an_out_of_memory_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(*_: Any) -> None:
        raise MemoryError("8 GB")

    save_matrix(tmp_path / "a.mtx", np.eye(2))
    monkeypatch.setattr("cpufree.matrix.load.convert", too_much)
    with pytest.raises(OutOfMemoryError, match=r"a\.mtx: not enough memory: 8 GB"):
        load_matrix(tmp_path / "a.mtx")
    with pytest.raises(OutOfMemoryError, match=r"the matrix: not enough memory: 8 GB"):
        as_csr(np.eye(2))


def test_npz_that_declares_more_than_it_holds_is_refused_before_it_is_read(
    tmp_path: Path, matrix: sp.csr_array
) -> None:
    file = tmp_path / "a.npz"
    save_matrix(file, matrix)
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["data.npy"] = header_only((10**12,))
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    assert "data.npy declares 8000000000000 bytes but holds at most 128" in refused(file)


@pytest.mark.parametrize("indices", [[0, 99], [0, -1]])
def test_npz_with_columns_out_of_range_is_refused(tmp_path: Path, indices: list[int]) -> None:
    A = sp.csr_array(np.eye(2))
    A.indices[:] = indices
    sp.save_npz(tmp_path / "a.npz", A)
    with pytest.raises(MatrixError, match=r"a\.npz: the CSR arrays are inconsistent: row 1 has"):
        load_matrix(tmp_path / "a.npz")


def test_npz_that_claims_a_huge_shape_is_refused(tmp_path: Path) -> None:
    A = sp.coo_array(([1.0], ([0], [0])), shape=(10**12, 10**12))
    sp.save_npz(tmp_path / "a.npz", A)
    with pytest.raises(MatrixError, match="index overflow: the matrix has 1000000000000 rows"):
        load_matrix(tmp_path / "a.npz")


# Writing


def test_unknown_suffix_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"unknown suffix; known are \.mtx, \.mtx\.gz"):
        save_matrix(tmp_path / "a.dat", np.eye(2))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_directory_is_named(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(FileFormatError, match=r"nowhere/a.*cannot be written: No such file"):
        save_matrix(tmp_path / "nowhere" / f"a{suffix}", np.eye(2))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_failed_write_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    file = tmp_path / f"a{suffix}"
    file.write_bytes(b"precious")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CpufreeError, match="No space left on device"):
        save_matrix(file, np.eye(2))
    assert file.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [file]


def test_gzip_bomb_is_stopped_early(tmp_path: Path) -> None:
    head = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n"
    with gzip.open(tmp_path / "a.mtx.gz", "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(64):
            file.write(b"\n" * (1 << 20))
    assert "far more text than 1 entry can take" in refused(tmp_path / "a.mtx.gz")
