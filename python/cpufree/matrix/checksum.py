"""CRC-32 of large arrays, by several threads: zlib's of pieces, put together.

A checksum is a polynomial over GF(2), modulo that of CRC-32, its bits in falling powers: bit 31 is
that of x^0. Bytes that follow a text multiply its checksum by x^8 each, and add theirs.
"""

from __future__ import annotations

import threading
import zlib

from cpufree.extension import load_core

PIECE = 4 << 20
"""Bytes that a thread takes at a time."""
_MODULUS = 0xEDB88320
_ONE, _X = 1 << 31, 1 << 30


def crc32(data: memoryview) -> int:
    """Return zlib.crc32 of contiguous data, which several threads read."""
    octets = data.cast("B") if data.nbytes else memoryview(b"")
    count = -(-len(octets) // PIECE)
    threads = min(count, load_core().available_cores())
    if threads < 2:
        return zlib.crc32(octets)
    found = [0] * count
    errors: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for k in range(first, count, threads):
                found[k] = zlib.crc32(octets[k * PIECE : (k + 1) * PIECE])
        except BaseException as error:  # such as no memory; raised where all have ended
            errors.append(error)

    team = [threading.Thread(target=work, args=(first,)) for first in range(1, threads)]
    for thread in team:
        thread.start()
    work(0)
    for thread in team:
        thread.join()
    if errors:
        raise errors[0]
    behind = _power(8 * PIECE)
    whole = found[0]
    for k in range(1, count - 1):
        whole = _product(whole, behind) ^ found[k]
    return _product(whole, _power(8 * (len(octets) - (count - 1) * PIECE))) ^ found[-1]


def _product(one: int, other: int) -> int:
    """Return the product of two polynomials."""
    product = 0
    while one:
        if one & _ONE:
            product ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (_MODULUS if other & 1 else 0)
    return product


def _power(exponent: int) -> int:
    """Return x to a power."""
    power, square = _ONE, _X
    while exponent:
        if exponent & 1:
            power = _product(power, square)
        square = _product(square, square)
        exponent >>= 1
    return power
