"""Operations on Python's numbers, done by Python: what python_numbers.hpp does in kernels."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from cpufree.compiler.faults import Broken, Fault
from cpufree.compiler.operations import MATH


def _whole(f: Callable[..., int]) -> Callable[..., int]:
    """Return an operation on whole numbers whose result has to fit in 64 bits."""
    return lambda *args: _in_64_bits(f(*args))


def _in_64_bits(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise Broken(Fault.OVERFLOW)
    return value


def _by(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a division."""

    def divided(a: Any, b: Any) -> Any:
        if b == 0:
            raise Broken(Fault.DIVISION_BY_ZERO)
        result = f(a, b)
        return _in_64_bits(result) if isinstance(result, int) else result

    return divided


def _power(a: float, b: float) -> float:
    try:
        result = a**b
    except ZeroDivisionError:
        raise Broken(Fault.DIVISION_BY_ZERO) from None
    except OverflowError:
        raise Broken(Fault.RANGE) from None
    if isinstance(result, complex):
        raise Broken(Fault.COMPLEX)
    return float(result)


def _of_math(name: str) -> Callable[..., float]:
    f = getattr(math, name)

    def called(*args: float) -> float:
        try:
            return float(f(*args))
        except ValueError:
            raise Broken(Fault.DOMAIN) from None
        except OverflowError:
            raise Broken(Fault.RANGE) from None

    return called


def _to_int64(a: float) -> int:
    if math.isnan(a):
        raise Broken(Fault.NOT_A_NUMBER)
    if math.isinf(a):
        raise Broken(Fault.INFINITE)
    return _in_64_bits(int(a))


def _to_int32(a: float) -> int:
    value = _to_int64(a)
    if not -(2**31) <= value < 2**31:
        raise Broken(Fault.OUT_OF_INT32)
    return value


def _exponent(a: int) -> int:
    if a < 0:
        raise Broken(Fault.NEGATIVE_POWER)
    return a


def _index(i: int, n: int) -> int:
    if not -n <= i < n:
        raise Broken(Fault.OUT_OF_BOUNDS)
    return i % n


BY_PYTHON: dict[str, Callable[..., Any]] = {
    "py_add": _whole(operator.add),
    "py_subtract": _whole(operator.sub),
    "py_multiply": _whole(operator.mul),
    "py_negative": _whole(operator.neg),
    "py_absolute": _whole(operator.abs),
    "py_divide": _by(operator.truediv),
    "py_floor_divide": _by(operator.floordiv),
    "py_remainder": _by(operator.mod),
    "py_power": _power,
    "py_to_int64": _to_int64,
    "py_to_int32": _to_int32,
    "py_exponent": _exponent,
    "py_index": _index,
    "py_equal": operator.eq,
    "py_less": operator.lt,
    "py_less_equal": operator.le,
    "py_greater": operator.gt,
    "py_greater_equal": operator.ge,
    **{f"math_{name}": _of_math(name) for name in MATH if hasattr(math, name)},
}
"""Operations by their names in the representation, on plain numbers."""
