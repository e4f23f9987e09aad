"""Reading and writing matrices by suffix; files that are missing, damaged or something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from cpufree.generate import registry
from cpufree.matrix.load import as_csr, load_matrix
from cpufree.matrix.save import save_matrix
from cpufree.matrix.validate import check_spd_input

SUFFIXES = [".mtx", ".mtx.gz", ".npz", ".cpufree"]


@pytest.fixture
def matrix() -> sp.csr_array:
    """A symmetric matrix, 30 x 30, with values of 17 digits."""
    rng = np.random.default_rng(3)
    half = rng.standard_normal((30, 30)) * (rng.random((30, 30)) < 0.1)
    return sp.csr_array(half + half.T + 10 * np.eye(30))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_saved_matrix_loads_the_same_to_the_bit(
    tmp_path: Path, matrix: sp.csr_array, suffix: str
) -> None:
    save_matrix(tmp_path / f"a{suffix}", matrix)
    loaded = load_matrix(tmp_path / f"a{suffix}")
    assert isinstance(loaded, sp.csr_array)
    assert loaded.dtype == np.float64
    assert np.array_equal(loaded.toarray(), matrix.toarray())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_unsymmetric_matrix_survives_a_round_trip(tmp_path: Path, suffix: str) -> None:
    A = np.array([[1.0, 2.0], [0.0, 3.0]])
    save_matrix(tmp_path / f"a{suffix}", A)
    assert np.array_equal(load_matrix(tmp_path / f"a{suffix}").toarray(), A)


@pytest.mark.parametrize("suffix", [".npz", ".cpufree"])
def test_binary_formats_keep_float32(tmp_path: Path, matrix: sp.csr_array, suffix: str) -> None:
    save_matrix(tmp_path / f"a{suffix}", matrix.astype(np.float32))
    loaded = load_matrix(tmp_path / f"a{suffix}")
    assert loaded.dtype == np.float32
    assert np.array_equal(loaded.toarray(), matrix.toarray().astype(np.float32))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_survive_to_the_bit_negative_zeros_too(
    tmp_path: Path, suffix: str, dtype: Any
) -> None:
    values = np.array([1 / 3, -0.0, 0.0, 0.1], dtype)
    A = sp.csr_array((values, ([0, 0, 1, 1], [0, 1, 0, 1])), shape=(2, 2))
    save_matrix(tmp_path / f"a{suffix}", A)
    found = load_matrix(tmp_path / f"a{suffix}").data
    assert found.astype(np.float64).tobytes() == values.astype(np.float64).tobytes()


def test_symmetric_matrix_is_written_as_its_lower_triangle(
    tmp_path: Path, matrix: sp.csr_array
) -> None:
    save_matrix(tmp_path / "a.mtx", matrix)
    entries, symmetry = (
        scipy.io.mminfo(tmp_path / "a.mtx")[2],
        scipy.io.mminfo(tmp_path / "a.mtx")[5],
    )
    assert (entries, symmetry) == ((matrix.nnz + 30) // 2, "symmetric")


def test_scipy_reads_what_we_write(tmp_path: Path, matrix: sp.csr_array) -> None:
    save_matrix(tmp_path / "a.mtx.gz", matrix)
    save_matrix(tmp_path / "a.npz", matrix)
    assert np.array_equal(scipy.io.mmread(tmp_path / "a.mtx.gz").toarray(), matrix.toarray())
    assert np.array_equal(sp.load_npz(tmp_path / "a.npz").toarray(), matrix.toarray())


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".cpufree"])
def test_same_matrix_gives_the_same_file(tmp_path: Path, matrix: sp.csr_array, suffix: str) -> None:
    for name in ("a", "b"):
        save_matrix(tmp_path / f"{name}{suffix}", matrix)
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia"])
def test_npz_of_any_format_loads(tmp_path: Path, matrix: sp.csr_array, format: str) -> None:
    sp.save_npz(tmp_path / "a.npz", matrix.asformat(format))
    assert np.array_equal(load_matrix(tmp_path / "a.npz").toarray(), matrix.toarray())


def test_dense_npy_loads(tmp_path: Path, matrix: sp.csr_array) -> None:
    np.save(tmp_path / "a.npy", matrix.toarray())
    loaded = load_matrix(tmp_path / "a.npy")
    assert loaded.nnz == matrix.nnz
    assert np.array_equal(loaded.toarray(), matrix.toarray())


def test_suffix_is_read_without_regard_to_case(tmp_path: Path, matrix: sp.csr_array) -> None:
    save_matrix(tmp_path / "A.MTX.GZ", matrix)
    assert (tmp_path / "A.MTX.GZ").read_bytes()[:2] == b"\x1f\x8b"
    assert np.array_equal(load_matrix(tmp_path / "A.MTX.GZ").toarray(), matrix.toarray())


def test_generator_string_calls_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[str] = []

    def from_spec(spec: str) -> Any:
        specs.append(spec)
        return sp.csr_array(2 * np.eye(3))

    monkeypatch.setattr(registry, "from_spec", from_spec)
    assert load_matrix("gen:twice_identity?n=3").diagonal().tolist() == [2.0, 2.0, 2.0]
    assert specs == ["twice_identity?n=3"]


# Real matrices


def test_real_matrices_load_as_scipy_reads_them(data_dir: Path) -> None:
    for file in sorted(data_dir.glob("*.mtx.gz")):
        if file.stat().st_size < 1_000_000:
            difference = load_matrix(file) - sp.csr_array(scipy.io.mmread(file))
            assert difference.count_nonzero() == 0, file.name


def test_real_matrices_pass_the_checks(data_dir: Path) -> None:
    names = {file.name for file in data_dir.glob("*.mtx.gz")}
    assert names
    for name in names:
        assert check_spd_input(as_csr(data_dir / name)) == 0.0, name


# What is no file, or none of ours
