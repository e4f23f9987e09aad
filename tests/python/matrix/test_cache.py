"""The binary cache: exact, mapped, checked, and written in one step."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree.matrix.cache
from cpufree.errors import FileFormatError, MatrixError
from cpufree.matrix.cache import HEADER_BYTES, read_cache, write_cache
from cpufree.matrix.load import as_csr, canonical_csr
from cpufree.matrix.problem import CsrMatrix


@pytest.fixture
def matrix() -> CsrMatrix:
    """A symmetric matrix with 37 rows, so that no array ends on a multiple of 64 bytes."""
    rng = np.random.default_rng(11)
    half = rng.standard_normal((37, 37)) * (rng.random((37, 37)) < 0.1)
    return as_csr(half + half.T + 10 * np.eye(37))


@pytest.fixture
def file(tmp_path: Path, matrix: CsrMatrix) -> Path:
    """A cache file of the matrix."""
    write_cache(tmp_path / "a.cpufree", matrix)
    return tmp_path / "a.cpufree"


def reseal(data: bytearray) -> bytes:
    """Return the file with the checksum of its header made right."""
    data[124:128] = struct.pack("<I", zlib.crc32(bytes(data[:124])))
    return bytes(data)


def test_arrays_come_back_to_the_bit(file: Path, matrix: CsrMatrix) -> None:
    loaded = read_cache(file)
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(loaded, name), getattr(matrix, name))
        assert getattr(loaded, name).dtype == getattr(matrix, name).dtype


def test_float32_stays_float32(tmp_path: Path, matrix: CsrMatrix) -> None:
    single = as_csr(matrix.to_scipy().astype(np.float32))
    write_cache(tmp_path / "a.cpufree", single)
    loaded = read_cache(tmp_path / "a.cpufree")
    assert loaded.dtype == np.float32
    assert np.array_equal(loaded.data, single.data)


def test_bits_of_nan_and_negative_zero_survive(tmp_path: Path) -> None:
    A = canonical_csr(sp.csr_array(([-0.0, np.nan], [0, 1], [0, 1, 2]), shape=(2, 2)))
    write_cache(tmp_path / "a.cpufree", A)
    assert read_cache(tmp_path / "a.cpufree").data.tobytes() == A.data.tobytes()


def test_matrix_without_entries_can_be_cached(tmp_path: Path) -> None:
    write_cache(tmp_path / "a.cpufree", canonical_csr(sp.csr_array((3, 3))))
    assert read_cache(tmp_path / "a.cpufree").shape == (3, 3)


def test_arrays_are_mapped_and_aligned(file: Path) -> None:
    loaded = read_cache(file)
    for array in (loaded.indptr, loaded.indices, loaded.data):
        base: Any = array
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
        assert array.ctypes.data % 64 == 0


def test_file_is_laid_out_as_specified(file: Path, matrix: CsrMatrix) -> None:
    # Written from docs/input.md, not from the code.
    data = file.read_bytes()
    fields = struct.unpack_from("<8sIIQQIIQQQQIII", data)
    magic, version, header, rows, nnz, code, reserved, *offsets, size, c0, c1, c2 = fields
    assert (magic, version, header) == (b"\x93CPUFREE", 1, 128)
    assert (rows, nnz, code, reserved) == (37, matrix.nnz, 1, 0)
    assert size == len(data)
    assert all(offset % 64 == 0 for offset in [*offsets, size])
    arrays = [
        np.frombuffer(data, dtype, count, offset)
        for dtype, count, offset in zip(
            ("<i8", "<i4", "<f8"), (rows + 1, nnz, nnz), offsets, strict=True
        )
    ]
    assert [zlib.crc32(array.tobytes()) for array in arrays] == [c0, c1, c2]
    assert data[84:124] == bytes(40)
    assert struct.unpack_from("<I", data, 124)[0] == zlib.crc32(data[:124])
    expected = sp.csr_array((arrays[2], arrays[1], arrays[0]), shape=(37, 37))
    assert np.array_equal(expected.toarray(), matrix.to_scipy().toarray())


# Damage


def spoil(file: Path, change: Callable[[bytearray], bytes | bytearray]) -> str:
    """Change a file and return the message with which it is refused."""
    file.write_bytes(change(bytearray(file.read_bytes())))
    with pytest.raises(FileFormatError) as caught:
        read_cache(file)
    assert str(file) in str(caught.value)
    return str(caught.value)


def put(data: bytearray, offset: int, value: bytes) -> bytearray:
    data[offset : offset + len(value)] = value
    return data


@pytest.mark.parametrize("byte", range(8, 128))
def test_every_byte_of_the_header_is_protected(file: Path, byte: int) -> None:
    spoil(file, lambda data: put(data, byte, bytes([data[byte] ^ 1])))


@pytest.mark.parametrize(("array", "name"), [(0, "indptr"), (1, "indices"), (2, "data")])
def test_damaged_array_is_named(file: Path, array: int, name: str) -> None:
    offset = struct.unpack_from("<QQQ", file.read_bytes(), 40)[array] + 5
    message = spoil(file, lambda data: put(data, offset, bytes([data[offset] ^ 4])))
    assert f"the checksum of {name} does not match" in message
    assert "Make it again from its source" in message


def test_damaged_array_that_is_no_csr_is_refused_even_unverified(file: Path) -> None:
    offset = struct.unpack_from("<QQQ", file.read_bytes(), 40)[1]
    file.write_bytes(put(bytearray(file.read_bytes()), offset, b"\xff\xff\xff\x7f"))
    with pytest.raises(MatrixError, match="row 0 has column 2147483647"):
        read_cache(file, verify=False)


def test_verification_can_be_left_out(file: Path, matrix: CsrMatrix) -> None:
    offset = struct.unpack_from("<QQQ", file.read_bytes(), 40)[2]
    file.write_bytes(put(bytearray(file.read_bytes()), offset, struct.pack("<d", 7.5)))
    assert read_cache(file, verify=False).data[0] == 7.5


@pytest.mark.parametrize("size", [9, 127, 128, 300])
def test_truncated_file_is_named_as_such(file: Path, size: int) -> None:
    assert f"it is truncated, {size} bytes" in spoil(file, lambda data: data[:size])


def test_file_with_something_behind_it_is_refused(file: Path) -> None:
    assert "it is too long" in spoil(file, lambda data: data + b"x")


def test_other_file_is_no_cache(file: Path) -> None:
    assert "not a cpufree cache file" in spoil(file, lambda _: b"%%MatrixMarket" * 20)


def test_later_version_is_refused_with_both_versions(file: Path) -> None:
    message = spoil(file, lambda data: reseal(put(data, 8, struct.pack("<I", 3))))
    assert "cache format version 3; this cpufree reads versions 1 and 2" in message


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (12, struct.pack("<I", 64)),  # header bytes
        (16, struct.pack("<Q", 0)),  # rows
        (16, struct.pack("<Q", 2**31)),
        (16, struct.pack("<Q", 10**12)),
        (24, struct.pack("<Q", 10**12)),  # entries
        (24, struct.pack("<Q", 2**64 - 1)),
        (32, struct.pack("<I", 9)),  # dtype
        (40, struct.pack("<Q", 0)),  # offset of indptr
        (56, struct.pack("<Q", 2**63)),  # offset of data
        (64, struct.pack("<Q", 10)),  # bytes of the file
    ],
)
def test_forged_header_is_refused(file: Path, offset: int, value: bytes) -> None:
    message = spoil(file, lambda data: reseal(put(data, offset, value)))
    assert "the cache file is damaged: the " in message


# Writing


def test_file_is_replaced_not_changed_in_place(file: Path, matrix: CsrMatrix) -> None:
    loaded = read_cache(file)
    write_cache(file, canonical_csr(np.eye(5)))
    # The old map is still whole.
    assert np.array_equal(loaded.data, matrix.data)
    assert read_cache(file).shape == (5, 5)


def test_interrupted_write_leaves_the_old_file_and_no_litter(
    file: Path, matrix: CsrMatrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.read_bytes()

    def interrupt(source: object, target: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cpufree.matrix.cache.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_cache(file, canonical_csr(np.eye(5)))
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_header_takes_two_cache_lines() -> None:
    assert HEADER_BYTES == 128
