"""Checksums by several threads are those of zlib."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from cpufree.matrix import checksum


@pytest.mark.parametrize("cores", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 200, 999, 1000, 1001, 4321])
def test_pieces_have_the_checksum_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, cores: int, size: int
) -> None:
    monkeypatch.setattr(checksum, "PIECE", 100)
    monkeypatch.setattr("cpufree._core.available_cores", lambda: cores)
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert checksum.crc32(data.data) == zlib.crc32(data.data)


def test_a_piece_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Zlib:
        @staticmethod
        def crc32(octets: memoryview) -> int:
            if octets[0] == 7:
                raise MemoryError
            return 1

    monkeypatch.setattr(checksum, "PIECE", 100)
    monkeypatch.setattr("cpufree._core.available_cores", lambda: 3)
    monkeypatch.setattr(checksum, "zlib", Zlib)
    data = np.zeros(1000, np.uint8)
    data[500] = 7  # of a piece that another thread reads
    with pytest.raises(MemoryError):
        checksum.crc32(data.data)


def test_a_large_array_has_the_checksum_of_zlib() -> None:
    values = np.random.default_rng(2).standard_normal(2_000_000)
    assert values.nbytes > 3 * checksum.PIECE
    assert checksum.crc32(values.data) == zlib.crc32(values.data)
    values[1_234_567] += 1e-12
    assert checksum.crc32(values.data) == zlib.crc32(values.data)
