"""Programs of single numbers and conversions, and the values that are special to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import cpufree
from cpufree.errors import ProgramError

WHOLE = [
    *(0, 1, -1, 3, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**40, 2**53 + 1),
    *(2**53 - 1, 2**63 - 1, -(2**63)),
]
REAL = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 710.0, 3e9, 5e-324, 2.0**53, 2.0**63, -(2.0**63)),
    *(1e300, -1e300, math.inf, -math.inf, math.nan),
]
EDGES = [
    *(2.5, 3.5, 2.2e-308, -5e-324, 2.0**53 + 2, 3e10, -3e10, 2.0**31, -(2.0**31), 0.1, 1e22),
    *(-(2.0**31) - 0.5, 2.0**31 - 0.5),
]


@cpufree.program
def numbers(which, whole, real, a, b, r):
    w = which[0].item()
    k = whole[0].item()
    j = whole[1].item()
    x = real[0].item()
    y = real[1].item()
    if w == 0:
        a[0] = k
    if w == 1:
        a[:] = x
        b[0] = y
    if w == 2:
        a[0] = real[0]
        b[0] = np.float32(y)
    if w == 3:
        a[0] += real[0]
        b[1] += x
    if w == 4:
        a.fill(x)
        np.copyto(b, k)
    if w == 5:
        a[:] = np.int32(k)
        b[:] = np.int64(x)
    if w == 6:
        b[0] = np.int64(np.float64(x))
    if w == 7:
        a[1:] = a[1:] + k
    if w == 8:
        a[:] = np.maximum(a, k)
    if w == 9:
        a[:] = np.where(a > 0, a, k)
    if w == 10:
        a[:] = np.clip(a, k, j)
    if w == 11:
        r[:] = a < k
        b[:] = a == j
    if w == 12:
        b[:] = b**j
    if w == 13:
        b[:] = b**whole
    if w == 14:
        b[0] = np.int64(j) ** np.int64(k)
    if w == 15:
        r[0] = x**y
    if w == 16:
        r[0] = x**2
    if w == 17:
        b[0] = -k
        b[1] = abs(j)
    if w == 18:
        r[0] = k / j
        b[0] = k // j
        b[1] = k % j
    if w == 19:
        r[0] = x // y
        r[1] = x % y
        r[2] = x / y
    if w == 20:
        r[0] = k * j % 17 + k // 3
        r[1] = k * 1.0**y + x / k + (k + j) * 2
    if w == 21:
        r[0] = np.where(k > 0, x / y, 2.0)
    if w == 22:
        r[0] = k == x
        r[1] = k < x
        r[2] = k >= y
        r[3] = y > j
        b[0] = y != j
        b[1] = x <= k
    if w == 23:
        if x > k:
            r[0] = x
        else:
            r[0] = k
        r[1] = min(y, float(j))
    if w == 24:
        r[0] = math.sqrt(x)
        r[1] = math.log(y)
    if w == 25:
        r[0] = math.exp(x)
        r[1] = math.sinh(y)
    if w == 26:
        r[0] = math.log1p(x) + math.sin(y)
    if w == 27:
        r[0] = math.asin(x) + math.atan2(x, y) + math.tan(x) + math.cos(y) + math.tanh(x)
        r[1] = math.log2(y) + math.fabs(x) + math.atan(x) + math.copysign(x, y)
        r[2] = math.asinh(x) + math.acosh(y)
        r[3] = math.cosh(y) + math.atanh(x)
        r[4] = math.expm1(x) + math.log10(y) + math.acos(x)
    if w == 28:
        r[0] = math.pow(x, y)
    if w == 29:
        r[0] = math.sqrt(real[0]) + math.sqrt(np.float32(y)) + math.sqrt(k)


NAMES = (
    "a whole number into int32", "a float into whole numbers", "a float of NumPy into whole ones",
    "floats added to single points", "fill and copyto", "types of NumPy called",
    "a type of NumPy called with its own", "an array and a whole number", "maximum with a number",
    "a choice of a number", "clip between whole numbers", "comparisons with an array",
    "whole numbers to a power of the run", "to powers of an array", "numbers of NumPy to a power",
    "a float to a power", "a float squared", "minus and abs", "whole numbers divided",
    "floats divided", "nested numbers", "a division that is not chosen", "exact comparisons",
    "min and max", "sqrt and log", "exp and sinh", "log1p and sin", "other functions of math",
    "pow", "sqrt of any number",
)  # fmt: skip
"""What `numbers` does, by the number that `which` has."""


@cpufree.program
def casts(u, v, k, m, b):
    return (
        u.astype(np.int32), u.astype(np.int64), v.astype(np.int32), v.astype(np.int64),
        u.astype(np.float32), u.astype(np.bool_), v.astype(np.bool_), k.astype(np.bool_),
        k.astype(np.int32), k.astype(np.float32), m.astype(np.float32), b.astype(np.float64),
    )  # fmt: skip


@cpufree.program
def casts_and_back(u, v, k, m, b):
    return (
        1.0 / u.astype(np.int64), u.astype(np.int32) * 1.0, v.astype(np.int32) * np.float64(1.0),
        v.astype(np.int32).astype(np.float32), v.astype(np.int64).astype(np.float32),
        u.astype(np.float32).astype(np.int32), v.astype(np.float64).astype(np.int64),
        np.arctan2(0.0 * u.astype(np.int64), -1.0), np.abs(v.astype(np.int32)) * 0.5,
        np.where(u < 0.0, u.astype(np.int32), 7) * 1.0, np.where(b, u.astype(np.int64), k) / 1.0,
        u.astype(np.int32).astype(np.int64) * 2.0, -(u.astype(np.int64)).astype(np.float64),
        k.astype(np.float64).astype(np.int64), k.astype(np.int32).astype(np.int64),
        m.astype(np.float32).astype(np.int32), b.astype(np.int32).astype(np.float64),
    )  # fmt: skip


@cpufree.program
def extremes(a, b, low, high):
    return (
        np.maximum(a, b), np.minimum(a, b), np.maximum(a, 0.0), np.minimum(0.0, a),
        np.maximum(a, -0.0), np.clip(a, low, high), np.clip(a, 0.0, -0.0), np.clip(a, -0.0, 1.0),
        np.clip(a, -1.0, -0.0), np.clip(a, None, -0.0), np.clip(a, 0.0, None),
        np.clip(a, b, 1.0), np.clip(a, -1.0, b), 1.0 / np.maximum(a, b),
    )  # fmt: skip


@cpufree.program
def checks(u, k, a):
    x, j = u[0].item(), k[0].item()
    a[0] = j
    a[1] = x
    a[:] = a**j
    y = math.asinh(x) + math.log1p(x) + math.pow(x, 2.0) + x**2
    return y, -j, abs(j), j / 3, j // 3, j % 3, j == x, j < x, u.astype(np.int64)


def arguments_of(which: int, k: int, j: int, x: float, y: float) -> tuple[Any, ...]:
    """Return arguments of `numbers`."""
    a = np.array([1, -2, 3, -4, 5, 2**31 - 1], np.int32)
    whole, real = np.array([k, j, 2, 3, 4, 5]), np.array([x, y])
    return np.array([which]), whole, real, a, np.array([1, -2, 3, -4, 5, 6]), np.zeros(6)


def outcome(f: Any, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """Return "" and the arrays after a call, or the name and the text of its error."""
    own = tuple(a.copy() for a in arguments)
    try:
        with np.errstate(all="ignore"):
            f(*own)
    except (ValueError, ArithmeticError, TypeError, ProgramError) as error:
        if isinstance(error, ProgramError):
            assert same(own, arguments), "the arrays have changed"
        return type(error).__name__, str(error)
    return "", own


def same(a: Any, b: Any) -> bool:
    """Return whether arrays have the same types and bits, but for the bits of NaN."""
    return all(p.dtype == q.dtype and _bits(p) == _bits(q) for p, q in zip(a, b, strict=True))


def _bits(a: Any) -> bytes:
    if a.dtype.kind == "f":
        a = np.where(np.isnan(a), a.dtype.type(np.nan), a)
    return bytes(np.ascontiguousarray(a).tobytes())


def arrays(times: int) -> tuple[Any, ...]:
    """Return arrays of all types with special values: float64, float32, int64, int32, bool."""
    u = np.array((REAL + EDGES) * times)
    with np.errstate(all="ignore"):
        k = np.resize(np.array(WHOLE), u.size)
        return u, u.astype(np.float32), k, k.astype(np.int32), np.arange(u.size) % 3 == 0
